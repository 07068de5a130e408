"""Lists of cases as test modules have them: `expected_output_contains` and `match`, bare or under `TEST_CASES`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite
from proctor.cases.formats import NATIVE
from proctor.cases.formats.loading import load
from proctor.cases.formats.native.reader import read_document, read_list
from proctor.cases.suite import EvaluatorSpec, Keywords, Suite

LOAN = {"id": "loan", "input": "What would I pay each month?", "expected_output_contains": ["1,498", "per month"]}
RATE = {"id": "rate", "input": "At which rate?", "expected_output_contains": ["5%"]}


def read(data: Any, name: str = "loans.json") -> Suite:
    path = Path(name)
    [suite] = read_document(Document(path, json.dumps(data, indent=1)))
    return suite


def refusal(data: Any) -> str:
    with pytest.raises(InvalidSuite) as caught:
        read(data)
    return str(caught.value)


def test_a_list_of_cases_becomes_a_suite_judged_by_its_keywords() -> None:
    suite = read([LOAN, RATE])
    case = suite.cases[0]
    assert (suite.name, case.id, suite.evaluators_of(case)) == ("loans", "loan", (EvaluatorSpec("Contains"),))
    assert case.turns[0].expected.contains == Keywords(any=("1,498", "per month"))


@pytest.mark.parametrize("key", ["test_cases", "TEST_CASES"])
def test_the_list_may_stand_under_a_name(key: str) -> None:
    assert read({key: [LOAN]}).cases == read([LOAN]).cases


def test_all_words_can_be_required() -> None:
    [case] = read([{**LOAN, "match": "all"}]).cases
    assert case.turns[0].expected.contains == Keywords(all=("1,498", "per month"))


def test_a_description_and_tags_are_read() -> None:
    [case] = read([{**LOAN, "description": "A plain loan", "tags": ["money"]}]).cases
    assert (case.description, case.tags) == ("A plain loan", ("money",))


def test_yaml_reads_as_json_does() -> None:
    text = "- id: loan\n  input: What would I pay each month?\n  expected_output_contains: ['1,498', per month]\n"
    [suite] = read_document(Document(Path("loans.yaml"), text))
    assert suite.cases == read([LOAN]).cases


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "is empty; add at least one"),
        ({"test_cases": []}, "test_cases is empty"),
        ({"test_cases": [LOAN], "TEST_CASES": [LOAN]}, "cannot be combined with"),
        ({"test_cases": LOAN}, "test_cases must be a list"),
        ([LOAN, LOAN], "[1].id 'loan' is also the id of cases[0]"),
        ([LOAN, 3], "[1] must be an object, not a number"),
        (
            [{**LOAN, "expected": {"contains": "x"}}],
            "expected_output_contains cannot be combined with expected.contains",
        ),
        ([{"id": "a", "input": "q", "expected": "x", "match": "all"}], "match is not a known key"),
        ([{"id": "a", "turns": [{"input": "q"}], "expected_output_contains": ["x"]}], "must be in each turn"),
        ([{**LOAN, "id": ""}], "[0].id must not be blank"),
        ([{**LOAN, "match": "some"}], "[0].match must be one of any, all"),
        ([{**LOAN, "expected_output_contains": []}], "[0].expected_output_contains is empty"),
        ([{**LOAN, "expected_output_contains": "1,498"}], "[0].expected_output_contains must be a list"),
        ([{**LOAN, "expected_output_contains": ["a", ""]}], "expected_output_contains must not have a blank word"),
        ([{**LOAN, "expected_output_contains": ["a", 5]}], "expected_output_contains[1] must be text"),
        ([LOAN, {"id": "b", "input": "q"}], "[1] has nothing to check"),
        ([LOAN, {"expected_output_contains": ["a"]}], "[1] needs 'input'"),
    ],
)
def test_bad_cases_are_problems_in_their_place(data: Any, said: str) -> None:
    assert said in refusal(data)


def test_problems_carry_the_line() -> None:
    assert refusal([LOAN, {**RATE, "id": ""}]).startswith("loans.json:11: cases[1].id")


def test_a_python_list_reads_like_a_file(tmp_path: Path) -> None:
    suite = read_list("TEST_CASES", (LOAN, RATE), tmp_path / "test_loans.py")
    assert (suite.name, suite.cases) == ("test_loans", read([LOAN, RATE]).cases)


def test_problems_in_a_python_list_name_the_list() -> None:
    with pytest.raises(InvalidSuite) as caught:
        read_list("TEST_CASES", [LOAN, {**RATE, "id": ""}], Path("test_loans.py"))
    assert str(caught.value) == "test_loans.py: TEST_CASES[1].id must not be blank"


@pytest.mark.parametrize("value", [None, 3, "cases", {"id": "x"}, object(), list])
def test_a_python_value_that_is_no_list_is_a_problem(value: object) -> None:
    with pytest.raises(InvalidSuite, match="TEST_CASES must be a list of cases"):
        read_list("TEST_CASES", value, Path("a.py"))


@pytest.mark.parametrize(
    ("name", "data", "recognised"),
    [
        ("a.json", [LOAN], True),
        ("a.yaml", {"test_cases": [LOAN]}, True),
        ("a.yaml", {"test_cases": [{**LOAN, "expected_output_contains": 3}]}, True),
        ("a.yaml", {"test_cases": [{"input": "q"}, LOAN]}, True),
        ("agent.yaml", {"name": "x", "test_cases": [{"input": "q", "ground_truth": "a"}]}, False),
        ("tests.yaml", {"test_cases": [{"input": "q"}]}, False),
        ("a.json", [], False),
        ("a.json", {"test_cases": 3}, False),
        ("a.json", None, False),
    ],
)
def test_only_its_own_files_are_recognised(name: str, data: Any, recognised: bool) -> None:
    assert NATIVE.recognises(Path(name), data) is recognised


def test_one_misspelt_key_is_one_problem_with_a_hint_whatever_row_it_is_in(tmp_path: Path) -> None:
    """The first row once decided the format, so that the right rows after it were the wrong ones."""
    words = "expected_output_contains"
    rows = [{"id": "a", "input": "q", words[:-1]: ["x"]}, {"id": "b", "input": "q", words: ["x"], "match": "all"}]
    for order in (rows, rows[::-1]):
        path = tmp_path / "loans.json"
        path.write_text(json.dumps(order))
        with pytest.raises(InvalidSuite) as caught:
            load([path])
        [problem] = caught.value.problems
        assert problem.where == f"cases[{order.index(rows[0])}].expected_output_contain"
        assert f"did you mean {words!r}?" in problem.message
