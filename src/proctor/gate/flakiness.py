"""Flaky cases: which cases both pass and fail, and whether the agent varies or its judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from proctor.gate.baseline import Baseline, BaselineLine, CaseBaseline
from proctor.results.run import Outcome


def flaky_cases(lines: Iterable[BaselineLine]) -> list[CaseBaseline]:
    """The cases with both outcomes, each as it was last, the most uncertain first."""

    def certainty(case: CaseBaseline) -> tuple[float, int]:
        assert case.record
        return abs(case.record.passes / case.record.trials - 0.5), -case.record.trials

    return sorted((case for case in Baseline(lines).latest_cases() if case.is_flaky), key=certainty)


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """How much of a case's variation comes from the agent, and how much from judging the same answer again."""

    answers: int
    judgements: int
    agent: float
    judge: float
    """Shares of the variance of passing; together 1, or both 0 where nothing varied."""


def split_variance(judged: Iterable[Sequence[Outcome]]) -> VarianceSplit | None:
    """By answer, how it was judged each time (one-way analysis of variance).

    The variance within answers is the judge's; what their means vary beyond that is the agent's.
    """
    settled = [[float(o is Outcome.PASSED) for o in row if o in (Outcome.PASSED, Outcome.FAILED)] for row in judged]
    rows = [row for row in settled if len(row) > 1]
    if not rows:
        return None
    often = sum(map(len, rows)) / len(rows)
    within = fmean(variance(row) for row in rows)
    means = [fmean(row) for row in rows]
    between = max(0.0, variance(means) - within / often) if len(means) > 1 else 0.0
    total = within + between
    judge = within / total if total > 0 else 0.0
    return VarianceSplit(len(rows), min(map(len, rows)), between / total if total > 0 else 0.0, judge)
