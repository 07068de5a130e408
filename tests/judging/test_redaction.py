"""No key reaches a message."""

from __future__ import annotations

import pytest

from proctor.judging.redaction import HIDDEN, conceal


@pytest.mark.parametrize(
    "leak",
    [
        "sk-proj-abcDEF123456",
        "sk-proj-********************abcd",
        "sk-ant-api03-xxxxYYYY_zz",
        "gsk_1234567890abcdef",
        "AIzaSyA-1234567890abcdefghij",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
    ],
)
def test_what_looks_like_a_key_is_hidden(leak: str) -> None:
    shown = conceal(f"Incorrect API key provided: {leak}. You can find it elsewhere.")
    assert leak not in shown
    assert HIDDEN in shown
    assert "You can find it elsewhere" in shown


@pytest.mark.parametrize(
    "words",
    [
        "Authorization: Bearer abc.def-123456",
        "{'authorization': 'Basic dXNlcjpwYXNz'}",
        "headers x-api-key: zzzz1111",
        '"api_key": "zzzz1111"',
        "x-goog-api-key=zzzz1111",
    ],
)
def test_headers_that_carry_keys_are_hidden(words: str) -> None:
    shown = conceal(words)
    assert not any(secret in shown for secret in ("abc.def-123456", "dXNlcjpwYXNz", "zzzz1111"))


def test_keys_of_the_environment_and_given_ones_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SERVICE_API_KEY", "plain words as key")
    monkeypatch.setenv("SHORT_TOKEN", "the")
    shown = conceal("said plain words as key, and the other unusual-value", ["unusual-value"])
    assert shown == f"said {HIDDEN}, and the other {HIDDEN}"


def test_ordinary_words_are_left_alone() -> None:
    words = "HTTP 400, the task-specific sketch asks for basic authorization of a skeleton token"
    assert conceal(words) == words
