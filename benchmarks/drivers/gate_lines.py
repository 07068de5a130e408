"""Reads simulated suites and writes verdicts, for the drivers of rival gates.

Each line of the input is one suite: `{"before": [[1, 0, ...], ...], "now": [[1], ...]}` has, for each case, the
outcomes of the old and of the new version. Each line of the output is `{"verdict": "red", "trials": 50}`: `red`,
`inconclusive` or `green`, and the trials of the new version that were used.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

Outcomes = list[list[bool]]
"""For each case, whether each of its trials passed."""

RED, INCONCLUSIVE, GREEN = "red", "inconclusive", "green"


def answer_lines(decide: Callable[[Outcomes, Outcomes], tuple[str, int]]) -> None:
    """Write the verdict of `decide(before, now)` and the trials it used, for each line of the input."""
    for line in sys.stdin:
        suite = json.loads(line)
        before, now = ([[bool(passed) for passed in case] for case in suite[key]] for key in ("before", "now"))
        verdict, trials = decide(before, now)
        print(json.dumps({"verdict": verdict, "trials": trials}), flush=True)


def count(outcomes: Outcomes) -> int:
    return sum(len(case) for case in outcomes)
