"""Answers that are used again: as long as the files that went with the question say the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_helpers import only, run, suite

from proctor.cases.suite import AttachedFile, Case, Expected, Suite, Turn
from proctor.results.score import Outcome
from proctor.running.rescore import rescore
from proctor.running.review.approving import proposals
from proctor.running.settings import RunOptions


def last_line(question: str) -> str:
    return question.split("\n")[-2]


def about(folder: Path, path: str = "a.txt", expected: str = "one") -> Suite:
    turn = Turn("What?", Expected(expected), files=(AttachedFile(path=path),))
    return Suite("s", (Case(id="c", turns=(turn,)),), evaluators=suite([]).evaluators, path=folder / "s.yaml")


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one")
    assert only(run(about(tmp_path), agent=last_line, store=tmp_path / "store")).outcome is Outcome.PASSED
    return tmp_path


def test_a_case_whose_file_changed_is_run_again(asked: Path) -> None:
    (asked / "a.txt").write_text("two")
    trial = only(run(about(asked, expected="two"), agent=last_line, store=asked / "store", reuse=True))
    assert not trial.reused
    assert trial.outcome is Outcome.PASSED


def test_a_case_whose_file_only_moved_is_not(asked: Path) -> None:
    (asked / "inner").mkdir()
    (asked / "a.txt").rename(asked / "inner" / "b.txt")
    trial = only(run(about(asked, "inner/b.txt"), agent=last_line, store=asked / "store", reuse=True))
    assert trial.reused
    assert trial.outcome is Outcome.PASSED


def test_a_file_that_is_gone_is_an_error_and_reuses_no_answer(asked: Path) -> None:
    (asked / "a.txt").unlink()
    trial = only(run(about(asked), agent=last_line, store=asked / "store", reuse=True))
    assert trial.outcome is Outcome.ERROR
    assert "a.txt cannot be read" in trial.reason


def test_a_run_can_be_scored_again_when_its_file_is_missing(asked: Path) -> None:
    (asked / "a.txt").unlink()
    found = rescore(asked / "store", "last", options=RunOptions(backoff=0.0))
    assert only(found).outcome is Outcome.PASSED


def test_an_expectation_is_recorded_only_while_the_file_says_the_same(asked: Path) -> None:
    found = run(about(asked), agent=last_line, store=asked / "store")
    trials = list(found[0].trials)
    given = (about(asked), trials, found[0].id, "agent", lambda suite, case: True)
    assert proposals(*given)[0].refusal == ""
    (asked / "a.txt").write_text("two")
    assert "input has changed" in proposals(*given)[0].refusal
