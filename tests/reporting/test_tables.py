"""The CSV report."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.agents.reply import Reply
from proctor.base.own_files import SCORE_COLUMNS
from proctor.cases.suite import Case, EvaluatorSpec, Expected, Suite, Turn
from proctor.reporting.tables import csv_safe, write
from proctor.reporting.terminal.screen import escape_control
from proctor.results.verdict import verdict
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions


def rows(*cases: Case, agent: Any = lambda question: question) -> list[dict[str, str]]:
    suite = Suite("desk", cases, evaluators=(EvaluatorSpec("ExactMatch"),))
    run, result = run_suites(RunRequest([suite], RunOptions(), agent=agent))
    out = io.StringIO()
    write(run, result, out)
    assert verdict(run) == result
    return list(csv.DictReader(io.StringIO(out.getvalue())))


def test_there_is_a_row_for_each_score_with_all_that_led_to_it() -> None:
    first, second = rows(Case(id="two", turns=(Turn("Hi", Expected("Hi")), Turn("Ho", Expected("Hm")))))
    assert list(first) == list(SCORE_COLUMNS)
    told = {name: second[name] for name in SCORE_COLUMNS if name not in ("run", "reasoning")}
    assert told == {
        "suite": "desk",
        "case": "two",
        "trial": "1",
        "turn": "2",
        "evaluator": "ExactMatch",
        "score": "0.0",
        "threshold": "0.5",
        "outcome": "failed",
        "input": "Ho",
        "answer": "Ho",
        "expected": "Hm",
    }
    assert (first["turn"], first["score"]) == ("1", "1.0")


def test_a_trial_without_scores_is_not_missing() -> None:
    def agent(question: str) -> str:
        raise ValueError("no idea")

    (row,) = rows(
        Case(id="a", turns=(Turn("Hi", Expected("Hi")),)), Case(id="b", turns=(Turn("Hi"),), skip="later"), agent=agent
    )[:1]
    assert (row["evaluator"], row["score"], row["outcome"]) == ("", "", "failed")
    assert "no idea" in row["reasoning"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", " ="])
def test_no_cell_can_act_as_a_formula(start: str) -> None:
    text = f'{start}HYPERLINK("http://x")'
    (row,) = rows(Case(id="a", turns=(Turn(text, Expected("Hi")),)), agent=lambda question: Reply(text))
    assert row["input"].startswith("'")
    assert row["answer"].startswith("'")


def test_commas_quotes_lines_and_nul_survive_or_are_left_out() -> None:
    (row,) = rows(Case(id="a", turns=(Turn('a,"b"\nc\x00d', Expected("Hi")),)))
    assert row["input"] == 'a,"b"\ncd'


@given(st.text())
def test_any_text_stays_one_cell_that_is_no_formula(text: str) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([csv_safe(text), "end"])
    (read,) = csv.reader(io.StringIO(out.getvalue(), newline=""))
    assert read[1] == "end"
    kept = escape_control(text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n"))
    assert read[0] in (kept, f"'{kept}")
    assert not read[0].lstrip(" ").startswith(("=", "+", "-", "@"))


def test_text_that_utf8_cannot_hold_is_written_to_a_file_all_the_same(tmp_path: Path) -> None:
    from proctor.reporting.reporters import write_reports

    suite = Suite(
        "desk", (Case(id="a", turns=(Turn("bad \ud800", Expected("x")),)),), evaluators=(EvaluatorSpec("ExactMatch"),)
    )
    run, result = run_suites(RunRequest([suite], RunOptions(), agent=lambda question: question))
    write_reports(run, result, {"csv": str(tmp_path / "r.csv")})
    assert "bad \\ud800" in (tmp_path / "r.csv").read_text(encoding="utf-8")
