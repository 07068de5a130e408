"""When a score passes: which threshold it is compared with, and the comparison."""

from __future__ import annotations

DEFAULT_THRESHOLD = 0.5
"""The threshold of an evaluator that declares none."""
TOLERANCE = 1e-12
"""A mean or sum of floats may fall short of its threshold by a rounding error: 0.7999999999999999 is 0.8."""


def threshold_in_force(
    declared: float, *, entry: float | None = None, suite: float | None = None, caller: float | None = None
) -> float:
    """The threshold of a score. The first that is set wins:

    - `caller`: an argument of a class that the user created (DeepEval's and HoloDeck's classes);
    - `suite`: the `threshold` in the suite's criteria;
    - `entry`: the `threshold` of the evaluator's entry in a file;
    - `declared`: the evaluator's default.
    """
    return next((float(value) for value in (caller, suite, entry) if value is not None), float(declared))


def passes(score: float, threshold: float, verdict: bool | None = None) -> bool:
    """Whether a score passes: what the evaluator itself decided (`verdict`), or else whether it reaches the threshold.

    Rounding errors do not matter. NaN never passes.
    """
    return score >= threshold - TOLERANCE if verdict is None else verdict
