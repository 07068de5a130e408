"""Datasets are made on the command line and filled from traces, and what comes of it is always a valid file."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.results.store.store import Store
from proctor.tracing.spans import AssistantMessage, LLMSpan, ObserveSpan, Span, TextContent, UserMessage

Command = Callable[..., Any]

APP = """
import proctor


def app(question):
    profile = proctor.wrap("gold", purpose="input", name="profile")
    return f"{profile}: {question}"
"""
PLACE = ("a" * 32, None, 1.0, 2.0, 1000.0)
SPANS: list[Span] = [
    ObserveSpan("1" * 16, "a" * 32, None, 1.0, 9.0, 8000.0, "desk", {"question": "hi"}, "bye"),
    ObserveSpan("2" * 16, "a" * 32, "1" * 16, 2.0, 3.0, 1000.0, "look up", {"key": "k"}, [1]),
    LLMSpan(
        "3" * 16,
        "a" * 32,
        "1" * 16,
        4.0,
        5.0,
        1000.0,
        input_messages=(UserMessage.from_text("hi"),),
        output_messages=(AssistantMessage((TextContent("bye"),)),),
    ),
]


@pytest.fixture
def traced(project: Path) -> Path:
    (project / "app.py").write_text(APP, encoding="utf-8")
    store = Store(project / ".proctor")
    store.traces.add(SPANS, {"file": "f"})
    store.close()
    return project


def read_dataset(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "datasets/my-set.json").read_text())
    return found


def test_a_created_dataset_is_listed_and_can_be_filled(proctor: Command, traced: Path) -> None:
    ended = proctor("dataset", "create", "My set", "--runnable", "app.py:app", "--evaluator", "ExactMatch")
    assert (ended.code, ended.out) == (0, "created dataset 'My set' in datasets/my-set.json\n")
    assert "My set  (pixie, datasets/my-set.json)\n  0 cases, agent: app.py:app" in proctor("dataset", "list").out
    before = read_dataset(traced)
    ended = proctor("dataset", "save", "My set")
    assert (ended.code, ended.out) == (0, "saved to dataset 'My set': now 1 entry\n")
    assert "no expectation" in ended.err
    after = read_dataset(traced)
    assert {**after, "entries": []} == before
    assert after["entries"][0]["entry_kwargs"] == {"question": "hi"}
    assert proctor("dataset", "validate", "datasets").code == 0
    assert "1 case, agent: app.py:app" in proctor("dataset", "list").out


@pytest.mark.parametrize(
    ("options", "value", "output"),
    [
        (("--select", "root"), {"question": "hi"}, "bye"),
        (("--select", "last_llm_call"), [{"role": "user", "content": "hi"}], "bye"),
        (("--select", "by_name", "--span-name", "look up"), {"key": "k"}, [1]),
        (("--trace", "aaaa"), {"question": "hi"}, "bye"),
    ],
)
def test_one_span_can_be_chosen_and_the_application_still_gets_its_arguments(
    proctor: Command, traced: Path, options: tuple[str, ...], value: Any, output: Any
) -> None:
    proctor("dataset", "create", "my set", "--runnable", "app.py:app", "--evaluator", "ExactMatch")
    assert proctor("dataset", "save", "my set", *options, "--notes", "look at this").code == 0
    [entry] = read_dataset(traced)["entries"]
    assert (entry["entry_kwargs"], entry["eval_input"][0]["value"]) == ({"question": "hi"}, value)
    assert entry["x-pixie"]["eval_output"] == [{"name": "output", "value": output}]
    assert entry["eval_metadata"]["notes"] == "look at this"
    assert proctor("dataset", "validate", "datasets").code == 0


RUNNABLE = """
from pydantic import BaseModel


class Arguments(BaseModel):
    user_message: str
    tone: str = "calm"


class App:
    @classmethod
    def create(cls):
        return cls()

    async def run(self, args: Arguments):
        return args.user_message
"""


@pytest.mark.parametrize("options", [(), ("--select", "root"), ("--select", "last_llm_call")])
def test_arguments_that_the_application_does_not_accept_are_reported_and_not_saved(
    proctor: Command, traced: Path, options: tuple[str, ...]
) -> None:
    (traced / "strict.py").write_text(RUNNABLE)
    proctor("dataset", "create", "my set", "--runnable", "strict.py:App", "--evaluator", "ExactMatch")
    ended = proctor("dataset", "save", "my set", *options)
    assert (ended.code, "user_message: Field required" in ended.err) == (2, True), ended
    assert "strict.py:App does not accept the arguments" in ended.err
    assert read_dataset(traced)["entries"] == []


def test_an_application_that_cannot_be_loaded_leaves_the_entry_unchecked(proctor: Command, traced: Path) -> None:
    proctor("dataset", "create", "my set", "--runnable", "nowhere.py:App", "--evaluator", "ExactMatch")
    ended = proctor("dataset", "save", "my set")
    assert (ended.code, "were not checked" in ended.err) == (0, True), ended


@pytest.mark.parametrize(
    ("text", "expected"), [('{"a": 1}', {"a": 1}), ("Be brief.\n", "Be brief."), ('"quoted"', "quoted"), ("null", None)]
)
def test_what_is_expected_comes_from_a_file_or_standard_input(
    proctor: Command, traced: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: Any
) -> None:
    proctor("dataset", "create", "my set", "--runnable", "app.py:app", "--evaluator", "ExactMatch")
    (traced / "expected").write_text(text)
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    for given in ("expected", "-"):
        ended = proctor("dataset", "save", "my set", "--expected-output", given)
        assert (ended.code, "no expectation" in ended.err) == (0, False)
    assert [entry["expectation"] for entry in read_dataset(traced)["entries"]] == [expected, expected]
    assert proctor("dataset", "validate", "datasets").code == 0


def test_a_traced_application_becomes_a_dataset_that_passes(proctor: Command, traced: Path) -> None:
    (traced / "kwargs.json").write_text('{"question": "hello"}')
    (traced / "expected.txt").write_text("gold: hello")
    proctor("trace", "--runnable", "app.py:app", "--input", "kwargs.json")
    proctor("dataset", "create", "my set", "--runnable", "app.py:app", "--evaluator", "ExactMatch")
    proctor("dataset", "save", "my set", "--expected-output", "expected.txt")
    (traced / "app.py").write_text(APP.replace('"gold"', '"not asked for in a trial"'))
    ended = proctor("test", "datasets")
    assert ended.code == 0, ended


def test_what_is_missing_from_the_file_is_said(proctor: Command, traced: Path) -> None:
    proctor("dataset", "create", "my set")
    ended = proctor("dataset", "save", "my set")
    assert ended.code == 0
    assert "has no evaluators yet" in ended.err and "has no runnable yet" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "my set"), "already exists"),
        (("create", "!!!"), "Cannot slugify"),
        (("create", "new", "--runnable", "app"), "is not a reference"),
        (("create", "new", "--evaluator", "ROUGE={"), "must be a JSON object"),
        (("save", "unknown"), "Dataset not found"),
        (("save", "my set", "--select", "by_name"), "together"),
        (("save", "my set", "--span-name", "x"), "together"),
        (("save", "my set", "--select", "by_name", "--span-name", "x"), "No span named 'x'"),
        (("save", "my set", "--select", "first"), "is not one of"),
        (("save", "my set", "--expected-output", "gone"), "cannot be read"),
    ],
)
def test_what_cannot_be_done_is_a_usage_error_and_changes_nothing(
    proctor: Command, traced: Path, arguments: tuple[str, ...], said: str
) -> None:
    proctor("dataset", "create", "my set")
    before = read_dataset(traced)
    ended = proctor("dataset", *arguments)
    assert (ended.code, said in ended.err) == (2, True), ended
    assert (read_dataset(traced), [path.name for path in (traced / "datasets").iterdir()]) == (before, ["my-set.json"])


def test_a_trace_that_is_not_there_is_reported(proctor: Command, traced: Path) -> None:
    proctor("dataset", "create", "my set")
    assert "no trace 'zzz'" in proctor("dataset", "save", "my set", "--trace", "zzz").err
    assert "no results in" in proctor("dataset", "save", "my set", "--store", "elsewhere").err


def test_the_dataset_folder_is_listed_wherever_it_is(
    proctor: Command, traced: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    away = tmp_path_factory.mktemp("away")
    monkeypatch.setenv("PROCTOR_DATASET_DIR", str(away))
    assert proctor("dataset", "create", "far off", "--evaluator", "ExactMatch").code == 0
    assert "far off  (pixie" in proctor("dataset", "list").out
    (traced / "suite.yaml").write_text("agent: app.py:app\ncases: [{id: a, input: x, expected: x}]\n")
    listed = json.loads(proctor("dataset", "list", "--json").out)
    assert [item["name"] for item in listed] == ["suite", "far off"]
    assert "far off" not in proctor("dataset", "list", "suite.yaml").out


def test_a_broken_suite_is_still_told_when_datasets_are_listed(proctor: Command, traced: Path) -> None:
    proctor("dataset", "create", "my set")
    (traced / "suite.yaml").write_text("cases: [{id: a, input: x, expcted: x}]\n")
    ended = proctor("dataset", "list")
    assert (ended.code, "expcted is not a known key" in ended.err) == (2, True)
