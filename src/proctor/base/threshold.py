"""The one rule by which a score meets its threshold; every verdict asks it."""

from __future__ import annotations

TOLERANCE = 1e-12
"""A mean or sum of floats may fall short of its threshold by a rounding error: 0.7999999999999999 is 0.8."""


def passes(score: float, threshold: float) -> bool:
    """Whether `score` is at least `threshold`, rounding errors forgiven; what is not a number never passes."""
    return score >= threshold - TOLERANCE
