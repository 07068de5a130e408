"""Whether failures differ between days more than chance allows, although the agent is the same.

Both tests shuffle: if the rates of all cases are what they were, the failures of a case fall on its trials of all days
like a random shuffle, whatever its rate (`suite_test`). `chance_of_failures` compares today with the baseline, and
`days_differ` the recorded runs with each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from proctor.gate.suite_test import BaselineSuiteTest, CaseCounts


class Counts(NamedTuple):
    """Passes and trials of a case."""

    passes: int
    trials: int

    @property
    def failures(self) -> int:
        return self.trials - self.passes


def chance_of_failures(cases: Iterable[tuple[Counts, Counts]]) -> float:
    """The probability of at least as many failures now. For each case: what was recorded, and what was seen now."""
    counts = (CaseCounts(*before, *now) for before, now in cases if now.trials)
    return BaselineSuiteTest(counts, weighted=False).p_worse


def days_differ(runs: Sequence[Sequence[Counts]], level: float = 0.03) -> bool:
    """Whether recorded runs differ in their failures more than chance allows. Each run has the same cases, in order."""
    if len(runs) < 3:
        return False
    totals = [Counts(sum(c.passes for c in case), sum(c.trials for c in case)) for case in zip(*runs, strict=True)]
    value = 0.0
    for run in runs:
        surplus = variance = 0.0
        for case, total in zip(run, totals, strict=True):
            if not total.trials:
                continue
            expected = total.failures * case.trials / total.trials
            surplus += case.failures - expected
            left = (total.trials - case.trials) / max(total.trials - 1, 1)
            variance += expected * (1 - total.failures / total.trials) * left
        value += surplus**2 / max(variance, 1e-9)
    freedom = len(runs) - 1
    return _chi_square_tail(value * freedom / len(runs), freedom) <= level


def _chi_square_tail(value: float, freedom: int) -> float:
    """The upper tail of a chi-square distribution, by the approximation of Wilson and Hilferty."""
    spread = 2 / (9 * freedom)
    return 0.5 * math.erfc(((value / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(2 * spread))
