"""How far two raters agree, a judge and people or two people, and what that says about a pass rate.

Accuracy, Cohen's kappa and hit rates with their intervals; the threshold that fits people's labels best; and a pass
rate corrected by the judge's known mistakes. The viewer shows agreement, and reports show corrected rates; what else
`proctor calibrate` measures is in `proctor.calibration`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proctor.cases.threshold import passes
from proctor.results.statistics import Z_95, Estimate, share_of, wilson

RESAMPLES = 1000
_SEED = 20240229
_LEAST_SKILL = 0.1
"""A judge that is right about passes and failures little more often than a coin says nothing about a pass rate."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with its 95 % interval; unlike a share it may be below 0."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """A judge's verdicts beside people's, on the same rows."""

    count: int
    base_rate: float
    """The share of rows that people passed: what always saying "passed" would get right."""
    accuracy: Estimate
    kappa: Interval | None
    """Agreement beyond chance; `None` where chance alone would agree on every row."""
    true_positive_rate: Estimate | None
    """Of the rows that people passed, the share that the judge passed; `None` of no such rows."""
    true_negative_rate: Estimate | None
    """Of the rows that people failed, the share that the judge failed; `None` of no such rows."""


@dataclass(frozen=True, slots=True)
class SuggestedThreshold:
    """A threshold chosen on one half of the rows, with what it does on the other half."""

    value: float
    chosen_on: JudgeAgreement
    checked_on: JudgeAgreement


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """The pass rate a perfect judge would have seen, or why it cannot be told."""

    value: float | None
    low: float
    high: float
    reason: str


def judge_agreement(verdicts: Sequence[bool], labels: Sequence[bool]) -> JudgeAgreement:
    """Compares a judge's verdicts with people's; refuses to compare nothing."""
    check_same_length(verdicts, labels)
    hits = sum(bool(verdict) == bool(label) for verdict, label in zip(verdicts, labels, strict=True))
    positives = [bool(verdict) for verdict, label in zip(verdicts, labels, strict=True) if label]
    negatives = [not verdict for verdict, label in zip(verdicts, labels, strict=True) if not label]
    return JudgeAgreement(
        len(labels),
        len(positives) / len(labels),
        share_of(hits, len(labels)),
        kappa(verdicts, labels),
        share_of(sum(positives), len(positives)) if positives else None,
        share_of(sum(negatives), len(negatives)) if negatives else None,
    )


def kappa(verdicts: Sequence[bool], labels: Sequence[bool]) -> Interval | None:
    """Cohen's kappa; the interval is a percentile bootstrap of the four counts with a fixed seed.

    Where every sample gives the same, as with full agreement on a few rows, it is that of the agreement itself.
    """
    check_same_length(verdicts, labels)
    pairs = [(bool(verdict), bool(label)) for verdict, label in zip(verdicts, labels, strict=True)]
    cells = [pairs.count(cell) for cell in ((True, True), (True, False), (False, True), (False, False))]
    value = _kappa(cells)
    if value is None:
        return None
    low, high = _bootstrap(cells, _kappa)
    if low == high:
        agreed = wilson((cells[0] + cells[3]) / len(pairs), len(pairs))
        chance = _chance(cells)
        low, high = (max(-1.0, (share - chance) / (1 - chance)) for share in agreed)
    return Interval(value, min(low, value), max(high, value))


def suggest_threshold(scores: Sequence[float], labels: Sequence[bool]) -> SuggestedThreshold | None:
    """The threshold that is best balanced on the even rows, reported on the odd ones; `None` if a half lacks a kind.

    Balanced means the highest sum of the true-positive and the true-negative rate. A row passes at or above it.
    """
    check_same_length(scores, labels)
    halves = [(list(scores[start::2]), [bool(label) for label in labels[start::2]]) for start in (0, 1)]
    if any(not any(half[1]) or all(half[1]) for half in halves):
        return None
    value = _best_cut(*halves[0])
    chosen, checked = (judge_agreement([passes(score, value) for score in half[0]], half[1]) for half in halves)
    return SuggestedThreshold(value, chosen, checked)


def corrected_pass_rate(observed: Estimate, agreement: JudgeAgreement) -> CorrectedRate:
    """What is left of an observed pass rate once the judge's known mistakes are taken out (Rogan and Gladen).

    The interval adds the variances of the three shares it rests on (delta method) and is clamped to 0..1.
    """
    hits, rejections = agreement.true_positive_rate, agreement.true_negative_rate
    if hits is None or rejections is None:
        return CorrectedRate(None, 0.0, 1.0, "the labelled rows need both passed and failed ones")
    skill = hits.mean + rejections.mean - 1
    if skill < _LEAST_SKILL:
        return CorrectedRate(None, 0.0, 1.0, f"the judge hardly tells passed from failed (skill {skill:.2f})")
    value = (observed.mean + rejections.mean - 1) / skill
    variance = (_variance(observed) + value**2 * _variance(hits) + (1 - value) ** 2 * _variance(rejections)) / skill**2
    half = Z_95 * math.sqrt(variance)
    clamped = min(1.0, max(0.0, value))
    low, high = min(clamped, max(0.0, value - half)), max(clamped, min(1.0, value + half))
    return CorrectedRate(
        clamped, low, high, f"corrected by the judge's hit rates {hits.mean:.2f} and {rejections.mean:.2f}"
    )


def check_same_length(one: Sequence[object], other: Sequence[object]) -> None:
    """Raise `ValueError` unless there are as many of the one as of the other, and some."""
    if len(one) != len(other):
        raise ValueError(f"{len(one)} values cannot be compared with {len(other)}")
    if not one:
        raise ValueError("there are no rows to compare")


def _kappa(cells: Sequence[int]) -> float | None:
    both, neither, count = cells[0], cells[3], sum(cells)
    chance = _chance(cells)
    return None if chance >= 1 else ((both + neither) / count - chance) / (1 - chance)


def _chance(cells: Sequence[int]) -> float:
    """How often judge and people would agree if neither knew of the other."""
    both, only_judge, only_people, _ = cells
    count = sum(cells)
    judge, people = (both + only_judge) / count, (both + only_people) / count
    return judge * people + (1 - judge) * (1 - people)


def _bootstrap(cells: list[int], statistic: Callable[[Sequence[int]], float | None]) -> tuple[float, float]:
    source = random.Random(_SEED)  # noqa: S311  resampling needs repeatable draws, not secret ones
    count = sum(cells)
    found: list[float] = []
    for _ in range(RESAMPLES):
        drawn = _resampled(cells, count, source)
        value = statistic(drawn)
        if value is not None:
            found.append(value)
    found.sort()
    if not found:
        return -1.0, 1.0
    return found[int(0.025 * (len(found) - 1))], found[math.ceil(0.975 * (len(found) - 1))]


def _resampled(cells: list[int], count: int, source: random.Random) -> list[int]:
    """As many rows drawn again with replacement: one binomial draw a cell, which costs nothing on many rows."""
    left, drawn, remaining = count, [], count
    for cell in cells[:-1]:
        chance = cell / remaining if remaining else 0.0
        taken = _binomial(left, min(1.0, chance), source)
        drawn.append(taken)
        left -= taken
        remaining -= cell
    return [*drawn, left]


def _binomial(count: int, chance: float, source: random.Random) -> int:
    if count <= 0 or chance <= 0:
        return 0
    if chance >= 1:
        return count
    if count * chance * (1 - chance) > 50:
        drawn = round(source.gauss(count * chance, math.sqrt(count * chance * (1 - chance))))
        return min(count, max(0, drawn))
    if chance > 0.5:
        return count - _binomial(count, 1 - chance, source)
    taken = position = 0
    while True:
        # The gap to the next success is geometric, so the work grows with the successes and not with the rows.
        position += int(math.log(1 - source.random()) / math.log(1 - chance)) + 1
        if position > count:
            return taken
        taken += 1


def _best_cut(scores: list[float], labels: list[bool]) -> float:
    """Walks down the sorted scores once; between equally good cuts, the middle of the gap that parts the rows."""
    rows = sorted(zip(scores, labels, strict=True), key=lambda row: -row[0])
    goods, bads = sum(labels), len(labels) - sum(labels)
    hits = alarms = 0
    best, cut = -1.0, rows[0][0]
    for index, (score, label) in enumerate(rows):
        hits, alarms = hits + label, alarms + (not label)
        following = rows[index + 1][0] if index + 1 < len(rows) else score
        if following == score and index + 1 < len(rows):
            continue
        skill = hits / goods - alarms / bads
        if skill > best:
            middle = (score + following) / 2
            best, cut = skill, middle if following < middle <= score else score
    return cut


def _variance(estimate: Estimate) -> float:
    """Of a share, a little above 0 even when it is 0 or 1, as its interval is (Agresti and Coull)."""
    count = estimate.count + Z_95**2
    share = (estimate.mean * estimate.count + Z_95**2 / 2) / count
    return share * (1 - share) / count
