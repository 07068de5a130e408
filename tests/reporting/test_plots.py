"""Plots in the reports of a run: how times and scores are distributed, and the pass rate from run to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reporting_samples import PASSED, make_run, report, score, trial
from stored_runs import store_run, two_runs

from proctor.cli import main
from proctor.reporting.html import report_page
from proctor.reporting.plots import PlotPoint, bar_plot, distribution, distribution_lines, line_plot, sparkline


def graded(*values: float) -> Any:
    return make_run(
        [trial(f"c{at}", PASSED, "x", score(PASSED, v, "ROUGE"), duration_ms=100.0 * at) for at, v in enumerate(values)]
    )


def test_scores_between_0_and_1_are_drawn_and_mere_passes_are_not() -> None:
    text = report(report_page, graded(0.2, 0.4, 0.4))
    assert "<figcaption>ROUGE</figcaption>" in text
    assert 'aria-label="ROUGE: 3 values between 0 and 1"' in text
    assert "<figcaption>ROUGE</figcaption>" not in report(report_page, graded(0.0, 1.0, 1.0))


def test_the_terminal_draws_the_same_when_it_is_asked_for_everything() -> None:
    lines = dict(distribution_lines(graded(0.0, 0.5, 0.5, 1.0), unicode=True))
    assert lines["ROUGE"] == "0 ▅▁▁▁▁▁▁▁▁▁█▁▁▁▁▁▁▁▁▅ 1"
    assert dict(distribution_lines(graded(0.0, 0.5), unicode=False))["ROUGE"].isascii()


@given(st.lists(st.floats(), max_size=50))
def test_any_numbers_can_be_drawn(values: list[float]) -> None:
    if (found := distribution(values)) is not None:
        assert len(bar_plot("x", found, str).bars) <= 20
    drawn = line_plot("x", [PlotPoint(value, "x", value, value) for value in values], str)
    assert all(0.0 <= float(point.x) <= drawn.width for point in drawn.points)
    assert all(0.0 <= float(point.y) <= drawn.height for point in drawn.points)


@pytest.mark.parametrize(("values", "expected"), [([0.0, 0.5, 1.0], "▁▅█"), ([1.0], "█"), ([], "")])
def test_a_sparkline_has_a_block_for_each_value(values: list[float], expected: str) -> None:
    assert sparkline(values, 0.0, 1.0, unicode=True) == expected


def test_the_history_of_a_suite_ends_with_its_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two_runs(tmp_path / ".proctor")
    monkeypatch.chdir(tmp_path)
    assert "pass rate  " not in _suite_history(monkeypatch, capsys)  # two runs are no trend
    store_run(tmp_path / ".proctor", "20260103-000000-cccccc", [trial("refund")], day=2)
    assert "pass rate  ▇▅█  75% to 100%, oldest to latest" in _suite_history(monkeypatch, capsys)


def _suite_history(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr("sys.argv", ["proctor", "runs", "--suite", "support"])
    with pytest.raises(SystemExit):
        main()
    return capsys.readouterr().out
