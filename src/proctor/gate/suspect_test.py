"""The test of one suspect: do its re-runs fail too often for its baseline?

Every re-run moves a score, the log of a likelihood ratio: how likely these outcomes are for a broken case, divided by
how likely they are for an unchanged one. Comparing the score with a fixed limit after every re-run would be wrong: the
gate looks after every trial and has many suspects, and with enough looks some unchanged case gets a high score. So the
p-value of a score is the probability that an unchanged case *ever* reaches it within the trials allowed
(`crossing_probability`), and that any of several does (`probability_any_crosses`). There are few enough sequences of
outcomes to count them all, so these probabilities are exact.

`CaseTest` is all that the decision needs to know of a test. `BaselineCaseTest` compares the new version with its
baseline. A test that runs an old version next to the new one would be another `CaseTest`, whose `next_arms` names both.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from typing import Protocol

from proctor.gate.beliefs import RateBelief
from proctor.results.gate_result import NEW_ARM

BROKEN = RateBelief(((1.0, 0.4, 2.0),))
"""The belief about the pass rate of a broken case: most often close to 0, sometimes up to a half."""

CLEAR_BELOW = -2.8
"""A suspect at or below this score is cleared: its re-runs are 16 times as likely for an unchanged case."""


class NullModel(Protocol):
    """The distribution of a suspect's scores if nothing changed. Similar suspects share one, so it is hashable."""

    def crossing_probability(self, score: float) -> float:
        """The probability that an unchanged case ever reaches the score."""

    def scores_possible(self) -> Iterable[float]:
        """All scores that sequences of outcomes can have."""


class CaseTest(Protocol):
    """The evidence that one case is broken. It gets the outcomes of re-runs, one by one, but not the outcome that made
    the case a suspect."""

    @property
    def null(self) -> NullModel: ...
    @property
    def score(self) -> float:
        """How strong the evidence for a broken case is now; 0 if there is none either way."""

    @property
    def highest_score(self) -> float | None:
        """The highest score so far; `None` without an outcome."""

    @property
    def reachable_score(self) -> float:
        """The highest score that the remaining trials can lead to."""

    @property
    def is_unchanged(self) -> bool:
        """Whether the outcomes show that the case is not broken."""

    @property
    def is_exhausted(self) -> bool:
        """Whether further outcomes no longer count."""

    def record(self, arm: str, passed: bool) -> None:
        """Count the outcome of a re-run with one version of the agent."""

    def next_arms(self) -> tuple[str, ...]:
        """The versions of the agent to run next, once each and in this order."""


class ScoreTable:
    """The score after every possible number of trials and passes, and the probability that an unchanged case has it."""

    def __init__(self, usual: RateBelief, trials: int) -> None:
        self.trials = trials
        self._usual = usual.sequence_probabilities(trials)
        broken = _broken_probabilities(trials)
        self.scores = [_log_ratios(*rows) for rows in zip(broken, self._usual, strict=True)]
        """`[n][passes]`: the score after `n` re-runs."""
        self._crossing: dict[float, float] = {}

    def reachable(self, trials: int, passes: int) -> float:
        """The highest score that can still be reached: all remaining trials fail."""
        return max(self.scores[n][passes] for n in range(trials, self.trials + 1))

    def scores_possible(self) -> Iterable[float]:
        return (score for row in self.scores[1:] for score in row)

    def crossing_probability(self, score: float) -> float:
        """The probability that an unchanged case reaches the score after any of its trials."""
        if score not in self._crossing:
            self._crossing[score] = self._count_crossings(score - 1e-9)
        return self._crossing[score]

    def _count_crossings(self, score: float) -> float:
        # `ways`: how many sequences have this number of passes and never crossed the score; they are equally likely.
        ways, crossed = [1], 0.0
        for n in range(1, self.trials + 1):
            scores, probabilities = self.scores[n], self._usual[n]
            reached = [0] * (n + 1)
            for passes, count in enumerate(ways):
                reached[passes] += count
                reached[passes + 1] += count
            for passes, count in enumerate(reached):
                if count and scores[passes] >= score:
                    crossed += count * probabilities[passes]
                    reached[passes] = 0
            ways = reached
        return min(1.0, crossed)


def _log_ratios(broken: list[float], usual: list[float]) -> list[float]:
    """The scores by number of passes. They never rise with more passes, even where the tails of the beliefs would."""
    ratios = [math.log(one / max(other, 1e-300)) for one, other in zip(broken, usual, strict=True)]
    return list(accumulate(ratios, min))


@lru_cache(maxsize=64)
def _broken_probabilities(trials: int) -> list[list[float]]:
    return BROKEN.sequence_probabilities(trials)


class BaselineCaseTest:
    """Compares the re-runs of a suspect with its baseline: a `CaseTest` that runs the new version only."""

    def __init__(self, table: ScoreTable) -> None:
        self.null = table
        self.highest_score: float | None = None
        self._trials = 0
        self._passes = 0

    @property
    def score(self) -> float:
        return self.null.scores[self._trials][self._passes] if self._trials else 0.0

    @property
    def reachable_score(self) -> float:
        return self.null.reachable(self._trials, self._passes)

    @property
    def is_unchanged(self) -> bool:
        return self._trials > 0 and self.score <= CLEAR_BELOW

    @property
    def is_exhausted(self) -> bool:
        return self._trials >= self.null.trials

    def record(self, arm: str, passed: bool) -> None:
        if self.is_exhausted:  # the probabilities are computed for this many trials
            return
        self._trials += 1
        self._passes += passed
        self.highest_score = self.score if self.highest_score is None else max(self.highest_score, self.score)

    def next_arms(self) -> tuple[str, ...]:
        return (NEW_ARM,)


def probability_any_crosses(models: Counter[NullModel], score: float) -> float:
    """The probability that at least one of these suspects reaches the score if none has changed."""
    none = 0.0
    for model, count in models.items():
        crossing = model.crossing_probability(score)
        if crossing >= 1:
            return 1.0
        none += count * math.log1p(-crossing)
    return -math.expm1(none)


def critical_score(models: Counter[NullModel], alpha: float) -> float:
    """The lowest score that these suspects, if all are unchanged, reach with a probability of at most `alpha`."""
    scores = sorted({score for model in models for score in model.scores_possible()})
    at = bisect_left(scores, True, key=lambda score: probability_any_crosses(models, score) <= alpha)
    return scores[at] if at < len(scores) else math.inf
