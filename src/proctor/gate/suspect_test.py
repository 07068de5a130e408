"""The test of one suspect: do its fresh trials fail too often for what is usual of it?

Every fresh trial moves a score, the log of a likelihood ratio: how likely these outcomes are for a broken case over
how likely they are for a case as usual. A high score alone proves nothing, because the gate looks after every trial
and has many suspects: with enough looks, some unchanged case climbs high. So a score is judged by how likely an
unchanged case *ever* climbs to it within the trials allowed (`crossing_probability`), and how likely any of several
does (`probability_any_crosses`). There are few enough sequences of outcomes to count them all, so that these are
exact.

`CaseTest` is what the decision needs to know of a test. `BaselineCaseTest` holds the new version against its recorded
trials. A test that runs an old version beside the new one is another `CaseTest`: its `next_arms` names both.
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
"""The rate of a case that broke: most often close to 0, sometimes up to a half."""

CLEAR_BELOW = -2.8
"""The score at which a suspect behaves as usual: a broken case would do so a sixteenth as often."""


class NullModel(Protocol):
    """What the scores of a suspect do if nothing changed. Suspects that are alike share one, so it is hashable."""

    def crossing_probability(self, score: float) -> float:
        """The probability that an unchanged case ever reaches the score."""

    def scores_possible(self) -> Iterable[float]:
        """All scores that some sequence of outcomes can have."""


class CaseTest(Protocol):
    """The evidence that one case is broken. Outcomes come in one by one; the one that made it a suspect is not among
    them."""

    @property
    def null(self) -> NullModel: ...
    @property
    def score(self) -> float:
        """How much speaks for a broken case now; 0 if nothing does either way."""

    @property
    def highest_score(self) -> float | None:
        """The highest score after any outcome so far; `None` without an outcome."""

    @property
    def reachable_score(self) -> float:
        """The highest score that the trials still allowed can lead to."""

    @property
    def is_unchanged(self) -> bool:
        """Whether the outcomes speak against a broken case."""

    @property
    def is_exhausted(self) -> bool:
        """Whether no further outcome counts."""

    def record(self, arm: str, passed: bool) -> None:
        """Count the outcome of a fresh trial of one version of the agent."""

    def next_arms(self) -> tuple[str, ...]:
        """The versions of the agent to run once each, in this order, for the next piece of evidence."""


class ScoreTable:
    """The score after every possible number of trials and passes, and how likely an unchanged case reaches it."""

    def __init__(self, usual: RateBelief, trials: int) -> None:
        self.trials = trials
        self._usual = usual.sequence_probabilities(trials)
        broken = _broken_probabilities(trials)
        self.scores = [_log_ratios(*rows) for rows in zip(broken, self._usual, strict=True)]
        """`[n][passes]`: the score after `n` fresh trials."""
        self._crossing: dict[float, float] = {}

    def reachable(self, trials: int, passes: int) -> float:
        """The highest score that is still ahead after so many trials: every further trial fails."""
        return max(self.scores[n][passes] for n in range(trials, self.trials + 1))

    def scores_possible(self) -> Iterable[float]:
        return (score for row in self.scores[1:] for score in row)

    def crossing_probability(self, score: float) -> float:
        """The probability that an unchanged case reaches the score after any of its trials."""
        if score not in self._crossing:
            self._crossing[score] = self._count_crossings(score - 1e-9)
        return self._crossing[score]

    def _count_crossings(self, score: float) -> float:
        # `ways`: how many sequences lead to so many passes without having crossed; all of them are equally likely
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
    """More passes never speak louder for a broken case, whatever the tails of the two beliefs would say."""
    ratios = [math.log(one / max(other, 1e-300)) for one, other in zip(broken, usual, strict=True)]
    return list(accumulate(ratios, min))


@lru_cache(maxsize=64)
def _broken_probabilities(trials: int) -> list[list[float]]:
    return BROKEN.sequence_probabilities(trials)


class BaselineCaseTest:
    """A suspect's fresh trials against its recorded ones: a `CaseTest` of the new version alone."""

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
        if self.is_exhausted:  # trials beyond those that the probabilities were computed for
            return
        self._trials += 1
        self._passes += passed
        self.highest_score = self.score if self.highest_score is None else max(self.highest_score, self.score)

    def next_arms(self) -> tuple[str, ...]:
        return (NEW_ARM,)


def probability_any_crosses(models: Counter[NullModel], score: float) -> float:
    """The probability that at least one of these suspects reaches the score although none has changed."""
    none = 0.0
    for model, count in models.items():
        crossing = model.crossing_probability(score)
        if crossing >= 1:
            return 1.0
        none += count * math.log1p(-crossing)
    return -math.expm1(none)


def critical_score(models: Counter[NullModel], alpha: float) -> float:
    """The lowest score that any of these suspects, all unchanged, reaches with a probability of at most `alpha`."""
    scores = sorted({score for model in models for score in model.scores_possible()})
    at = bisect_left(scores, True, key=lambda score: probability_any_crosses(models, score) <= alpha)
    return scores[at] if at < len(scores) else math.inf
