"""Flaky cases: which cases both pass and fail, and whether the agent or the judge varies.

Judging each answer once cannot tell the two apart, because both change the outcome. So the same answers are judged
several times: the variance within one answer is the judge's, and what the means of answers vary beyond that is the
agent's (one-way analysis of variance).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, variance

from proctor.gate.baseline import Baseline, BaselineLine, CaseBaseline
from proctor.results.score import Outcome


def flaky_cases(baseline: Iterable[BaselineLine], current: Iterable[BaselineLine] = ()) -> list[CaseBaseline]:
    """The cases that both passed and failed in their latest version, those closest to 50 % first.

    `current` has the runs of the present version of the agent, which may be another one than the baseline's. A case
    that passes in the one and fails in the other is not flaky but broken, so it must vary within one of them.
    """
    parts = [Baseline(baseline), Baseline(current)]
    together = Baseline(line for part in parts for line in part.lines)

    def certainty(case: CaseBaseline) -> tuple[float, int]:
        assert case.record
        return abs(case.record.passes / case.record.trials - 0.5), -case.record.trials

    flaky = (case for case in together.latest_cases() if any(part.lookup(case.identity).is_flaky for part in parts))
    return sorted(flaky, key=certainty)


def changed_with(case: CaseBaseline) -> str:
    """The run with which a case changed for good, if no run is mixed and it changed only once; else nothing.

    That is what a change outside of the agent's code looks like, such as another environment variable or another
    version of a service. Two runs alone cannot show whether it is that, or chance.
    """
    rates = [(run, counts.passes / counts.trials) for run, counts in case.counts_by_run.items()]
    if any(0 < rate < 1 for _, rate in rates):
        return ""
    changes = [run for (_, before), (run, after) in pairwise(rates) if before != after]
    return changes[0] if len(changes) == 1 else ""


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """How much of a case's variation comes from the agent, and how much from its judge."""

    answers: int
    judgements: int
    agent: float
    judge: float
    """`agent` and `judge` are shares of the variance of passing: together 1, or both 0 if nothing varied."""


def split_variance(judged: Iterable[Sequence[Outcome]]) -> VarianceSplit | None:
    """Split the variance of passing; `judged` has the outcomes of each answer. `None` if no answer has two outcomes."""
    decided = [[float(o is Outcome.PASSED) for o in row if o in (Outcome.PASSED, Outcome.FAILED)] for row in judged]
    rows = [row for row in decided if len(row) > 1]
    if not rows:
        return None
    mean_count = sum(map(len, rows)) / len(rows)
    within = fmean(variance(row) for row in rows)
    means = [fmean(row) for row in rows]
    between = max(0.0, variance(means) - within / mean_count) if len(means) > 1 else 0.0
    total = within + between
    judge = within / total if total > 0 else 0.0
    return VarianceSplit(len(rows), min(map(len, rows)), between / total if total > 0 else 0.0, judge)
