"""Reading ADK's legacy arrays, which the two ADKs mean differently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import adk_documents as docs
import pytest

from proctor.base.errors import InvalidSuite
from proctor.base.json_data import UNSET
from proctor.cases.formats.loading import load
from proctor.cases.matchers import Equals
from proctor.cases.suite import ExpectedCall

TYPESCRIPT = {"query": "Where is it?", "reference": "Utrecht", "expected_tool_use": [docs.TRACK]}
PYTHON = {
    "query": "Where is it?",
    "reference": "Utrecht",
    "expected_tool_use": [{"tool_name": "track", "tool_input": {"parcel": 7}}],
}


def test_each_row_of_adk_ts_is_a_case(tmp_path: Path) -> None:
    suite = docs.read(tmp_path, [TYPESCRIPT, {"query": "Hi", "reference": "Hello"}])
    assert [(case.id, len(case.turns)) for case in suite.cases] == [("eval-0", 1), ("eval-1", 1)]


def test_the_rows_of_adk_python_are_the_turns_of_one_case(tmp_path: Path) -> None:
    suite = docs.read(tmp_path, [PYTHON, {"query": "Thanks", "expected_tool_use": [], "reference": "Bye"}])
    [case] = suite.cases
    assert (case.id, [turn.input for turn in case.turns]) == ("desk", ["Where is it?", "Thanks"])
    assert [turn.expected.tools for turn in case.turns] == [(ExpectedCall("track", {"parcel": Equals(7)}),), ()]


def test_reading_it_warns_that_the_format_is_deprecated(tmp_path: Path) -> None:
    [warning] = docs.read(tmp_path, [TYPESCRIPT]).warnings
    assert "legacy format" in warning.message


def test_a_single_row_is_a_list_of_one(tmp_path: Path) -> None:
    one, many = docs.read(tmp_path, TYPESCRIPT), docs.read(tmp_path, [TYPESCRIPT])
    assert one.cases == many.cases


def test_a_blank_reference_is_none(tmp_path: Path) -> None:
    suite = docs.read(tmp_path, [{**TYPESCRIPT, "reference": ""}])
    assert suite.cases[0].turns[0].expected.output is UNSET


def test_a_legacy_evalset_has_a_case_per_entry_with_its_session(tmp_path: Path) -> None:
    session = {"state": {"parcels": [7]}, "app_name": "post", "user_id": "u1"}
    data = [{"name": "first", "data": [PYTHON, PYTHON], "initial_session": session}, {"name": "next", "data": [PYTHON]}]
    first, second = docs.read(tmp_path, data).cases
    assert (first.id, len(first.turns), first.state) == ("first", 2, {"parcels": [7]})
    assert first.extra == {"x-adk": {"appName": "post", "userId": "u1"}}
    assert (second.id, second.state) == ("next", {})


def test_what_sub_agents_say_on_the_way_is_kept_as_an_eval_set_has_it(tmp_path: Path) -> None:
    row = {**PYTHON, "expected_intermediate_agent_responses": [{"author": "clerk", "text": "Looking."}]}
    [turn] = docs.read(tmp_path, [row]).cases[0].turns
    assert turn.extra["x-adk"]["intermediateData"] == {
        "toolUses": [docs.TRACK],
        "intermediateResponses": [["clerk", [{"text": "Looking."}]]],
    }


def test_mocked_outputs_are_pointed_out_once(tmp_path: Path) -> None:
    use = {"tool_name": "track", "tool_input": {}, "mock_tool_output": "Utrecht"}
    suite = docs.read(tmp_path, [{**PYTHON, "expected_tool_use": [use, use]}])
    assert sum("mock_tool_output" in warning.message for warning in suite.warnings) == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([TYPESCRIPT, PYTHON], "[1].expected_tool_use[0] mixes"),
        ([TYPESCRIPT, {"reference": "x"}], "[1] is a legacy row without 'query'"),
        ([{**TYPESCRIPT, "query": " "}], "[0].query must not be blank"),
        ([{**TYPESCRIPT, "refrence": "x"}], "[0].refrence is not a known key; did you mean 'reference'?"),
        ([TYPESCRIPT, 3], "[1] must be an object, not a number"),
        ([{**TYPESCRIPT, "expected_tool_use": {"name": "x"}}], "[0].expected_tool_use must be a list"),
        ([{**TYPESCRIPT, "expected_tool_use": ["x"]}], "[0].expected_tool_use[0] must be an object"),
        ([{**PYTHON, "expected_tool_use": [{"tool_input": {}}]}], "needs 'tool_name'"),
        ([{"query": "Hi"}], "[0] has neither"),
        ([{"name": "a", "data": []}], "[0].data is empty"),
        ([{"name": "a", "data": [PYTHON]}, {"name": "a", "data": [PYTHON]}], "[1] has the same id as an earlier case"),
        ([{"name": "a", "data": [PYTHON]}, PYTHON], "[1] needs 'data'"),
        ([{"name": "a", "data": [PYTHON], "initial_session": []}], "initial_session must be an object"),
    ],
)
def test_bad_rows_are_problems_in_their_place(tmp_path: Path, data: Any, said: str) -> None:
    with pytest.raises(InvalidSuite) as caught:
        docs.read(tmp_path, data)
    assert any(said in str(problem) for problem in caught.value.problems), caught.value


@pytest.mark.parametrize("name", ["none.test.json", "none.evalset.json"])
def test_an_empty_array_is_a_legacy_file_without_rows(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(InvalidSuite, match="is empty; add at least one row"):
        load([path])


def test_a_row_that_cannot_be_read_is_not_called_empty_as_well(tmp_path: Path) -> None:
    path = tmp_path / "bad.test.json"
    path.write_text('[{"query": "q", "reference": 5}, {"query": "q"}]', encoding="utf-8")
    with pytest.raises(InvalidSuite) as caught:
        load([path])
    assert [(problem.where, problem.message.split(";")[0]) for problem in caught.value.problems] == [
        ("[0].reference", "must be text, not a number"),
        ("[1]", "has neither a final response nor tool uses to compare with"),
    ]
