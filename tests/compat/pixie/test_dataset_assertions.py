"""`assert_dataset_pass`: every generation of datasets, with functions and with Runnable classes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from proctor.cases.suite import NamedData
from proctor.compat.pixie.dataset_assertions import assert_dataset_pass, assert_dataset_pass_sync
from proctor.compat.pixie.datasets import DatasetStore
from proctor.evaluators.evaluation import Evaluable
from proctor.evaluators.from_trace import root
from proctor.running.assertions.score_matrix import EvalAssertionError
from proctor.tracing.observe import observe
from proctor.tracing.wrap import wrap

ENTRY = {
    "entry_kwargs": {"question": "Hello"},
    "description": "Basic greeting",
    "eval_input": [{"name": "profile", "value": {"name": "Ann"}}],
    "expectation": "Hello, Ann",
}


def dataset(folder: Path, *rows: Any, key: str = "entries") -> Path:
    (folder / "faq.json").write_text(json.dumps({"name": "faq", "evaluators": ["ExactMatch"], key: rows}))
    return folder


def greet(question: str) -> str:
    profile = wrap({"name": "nobody"}, purpose="input", name="profile")
    return wrap(f"{question}, {profile['name']}", purpose="output", name="answer")


class Greeter:
    @classmethod
    def create(cls) -> Greeter:
        return cls()

    async def run(self, args: Any) -> str:
        return greet(args["question"])


@pytest.mark.parametrize("runnable", [greet, Greeter, lambda **named: greet(**named)])
def test_an_entry_is_run_with_its_arguments_and_its_named_inputs(tmp_path: Path, runnable: Any) -> None:
    asyncio.run(assert_dataset_pass(runnable, "faq", ["ExactMatch"], dataset_dir=dataset(tmp_path, ENTRY)))


def test_a_function_that_does_not_take_the_arguments_is_given_the_eval_input(tmp_path: Path) -> None:
    @observe
    def app(anything: Any) -> Any:
        return anything

    given = {**ENTRY, "expectation": {"name": "Ann"}}
    assert_dataset_pass_sync(app, "faq", ["ExactMatch"], dataset_dir=dataset(tmp_path, given))


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"eval_input": "hi", "expected_output": "HI", "description": "d"}, "items"),
        ({"input_data": {"text": "hi"}, "expectation": "HI", "description": "d"}, "entries"),
        ({"entry_kwargs": {"text": "hi"}, "test_case": {"expectation": "HI", "description": "d"}}, "entries"),
        ({**ENTRY, "eval_input": [{"name": "said", "value": "hi"}], "expectation": "HI"}, "entries"),
    ],
)
def test_every_generation_is_run(tmp_path: Path, row: Any, key: str) -> None:
    @observe
    def app(text: str) -> str:
        own = wrap("own", purpose="input", name="profile") if key == "items" else "own"
        assert own == "own"
        return text.upper()

    asyncio.run(assert_dataset_pass(app, "faq", ["ExactMatch"], dataset_dir=dataset(tmp_path, row, key=key)))


def test_a_recorded_output_is_scored_without_a_call(tmp_path: Path) -> None:
    def never(_: Any) -> None:
        raise AssertionError("it was called")

    row = {"eval_input": "hi", "expected_output": "HI", "eval_output": "HI", "description": "d"}
    assert_dataset_pass_sync(never, "faq", ["ExactMatch"], dataset_dir=dataset(tmp_path, row, key="items"))


def test_metadata_and_description_reach_the_evaluators(tmp_path: Path) -> None:
    def check(evaluable: Evaluable) -> bool:
        assert evaluable.eval_metadata is not None
        return (evaluable.eval_metadata["tone"], evaluable.description) == ("warm", "Basic greeting")

    folder = dataset(tmp_path, {**ENTRY, "eval_metadata": {"tone": "warm"}})
    assert_dataset_pass_sync(greet, "faq", [check], dataset_dir=folder)


def test_what_fails_is_reported_by_entry(tmp_path: Path) -> None:
    folder = dataset(tmp_path, ENTRY, {**ENTRY, "expectation": "Bye", "description": "Two"})
    with pytest.raises(EvalAssertionError, match=r"input 2 .*: ExactMatch scored 0") as caught:
        assert_dataset_pass_sync(greet, "faq", ["ExactMatch"], dataset_dir=folder)
    assert [[cell.score for cell in row] for row in caught.value.results] == [[1.0], [0.0]]


def test_an_input_that_the_entry_lacks_is_an_error_of_that_entry(tmp_path: Path) -> None:
    folder = dataset(tmp_path, {**ENTRY, "eval_input": [{"name": "profil", "value": 1}]})
    with pytest.raises(EvalAssertionError, match="asks for the input 'profile', which the case lacks"):
        assert_dataset_pass_sync(greet, "faq", ["ExactMatch"], dataset_dir=folder)


def test_from_trace_and_criteria_are_passed_on(tmp_path: Path) -> None:
    folder = dataset(tmp_path, ENTRY)
    with pytest.raises(EvalAssertionError, match="No spans captured"):
        assert_dataset_pass_sync(greet, "faq", ["ExactMatch"], dataset_dir=folder, from_trace=root)
    with pytest.raises(EvalAssertionError, match=r"^never"):
        assert_dataset_pass_sync(
            greet, "faq", ["ExactMatch"], dataset_dir=folder, pass_criteria=lambda r: (False, "never")
        )


def test_a_dataset_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^Dataset not found: 'nope'; looked in "):
        asyncio.run(assert_dataset_pass(greet, "nope", ["ExactMatch"], dataset_dir=tmp_path))


def test_an_empty_dataset_does_not_pass(tmp_path: Path) -> None:
    DatasetStore(tmp_path).create("faq")
    with pytest.raises(EvalAssertionError, match="there were no inputs"):
        assert_dataset_pass_sync(greet, "faq", ["ExactMatch"], dataset_dir=tmp_path)


def test_the_folder_is_the_one_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_DATASET_DIR", raising=False)
    monkeypatch.setenv("PIXIE_DATASET_DIR", str(dataset(tmp_path, ENTRY)))
    assert_dataset_pass_sync(greet, "faq", ["ExactMatch"])


def test_what_was_seen_once_becomes_a_test(tmp_path: Path) -> None:
    """A span is saved as an entry, and the application is run on it again."""
    from proctor.tracing.capture import capture_traces
    from proctor.tracing.spans import build_tree

    @observe
    def app(question: str, tone: str = "calm") -> str:
        return f"{question} ({tone})"

    with capture_traces() as seen:
        app("Hello")
    known = root(build_tree(seen.spans))
    store = DatasetStore(tmp_path)
    store.create("seen")
    store.append("seen", Evaluable(known.eval_input, expectation=known.output, description="A greeting"))
    assert_dataset_pass_sync(app, "seen", ["ExactMatch"], dataset_dir=tmp_path)
    assert store.get("seen").items[0].eval_input == [NamedData("input", {"question": "Hello", "tone": "calm"})]
