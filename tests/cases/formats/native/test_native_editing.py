"""Cases edited in the text of a native file: what is not edited stays byte for byte."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.base.errors import InvalidSuite
from proctor.base.json_data import Json
from proctor.cases.formats.loading import load_file
from proctor.cases.formats.native.editing import CannotEdit, edit_cases
from proctor.cases.matchers import Equals
from proctor.cases.suite import Case, ExpectedCall, Suite

UGLY_YAML = """\
# A file that people wrote.
name:   'rates'   # odd spaces
agent: "desk.py:agent"


x-shared: &words   {contains: [rate]}   # an anchor
evaluators: [Contains]
cases:
# the first
- id: one
  input: >-
    What is
    the rate?

  # between the keys
  tags: [a,   'b', "c"]
  expected: &first
    contains:   # a comment of a key
      any: ["rate"]   # and of a value


- {id: two, input: "How?", tags: [x]   }    # in one line
-   id: three

    expected: old   # to be replaced
    input: |
      # no comment
      text

    # the end of three
- id: four
  input: x
  expected: *words
- id: five
  input: 'it''s 5'
  expected:
- id: six
  turns:
    - input: "a"

      expected: {output: 'b',   contains: [b]} # here
    - {input: c}
  metadata: {owner: ann}
- id: seven
  input: {a: 1, b: [1, 2]}
  metadata:

    # of people
    owner: bob   # here
# the end
"""


def suite_in(path: Path) -> Suite:
    try:
        return load_file(path)[0]
    except InvalidSuite as error:
        return error.partial_suites[0]


def with_answers(case: Case, answer: Json = "The rate: 5%\n# no comment\n") -> Case:
    call = ExpectedCall("look_up", {"kind": Equals("fixed"), "note": Equals({"$regex": "- x: #"})})
    turns = tuple(replace(turn, expected=replace(turn.expected, output=answer, tools=(call,))) for turn in case.turns)
    return replace(case, turns=turns, metadata={**case.metadata, "recorded": {"run": "r1", "by": "ann: #1"}})


def edited(path: Path, text: str, *indices: int, answer: Json = "The rate: 5%\n# no comment\n") -> str:
    """The text in which the cases at these indices expect an answer, which is what it says when it is read again."""
    path.write_bytes(text.encode())
    suite = suite_in(path)
    changed = {index: with_answers(suite.cases[index], answer) for index in indices}
    result = edit_cases(path, text, suite, changed)
    path.write_bytes(result.encode())
    for index, case in enumerate(suite_in(path).cases):
        meant = changed.get(index, suite.cases[index])
        assert case.turns == meant.turns
        assert case.metadata == meant.metadata
    return result


def parts(text: str) -> list[str]:
    """The text before the cases, each case, and the text after them."""
    heads = [text.index(mark) for mark in ("- id: one", "- {id: two", "-   id: three", "- id: four", "- id: five")]
    heads += [text.index(mark) for mark in ("- id: six", "- id: seven")]
    cuts = [0, *heads, len(text)]
    return [text[start:end] for start, end in itertools.pairwise(cuts)]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("index", range(7))
def test_only_the_accepted_case_of_a_yaml_file_changes(tmp_path: Path, index: int, newline: str) -> None:
    text = UGLY_YAML.replace("\n", newline)
    after = edited(tmp_path / "rates.yaml", text, index)
    for number, (before, now) in enumerate(zip(parts(text), parts(after), strict=True)):
        assert (before == now) == (number != index + 1)
    assert after.count("\n") - after.count("\r\n") == (0 if newline == "\r\n" else after.count("\n"))


def test_every_comment_and_every_other_line_stays_when_all_cases_are_accepted(tmp_path: Path) -> None:
    after = edited(tmp_path / "rates.yaml", UGLY_YAML, *range(7))
    rest = iter(after.splitlines())
    replaced = (
        "- {id: two",
        "  expected: *words",
        "    expected: old",
        "  expected:",
        "      expected: {",
        "  metadata: {",
    )
    for line in UGLY_YAML.splitlines():
        if not line.startswith(replaced) and line != "    - {input: c}":
            assert line in rest, line
    for comment in ("# in one line", "# to be replaced", "# here", "# and of a value", "# the end of three"):
        assert comment in after


def test_the_same_cases_recorded_again_change_nothing(tmp_path: Path) -> None:
    once = edited(tmp_path / "rates.yaml", UGLY_YAML, *range(7))
    assert edited(tmp_path / "rates.yaml", once, *range(7)) == once


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\n...\n", "   # no line break"])
def test_the_last_case_may_end_in_any_way(tmp_path: Path, end: str) -> None:
    text = f"cases:\n  - id: a\n    input: x\n    evaluators: [Contains]{end}"
    after = edited(tmp_path / "rates.yaml", text, 0)
    assert "evaluators: [Contains]" + end.rstrip("\n").removesuffix("...").rstrip("\n") in after


def test_an_expectation_that_other_cases_share_is_not_changed_under_them(tmp_path: Path) -> None:
    text = "cases:\n- {id: a, input: x, expected: &e {contains: [x]}}\n- {id: b, input: y, expected: *e}\n"
    with pytest.raises(CannotEdit, match="cannot be edited"):
        edited(tmp_path / "a.yaml", text, 0)
    assert "expected: &e {contains: [x]}" in edited(tmp_path / "a.yaml", text, 1)


def test_a_case_that_is_an_alias_is_not_edited(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("x-a: &a {input: x, expected: y}\ncases:\n- *a\n")
    suite = suite_in(path)
    with pytest.raises(CannotEdit, match=r"cases\[0\] is an alias"):
        edit_cases(path, path.read_text(), suite, {0: with_answers(suite.cases[0])})


def test_what_a_case_merges_is_left_to_the_others(tmp_path: Path) -> None:
    base = "x-base: &base\n  metadata: {owner: ann}\n  expected: {contains: [x]}\n"
    text = f"{base}cases:\n- <<: *base\n  id: a\n  input: x\n"
    after = edited(tmp_path / "a.yaml", text, 0)
    assert after.startswith(text)
    assert "owner: ann" in after.removeprefix(text)


SPREAD_JSON = """{
    "name": "rates",  "agent": "desk.py:agent",
    "cases": [
        {"id": "one", "input": "a \\u00e9",   "tags": []},

        {
            "id":   "two",
            "input": "b",
            "expected": {"contains": ["b"]}
        },
        {
            "id": "three", "turns": [{"input": "x"}, {"input": "y", "expected": "z"}]
        }
    ]
}
"""


@pytest.mark.parametrize("index", range(3))
def test_only_the_accepted_case_of_a_json_file_changes(tmp_path: Path, index: int) -> None:
    after = edited(tmp_path / "rates.json", SPREAD_JSON, index)
    cuts = ['{"id": "one"', '{\n            "id":   "two"', '{\n            "id": "three"', "    ]\n}\n"]
    for text in (SPREAD_JSON, after):
        assert all(cut in text for cut in cuts)
    before, now = ([*_cut(text, cuts)] for text in (SPREAD_JSON, after))
    assert [a == b for a, b in zip(before, now, strict=True)] == [number != index + 1 for number in range(5)]
    assert after.isascii()


def _cut(text: str, marks: list[str]) -> list[str]:
    places = [0, *(text.index(mark) for mark in marks), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(places)]


def test_only_the_accepted_line_of_json_lines_changes(tmp_path: Path) -> None:
    lines = [
        '{"suite": {"name": "rates"}}',
        '{"id":"one",  "input":"é"}',
        "",
        '{"input": "b", "expected": "c"}',
        '{ "id": "x", "input": "d", "expected": {"contains": "d"} }',
    ]
    after = edited(tmp_path / "rates.jsonl", "\n".join(lines), 1).split("\n")
    assert [a == b for a, b in zip(lines, after, strict=True)] == [True, True, True, False, True]


def test_a_list_without_a_head_is_edited_too(tmp_path: Path) -> None:
    text = '[\n  {"input": "a"},\n  {"input": "b"}\n]'
    assert edited(tmp_path / "a.json", text, 1).startswith('[\n  {"input": "a"},\n  {"input": "b", "expected": ')
    assert edited(tmp_path / "a.yaml", "- input: a\n- input: b # c\n", 0).endswith("- input: b # c\n")


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(ANY_JSON, st.sampled_from(["rates.yaml", "rates.json", "rates.jsonl"]), st.integers(0, 2))
def test_any_answer_can_be_recorded(tmp_path_factory: pytest.TempPathFactory, answer: Json, name: str, at: int) -> None:
    path = tmp_path_factory.mktemp("any") / name
    rows = [{"id": str(number), "input": "x", "expected": {"contains": ["x"]}} for number in range(3)]
    text = {
        ".yaml": "cases:\n"
        + "".join(f"- id: '{n}'\n  input: x # {n}\n  expected:\n    contains: [x]\n" for n in range(3)),
        ".json": json.dumps({"cases": rows}, indent=1),
        ".jsonl": "".join(json.dumps(row) + "\n" for row in rows),
    }[path.suffix]
    edited(path, text, at, answer=answer)
