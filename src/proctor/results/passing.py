"""`ScoreThreshold`: the pass criteria over a matrix of evaluations, for those who evaluate from Python."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.base.records import record
from proctor.cases.suite import Criteria, passes
from proctor.evaluators.evaluation import Evaluation


@record
class ScoreThreshold:
    """Passes when the share `pct` of inputs scores at least `threshold` on all evaluators. No inputs do not pass."""

    threshold: float = 0.5
    pct: float = 1.0

    def __post_init__(self) -> None:
        for name in ("threshold", "pct"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be between 0 and 1, not {getattr(self, name)}")

    def __call__(self, results: Sequence[Sequence[Evaluation]]) -> tuple[bool, str]:
        """Whether the matrix `[inputs][evaluators]` passes, and a sentence that says so."""
        good = sum(bool(row) and all(passes(cell.score, self.threshold) for cell in row) for row in results)
        total = len(results)
        passed = total > 0 and passes(good / total, self.pct)
        share = good / total if total else 0.0
        return passed, (
            f"{'Pass' if passed else 'Fail'}: {good}/{total} inputs ({share:.1%}) scored >= {self.threshold:g}"
            f" on all evaluators (required: {self.pct:.1%})"
        )

    @property
    def criteria(self) -> Criteria:
        """The same rule for a suite."""
        return Criteria(threshold=self.threshold, pct=self.pct)
