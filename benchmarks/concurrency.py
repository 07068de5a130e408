"""How close 200 cases of an agent that takes 50 ms come to the ideal when 20 may run at once.

Only the run itself counts, from its own start to its own end, so that imports do not blur the figure.
"""

from __future__ import annotations

import json
from pathlib import Path

from environments import HERE, Interpreter
from material import write_jsonl
from measuring import Contender, clean_environment, compare
from table import Row

PARALLEL = 20
AGENT_SECONDS = 0.05


def measure_concurrency(proctor: Interpreter, folder: Path, cases: int, rounds: int) -> list[Row]:
    ideal = cases / PARALLEL * AGENT_SECONDS
    rows = []
    for title, agent in (("async", "slow_async"), ("sync", "slow")):
        path = write_jsonl(folder / f"{agent}.jsonl", cases, agent)
        command = [str(proctor.python), str(HERE / "drive_proctor.py"), path.name, "store", str(PARALLEL)]
        contender = Contender(title, command, folder, clean_environment())
        seconds = min(_run_seconds(contender) for _ in range(rounds))
        share = ideal / seconds
        what = f"{cases} cases x 50 ms, {title} agent, -j {PARALLEL}"
        rows.append(Row(what, f"{share:.1%} of the ideal", "at least 90%", share >= 0.9))
    return rows


def _run_seconds(contender: Contender) -> float:
    printed = compare([contender], 1, warm_up=False)[contender.name].printed
    return float(json.loads(printed)["seconds"])
