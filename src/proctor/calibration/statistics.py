"""Two measures of a judge that only a calibration needs: how well its scores rank rows, and how often it flips."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.results.agreement import check_same_length
from proctor.results.statistics import Z_95, Estimate, share_of, wilson


@dataclass(frozen=True, slots=True)
class Retest:
    """How often a judge contradicts itself when it judges the same row again."""

    flips: Estimate


def retest(first: Sequence[bool], second: Sequence[bool]) -> Retest:
    """How many outcomes of the same rows differ between two rounds."""
    check_same_length(first, second)
    flips = sum(bool(one) != bool(other) for one, other in zip(first, second, strict=True))
    return Retest(share_of(flips, len(first)))


def auc(scores: Sequence[float], labels: Sequence[bool]) -> Estimate | None:
    """The probability that a good row scores above a bad one, ties counting half; `None` if one kind is missing.

    The interval is DeLong's on the logit scale, so that it stays between 0 and 1. If all or no pairs are in order,
    DeLong's variance is zero, and Wilson's interval for the smaller of the two kinds is used.
    """
    check_same_length(scores, labels)
    if any(math.isnan(score) for score in scores):
        raise ValueError("a score is not a number; leave out the rows that were not scored")
    good = sorted(score for score, label in zip(scores, labels, strict=True) if label)
    bad = sorted(score for score, label in zip(scores, labels, strict=True) if not label)
    if not good or not bad:
        return None
    above = [_rank(score, bad) for score in good]
    below = [1 - _rank(score, good) for score in bad]
    value = min(1.0, max(0.0, math.fsum(above) / len(above)))
    low, high = _delong(value, above, below)
    return Estimate(value, low, high, len(scores))


def _rank(score: float, others: list[float]) -> float:
    """The share of the others that are below, ties counting half; `others` is sorted."""
    return (bisect_left(others, score) + bisect_right(others, score)) / (2 * len(others))


def _delong(value: float, above: list[float], below: list[float]) -> tuple[float, float]:
    variance = _spread(above, value) / len(above) + _spread(below, value) / len(below)
    if variance <= 0 or value in (0.0, 1.0):
        return wilson(value, min(len(above), len(below)))
    middle = math.log(value / (1 - value))
    half = Z_95 * math.sqrt(variance) / (value * (1 - value))
    return min(value, _logistic(middle - half)), max(value, _logistic(middle + half))


def _spread(values: list[float], mean: float) -> float:
    return math.fsum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)


def _logistic(value: float) -> float:
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    power = math.exp(value)
    return power / (1 + power)
