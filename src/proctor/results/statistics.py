"""Numbers with their uncertainty: intervals for shares and means, and what repeats say about reliability."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from proctor.base.records import record

Z_95 = 1.959963984540054


@record
class Estimate:
    """A mean of values between 0 and 1, with its 95 % interval."""

    mean: float
    low: float
    high: float
    count: int
    """How many independent observations it rests on."""

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate(values: Sequence[float], *, groups: Sequence[str] | None = None) -> Estimate | None:
    """The mean with Wilson's interval; `None` of no values.

    Values between 0 and 1 vary at most as much as a coin of the same mean does, so the interval is never too narrow,
    and unlike a normal one it does not collapse when all values agree. Repeats of one case say more about that case
    than about the next one: with `groups`, each group's mean counts as one observation, unless there is only one group.
    """
    if not values:
        return None
    observed = list(values)
    if groups is not None and len(set(groups)) > 1:
        observed = _group_means(values, groups)
    mean = math.fsum(observed) / len(observed)
    low, high = wilson(mean, len(observed))
    return Estimate(mean, low, high, len(observed))


def wilson(share: float, count: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval of a share observed `count` times."""
    if count <= 0:
        return 0.0, 1.0
    share = min(1.0, max(0.0, share))
    spread = z * z / count
    centre = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    low = 0.0 if share == 0 else max(0.0, centre - half)
    high = 1.0 if share == 1 else min(1.0, centre + half)
    return min(low, share), max(high, share)


def pass_hat_k(passed: int, trials: int, k: int) -> float:
    """The chance that `k` trials drawn from those made all pass."""
    return math.comb(passed, k) / math.comb(trials, k)


def pass_at_k(passed: int, trials: int, k: int) -> float:
    """The chance that at least one of `k` trials drawn from those made passes."""
    return 1 - math.comb(trials - passed, k) / math.comb(trials, k)


def mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return math.fsum(known) / len(known) if known else None


def _group_means(values: Sequence[float], groups: Sequence[str]) -> list[float]:
    members: dict[str, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        members.setdefault(group, []).append(value)
    return [math.fsum(group) / len(group) for group in members.values()]
