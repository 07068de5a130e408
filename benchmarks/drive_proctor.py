"""Runs a suite through Proctor's Python interface and prints what came of it: FILE STORE PARALLEL."""

from __future__ import annotations

import json
import sys

import proctor


def main(path: str, store: str, parallel: str) -> None:
    run = proctor.run(path, settings=proctor.Settings(parallel=int(parallel)), store=store)
    passed = sum(summary.outcome is proctor.Outcome.PASSED for summary in run.summaries)
    if passed != len(run.summaries):
        sys.exit(f"only {passed} of {len(run.summaries)} trials passed")
    print(json.dumps({"cases": passed, "seconds": (run.finished_at or 0.0) - run.started_at}))


if __name__ == "__main__":
    main(*sys.argv[1:])
