"""What workers bring: two against one with an agent that computes, and how near waiting agents come to the ideal.

The load of the machine is printed beside the figures, since two workers that compute need two idle cores.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from environments import HERE
from material import write_jsonl
from measuring import Contender, clean_environment, measure
from table import Row

COMPUTED, WAITED = 40, 400
PARALLEL, WORKERS = 10, 2
AGENT_SECONDS = 0.05


def measure_workers(folder: Path, rounds: int) -> list[Row]:
    busy = write_jsonl(folder / "busy.jsonl", COMPUTED, "busy")
    slow = write_jsonl(folder / "slow_async.jsonl", WAITED, "slow_async")
    seconds: dict[str, float] = {}
    for _ in range(rounds):
        for name, path, workers, parallel in (
            ("one", busy, 1, 1),
            ("two", busy, 2, 1),
            ("waiting", slow, WORKERS, PARALLEL),
        ):
            took = _printed(folder, path, workers, parallel)["seconds"]
            seconds[name] = min(took, seconds.get(name, took))
    ideal = WAITED / (WORKERS * PARALLEL) * AGENT_SECONDS
    gain, share = seconds["one"] / seconds["two"], ideal / seconds["waiting"]
    sizes = [write_jsonl(folder / f"slow_{count}.jsonl", count, "slow_async") for count in (WAITED, 5 * WAITED)]
    cpu = [min(_printed(folder, path, WORKERS, 50)["cpu"] for _ in "12") for path in sizes]
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    return [
        Row("2 workers against 1, an agent that computes", f"{gain:.2f}x ({load})", "at least 1.8x", gain >= 1.8),
        Row(
            f"{WAITED} cases x 50 ms, {WORKERS} workers, -j {PARALLEL}",
            f"{share:.1%} of the ideal ({load})",
            "at least 90%",
            share >= 0.9,
        ),
        Row("CPU of the run's own process a trial, workers apart", f"{(cpu[1] - cpu[0]) / (4 * WAITED) * 1e6:.0f} us"),
    ]


def _printed(folder: Path, path: Path, workers: int, parallel: int) -> dict[str, float]:
    """The workers need Dask, which the base install does not have: this interpreter is measured."""
    command = [sys.executable, str(HERE / "drive_workers.py"), path.name, "store", str(workers), str(parallel)]
    found: dict[str, float] = json.loads(
        measure(Contender(path.stem, command, folder, clean_environment())).printed.splitlines()[-1]
    )
    return found
