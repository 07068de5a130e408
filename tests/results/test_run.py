from __future__ import annotations

import pytest

from proctor.results.comparison.comparison import PassCount
from proctor.results.run import Run
from proctor.results.score import Outcome, Score


def test_gates_is_the_old_name_of_the_opposite_of_report_only() -> None:
    with pytest.warns(DeprecationWarning, match="report_only"):
        score = Score("Tone", Outcome.PASSED, gates=False)  # type: ignore[call-arg]
    assert score.report_only
    with pytest.warns(DeprecationWarning, match="report_only"):
        assert score.gates is False  # type: ignore[attr-defined]


def test_old_names_of_a_run_and_a_comparison_work_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="unpriced_note"):
        run = Run("r", 0.0, uncounted="two calls")  # type: ignore[call-arg]
    assert run.unpriced_note == "two calls"
    with pytest.warns(DeprecationWarning, match="without_verdict"):
        assert PassCount(1, 2, 3).unsettled == 3  # type: ignore[attr-defined]
