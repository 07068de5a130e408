from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutated import VALUES, mutations

from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite, UsageError
from proctor.cases.formats import pixie
from proctor.cases.suite import (
    Attachment,
    Case,
    Criteria,
    EvaluatorSpec,
    Expected,
    ExpectedCall,
    Keywords,
    Settings,
    Suite,
    Turn,
)

PATH = Path("set.json")


def read_text(text: str) -> Suite:
    [suite] = pixie.read(Document(PATH, text))
    return replace(suite, warnings=())


def read(data: Any) -> Suite:
    return read_text(json.dumps(data))


values = VALUES
objects = st.dictionaries(st.text(), values, max_size=3)
words = st.text(min_size=1).filter(lambda text: bool(text.strip()))
evaluators = st.lists(
    st.sampled_from(
        ["ExactMatch", "checks.py:fn", {"Faithfulness": {"threshold": 0.8}}, {"ValidJSON": {"schema": {}}}]
    ),
    min_size=1,
    max_size=3,
)
named = st.lists(
    st.builds(lambda n, v: {"name": n, "value": v}, words, values), max_size=3, unique_by=lambda d: d["name"]
)
entries = st.fixed_dictionaries(
    {"input_data": objects, "description": words},
    optional={
        "eval_input": named,
        "expectation": values,
        "eval_metadata": objects,
        "evaluators": evaluators | st.just(["...", "ListContains"]) | st.just([]),
        "x-own": values,
    },
)
datasets = st.fixed_dictionaries(
    {"evaluators": evaluators, "entries": st.lists(entries, min_size=1, max_size=4)},
    optional={"name": words, "runnable": st.just("app.py:App"), "x-mine": values},
)


@given(datasets)
def test_a_dataset_survives_being_written_and_read(data: Any) -> None:
    suite = read(data)
    assert read_text(pixie.write([suite]).text) == suite


@given(datasets.filter(lambda data: all(isinstance(e, str) for e in data["evaluators"])))
def test_a_plain_dataset_loses_nothing(data: Any) -> None:
    for entry in data["entries"]:
        entry.pop("evaluators", None)
    assert pixie.write([read(data)]).losses == ()


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(datasets.flatmap(mutations) | values)
def test_only_invalid_suite_ever_escapes(data: Any) -> None:
    pixie.recognises(PATH, data)
    try:
        suite = read(data)
    except InvalidSuite as error:
        assert error.problems
    else:
        pixie.write([suite])


def test_a_dataset_with_named_inputs_throughout_is_written_in_the_documented_form() -> None:
    data = {
        "name": "faq",
        "runnable": "app.py:App",
        "evaluators": ["ExactMatch"],
        "entries": [
            {
                "entry_kwargs": {"q": "é"},
                "description": "Greets",
                "eval_input": [{"name": "q", "value": "é"}],
                "expectation": None,
                "eval_metadata": {"a": 1},
                "evaluators": ["...", "ValidJSON"],
            }
        ],
    }
    written = pixie.write([read(data)])
    assert json.loads(written.text) == data
    assert '"é"' in written.text
    assert written.losses == ()


def test_half_a_character_is_written_so_that_it_can_be_saved() -> None:
    data = {"evaluators": ["A"], "entries": [{"input_data": {"q": "\ud800"}, "description": "d"}]}
    text = pixie.write([read(data)]).text
    assert json.loads(text.encode())["entries"][0]["input_data"] == {"q": "\ud800"}


def test_everything_a_dataset_cannot_say_is_listed() -> None:
    turn = Turn(
        {"q": 1},
        Expected(keywords=Keywords(("a",)), tool_calls=(ExpectedCall("t"),), context=("c",)),
        retrieval_context=("r",),
        attachments=(Attachment(path="a.txt"),),
        metadata={"m": 1},
    )
    case = Case(
        "refund", (turn,), "Refund", tags=("t",), state={"a": 1}, final_state={}, repeat=2, timeout=1.0, skip="later"
    )
    talk = Case("talk", (Turn("a"), Turn("b")))
    suite = Suite(
        "s",
        (case, talk),
        agent={"url": "http://x"},
        criteria=Criteria(pct=0.5),
        settings=Settings(repeat=3),
        description="D",
    )
    losses = "\n".join(pixie.write([suite]).losses)
    for word in (
        "keywords", "tool calls", "context", "attachments", "metadata of the turn", "tags", "state", "final state",
        "repeat", "timeout", "skip", "2 turns", "agent", "criteria", "settings", "description",
    ):  # fmt: skip
        assert word in losses
    assert "case 'talk'" in losses


def test_an_input_that_is_no_object_becomes_an_argument() -> None:
    written = pixie.write([Suite("s", (Case("hello", (Turn("hi"),), "Hello"),), (EvaluatorSpec("A"),))])
    assert json.loads(written.text)["entries"][0]["input_data"] == {"input": "hi"}
    assert "case 'hello': its input is not an object; it is written as the argument 'input'" in written.losses


def test_an_id_that_will_change_is_announced() -> None:
    written = pixie.write([Suite("s", (Case("C-17", (Turn({}),), "Hello"),), (EvaluatorSpec("A"),))])
    assert written.losses == ("case 'C-17': its id cannot be expressed; it will be read as 'hello'",)


def test_further_suites_stand_beside_the_first() -> None:
    suite = Suite("My set", (Case("hello", (Turn({}),), "Hello"),), (EvaluatorSpec("A"),))
    written = pixie.write([suite, suite])
    assert [name for name, _ in written.companions] == ["my-set-2.json"]
    assert read_text(written.companions[0][1]).name == "My set"


def test_writing_nothing_is_refused() -> None:
    with pytest.raises(UsageError):
        pixie.write([])
