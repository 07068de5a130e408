"""The files of a case, as they reach an agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.cases.files.file_text import FileText, UnreadableFile
from proctor.cases.suite import AttachedFile, Case, EvaluatorSpec, Expected, Suite, Turn
from proctor.results.score import Outcome
from proctor.results.trial import Trial
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions

WHITE = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0:~\x9bU"
    b"\0\0\0\nIDATx\x9cc\xf8\x0f\0\1\1\1\0\xb18\xf6\x14\0\0\0\0IEND\xaeB`\x82"
)
"""One white point."""


def write_agent(folder: Path, tests: list[dict[str, Any]], **rest: Any) -> Path:
    metrics = [{"type": "standard", "metric": "equality"}]
    path = folder / "agent.yaml"
    path.write_text(json.dumps({"name": "a", "evaluations": {"metrics": metrics}, "test_cases": tests, **rest}))
    return path


def trials(suite: Any, agent: Any) -> list[Trial]:
    return list(proctor.run(suite, agent).trials)


def last_line(question: str) -> str:
    return question.split("\n")[-2]


def test_files_are_found_next_to_the_agents_file_and_their_text_is_appended(
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


def test_an_image_without_words_is_a_warning_of_the_trial(tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(WHITE)
    test = {"input": "What?", "ground_truth": "(no text)", "files": [{"path": "p.png", "type": "image"}]}
    [trial] = trials(write_agent(tmp_path, [test]), last_line)
    assert [warning.partition(": is an image")[0] for warning in trial.warnings] == ["the file p.png"]
    assert trial.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ({"path": "x.pdf", "type": "pdf"}, b"", "x.pdf cannot be read as a file of type pdf"),
        ({"path": "x.docx", "type": "word"}, b"PK\x03\x04", "x.docx is read as word, but is a damaged zip file"),
        ({"path": "x.png", "type": "image"}, b"text", "x.png cannot be read as an image"),
        ({"path": "x.txt", "type": "text", "pages": [1]}, b"text", "which does not support 'pages'"),
        ({"path": "x.xlsx", "type": "excel"}, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "password-protected office file"),
        ({"url": "http://127.0.0.1:1/x.txt", "type": "text"}, b"", "http://127.0.0.1:1/x.txt cannot be downloaded"),
    ],
)
def test_a_bad_file_is_an_error_of_its_trial_and_the_others_go_on(
    tmp_path: Path, file: dict[str, Any], content: bytes, reason: str
) -> None:
    pytest.importorskip("pypdf")
    if "path" in file:
        (tmp_path / file["path"]).write_bytes(content)
    tests = [{"input": "What?", "ground_truth": "x", "files": [file]}, {"input": "x\n", "ground_truth": "x"}]
    bad, good = trials(write_agent(tmp_path, tests), last_line)
    assert bad.outcome is Outcome.ERROR
    assert reason in bad.reason
    assert good.outcome is Outcome.PASSED


def test_a_program_may_read_the_files_itself(tmp_path: Path) -> None:
    async def agent(question: str) -> str:
        return "four" if "read: a.txt" in question else "nothing"

    async def read(file: AttachedFile) -> FileText:
        if file.path == "b.txt":
            raise UnreadableFile("b.txt is locked")
        return FileText(f"read: {file.path}")

    cases = [
        Case(id=n, turns=(Turn("?", Expected("four"), files=(AttachedFile(path=f"{n}.txt"),)),)) for n in ("a", "b")
    ]
    suite = Suite("s", tuple(cases), evaluators=(EvaluatorSpec("ExactMatch"),), path=tmp_path / "s.yaml")
    run, _ = run_suites(RunRequest([suite], RunOptions(read_file=read), agent=agent))
    good, bad = run.trials
    assert (good.outcome, good.replies[0].retrieval_context) == (Outcome.PASSED, ("read: a.txt",))
    assert (bad.outcome, "b.txt is locked" in bad.reason) == (Outcome.ERROR, True)


def test_a_file_that_cannot_be_read_is_not_a_failure_of_the_agent(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"\x00\xff")
    test = {"input": "What?", "ground_truth": "x", "files": [{"path": "x.txt", "type": "text"}]}
    [trial] = trials(write_agent(tmp_path, [test]), last_line)
    assert trial.outcome is Outcome.ERROR
    assert "x.txt is not text" in trial.reason


def test_each_turn_has_its_own_files_and_a_shared_one_is_read_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(name)
    turns = tuple(Turn("?", Expected(name), files=(AttachedFile(path=f"{name}.txt"),)) for name in ("a", "b"))
    cases = tuple(Case(id=f"case-{n}", turns=turns) for n in range(3))
    suite = Suite("s", cases, path=tmp_path / "s.yaml")
    assert {trial.outcome for trial in trials(suite, last_line)} == {Outcome.PASSED}


def test_an_agent_that_takes_the_turn_sees_to_its_files_itself(tmp_path: Path) -> None:
    def agent(turn: Turn) -> str:
        assert turn.input == "?"
        return str(turn.files[0].path)

    turn = Turn("?", Expected("gone.txt"), files=(AttachedFile(path="gone.txt"),))
    [trial] = trials(Suite("s", (Case(id="c", turns=(turn,)),), path=tmp_path / "s.yaml"), agent)
    assert trial.outcome is Outcome.PASSED


def test_input_that_is_not_text_has_no_room_for_files(tmp_path: Path) -> None:
    turn = Turn({"q": 1}, Expected("1"), files=(AttachedFile(path="gone.txt"),))
    suite = Suite("s", (Case(id="c", turns=(turn,)),), path=tmp_path / "s.yaml")
    [trial] = trials(suite, lambda question: str(question["q"]))
    assert trial.outcome is Outcome.PASSED
    assert "the input is not text" in trial.warnings[0]
