from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.agents.http_config import MissingTemplateValue, Template
from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET
from proctor.base.selectors import parse_selector

DATA = {"a": {"b": [{"c": 1, "n": "x"}, {"c": 2}]}, "a b": 3, "it's": 4, "é-1": 5, "null": None}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("$", DATA),
        ("$.a.b[0].c", 1),
        ("a.b[0].c", 1),
        ("a.b[-1].c", 2),
        ("a.b[*].c", [1, 2]),
        ("$.a.b[*].n", ["x"]),
        ("a[*][*].c", [[1, 2]]),
        ("['a b']", 3),
        ('$["a b"]', 3),
        (r"['it\'s']", 4),
        ("é-1", 5),
        ("null", None),
        ("a.b[2]", UNSET),
        ("a.b[-3]", UNSET),
        ("a.x", UNSET),
        ("a.b.c", UNSET),
        ("a[0]", UNSET),
        ("x[*].y", UNSET),
        ("null.x", UNSET),
    ],
)
def test_a_selector_returns_its_value_or_unset(selector: str, expected: Any) -> None:
    assert parse_selector(selector).find(DATA) == expected


@pytest.mark.parametrize(
    "text", ["", "  ", "a..b", "a[", "a[x]", "a b", "$a", "a.[0]", "a.b.", "[1:2]", "a[*", "a?b", ".a"]
)
def test_the_error_about_an_invalid_selector_has_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="write"):
        parse_selector(text)


def test_a_question_mark_makes_a_selector_optional() -> None:
    assert parse_selector("a.b?").optional
    assert not parse_selector("a.b").optional


@given(st.text(max_size=30))
def test_any_text_is_a_selector_or_a_usage_error(text: str) -> None:
    try:
        parse_selector(text).find(DATA)
    except UsageError:
        pass


@given(st.lists(st.text(max_size=8), max_size=4))
def test_a_quoted_key_finds_exactly_that_key(keys: list[str]) -> None:
    data: Any = "leaf"
    for key in reversed(keys):
        data = {key: data}
    escaped = [key.replace("\\", "\\\\").replace("'", "\\'") for key in keys]
    assert parse_selector("$" + "".join(f"['{key}']" for key in escaped)).find(data) == "leaf"


VALUES = {
    "input": {"q": "why"},
    "history": [],
    "messages": [],
    "state": {"user": 7},
    "session_id": "s1",
    "case": {"id": "c1"},
    "turn": 0,
}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{{input}}", {"q": "why"}),
        ("{{ input.q }}", "why"),
        ("{{state.user}}", 7),
        ("user {{state.user}} in {{case.id}}", "user 7 in c1"),
        ("{{input}} of {{session_id}}", '{"q": "why"} of s1'),
        ({"a": ["{{turn}}", 1, None, True], "b": {"c": "{{history}}"}}, {"a": [0, 1, None, True], "b": {"c": []}}),
        ("{{state.missing?}}", None),
        ("[{{state.missing?}}]", "[]"),
        ("no placeholder { } }}", "no placeholder { } }}"),
        ("{{case.id}}{{case.id}}", "c1c1"),
    ],
)
def test_a_template_keeps_the_types_of_its_values(template: Any, filled: Any) -> None:
    assert Template.parse(template).render(VALUES) == filled


def test_values_filled_into_a_template_are_not_searched_for_placeholders() -> None:
    values = VALUES | {"input": "{{state.user}} {{session_id}}"}
    assert Template.parse("say {{input}}").render(values) == "say {{state.user}} {{session_id}}"


@pytest.mark.parametrize("template", ["{{inptu}}", "{{}}", "{{ a b }}", {"x": ["{{$}}"]}, "{{os.environ}}"])
def test_an_unknown_placeholder_is_refused(template: Any) -> None:
    with pytest.raises(UsageError, match="unknown placeholder"):
        Template.parse(template)


def test_a_misspelt_placeholder_gets_a_hint() -> None:
    with pytest.raises(UsageError, match="did you mean 'input'"):
        Template.parse("{{inptu}}")


def test_a_missing_part_of_the_input_is_an_error_and_nothing_is_sent() -> None:
    with pytest.raises(MissingTemplateValue, match=r"input\.question"):
        Template.parse("{{input.question}}").render(VALUES)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_any_json_is_a_template_or_a_usage_error(data: Any) -> None:
    try:
        template = Template.parse(data)
    except UsageError:
        return
    if not template.selectors:
        assert template.render(VALUES) == data
