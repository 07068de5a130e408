"""regression-substrate decides on simulated suites; see `gate_lines.py` for input and output.

`regression_substrate.gate` decides, as its template and `regsub` call it, on what `assemble_records` makes of one
record per trial with a score of 0 or 1. Settings are the defaults of `gate`, which are those of a judge without errors.
REGRESSION means that the interval of the mean difference is below 0, SHIP that it is above 0, and HOLD anything else.
`regsub` exits with 1 on REGRESSION and on HOLD; only REGRESSION counts as red here.
"""

from __future__ import annotations

from gate_lines import GREEN, INCONCLUSIVE, RED, Outcomes, answer_lines, count
from regression_substrate import assemble_records, gate

VERDICTS = {"SHIP": GREEN, "SHIP_WITH_FLAGS": GREEN, "REGRESSION": RED, "HOLD": INCONCLUSIVE}


def records(version: str, outcomes: Outcomes) -> list[dict[str, object]]:
    return [
        {"input": f"case-{case}", "version": version, "score": float(passed), "replicate": number}
        for case, trials in enumerate(outcomes)
        for number, passed in enumerate(trials)
    ]


def decide(before: Outcomes, now: Outcomes) -> tuple[str, int]:
    old, new, clusters, _ = assemble_records([*records("old", before), *records("new", now)], "old", "new")
    return VERDICTS[gate(old, new, clusters).verdict], count(now)


if __name__ == "__main__":
    answer_lines(decide)
