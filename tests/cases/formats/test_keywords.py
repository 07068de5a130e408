"""Reading and writing cases of an id, an input and expected keywords."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite
from proctor.cases.formats import keywords
from proctor.cases.suite import Case, EvaluatorSpec, Expected, Keywords, Settings, Suite, Turn

LOAN = {"id": "loan", "input": "What would I pay each month?", "expected_output_contains": ["1,498", "per month"]}
RATE = {"id": "rate", "input": "At which rate?", "expected_output_contains": ["5%"]}


def read(data: Any, name: str = "loans.json") -> Suite:
    path = Path(name)
    [suite] = keywords.read(Document(path, json.dumps(data, indent=1), data))
    return suite


def refusal(data: Any) -> str:
    with pytest.raises(InvalidSuite) as caught:
        read(data)
    return str(caught.value)


def test_a_list_of_cases_becomes_a_suite_judged_by_its_keywords() -> None:
    suite = read([LOAN, RATE])
    assert (suite.name, suite.evaluators) == ("loans", (EvaluatorSpec("Contains"),))
    assert suite.cases[0] == Case(
        "loan",
        (Turn("What would I pay each month?", Expected(keywords=Keywords(any_of=("1,498", "per month")))),),
    )


@pytest.mark.parametrize("key", ["test_cases", "TEST_CASES"])
def test_the_list_may_stand_under_a_name(key: str) -> None:
    assert read({key: [LOAN]}).cases == read([LOAN]).cases


def test_all_words_can_be_required() -> None:
    [case] = read([{**LOAN, "match": "all"}]).cases
    assert case.turns[0].expected.keywords == Keywords(all_of=("1,498", "per month"))


def test_a_description_and_tags_are_read() -> None:
    [case] = read([{**LOAN, "description": "A plain loan", "tags": ["money"]}]).cases
    assert (case.description, case.tags) == ("A plain loan", ("money",))


def test_yaml_reads_as_json_does() -> None:
    text = "- id: loan\n  input: What would I pay each month?\n  expected_output_contains: ['1,498', per month]\n"
    [suite] = keywords.read(Document(Path("loans.yaml"), text))
    assert suite.cases == read([LOAN]).cases


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "is empty; give at least one case"),
        ({"test_cases": []}, "test_cases is empty"),
        ({"test_cases": [LOAN], "TEST_CASES": [LOAN]}, "has both"),
        ({"test_cases": [LOAN], "agent": "x"}, "agent is not a known key"),
        ({"test_cases": LOAN}, "test_cases must be a list"),
        ([LOAN, LOAN], "[1].id 'loan' is the id of an earlier case already"),
        ([LOAN, 3], "[1] must be an object, not a number"),
        ([{**LOAN, "expected": "x"}], "[0].expected is not a known key"),
        ([{**LOAN, "input": " "}], "[0].input must not be blank"),
        ([{**LOAN, "input": 3}], "[0].input must be text"),
        ([{**LOAN, "id": ""}], "[0].id must not be blank"),
        ([{**LOAN, "match": "some"}], "[0].match must be one of any, all"),
        ([{**LOAN, "expected_output_contains": []}], "[0].expected_output_contains is empty"),
        ([{**LOAN, "expected_output_contains": "1,498"}], "[0].expected_output_contains must be a list"),
        ([{**LOAN, "expected_output_contains": ["a", ""]}], "expected_output_contains[1] must not be blank"),
        ([{**LOAN, "expected_output_contains": ["a", 5]}], "expected_output_contains[1] must be text"),
        ([LOAN, {"id": "b", "input": "q"}], "[1] needs 'expected_output_contains'"),
        ([LOAN, {"expected_output_contains": ["a"]}], "[1] needs 'id'"),
    ],
)
def test_bad_cases_are_problems_in_their_place(data: Any, said: str) -> None:
    assert said in refusal(data)


def test_problems_carry_the_line() -> None:
    assert refusal([LOAN, {**RATE, "input": ""}]).startswith("loans.json:12: [1].input")


def test_a_python_list_reads_like_a_file(tmp_path: Path) -> None:
    suite = keywords.from_python("test_loans.py:TEST_CASES", (LOAN, RATE), tmp_path / "test_loans.py")
    assert (suite.name, suite.cases) == ("test_loans", read([LOAN, RATE]).cases)


def test_problems_in_a_python_list_name_the_list() -> None:
    with pytest.raises(InvalidSuite) as caught:
        keywords.from_python("test_loans.py:TEST_CASES", [LOAN, {**RATE, "input": ""}], Path("test_loans.py"))
    assert str(caught.value) == "test_loans.py: TEST_CASES[1].input must not be blank"


@pytest.mark.parametrize("value", [None, 3, "cases", {"id": "x"}, object(), list])
def test_a_python_value_that_is_no_list_is_a_problem(value: object) -> None:
    with pytest.raises(InvalidSuite, match="TEST_CASES must be a list of cases"):
        keywords.from_python("a.py:TEST_CASES", value, Path("a.py"))


@pytest.mark.parametrize(
    ("name", "data", "recognised"),
    [
        ("a.json", [LOAN], True),
        ("a.yaml", {"test_cases": [LOAN]}, True),
        ("a.json", [{"input": "q", "expected": "a"}], False),
        ("a.json", {"cases": [LOAN]}, False),
        ("agent.yaml", {"name": "x", "test_cases": [{"input": "q", "ground_truth": "a"}]}, False),
        ("a.jsonl", [LOAN], False),
        ("a.csv", [LOAN], False),
        ("a.json", [], False),
        ("a.json", {"test_cases": 3}, False),
        ("a.json", None, False),
    ],
)
def test_only_its_own_files_are_recognised(name: str, data: Any, recognised: bool) -> None:
    assert keywords.recognises(Path(name), data) is recognised


words = st.text(min_size=1, max_size=8).filter(str.strip)
rows = st.lists(
    st.fixed_dictionaries(
        {"input": words, "expected_output_contains": st.lists(words, min_size=1, max_size=3)},
        optional={"match": st.sampled_from(["any", "all"]), "description": words, "tags": st.lists(words, max_size=2)},
    ),
    min_size=1,
    max_size=4,
).map(lambda found: [{"id": f"case {number}", **row} for number, row in enumerate(found)])


@given(rows)
def test_what_is_read_comes_back_when_written(data: Any) -> None:
    suite = read(data)
    written = keywords.write([suite])
    assert written.losses == ()
    assert read(json.loads(written.text)) == suite


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "input", "expected_output_contains", "match", "tags", "test_cases"])
            | st.text(max_size=3),
            inner,
        )
    ),
    max_leaves=12,
)


@given(anything | st.lists(st.dictionaries(st.sampled_from(sorted(LOAN)), anything), max_size=3))
def test_random_data_never_breaks_the_reader(data: Any) -> None:
    keywords.recognises(Path("loans.json"), data)
    if data is None:
        return
    try:
        assert read(data).cases
    except InvalidSuite as error:
        assert error.problems


def test_what_keywords_cannot_say_is_listed_and_what_they_cannot_hold_left_out() -> None:
    said = Turn("q", Expected(keywords=Keywords(any_of=("a",))))
    suite = replace(
        read([LOAN]),
        agent="app.py:agent",
        settings=Settings(repeat=2),
        cases=(
            Case("kept", (replace(said, expected=replace(said.expected, output="x")),), state={"a": 1}),
            Case("long", (said, said)),
            Case("mute", (Turn("q"),)),
            Case("data", (replace(said, input={"a": 1}),)),
            Case("judged", (said,), evaluators=(EvaluatorSpec("Safety"),)),
            Case("both", (Turn("q", Expected(keywords=Keywords(("a",), ("b",)))),)),
        ),
    )
    written = keywords.write([suite, suite])
    assert [row["id"] for row in json.loads(written.text)] == ["kept", "judged", "both"]
    for loss in [
        "suite 'loans': agent cannot be expressed",
        "suite 'loans': repeat cannot be expressed",
        "case 'kept': state cannot be expressed",
        "case 'kept': output cannot be expressed",
        "case 'long': left out, because it has 2 turns",
        "case 'mute': left out, because it expects no keywords",
        "case 'data': left out, because its input is not text",
        "case 'judged': evaluator 'Safety' cannot be expressed",
        "case 'both': any of ['a'] cannot be expressed beside all of others",
        "case 'kept': left out, because another case has the same id",
    ]:
        assert loss in written.losses
