"""Text in, plain data out: JSON as the standard has it, YAML as its 1.2 core, and neither can hurt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from json_mutations import VALUES

from proctor.base.errors import InvalidSuite
from proctor.base.json_data import Json
from proctor.base.source import MAX_DEPTH, lines_of, parse, pointer_text, read_text

YAML, JSON = Path("x.yaml"), Path("x.json")


def refused(path: Path, text: str) -> str:
    with pytest.raises(InvalidSuite) as error:
        parse(path, text)
    [problem] = error.value.problems
    return str(problem)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("False", False),
        ("tRUE", "tRUE"),
        ("~", None),
        ("null", None),
        ("", None),
        ("2024-01-01", "2024-01-01"),
        ("1:30", "1:30"),
        ("0x1F", "0x1F"),
        ("007", "007"),
        ("0o7", "0o7"),
        ("1_000", "1_000"),
        ("12", 12),
        ("-0", 0),
        ("+3", 3),
        ("1e3", 1000.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("1.5e-3", 0.0015),
        (".nan", ".nan"),
        (".inf", ".inf"),
        ("=", "="),
    ],
)
def test_yaml_scalars_follow_the_core_schema(text: str, value: Json) -> None:
    actual = parse(YAML, f"a: {text}\n")["a"]
    assert actual == value
    assert type(actual) is type(value)


def test_yaml_keys_are_always_text() -> None:
    assert parse(YAML, "1: a\nTrue: b\n~: c\n1.50: d\n") == {"1": "a", "true": "b", "null": "c", "1.50": "d"}
    assert "duplicate key 'true'" in refused(YAML, "true: 1\nTRUE: 2\n")
    assert lines_of(YAML, "a: 1\nTrue: 2\n")(("true",)) == 2


def test_merges_of_merges_are_followed() -> None:
    text = "a: &a {x: 1, y: 1}\nz: {deep: {b: &b {<<: *a, x: 2}}}\nc: {<<: *b, y: 3}\nd: {<<: [*a, *b]}\n"
    assert parse(YAML, text) == {
        "a": {"x": 1, "y": 1},
        "z": {"deep": {"b": {"x": 2, "y": 1}}},
        "c": {"x": 2, "y": 3},
        "d": {"x": 1, "y": 1},
    }


def test_a_duplicate_key_is_an_error_in_json_and_yaml() -> None:
    assert "duplicate key 'a'" in refused(YAML, "a: 1\na: 2\n")
    assert "duplicate key 'a'" in refused(YAML, "b: {a: 1, 'a': 2}\n")
    assert "duplicate key 'a'" in refused(JSON, '{"a": 1, "a": 2}')


@pytest.mark.parametrize("text", ["a: &a [*a]", "&a {b: *a}", "a: &a {b: [{c: *a}]}"])
def test_an_alias_that_contains_itself_is_refused(text: str) -> None:
    assert "refers to a value that contains it" in refused(YAML, text)


def test_aliases_that_expand_to_too_many_values_are_refused_quickly() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 20)]
    text = "\n".join(levels)
    assert "expand to more than" in refused(YAML, text)


def test_ordinary_aliases_are_read_as_data() -> None:
    assert parse(YAML, "a: &a {x: [1]}\nb: [*a, *a]\n")["b"] == [{"x": [1]}, {"x": [1]}]


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "{a: " * 100_000, "- " * 100_000, "? " * 100_000, "".join(" " * n + "a:\n" for n in range(2000))],
)
def test_deeply_nested_yaml_is_refused_and_does_not_crash(text: str) -> None:
    assert "nested too deeply" in refused(YAML, text)


def test_json_and_yaml_have_the_same_depth_limit() -> None:
    for path in (YAML, JSON):
        parse(path, "[" * MAX_DEPTH + "]" * MAX_DEPTH)
        assert "nested too deeply" in refused(path, "[" * (MAX_DEPTH + 5) + "]" * (MAX_DEPTH + 5))
    assert "nested too deeply" in refused(JSON, "[" * 200_000)


def test_many_lists_in_a_row_are_not_deep_nesting() -> None:
    assert len(parse(YAML, "a: [" + "[], " * 5000 + "]")["a"]) == 5000


def test_missing_files_and_other_encodings_than_utf_8_are_problems_and_a_byte_order_mark_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf{}")
    assert read_text(path) == "{}"
    for content in (b"\xff\xfe{\x00}\x00", b"\x80", b'{"a": "\xed\xa0\x80"}'):
        path.write_bytes(content)
        with pytest.raises(InvalidSuite, match="is not UTF-8 text"):
            read_text(path)
    with pytest.raises(InvalidSuite, match="does not exist"):
        read_text(tmp_path / "nowhere.json")
    with pytest.raises(InvalidSuite, match="cannot be read"):
        read_text(tmp_path)


def test_line_ends_inside_text_are_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'"a\r\nb"\r\n')
    assert read_text(path) == '"a\r\nb"\r\n'


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_any_json_is_read_back_unchanged(value: Json) -> None:
    assert parse(JSON, json.dumps(value)) == value


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text("abc \n-:#'\"é", max_size=6),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc é"), inner, max_size=3),
        max_leaves=10,
    )
)
def test_yaml_written_by_pyyaml_is_read_back(value: Json) -> None:
    assert parse(YAML, yaml.safe_dump(value, allow_unicode=True)) == value


@settings(max_examples=300, deadline=None)
@given(st.text() | st.text("{}[]:,\"'-&*!|>\\#? \n\tae01.~<%@`"), st.sampled_from([YAML, JSON]))
def test_any_text_is_read_or_refused_with_a_problem(text: str, path: Path) -> None:
    try:
        parse(path, text)
    except InvalidSuite as error:
        assert len(error.problems) == 1
    lines_of(path, text)(("a", 0, "b"))


def test_a_pointer_is_written_with_dots_and_brackets() -> None:
    assert pointer_text(("evalCases", 3, "conversation", 0)) == "evalCases[3].conversation[0]"
    assert pointer_text(()) == ""
    assert pointer_text((0, "a")) == "[0].a"
