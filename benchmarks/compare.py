"""What `proctor compare` says of two runs of one and the same agent, and what comparing 10,000 cases costs.

Run as `python benchmarks/compare.py [--pairs N] [--cases N] [--seed N] [--jobs N]`. Runs are compared by the function
behind the command; the second part stores two runs and calls the command itself. Times are shown, never asserted.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from proctor.agents.agent import Reply, ToolCall, Usage
from proctor.cases.suite import Case, Criteria, EvaluatorSpec, Expected, Turn
from proctor.results.compare_runs import compare_runs
from proctor.results.run import Outcome, Run, Score, SuiteInfo, TrialResult, TrialSummary
from proctor.results.run_info import RunInfo
from proctor.results.store import Store

SETTINGS = [(20, 1), (50, 1), (200, 1), (20, 3), (50, 5)]
"""Cases and repeats."""


def usual_rate(rng: random.Random) -> float:
    """Seven of ten cases nearly certain, three of ten flaky."""
    return rng.betavariate(60, 1) if rng.random() < 0.7 else rng.betavariate(5, 2)


def make_cases(count: int) -> list[Case]:
    evaluators = (EvaluatorSpec("ExactMatch"),)
    return [
        Case(f"case-{at}", (Turn(f"Question {at}?", Expected(output=f"Answer {at}.")),), evaluators=evaluators)
        for at in range(count)
    ]


def make_trials(cases: Sequence[Case], rates: Sequence[float], repeats: int, rng: random.Random) -> list[TrialResult]:
    trials = []
    for case, rate in zip(cases, rates, strict=True):
        for number in range(1, repeats + 1):
            passed = rng.random() < rate
            outcome = Outcome.PASSED if passed else Outcome.FAILED
            score = Score("ExactMatch", outcome, float(passed), 0.5, fingerprint="f")
            calls = (ToolCall("look_up", {"question": case.id}, {"found": passed}),)
            reply = Reply("Right." if passed else "Wrong.", calls, Usage(100, 20, 0.001, 1))
            made = {"replies": (reply,), "scores": (score,), "duration_ms": 100 * rng.random(), "agent": "a"}
            trials.append(TrialResult("suite", case, number, len(trials), outcome, **made))  # type: ignore[arg-type]
    return trials


def make_run(name: str, trials: list[TrialResult], cases: int) -> Run:
    return Run(name, 0.0, (_info(cases, len(trials)),), [TrialSummary.of(trial) for trial in trials], trials)


def _info(cases: int, planned: int) -> SuiteInfo:
    return SuiteInfo("suite", None, "native", "agent", "a", Criteria(), cases, planned)


def alarms(setting: tuple[int, int], pairs: int, seed: int) -> tuple[int, int]:
    """How often two runs of one agent were called worse or better, and how often an evaluator was said to differ."""
    count, repeats = setting
    rng = random.Random(f"{setting} {seed}")
    cases = make_cases(count)
    found = differing = 0
    for _ in range(pairs):
        rates = [usual_rate(rng) for _ in cases]
        one, other = (make_run(name, make_trials(cases, rates, repeats, rng), count) for name in ("one", "other"))
        comparison = compare_runs(one, other)
        found += comparison.verdict in ("regression", "improvement")
        differing += any(item.differs for item in comparison.evaluators)
    return found, differing


def show_alarms(pairs: int, seed: int, jobs: int) -> None:
    print(f"Two runs of one and the same agent, {pairs:,} pairs each: how often they are called different\n")
    print("| cases | runs of each | sentence says worse or better | an evaluator is said to differ |")
    print("|---|---|---|---|")
    chunks = [pairs // jobs + (at < pairs % jobs) for at in range(jobs)]
    with ProcessPoolExecutor(jobs) as pool:
        for setting in SETTINGS:
            done = list(pool.map(partial(alarms, setting), chunks, [seed * 1000 + at for at in range(jobs)]))
            found, differing = (sum(column) / pairs for column in zip(*done, strict=True))
            print(f"| {setting[0]} | {setting[1]} | {found:.1%} | {differing:.1%} |", flush=True)


def show_cost(count: int, seed: int) -> None:
    """Two stored runs of so many cases, compared by the command."""
    with tempfile.TemporaryDirectory() as folder:
        rng = random.Random(seed)
        cases = make_cases(count)
        rates = [usual_rate(rng) for _ in cases]
        store = Store(Path(folder) / ".proctor")
        for name in ("one", "other"):
            info = RunInfo(suites=(_info(count, count),), planned=count, judges=())
            no = store.add_run(name, "plan", info)
            store.add_trials(no, make_trials(cases, rates, 1, rng))
            store.finish_run(no, "finished", info)
        store.close()
        began, before = time.perf_counter(), os.times()
        command = [sys.executable, "-m", "proctor", "compare", "one", "other", "-q"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        after = os.times()
        cpu = after.children_user - before.children_user + after.children_system - before.children_system
        wall = time.perf_counter() - began
        print(
            f"\n`proctor compare` of two runs of {count:,} cases: {cpu:.1f} s of CPU time ({wall:.1f} s by the clock)"
        )
        print(done.stdout.strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    if given.pairs:
        show_alarms(given.pairs, given.seed, given.jobs)
    if given.cases:
        show_cost(given.cases, given.seed)


if __name__ == "__main__":
    main()
