"""Runs a suite on workers and prints how long its trials took, from the first to the last: FILE STORE WORKERS PARALLEL.

Starting the workers does not count: it takes about two seconds, once a run.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from proctor.cases.formats.loading import load
from proctor.cases.suite import Settings
from proctor.results.run import Outcome
from proctor.running.options import ClusterOptions, RunOptions
from proctor.running.run_suites import Request, run_suites


def main(path: str, store: str, workers: str, parallel: str) -> None:
    options = RunOptions(given=Settings(parallel=int(parallel)), cluster=ClusterOptions(workers=int(workers)))
    run, _ = run_suites(Request(load([path]), options, store=Path(store)))
    trials = list(run.trials)
    passed = sum(trial.outcome is Outcome.PASSED for trial in trials)
    if passed != len(trials):
        sys.exit(f"only {passed} of {len(trials)} trials passed")
    began = min(trial.started_at for trial in trials)
    ended = max(trial.started_at + trial.duration_ms / 1000 for trial in trials)
    print(json.dumps({"cases": passed, "seconds": ended - began, "cpu": time.process_time()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
