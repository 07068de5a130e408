"""The files of a case, as they reach an agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.cases.model import Attachment, Case, Expected, Suite, Turn
from proctor.results.model import Outcome, TrialResult


def write_agent(folder: Path, tests: list[dict[str, Any]], **rest: Any) -> Path:
    metrics = [{"type": "standard", "metric": "equality"}]
    path = folder / "agent.yaml"
    path.write_text(json.dumps({"name": "a", "evaluations": {"metrics": metrics}, "test_cases": tests, **rest}))
    return path


def trials(suite: Any, agent: Any) -> list[TrialResult]:
    return list(proctor.run(suite, agent).trials)


def last_line(question: str) -> str:
    return question.split("\n")[-2]


def test_files_are_found_beside_the_agents_file_and_their_text_is_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "deed.txt").write_text("signed in 1901")
    monkeypatch.chdir(tmp_path / "inner")
    test = {"input": "When?", "ground_truth": "signed in 1901", "files": [{"path": "inner/deed.txt", "type": "text"}]}
    [trial] = trials(write_agent(tmp_path, [test]), last_line)
    assert trial.outcome is Outcome.PASSED
    assert trial.case.turns[0].input == "When?"
    assert trial.replies[0].retrieval_context == ("signed in 1901",)


def test_an_image_is_a_warning_of_the_trial(tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(b"\x89PNG")
    test = {"input": "What?", "ground_truth": "(no text)", "files": [{"path": "p.png", "type": "image"}]}
    [trial] = trials(write_agent(tmp_path, [test]), last_line)
    assert trial.warnings == ("the file p.png: is an image, of which no text is read",)
    assert trial.outcome is Outcome.PASSED


def test_a_file_that_cannot_be_read_is_no_failure_of_the_agent(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"\x00\xff")
    test = {"input": "What?", "ground_truth": "x", "files": [{"path": "x.txt", "type": "text"}]}
    [trial] = trials(write_agent(tmp_path, [test]), last_line)
    assert trial.outcome is Outcome.ERROR
    assert "x.txt is not text" in trial.reason


def test_each_turn_has_its_own_files_and_a_shared_one_is_read_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(name)
    turns = tuple(Turn("?", Expected(name), attachments=(Attachment(path=f"{name}.txt"),)) for name in ("a", "b"))
    cases = tuple(Case(f"case-{n}", turns) for n in range(3))
    suite = Suite("s", cases, path=tmp_path / "s.yaml")
    assert {trial.outcome for trial in trials(suite, last_line)} == {Outcome.PASSED}


def test_an_agent_that_takes_the_turn_sees_to_its_files_itself(tmp_path: Path) -> None:
    def agent(turn: Turn) -> str:
        assert turn.input == "?"
        return str(turn.attachments[0].path)

    turn = Turn("?", Expected("gone.txt"), attachments=(Attachment(path="gone.txt"),))
    [trial] = trials(Suite("s", (Case("c", (turn,)),), path=tmp_path / "s.yaml"), agent)
    assert trial.outcome is Outcome.PASSED


def test_input_that_is_no_text_has_no_room_for_files(tmp_path: Path) -> None:
    turn = Turn({"q": 1}, Expected("1"), attachments=(Attachment(path="gone.txt"),))
    suite = Suite("s", (Case("c", (turn,)),), path=tmp_path / "s.yaml")
    [trial] = trials(suite, lambda question: str(question["q"]))
    assert trial.outcome is Outcome.PASSED
    assert "its input is no text" in trial.warnings[0]
