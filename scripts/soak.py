"""Stress-tests Proctor and prints a table of the results: kills, load, a full disk.

    python scripts/soak.py                                an hour or 200 kills, whichever comes first
    python scripts/soak.py --minutes 5 --kills 20

The kill attack starts a run, kills the command or its worker with SIGKILL at a random moment, and resumes, until the
run has finished. A case whose line was printed must be in the store exactly once, and an exit code of 0 must come with
a finished run of all cases in the store. Exits with 1 if any of this is violated. SOAK_SEED repeats the random choices
of an earlier run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.base.errors import ProctorError
from proctor.results.score import Outcome
from proctor.results.store.store import Store

AGENT = """
import random, time


def agent(question):
    time.sleep(random.uniform(0.005, 0.03))
    return question
"""
KILLED_CASES = 40
DISK_CASES = 200
DISK_SIZES = (1_000, 20_000, 60_000, 120_000, 200_000, 300_000)
"""How many bytes a file may have, as on a disk that fills up."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the table. `violations` counts results that must never happen."""

    attack: str
    tried: str
    result: str
    violations: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kills", type=int, default=200)
    options = parser.parse_args()
    seed = int(os.environ.get("SOAK_SEED", time.time_ns() % 1_000_000))
    print(f"SOAK_SEED={seed} repeats the choices of this run", file=sys.stderr)
    end = time.monotonic() + options.minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "agents.py").write_text(AGENT)
        findings = [fill_disk(project), load(project), kill(project, options.kills, end, random.Random(seed))]
    print("| attack | tried | result |\n|---|---|---|")
    for finding in findings:
        print(f"| {finding.attack} | {finding.tried} | {finding.result} |")
    violations = sum(finding.violations for finding in findings)
    print(f"\n{violations} violations")
    return int(violations > 0)


def write_suite(project: Path, cases: int) -> None:
    rows = [f"  - {{id: c{n}, input: q{n}, expected: q{n}}}" for n in range(cases)]
    head = "name: soak\nagent: agents.py:agent\nevaluators: [ExactMatch]\ncases:\n"
    (project / "suite.yaml").write_text(head + "\n".join(rows) + "\n")


def start(project: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "proctor", "test", "suite.yaml", *arguments]
    return subprocess.Popen(
        command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )


@contextlib.contextmanager
def open_store(folder: Path) -> Iterator[Store]:
    store = Store(folder, create=False)
    try:
        yield store
    finally:
        store.close()


def has_passed(folder: Path, cases: int) -> bool:
    """Whether the last run in a store is finished and has a passed trial of each case."""
    try:
        with open_store(folder) as store:
            run = store.runs(1)[0]
            trials = list(store.trials(run.no))
    except (ProctorError, IndexError):
        return False
    return run.finished_at is not None and len({t.case.id for t in trials if t.outcome is Outcome.PASSED}) == cases


def kill(project: Path, max_kills: int, end: float, dice: random.Random) -> Finding:
    """Kill runs at any moment, the command or its worker alone, and resume them until they have finished."""
    write_suite(project, KILLED_CASES)
    kills = runs = lost = duplicates = without_verdict = 0
    while kills < max_kills and time.monotonic() < end:
        runs += 1
        folder = project / f"store{runs}"
        printed: set[str] = set()
        while True:
            process = start(project, "-j", "3", "--store", str(folder), "--resume")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(dice.uniform(0.1, 2.5))
            if process.poll() is None:
                kills += 1
                _kill(process, worker=dice.random() < 0.5)
            out = process.communicate(timeout=60)[0]
            # Every case has its line; the words around it may change.
            printed |= set(re.findall(r"\bsoak/(c\d+)\b", out))
            if process.returncode == 0:
                without_verdict += not has_passed(folder, KILLED_CASES)
            if process.returncode == 0 or kills >= 2 * max_kills:
                break  # a worker that is killed after its verdict has delivered it
        if not printed:
            raise SystemExit("a finished run printed no line of a case, so this script cannot see what was lost")
        with open_store(folder) as store:
            stored = Counter((row.no, t.case.id, t.number) for row in store.runs() for t in store.trials(row.no))
        lost += len(printed - {case for _, case, _ in stored})
        duplicates += sum(count > 1 for count in stored.values())
    return Finding(
        "`kill -9` of the command or of its worker, then `--resume`",
        f"{kills} kills",
        f"{lost} printed trials lost, {duplicates} stored twice, {without_verdict} exits of 0 without a verdict",
        lost + duplicates + without_verdict,
    )


def _kill(process: subprocess.Popen[str], *, worker: bool) -> None:
    """Kill the command, or the process in which it runs the agent."""
    if worker:
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for child in children:
                os.kill(int(child), signal.SIGKILL)
            return
    process.kill()


def load(project: Path) -> Finding:
    """2,000 trials, 300 at once: each must get its own answer."""
    write_suite(project, 2000)
    folder = project / "load"
    process = start(project, "-j", "300", "-q", "--store", str(folder))
    process.communicate(timeout=900)
    with open_store(folder) as store:
        trials = list(store.trials(store.runs(1)[0].no))
    crossed = sum(trial.replies[0].text != trial.case.turns[0].input for trial in trials)
    violations = int(process.returncode != 0 or len(trials) != 2000) + crossed
    result = f"exit {process.returncode}, {crossed} answers crossed"
    return Finding("load: 2,000 trials, 300 at once", f"{len(trials):,} trials", result, violations)


def fill_disk(project: Path) -> Finding:
    """A run whose files cannot grow must not pass, and must not end in a traceback."""
    write_suite(project, DISK_CASES)
    wrong = 0
    for size in DISK_SIZES:

        def limit(size: int = size) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        folder = project / f"disk{size}"
        process = start(project, "--store", str(folder), preexec_fn=limit)
        out = process.communicate(timeout=300)[0]
        wrong += (process.returncode == 0 and not has_passed(folder, DISK_CASES)) or "Traceback" in out
    result = f"{wrong} passed or ended in a traceback"
    return Finding("a disk that is full after 1 to 300 KB", f"{len(DISK_SIZES)} runs", result, wrong)


if __name__ == "__main__":
    sys.exit(main())
