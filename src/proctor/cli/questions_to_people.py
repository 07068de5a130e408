"""What `grade` and `record` share: they show answers to a person, ask about each, or read decisions from a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.base.errors import UsageError
from proctor.cli.options_and_output import say
from proctor.reporting.explain import Fact, as_text, shorten
from proctor.reporting.terminal.screen import is_terminal, visible
from proctor.running.people.grading import BadGrade, parse_rows

if TYPE_CHECKING:
    from proctor.running.people.grading import Row

MOST_SHOWN = 4_000
"""How many characters of a question or an answer stand on the terminal; `--json` has all."""

QUIT = object()
"""The person ends the questions."""


def can_ask() -> bool:
    """Whether a person sits at both ends."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def asked(prompt: str, read: Callable[[str], object]) -> object:
    """What the person answers: `None` for nothing, `QUIT` for q or the end of the input.

    Asks again where `read` raises `BadGrade`. Free text, which `str` reads, may be a q.
    """
    while True:
        sys.stdout.write(prompt)
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            say("")
            return QUIT
        text = line.strip()
        if read is not str and text.lower() in ("q", "quit"):
            return QUIT
        if not text:
            return None
        try:
            return read(text)
        except BadGrade as problem:
            say(str(problem))


def rows_from(source: str) -> list[Row]:
    """The rows of a JSON or JSON Lines file, or of the input for `-`."""
    if source == "-":
        return parse_rows(sys.stdin.read(), "input")
    try:
        text = Path(source).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"{source} is not UTF-8 text") from None
    return parse_rows(text, source)


def facts_text(facts: Iterable[Fact]) -> str:
    """Facts in two columns, long ones shortened, without what a text could do to a terminal."""
    return visible(as_text([Fact(fact.label, shorten(fact.text, MOST_SHOWN)) for fact in facts]))


def person_named(given: str | None) -> str:
    """The name given, or that of the user."""
    if given and given.strip():
        return given.strip()
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
