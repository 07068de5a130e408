"""The schema that editors use and the reader that counts agree on what a suite may look like."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from json_mutations import mutations
from native_documents import DOCUMENTS
from native_documents import JSON as ANY_JSON

from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite
from proctor.cases.formats.native.reader import read_document
from proctor.cases.formats.native.schema import schema_text

BEYOND_A_SCHEMA = (
    "is also the id of",  # ids must differ
    "has nothing to check",  # whether anything is expected or evaluated
    "is not a matcher",  # the forms of matchers in arguments
    " takes no ",
    " needs ",
    "is not a pattern",
    "must be a finite number",  # JSON numbers have no end
)
"""What the reader refuses and a schema cannot say."""

THOROUGH = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@cache
def shipped() -> Any:
    text = resources.files("proctor").joinpath("schemas/suite.schema.json").read_text(encoding="utf-8")
    return jsonschema_rs.validator_for(json.loads(text))


def problems_of(data: Any) -> list[str]:
    """What the reader finds that a schema could say as well."""
    try:
        read_document(Document(Path("suite.json"), "", data, lambda pointer: None))
    except InvalidSuite as error:
        return [str(p) for p in error.problems if not any(phrase in p.message for phrase in BEYOND_A_SCHEMA)]
    return []


def assert_agreement(data: Any) -> None:
    if not isinstance(data, dict) or _has_a_number_in_disguise(data) or _has_doubtful_blanks(data):
        return
    problems, valid = problems_of(data), shipped().is_valid(data)
    assert valid == (not problems), (problems, [str(e) for e in shipped().iter_errors(data)][:2], data)


def _has_a_number_in_disguise(data: Any) -> bool:
    """`1.0` is a whole number to a schema; as an id or a page it is a mistake to us."""
    if isinstance(data, list):
        return any(map(_has_a_number_in_disguise, data))
    if not isinstance(data, dict):
        return False
    pages = data["pages"] if isinstance(data.get("pages"), list) else []
    return any(isinstance(item, float) for item in (data.get("id"), *pages)) or _has_a_number_in_disguise(
        [*data.values()]
    )


def _has_doubtful_blanks(data: dict[str, Any]) -> bool:
    """Python and the regular expressions of schemas differ on which rare characters are blank."""
    escapes = ("\\u001c", "\\u001d", "\\u001e", "\\u001f", "\\u0085", "\\ufeff")
    return any(escape in json.dumps(data) for escape in escapes)


def test_the_shipped_schema_is_the_generated_one_and_offers_the_evaluators() -> None:
    shipped_text = resources.files("proctor").joinpath("schemas/suite.schema.json").read_text(encoding="utf-8")
    offered = json.loads(shipped_text)["$defs"]["EvaluatorWithOptions"]["properties"]
    assert shipped_text == schema_text({name: item["description"] for name, item in offered.items()})
    assert offered["Contains"]["description"].startswith("The answer contains any")


@THOROUGH
@given(DOCUMENTS)
def test_what_the_reader_takes_the_schema_takes(data: dict[str, Any]) -> None:
    assert problems_of(data) == []
    assert_agreement(data)


FULL: dict[str, Any] = {
    "$schema": "./suite.schema.json",
    "name": "n",
    "description": "d",
    "agent": "a.py:b",
    "evaluators": ["ExactMatch", {"ROUGE": {"threshold": 0.5, "name": "r", "report_only": False, "scope": "turn"}}],
    "criteria": {"trials": "all", "threshold": 0.5, "pct": 0.5},
    "settings": {"repeat": 1, "parallel": 1, "timeout": 1.5, "evaluator_timeout": 1, "retries": 0},
    "x-own": 1,
    "cases": [
        {
            "id": "a",
            "description": "d",
            "tags": ["t"],
            "skip": "why",
            "input": {"a": 1},
            "expected": {
                "output": 1,
                "contains": {"any": ["a"], "all": ["b"]},
                "tools": ["t", {"name": "u", "args": {"x": 1}, "count": 2, "substring": True, "extra_args": False}],
                "context": ["c"],
            },
            "retrieval_context": ["p"],
            "files": ["f", {"path": "p", "type": "pdf", "description": "d", "pages": [1], "sheet": "s", "range": "A1"}],
            "evaluators": ["...", {"Contains": {"timeout": 1, "output": "o", "any": ["x"]}}, {"Regex": None}],
            "inputs": {"i": 1},
            "metadata": {"m": 1},
            "state": {"s": 1},
            "final_state": {"s": 2},
            "repeat": 2,
            "timeout": 3,
            "x-own": None,
        },
        {
            "id": 7,
            "turns": [
                {"input": None, "expected": "x", "evaluators": ["..."], "metadata": {}, "x-t": 1},
                {"input": "b", "files": [{"url": "http://x", "cache": True}], "retrieval_context": []},
            ],
            "evaluators": [],
            "expected": None,
        },
    ],
}
del FULL["cases"][1]["expected"]


def test_a_suite_that_uses_every_key_is_fine_with_both() -> None:
    assert problems_of(FULL) == []
    assert shipped().is_valid(FULL)


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutations(FULL, ANY_JSON))
def test_reader_and_schema_agree_on_documents_that_are_nearly_right(data: Any) -> None:
    assert_agreement(data)


@pytest.mark.parametrize(
    "change",
    [
        {"cases": []},
        {"cases": [{"input": 1, "turns": [{"input": 1}]}]},
        {"cases": [{"turns": []}]},
        {"cases": [{"turns": None}]},
        {"cases": [{"expected": 1}]},
        {"cases": [{"turns": [{"expected": 1}]}]},
        {"cases": [{"turns": [{"input": 1}], "expected": None}]},
        {"cases": [{"input": 1, "expected": {"other": 1}}]},
        {"cases": [{"input": 1, "expected": {"contains": []}}]},
        {"cases": [{"input": 1, "expected": {"contains": {}}}]},
        {"cases": [{"input": 1, "expected": {"contains": {"any": []}}}]},
        {"cases": [{"input": 1, "expected": {"contains": [" "]}}]},
        {"cases": [{"input": 1, "expected": {"tools": [""]}}]},
        {"cases": [{"input": 1, "expected": {"tools": [{"args": {}}]}}]},
        {"cases": [{"input": 1, "expected": {"tools": [{"name": "a", "count": 0}]}}]},
        {"cases": [{"input": 1, "files": [{}]}]},
        {"cases": [{"input": 1, "files": [{"path": "a", "url": "b"}]}]},
        {"cases": [{"input": 1, "files": [{"path": "a", "pages": [0]}]}]},
        {"cases": [{"input": 1, "repeat": 1.5}]},
        {"cases": [{"input": 1, "repeat": True}]},
        {"cases": [{"input": 1, "timeout": 0}]},
        {"cases": [{"input": 1, "id": " "}]},
        {"cases": [{"input": 1, "id": True}]},
        {"cases": [{"input": 1, "skip": ""}]},
        {"cases": [{"input": 1, "evaluators": [{"a": {}, "b": {}}]}]},
        {"cases": [{"input": 1, "evaluators": [{}]}]},
        {"cases": [{"input": 1, "evaluators": [{"...": {}}]}]},
        {"cases": [{"input": 1, "evaluators": [{"a": {"threshold": 1.1}}]}]},
        {"cases": [{"input": 1, "evaluators": [{"a": {"name": " "}}]}]},
        {"evaluators": ["..."]},
        {"criteria": {"pct": 0}},
        {"criteria": {"pct": 1.1}},
        {"criteria": {"trials": "most"}},
        {"criteria": {"threshold": -0.1}},
        {"criteria": {"other": 1}},
        {"settings": {"retries": -1}},
        {"settings": {"parallel": 0}},
        {"settings": {"evaluator_timeout": -1}},
        {"name": " "},
        {"agent": 5},
        {"$schema": 5},
        {"nmae": "x"},
        {"X-own": 1},
    ],
)
def test_both_refuse_what_is_out_of_bounds(change: dict[str, Any]) -> None:
    data = {"cases": [{"input": 1, "expected": 1}], **change}
    assert problems_of(data) != []
    assert not shipped().is_valid(data)


@pytest.mark.parametrize(
    "change",
    [
        {"cases": [{"input": None, "expected": None}]},
        {"cases": [{"input": 1, "expected": 1, "repeat": 2.0}]},
        {"cases": [{"input": 1, "expected": 1, "turns": None, "tags": None, "files": None}]},
        {"criteria": None, "settings": None, "evaluators": None, "agent": None, "name": None},
        {"criteria": {"trials": None, "pct": None, "threshold": 0}},
        {"settings": {"retries": 0, "timeout": 0.001}},
        {"evaluators": [{"a": None}, {"a": {"report_only": None, "threshold": 1}}]},
    ],
)
def test_both_take_what_is_just_within_bounds(change: dict[str, Any]) -> None:
    data = {"cases": [{"input": 1, "expected": 1}], **change}
    assert problems_of(data) == []
    assert shipped().is_valid(data)
