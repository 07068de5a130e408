"""`${NAME}` in text: filled in, left alone, or a mistake, by one rule wherever it is written."""

from __future__ import annotations

import pytest

from proctor.base.environment import expand, expand_with, variables_in
from proctor.base.errors import UsageError
from proctor.cases.ids import slug


def test_each_variable_is_replaced_by_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITY", "Oslo")
    monkeypatch.setenv("EMPTY", "")
    assert expand("to ${CITY}, ${CITY}${EMPTY}; $CITY and ${not a name} stay", "input") == (
        "to Oslo, Oslo; $CITY and ${not a name} stay"
    )


def test_a_value_is_not_expanded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "${INNER}")
    assert expand("${OUTER}", "input") == "${INNER}"


def test_the_error_about_an_unset_variable_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOWHERE", raising=False)
    with pytest.raises(UsageError, match=r"headers\.x uses \$\{NOWHERE\}, which is not set"):
        expand("Bearer ${NOWHERE}", "headers.x")


def test_a_variable_without_a_value_stays_as_it_is_written() -> None:
    assert expand_with("${A}-${B}", {"A": "1"}.get) == "1-${B}"


def test_the_variables_of_a_text_are_listed_in_order() -> None:
    assert variables_in("${A} ${B}${A} $C") == ["A", "B", "A"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Asks for a refund!", "asks-for-a-refund"), ("  --  ", ""), ("a" * 59 + " b", "a" * 59), ("../../etc", "etc")],
)
def test_a_slug_has_only_letters_digits_and_single_dashes(text: str, expected: str) -> None:
    assert slug(text) == expected


def test_a_slug_without_a_limit_is_as_long_as_its_text() -> None:
    assert slug("a" * 100, longest=None) == "a" * 100
