"""A named evaluator that no configured judge can answer leaves the verdict open, in every format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tool_marks import needing

Command = Callable[..., Any]

PIXIE = {
    "name": "d",
    "runnable": "app.py:app",
    "entries": [
        {
            "entry_kwargs": {"q": "x"},
            "description": "greets",
            "eval_input": [{"name": "q", "value": "x"}],
            "eval_metadata": {"criteria": "greets"},
            "evaluators": ["ClosedQA", "app.py:ok"],
        }
    ],
}
NATIVE = {
    "agent": "app.py:app",
    "evaluators": [{"GEval": {"criteria": "polite"}}, "app.py:ok"],
    "cases": [{"id": "greets", "input": {"q": "x"}}],
}
ADK = {
    "evalSetId": "d",
    "evalCases": [
        {
            "evalId": "greets",
            "conversation": [
                {
                    "userContent": {"role": "user", "parts": [{"text": "x"}]},
                    "finalResponse": {"role": "model", "parts": [{"text": "hello x"}]},
                }
            ],
        }
    ],
}
CONFIG = {"criteria": {"response_match_score": 0.5, "safety_v1": 0.5}}


@pytest.fixture
def project(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "PROCTOR_JUDGE"):
        monkeypatch.delenv(name, raising=False)
    (project / "app.py").write_text("def app(q):\n    return f'hello {q}'\n\ndef ok(evaluable):\n    return 1.0\n")
    (project / "pixie.json").write_text(json.dumps(PIXIE))
    (project / "native.json").write_text(json.dumps(NATIVE))
    (project / "d.test.json").write_text(json.dumps(ADK))
    (project / "test_config.json").write_text(json.dumps(CONFIG))
    return project


@pytest.mark.parametrize(
    ("file", "name"),
    [needing("pixie", "pixie.json", "ClosedQA"), ("native.json", "GEval"), needing("adk", "d.test.json", "Safety")],
)
def test_it_is_pending_and_says_what_to_write(proctor: Command, project: Path, file: str, name: str) -> None:
    ended = proctor("test", file, "--agent", "app.py:app")
    assert ended.code == 3
    assert "needs a model; name one with --judge provider:model" in " ".join((ended.out + ended.err).split())
    assert f"{name}" in (ended.out + ended.err)


@pytest.mark.needs("pixie")
def test_a_key_that_is_set_is_named_with_what_to_write(
    proctor: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    ended = proctor("test", "pixie.json")
    assert ended.code == 3
    said = " ".join((ended.out + ended.err).split())
    assert "ClosedQA needs a model; name one with --judge openai:gpt-5-mini (OPENAI_API_KEY is set)" in said
    assert "sk-secret" not in said


@pytest.mark.needs("pixie")
def test_fast_leaves_it_out_on_purpose(proctor: Command, project: Path) -> None:
    ended = proctor("test", "pixie.json", "--fast")
    assert (ended.code, "ClosedQA" in (ended.out + ended.err)) == (0, False)


@pytest.mark.needs("pixie")
def test_a_case_of_which_nothing_is_left_is_skipped_and_does_not_pass(proctor: Command, project: Path) -> None:
    entry = {**PIXIE["entries"][0], "evaluators": ["ClosedQA"]}  # type: ignore[index]
    (project / "pixie.json").write_text(json.dumps({**PIXIE, "entries": [entry]}))
    ended = proctor("test", "pixie.json", "--fast")
    assert ended.code == 4
    assert "all of its evaluators need a language model (--fast)" in (ended.out + ended.err)


@pytest.mark.needs("pixie")
def test_optional_skips_it_on_purpose(proctor: Command, project: Path) -> None:
    entry = {**PIXIE["entries"][0], "evaluators": [{"ClosedQA": {"optional": True}}, "app.py:ok"]}  # type: ignore[index]
    (project / "pixie.json").write_text(json.dumps({**PIXIE, "entries": [entry]}))
    ended = proctor("test", "pixie.json")
    assert (ended.code, "ClosedQA skipped" in (ended.out + ended.err)) == (0, True)


@pytest.mark.needs("pixie")
def test_what_another_evaluator_finds_wrong_is_still_a_failure(proctor: Command, project: Path) -> None:
    (project / "app.py").write_text("def app(q):\n    return 'hello'\n\ndef ok(evaluable):\n    return 0.0\n")
    assert proctor("test", "pixie.json").code == 1


@pytest.mark.needs("pixie")
def test_what_the_embedded_judge_can_answer_it_answers(proctor: Command, project: Path) -> None:
    entry = {**PIXIE["entries"][0], "expectation": "hello x", "evaluators": ["Factuality"]}  # type: ignore[index]
    (project / "pixie.json").write_text(json.dumps({**PIXIE, "entries": [entry]}))
    assert proctor("test", "pixie.json").code == 0


@pytest.mark.needs("pixie")
def test_no_open_is_taken_and_changes_nothing(proctor: Command, project: Path) -> None:
    assert proctor("test", "pixie.json", "--no-open", "--fast", "-v").code == 0


@pytest.mark.needs("pixie")
def test_datasets_are_found_where_pixie_keeps_them(
    proctor: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pixie_qa" / "datasets").mkdir(parents=True)
    assert proctor("dataset", "create", "faq").code == 0
    assert (project / "pixie_qa" / "datasets" / "faq.json").exists()
    monkeypatch.setenv("PIXIE_ROOT", str(project / "elsewhere"))
    assert proctor("dataset", "create", "faq").code == 0
    assert (project / "elsewhere" / "datasets" / "faq.json").exists()


@pytest.mark.needs("pixie")
def test_pixies_root_is_what_is_tested_without_paths(
    proctor: Command, project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path_factory.mktemp("root")
    (root / "datasets").mkdir()
    dataset = {**PIXIE, "name": "far", "runnable": str(project / "app.py") + ":app"}
    (root / "datasets" / "far.json").write_text(json.dumps(dataset))
    monkeypatch.setenv("PIXIE_ROOT", str(root))
    ended = proctor("test", "--fast")
    assert "far/greets" in (ended.out + ended.err) and "d/greets" not in (ended.out + ended.err)
