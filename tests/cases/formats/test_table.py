"""Suites in a spreadsheet: what a row means, and that nothing is lost from one without a word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_documents import SUITES

from proctor.base.errors import InvalidSuite
from proctor.cases.formats import table
from proctor.cases.formats.loading import load
from proctor.cases.suite import Case, EvaluatorSpec, Expected, ExpectedCall, Keywords, Suite, Turn

CELLS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10) | st.sampled_from(
    ['a"b', "a,b", "a\nb", "a\r\nb", "\r", " a ", "a|b", "a;b", "=1+1", "\ufeff", "\x00"]
)


def read(text: str) -> Suite:
    path = Path("t.csv")
    [suite] = table.read(table.parse(path, text))
    return suite


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidSuite) as error:
        read(text)
    return [str(problem) for problem in error.value.problems]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(SUITES)
def test_a_case_that_comes_back_changed_from_a_table_was_reported(suite: Suite) -> None:
    written = table.write([suite])
    try:
        again = read(written.text)
    except InvalidSuite:
        assert written.losses
        return
    for before, after in zip(suite.cases, again.cases, strict=True):
        same = replace(before, evaluators=suite.evaluators_of(before)) == replace(
            after, evaluators=again.evaluators_of(after)
        )
        reported = any(loss.startswith(f"case {before.id!r}: ") for loss in written.losses)
        assert same or reported, (before, after)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4))
def test_any_text_survives_in_a_cell(cells: list[tuple[str, str]]) -> None:
    specs = (EvaluatorSpec("ExactMatch"),)
    cases = tuple(Case(id=f"c{n}", turns=(Turn(asked, Expected(said)),)) for n, (asked, said) in enumerate(cells))
    written = table.write([Suite("s", tuple(replace(case, evaluators=specs) for case in cases))])
    blank = {f"c{n}" for n, (_, said) in enumerate(cells) if not said}
    assert {loss.split("'")[1] for loss in written.losses} == blank
    if not blank:
        assert [case.turns for case in read(written.text).cases] == [case.turns for case in cases]


def test_what_a_row_cannot_say_is_listed_by_name() -> None:
    turn = Turn(
        {"q": 5, "": "x"},
        Expected(7, contains=Keywords(any=("a|b",)), tools=(ExpectedCall("t", {}),), context=("c",)),
        retrieval_context=("p",),
    )
    case = Case(id="a", turns=(turn, turn), metadata={"n": 1}, repeat=2, skip="why", tags=("x;y",))
    written = table.write([Suite("s", (case,), evaluators=(EvaluatorSpec("ROUGE"),), agent="a.py:b", description="d")])
    for thing in (
        "turn 2",
        "tags",
        "metadata",
        "repeat",
        "skip",
        "the type of the input",
        "retrieval_context",
        "the type of the expected output",
        "the exact expected words",
        "the exact expected tool calls",
        "context",
        "evaluators",
    ):
        assert f"case 'a': {thing} cannot be expressed in CSV" in written.losses
    assert "suite 's': agent cannot be expressed in CSV" in written.losses
    assert "suite 's': description cannot be expressed in CSV" in written.losses


def test_that_no_tool_may_be_called_is_not_lost_in_silence() -> None:
    case = Case(id="a", turns=(Turn("q", Expected("x", tools=())),), evaluators=(EvaluatorSpec("ExactMatch"),))
    assert any("expected tool calls" in loss for loss in table.write([Suite("s", (case,))]).losses)


def test_a_cell_may_hold_a_whole_document(tmp_path: Path) -> None:
    path = tmp_path / "big.csv"
    path.write_text("input,expected\n" + "x" * 500_000 + ",y\n")
    assert len(load([path])[0].cases[0].turns[0].input) == 500_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("input\n", "t.csv:1: has column names but no cases"),
        ("id,expected\na,b\n", "t.csv:1: has no column 'input'"),
        ("input,inptu\na,b\n", "t.csv:1: column 'inptu' is not known; did you mean 'input'?"),
        ("input,input,expected\na,b,c\n", "t.csv:1: column 'input' is given twice"),
        ("input,metadata.\na,b\n", "t.csv:1: column 'metadata.' is not known"),
        ("input,expected\na\n", "t.csv:2: has 1 cells, but there are 2 columns"),
        ("input,expected\na,b,c\n", "t.csv:2: has 3 cells, but there are 2 columns"),
        ("input,expected\na,\n", "t.csv:2: the row has nothing to check"),
        ("input,input.q,expected\na,b,c\n", "t.csv:2: the row fills 'input' and a column of 'input.' as well"),
        ('input,expected\n"a"b,c\n', "t.csv:2: is not valid CSV"),
        ('input,expected\n"a,b\n', "is not valid CSV"),
        ("id,input,expected\nx,a,b\nx,c,d\n", "t.csv:3: id 'x' is also the id of cases[0]"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, said: str) -> None:
    assert any(problem.startswith(said) or said in problem for problem in problems(text))
