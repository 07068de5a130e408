"""Evidence from pairs: one trial of the new version and one of the old version of an agent, in the same minutes.

Two hypotheses are compared: both versions pass a case with the same rate, whatever it is, or the new version passes it
less often. A bet names the two rates, `old` and `new`, before the pair is run. The outcome of the pair multiplies the
evidence by the factor

    probability of the outcome if the rates are `old` and `new`
    ------------------------------------------------------------------
    probability of the outcome if both rates are their mean

If the rates are equal, the expected value of this factor is at most 1, for every rate (Turner, Ly and Grünwald 2024).
The product over many pairs is therefore an e-value: if nothing is worse, it ever reaches 20 with a probability of at
most 1/20, no matter when one looks or stops (Ville's inequality). The weighted mean of e-values is one, too, so several
bets and several cases need no further correction.

Nothing is assumed about the rates themselves. A bad day of the provider lowers both, and changes nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Pair(NamedTuple):
    """The outcomes of one pair of trials: whether each version passed."""

    new: bool
    old: bool


class Bet(NamedTuple):
    """The pass rates that a bet assumes, and its share of the stake."""

    old: float
    new: float
    stake: float = 1.0

    def log_factor(self, pair: Pair) -> float:
        """The logarithm of what the pair multiplies the evidence with."""
        middle = (self.old + self.new) / 2
        bet = (self.new if pair.new else 1 - self.new) * (self.old if pair.old else 1 - self.old)
        same = (middle if pair.new else 1 - middle) * (middle if pair.old else 1 - middle)
        return math.log(bet / same)


PAIRS = (Pair(False, False), Pair(False, True), Pair(True, False), Pair(True, True))

BROKEN_CASE = (Bet(0.95, 0.0285, 0.3), Bet(0.95, 0.2375, 0.2), Bet(0.70, 0.021, 0.3), Bet(0.70, 0.175, 0.2))
"""Bets on a broken case: it passed nearly always or often, and passes almost never or a quarter as often now."""

_BROKEN_CASE_LOGS = {pair: tuple(bet.log_factor(pair) for bet in BROKEN_CASE) for pair in PAIRS}

DROPS = (0.05, 0.10, 0.20)
SOME_CASES, SOME_CASES_DROP = 0.2, 0.35
DROP_STAKES = (0.15, 0.35, 0.2, 0.3)
"""Bets on a drop of the whole suite: all rates by one of `DROPS`, or those of `SOME_CASES` of the cases by
`SOME_CASES_DROP`; and the stake of each of the four."""

MAX_LOG = 60.0
"""Evidence is not computed beyond e^60; a few dozen are enough for any verdict."""


class CaseEvidence:
    """The evidence that one case is broken."""

    def __init__(self) -> None:
        self._logs = [0.0] * len(BROKEN_CASE)

    def add(self, pair: Pair) -> None:
        """Count the pair."""
        self._logs = [total + log for total, log in zip(self._logs, _BROKEN_CASE_LOGS[pair], strict=True)]

    @property
    def value(self) -> float:
        return math.fsum(
            bet.stake * math.exp(min(log, MAX_LOG)) for bet, log in zip(BROKEN_CASE, self._logs, strict=True)
        )


class DropEvidence:
    """The evidence that the whole suite, or a good part of it, is worse."""

    def __init__(self) -> None:
        self._totals = [0.0] * len(DROPS)
        self._by_case: dict[object, float] = {}
        """For the last bet, by case: it assumes that only some cases dropped."""

    def add(self, case: object, bets: Sequence[Bet], pair: Pair) -> None:
        """Count the pair. `bets` are `drop_bets` of the case, made before the pair was run."""
        *everywhere, some = (bet.log_factor(pair) for bet in bets)
        self._totals = [total + log for total, log in zip(self._totals, everywhere, strict=True)]
        self._by_case[case] = self._by_case.get(case, 0.0) + some

    @property
    def value(self) -> float:
        some = math.fsum(math.log1p(SOME_CASES * math.expm1(min(log, MAX_LOG))) for log in self._by_case.values())
        logs = [*self._totals, some]
        return math.fsum(stake * math.exp(min(log, MAX_LOG)) for stake, log in zip(DROP_STAKES, logs, strict=True))


def drop_bets(rate: float) -> list[Bet]:
    """The bets on a drop for a case with about this pass rate."""
    rate = min(max(rate, 0.03), 0.99)
    return [Bet(rate, max(rate - drop, 0.03 * rate)) for drop in (*DROPS, SOME_CASES_DROP)]
