"""How far two raters agree (a judge and people, or two people), and what a pass rate would be without judge errors.

Accuracy alone misleads: if people pass 95 % of the answers, a judge that passes everything is right 95 % of the time.
So there is Cohen's kappa, the agreement beyond chance, and the two hit rates, separately for what people passed and
what they failed. A threshold is chosen on one half of the rows and checked on the other, because on the rows it was
chosen on it always looks better than it is. A pass rate is corrected by the hit rates (Rogan and Gladen 1978).
The viewer shows agreement and reports show corrected rates; `proctor.calibration` has what else `proctor calibrate`
measures.
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
_MIN_SKILL = 0.1
"""Below this, a judge hardly differs from a coin, and a pass rate cannot be corrected. Skill is the sum of the two hit
rates minus 1."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with its 95 % interval; unlike a share, it may be below 0."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """How far a judge's decisions agree with people's labels of the same rows."""

    count: int
    base_rate: float
    """The share of rows that people passed: the accuracy of a judge that passes everything."""
    accuracy: Estimate
    kappa: Interval | None
    """Agreement beyond chance; `None` if chance alone would agree on every row."""
    true_positive_rate: Estimate | None
    """The share that the judge passed of the rows that people passed; `None` if they passed none."""
    true_negative_rate: Estimate | None
    """The share that the judge failed of the rows that people failed; `None` if they failed none."""


@dataclass(frozen=True, slots=True)
class SuggestedThreshold:
    """A threshold chosen on one half of the rows, with the agreement on both halves."""

    value: float
    chosen_on: JudgeAgreement
    checked_on: JudgeAgreement


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """The pass rate that a perfect judge would give, or the reason why it is not known."""

    value: float | None
    low: float
    high: float
    reason: str


def judge_agreement(verdicts: Sequence[bool], labels: Sequence[bool]) -> JudgeAgreement:
    """Compare a judge's decisions with people's labels; raises `ValueError` without rows."""
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

    If every resample gives the same value, as with full agreement on a few rows, the interval comes from Wilson's
    interval of the agreement instead: the bootstrap would give it width 0.
    """
    check_same_length(verdicts, labels)
    pairs = [(bool(verdict), bool(label)) for verdict, label in zip(verdicts, labels, strict=True)]
    cells = [pairs.count(cell) for cell in ((True, True), (True, False), (False, True), (False, False))]
    value = _kappa(cells)
    if value is None:
        return None
    low, high = _bootstrap(cells, _kappa)
    if low == high:
        agreement = wilson((cells[0] + cells[3]) / len(pairs), len(pairs))
        chance = _chance(cells)
        low, high = (max(-1.0, (share - chance) / (1 - chance)) for share in agreement)
    return Interval(value, min(low, value), max(high, value))


def suggest_threshold(scores: Sequence[float], labels: Sequence[bool]) -> SuggestedThreshold | None:
    """The best threshold on the even rows, with its agreement on the odd rows.

    The best one has the highest sum of true-positive and true-negative rate. A row passes at or above it. `None` if
    one half has only passed or only failed rows.
    """
    check_same_length(scores, labels)
    halves = [(list(scores[start::2]), [bool(label) for label in labels[start::2]]) for start in (0, 1)]
    if any(not any(half[1]) or all(half[1]) for half in halves):
        return None
    value = _best_cut(*halves[0])
    chosen, checked = (judge_agreement([passes(score, value) for score in half[0]], half[1]) for half in halves)
    return SuggestedThreshold(value, chosen, checked)


def corrected_pass_rate(observed: Estimate, agreement: JudgeAgreement) -> CorrectedRate:
    """The pass rate without the judge's known errors (Rogan and Gladen).

    The interval adds the variances of the three shares in the formula (delta method) and is clamped to 0..1.
    """
    hits, rejections = agreement.true_positive_rate, agreement.true_negative_rate
    if hits is None or rejections is None:
        return CorrectedRate(None, 0.0, 1.0, "people must have passed some of the labelled rows and failed others")
    skill = hits.mean + rejections.mean - 1
    if skill < _MIN_SKILL:
        return CorrectedRate(None, 0.0, 1.0, f"the judge hardly distinguishes passed from failed (skill {skill:.2f})")
    value = (observed.mean + rejections.mean - 1) / skill
    variance = (_variance(observed) + value**2 * _variance(hits) + (1 - value) ** 2 * _variance(rejections)) / skill**2
    half = Z_95 * math.sqrt(variance)
    clamped = min(1.0, max(0.0, value))
    low, high = min(clamped, max(0.0, value - half)), max(clamped, min(1.0, value + half))
    return CorrectedRate(
        clamped, low, high, f"corrected by the judge's hit rates {hits.mean:.2f} and {rejections.mean:.2f}"
    )


def check_same_length(one: Sequence[object], other: Sequence[object]) -> None:
    """Raise `ValueError` unless both have the same number of values, and at least one."""
    if len(one) != len(other):
        raise ValueError(f"{len(one)} values cannot be compared with {len(other)}")
    if not one:
        raise ValueError("there are no rows to compare")


def _kappa(cells: Sequence[int]) -> float | None:
    both, neither, count = cells[0], cells[3], sum(cells)
    chance = _chance(cells)
    return None if chance >= 1 else ((both + neither) / count - chance) / (1 - chance)


def _chance(cells: Sequence[int]) -> float:
    """How often judge and people would agree if their decisions were independent."""
    both, only_judge, only_people, _ = cells
    count = sum(cells)
    judge, people = (both + only_judge) / count, (both + only_people) / count
    return judge * people + (1 - judge) * (1 - people)


def _bootstrap(cells: list[int], statistic: Callable[[Sequence[int]], float | None]) -> tuple[float, float]:
    """The 95 % percentile interval of a statistic of the four counts."""
    source = random.Random(_SEED)  # noqa: S311  resampling needs repeatable draws, not secret ones
    count = sum(cells)
    values: list[float] = []
    for _ in range(RESAMPLES):
        value = statistic(_resample(cells, count, source))
        if value is not None:
            values.append(value)
    values.sort()
    if not values:
        return -1.0, 1.0
    return values[int(0.025 * (len(values) - 1))], values[math.ceil(0.975 * (len(values) - 1))]


def _resample(cells: list[int], count: int, source: random.Random) -> list[int]:
    """Draw `count` rows with replacement. One binomial draw per cell is fast however many rows there are."""
    rows_left, resampled, cells_left = count, [], count
    for cell in cells[:-1]:
        chance = cell / cells_left if cells_left else 0.0
        drawn = _binomial(rows_left, min(1.0, chance), source)
        resampled.append(drawn)
        rows_left -= drawn
        cells_left -= cell
    return [*resampled, rows_left]


def _binomial(count: int, chance: float, source: random.Random) -> int:
    """A draw from the binomial distribution; a normal approximation if its variance is above 50."""
    if count <= 0 or chance <= 0:
        return 0
    if chance >= 1:
        return count
    if count * chance * (1 - chance) > 50:
        drawn = round(source.gauss(count * chance, math.sqrt(count * chance * (1 - chance))))
        return min(count, max(0, drawn))
    if chance > 0.5:
        return count - _binomial(count, 1 - chance, source)
    successes = position = 0
    while True:
        # The gap to the next success is geometric, so the work grows with the successes and not with the rows.
        position += int(math.log(1 - source.random()) / math.log(1 - chance)) + 1
        if position > count:
            return successes
        successes += 1


def _best_cut(scores: list[float], labels: list[bool]) -> float:
    """The threshold with the highest skill: the middle of the gap between the two scores around it."""
    rows = sorted(zip(scores, labels, strict=True), key=lambda row: -row[0])
    goods, bads = sum(labels), len(labels) - sum(labels)
    hits = alarms = 0
    best, cut = -1.0, rows[0][0]
    for index, (score, label) in enumerate(rows):
        hits, alarms = hits + label, alarms + (not label)
        following = rows[index + 1][0] if index + 1 < len(rows) else score
        if following == score and index + 1 < len(rows):
            continue  # a threshold cannot separate equal scores
        skill = hits / goods - alarms / bads
        if skill > best:
            middle = (score + following) / 2
            best, cut = skill, middle if following < middle <= score else score
    return cut


def _variance(estimate: Estimate) -> float:
    """The variance of a share, above 0 even if the share is 0 or 1 (Agresti and Coull)."""
    count = estimate.count + Z_95**2
    share = (estimate.mean * estimate.count + Z_95**2 / 2) / count
    return share * (1 - share) / count
