"""Runs regular expressions from files, with limits on time and size. No other code runs them.

The standard library's engine can take forever on a pattern such as `(a+)+$` and cannot be stopped from another thread.
`regex` takes the same syntax and a time limit, and lets other threads run in the meantime.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Iterable
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Protocol

import regex

from proctor.base.errors import ProctorError

TIMEOUT_SECONDS = 1.0
MAX_PATTERN_LENGTH = 10_000
MAX_REPEAT = 100_000
"""The most repeats of a part, nested ones multiplied: `((a{1000}){1000}){1000}` would fill the memory."""

_BRACE = r"(?s)\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(\{)(?!\d*,?\d*\})"


class PatternTooSlow(ProctorError):
    """A pattern took too long on a text, so it is unknown whether it matches."""


class Match(Protocol):
    """A match of a pattern in a text."""

    def group(self) -> str: ...

    def span(self) -> tuple[int, int]: ...


def check_pattern(text: str, *, ignore_case: bool = False) -> None:
    """Raise `ValueError` with the reason if `text` is not a regular expression, or exceeds the limits."""
    if len(text) > MAX_PATTERN_LENGTH:
        raise ValueError(f"the pattern has {len(text):,} characters; the limit is {MAX_PATTERN_LENGTH:,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(text, re.IGNORECASE if ignore_case else 0)
            largest = _largest_repeat(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error) or type(error).__name__) from None
    if largest > MAX_REPEAT:
        raise ValueError(f"its nested repeats add up to {largest:,}; the limit is {MAX_REPEAT:,}")


def search(pattern: str, text: str, *, ignore_case: bool = False) -> Match | None:
    """The first place in `text` that the pattern matches."""
    return _run("search", pattern, text, ignore_case)


def fullmatch(pattern: str, text: str, *, ignore_case: bool = False) -> Match | None:
    """The match of the pattern with the whole of `text`."""
    return _run("fullmatch", pattern, text, ignore_case)


def _run(method: str, pattern: str, text: str, ignore_case: bool) -> Match | None:
    try:
        match: Match | None = getattr(_compile(pattern, ignore_case), method)(
            text, timeout=TIMEOUT_SECONDS, concurrent=True
        )
    except TimeoutError:
        short = pattern if len(pattern) <= 80 else f"{pattern[:79]}…"
        raise PatternTooSlow(
            f"the pattern /{short}/ took more than {TIMEOUT_SECONDS:g} s on a text of {len(text):,} characters; "
            "write it without a repeat inside a repeat"
        ) from None
    return match


@functools.lru_cache(maxsize=512)
def _compile(pattern: str, ignore_case: bool) -> Any:
    check_pattern(pattern, ignore_case=ignore_case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return regex.compile(_without_fuzzy_braces(pattern), regex.V0 | (regex.IGNORECASE if ignore_case else 0))


def _without_fuzzy_braces(pattern: str) -> str:
    """Escape braces that are not repeats, as `re` reads them; `regex` would read `x{e}` as "with errors"."""
    return re.sub(_BRACE, lambda match: r"\{" if match.group(1) else match.group(), pattern)


def _largest_repeat(text: str) -> int:
    """The largest product of the minimum counts of nested repeats."""
    return _largest(_parser.parse(text))


def _largest(parts: Iterable[Any]) -> int:
    largest = 1
    for kind, value in parts:
        times = 1
        if str(kind) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            times = max(1, value[0])
        inner = [item for item in _flat(value) if isinstance(item, _parser.SubPattern)]
        largest = max(largest, times * max((_largest(item) for item in inner), default=1))
    return largest


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in _flat(item)]
    return [value]
