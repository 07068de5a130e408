from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite
from proctor.base.json_data import UNSET
from proctor.cases.suite import EvaluatorSpec, NamedData, Suite
from proctor.compat.pixie import reader as pixie

SEED = {
    "name": "customer-faq",
    "runnable": "pixie_qa/scripts/run_app.py:AppRunnable",
    "evaluators": ["Factuality"],
    "entries": [
        {
            "entry_kwargs": {"question": "Hello"},
            "description": "Basic greeting",
            "eval_input": [{"name": "input", "value": "Hello"}],
            "expectation": "A friendly greeting that offers to help",
            "evaluators": ["...", "ClosedQA"],
        }
    ],
}


def read(data: Any, name: str = "faq.json") -> Suite:
    document = Document(Path(name), json.dumps(data, indent=1), data)
    [suite] = pixie.read(document)
    return suite


def problems(data: Any) -> list[str]:
    with pytest.raises(InvalidSuite) as caught:
        read(data)
    return [str(problem) for problem in caught.value.problems]


def entry(**fields: Any) -> dict[str, Any]:
    return {"input_data": {"q": "hi"}, "description": "d", **fields}


def dataset(*entries: Any, **fields: Any) -> dict[str, Any]:
    return {"evaluators": ["ExactMatch"], "entries": list(entries), **fields}


def test_the_documented_dataset_is_read_whole() -> None:
    suite = read(SEED)
    [case] = suite.cases
    assert suite.name == "customer-faq"
    assert suite.agent == "pixie_qa/scripts/run_app.py:AppRunnable"
    assert suite.format == "pixie"
    assert suite.evaluators == (EvaluatorSpec("Factuality"),)
    assert case.id == "basic-greeting"
    assert case.description == "Basic greeting"
    assert case.turns[0].input == {"question": "Hello"}
    assert case.turns[0].expected.output == "A friendly greeting that offers to help"
    assert case.inputs == (NamedData("input", "Hello"),)
    assert case.evaluators == (EvaluatorSpec("Factuality"), EvaluatorSpec("ClosedQA"))


def test_every_generation_says_the_same_case() -> None:
    evaluators = ["ExactMatch"]
    named = [{"name": "q", "value": 1}]
    flat = {"eval_input": named, "expectation": "x", "eval_metadata": {"m": 1}, "description": "One"}
    generations = [
        {"entry_kwargs": {"q": 1}, **flat},
        {"input_data": {"q": 1}, **flat},
        {"entry_kwargs": {"q": 1}, "test_case": flat},
        {"test_case": {"entry_kwargs": {"q": 1}, **flat}},
    ]
    cases = {repr(read({"evaluators": evaluators, "entries": [form]}).cases[0]) for form in generations}
    assert len(cases) == 1


def test_items_of_the_first_generation_take_any_input() -> None:
    item = {"eval_input": [1, "two"], "expected_output": None, "description": "Any", "evaluators": ["ExactMatch"]}
    [case] = read({"name": "old", "items": [item]}).cases
    assert case.turns[0].input == [1, "two"]
    assert case.turns[0].expected.output is None
    assert case.inputs == ()


def test_a_recorded_output_is_kept_and_warned_about() -> None:
    item = {"eval_input": "q", "eval_output": "a", "description": "Any", "evaluators": ["ExactMatch"]}
    suite = read({"items": [item]})
    assert suite.cases[0].extra == {"x-pixie": {"eval_output": "a"}}
    [warning] = suite.warnings
    assert warning.where == "items[0].eval_output"
    assert "the agent runs" in warning.message


@pytest.mark.parametrize(
    ("given", "expected"), [({}, UNSET), ({"expectation": None}, None), ({"expectation": "UNSET"}, "UNSET")]
)
def test_no_expectation_differs_from_expecting_nothing(given: dict[str, Any], expected: Any) -> None:
    output = read(dataset(entry(**given))).cases[0].turns[0].expected.output
    assert output is expected if expected in (UNSET, None) else output == expected


def test_ids_do_not_change_when_entries_are_appended() -> None:
    before = [entry(description=text) for text in ("Asks twice!", "asks twice", "asks twice 2", "日本語", "x" * 90)]
    ids = [case.id for case in read(dataset(*before)).cases]
    assert ids == ["asks-twice", "asks-twice-2", "asks-twice-2-2", "entry", "x" * 60]
    after = [case.id for case in read(dataset(*before, entry(description="Asks twice"))).cases]
    assert after == [*ids, "asks-twice-3"]


@pytest.mark.parametrize("own", [None, []])
def test_an_entry_without_evaluators_inherits_them(own: Any) -> None:
    assert read(dataset(entry(evaluators=own))).cases[0].evaluators is None


def test_an_entry_with_evaluators_of_its_own_has_only_those() -> None:
    assert read(dataset(entry(evaluators=["ValidJSON"]))).cases[0].evaluators == (EvaluatorSpec("ValidJSON"),)


def test_the_name_of_the_file_stands_in_for_a_missing_one() -> None:
    assert read(dataset(entry()), "refunds.json").name == "refunds"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (dataset(), "entries is empty"),
        ({"runnable": "a.py:b"}, "needs 'entries'"),
        (dataset(entry(), items=[]), "items cannot be used together with 'entries'"),
        (dataset(entry(), evaluators=["..."]), "evaluators[0]"),
        (dataset(entry(), evaluators=[]), "has no evaluators"),
        ({"entries": [entry(evaluators=["..."])]}, "has no evaluators"),
        ({"entries": [entry(evaluators=["A"]), entry()]}, "entries[1] has no evaluators"),
        (dataset("text"), "entries[0] must be an object, not text"),
        (dataset(entry(test_case=3)), "entries[0].test_case must be an object"),
        (dataset(entry(description=" ")), "entries[0].description must not be blank"),
        (dataset({"input_data": {}}), "entries[0] needs 'description'"),
        (dataset({"description": "d"}), "entries[0] needs 'entry_kwargs' or 'input_data'"),
        (dataset(entry(entry_kwargs={})), "has both entry_kwargs and input_data"),
        (dataset(entry(input_data="hi")), "entries[0].input_data must be an object, not text"),
        (dataset(entry(eval_input="hi")), "entries[0].eval_input must be a list"),
        (dataset(entry(eval_input=["hi"])), "entries[0].eval_input[0] must be an object"),
        (dataset(entry(eval_input=[{"name": "a"}])), "entries[0].eval_input[0] needs 'value'"),
        (dataset(entry(eval_input=[{"value": 1}])), "entries[0].eval_input[0] needs 'name'"),
        (dataset(entry(eval_input=[{"name": "a", "value": 1}] * 2)), "eval_input[1].name 'a' occurs twice"),
        (dataset(entry(expectation=1, expected_output=1)), "has both expectation and expected_output"),
        (dataset(entry(description="a", test_case={"description": "b"})), "is set twice, here and in test_case"),
        (dataset(entry(expectaton="x")), "did you mean 'expectation'?"),
        (dataset(entry(eval_metadata=[])), "entries[0].eval_metadata must be an object"),
        (dataset(entry(eval_output="x")), "entries[0].eval_output is not a known key"),
        (dataset(entry(), runable="a.py:b"), "did you mean 'runnable'?"),
        ({"items": [{"description": "d", "evaluators": ["A"]}]}, "items[0] needs 'eval_input'"),
    ],
)
def test_one_mistake_is_one_problem_with_its_place(data: Any, complaint: str) -> None:
    [problem] = problems(data)
    assert complaint in problem


def test_all_problems_are_reported_together_with_their_lines() -> None:
    found = problems(dataset(entry(description=""), entry(eval_input=3)))
    assert [line.split(" ")[0] for line in found] == ["faq.json:10:", "faq.json:17:"]


@pytest.mark.parametrize(
    ("data", "recognised"),
    [
        (SEED, True),
        ({"name": "new", "items": []}, False),
        ({"name": "new", "evaluators": ["Contains"], "items": []}, True),
        ({"runnable": "App", "items": []}, True),
        ({"runnable": True, "kind": "chart"}, False),
        ({"runnable": "a.py:b", "entries": 3}, True),
        ({"entries": [{"test_case": {}}]}, True),
        ({"items": [{"eval_input": 1}]}, True),
        ({"items": [{"price": 1}]}, False),
        ({"cases": [], "entries": [{"eval_input": 1}]}, False),
        ({"entries": "x"}, False),
        ([{"eval_input": 1}], False),
        (None, False),
    ],
)
def test_a_dataset_is_recognised_by_its_content(data: Any, recognised: bool) -> None:
    assert pixie.recognises(Path("x.json"), data) is recognised
