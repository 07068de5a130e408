"""A problem is reported on the line where a person finds it, in every file type and however it is laid out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.base.errors import InvalidSuite
from proctor.base.source import lines_of
from proctor.cases.formats.loading import load


def places(path: Path, text: str) -> list[tuple[int | None, str]]:
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(InvalidSuite) as error:
        load([path])
    return [(problem.line, problem.where) for problem in error.value.problems]


def test_nested_yaml(tmp_path: Path) -> None:
    text = """\
# a remark
name: n
cases:
  - id: a
    turns:
      - input: x
        expected:
          tools:
            - name: t
              args:
                q: {$regx: a}
              cout: 2
  - id: b
    input: >-
      folded
      over lines
    expected: |
      text
      cases: []
    tgas: []
"""
    assert places(tmp_path / "s.yaml", text) == [
        (11, "cases[0].turns[0].expected.tools[0].args.q.$regx"),
        (12, "cases[0].turns[0].expected.tools[0].cout"),
        (20, "cases[1].tgas"),
    ]


def test_yaml_with_anchors_aliases_and_merges(tmp_path: Path) -> None:
    text = """\
x-base: &base
  expected: &same
    outptu: 1
  repeat: 0
cases:
  - input: a
    expected: *same
  - <<: *base
    input: b
    tgas: []
"""
    assert places(tmp_path / "s.yaml", text) == [
        (3, "cases[0].expected.outptu"),
        (6, "cases[0]"),
        (3, "cases[1].expected.outptu"),
        (4, "cases[1].repeat"),
        (10, "cases[1].tgas"),
        (8, "cases[1]"),
    ]


def test_yaml_in_flow_style_with_windows_line_ends(tmp_path: Path) -> None:
    text = 'cases: [\r\n  {input: a, expected: a},\r\n  {"input": b, expected: b,\r\n   "tgas": []}\r\n]\r\n'
    assert places(tmp_path / "s.yaml", text) == [(4, "cases[1].tgas")]


def test_minified_and_pretty_json(tmp_path: Path) -> None:
    data = {"cases": [{"input": "a", "expected": "a"}, {"input": "b", "expected": "b", "tgas": [], "repeat": 0}]}
    assert places(tmp_path / "s.json", json.dumps(data)) == [(1, "cases[1].repeat"), (1, "cases[1].tgas")]
    assert places(tmp_path / "s.json", json.dumps(data, indent=2)) == [(11, "cases[1].repeat"), (10, "cases[1].tgas")]


def test_json_with_escapes_brackets_in_text_and_keys_spelt_in_escapes(tmp_path: Path) -> None:
    text = """\
{"name": "\\u007b[ \\" ] }\\\\",
 "cas\\u0065s": [
   {"input": "{", "expected": "]\\"[",
    "gr\\u00f6\\u00dfe":
      1},
   {"input": "a", "expected": "b", "tags":
      [1]}]}
"""
    assert places(tmp_path / "s.json", text) == [(4, "cases[0].größe"), (7, "cases[1].tags[0]")]


def test_a_bare_list(tmp_path: Path) -> None:
    assert places(tmp_path / "s.json", '[\n{"input": 1, "expected": 1},\n{"input": 1, "tgas": 1}\n]') == [
        (3, "cases[1].tgas"),
        (3, "cases[1]"),
    ]
    assert places(tmp_path / "s.yaml", "- input: 1\n  expected: 1\n- input: 1\n  expected: 1\n  tgas: 1\n") == [
        (5, "cases[1].tgas")
    ]


def test_json_lines(tmp_path: Path) -> None:
    text = (
        '{"suite": {"criteria": {"pct": 2}}}\n\n{"input": 1, "expected": 1}\n{"input": 1, "expected": 1, "tgas": 1}\n'
    )
    assert sorted(places(tmp_path / "s.jsonl", text), key=str) == [(1, "criteria.pct"), (4, "cases[1].tgas")]


def test_a_table_with_cells_over_several_lines(tmp_path: Path) -> None:
    text = 'id,input,expected\na,"one\ntwo",x\na,three,y\nb,four,\n'
    assert places(tmp_path / "s.csv", text) == [(4, "id"), (5, "the row")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"name": 1,\n "cases": [\n {"a": 1,\n "name": 2,\n "a": 3}]}', 5),
        ('{"a": {"b": "a a"},\n "c": "a",\n "a": 1,\n "d": "a"}', 3),
        ('{"a": "NaN",\n "b": [NaN],\n "c": "NaN"}', 2),
        ('{"a": 1,\n "b": -Infinity}', 2),
        ('{"a": "1e999",\n\n "b": 1e999}', 3),
        ('{"a": ' + "9" * 900 + ',\n "b": ' + "9" * 5000 + "}", 2),
        ('{"a": 1,\n "b": tru}', 2),
        ('{"a": 1,\n "b": "x}', 2),
    ],
)
def test_what_is_not_json_is_found(tmp_path: Path, text: str, line: int) -> None:
    assert places(tmp_path / "s.json", text) == [(line, "")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", 5),
        ("a: 1\nb: 1e999\n", 2),
        ("a: 1\nb: " + "9" * 5000 + "\n", 2),
        ("a: 1\nb: !!python/name:os.system\n", 2),
        ("a: 1\nb: !!binary aGk=\n", 2),
        ("a: 1\nb: !!timestamp 2024-01-01\n", 2),
        ("a: 1\nb: !!bool maybe\n", 2),
        ("a: 1\nb: !!int ''\n", 2),
        ("a: 1\nb: *nowhere\n", 2),
        ("a: 1\n\tb: 2\n", 2),
        ("a: 1\n---\nb: 2\n", 2),
        ("a: [1\n", 1),
        ("a: 'x\n", 1),
    ],
)
def test_what_is_not_yaml_is_found(tmp_path: Path, text: str, line: int) -> None:
    assert places(tmp_path / "s.yaml", text) == [(line, "")]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(VALUES, st.sampled_from([None, 0, 2]))
def test_every_value_of_a_json_text_is_found_where_it_stands(value: object, indent: int | None) -> None:
    """The line of a member is the line of its key, and of an item where it begins."""
    text = "\n" + json.dumps(value, indent=indent)
    find = lines_of(Path("x.json"), text)
    if indent is None:
        assert find(()) == 2
        return
    # An indented dump puts each key and each item on a line of its own, in the order of the data.
    expected = _expected_lines(value)
    assert {pointer: find(pointer) for pointer in expected} == expected


def _expected_lines(value: object) -> dict[tuple[str | int, ...], int]:
    lines: dict[tuple[str | int, ...], int] = {}
    count = [2]

    def walk(item: object, pointer: tuple[str | int, ...]) -> None:
        lines[pointer] = count[0]
        inside = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
        for key, child in inside:
            count[0] += 1
            walk(child, (*pointer, key))
        if isinstance(item, (dict, list)) and item:
            count[0] += 1

    walk(value, ())
    return lines


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text("abcdef", min_size=1), st.integers() | st.lists(st.integers(), max_size=2), min_size=1))
def test_every_key_of_a_yaml_text_is_found_where_it_stands(data: dict[str, object]) -> None:
    text = yaml.safe_dump(data, sort_keys=False)
    find = lines_of(Path("x.yaml"), text)
    for key in data:
        line = find((key,))
        assert line is not None
        assert text.splitlines()[line - 1].lstrip("'\"").startswith(key)
