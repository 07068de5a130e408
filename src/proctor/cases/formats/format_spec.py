"""What a file format is: what it declares about its files, the functions it provides, and what its writer returns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from proctor.base.fields import Document
from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.cases.suite import NOTHING, Case, Suite

JSON_AND_YAML = (".json", ".yaml", ".yml")


@record
class Written:
    """A suite in some format, and everything that format could not say."""

    text: str
    losses: tuple[str, ...] = ()
    """One sentence per thing left out: `case 'refund': tags cannot be expressed`."""
    companions: tuple[tuple[str, str], ...] = ()
    """Further files that belong beside it, as (name, text): ADK's `test_config.json`."""


@record
class Declaration:
    """What a format says about itself, so that no other module needs a table of formats."""

    endings: tuple[str, ...] = ()
    """Endings of the files that it is read from and written to."""
    own_keys: frozenset[str] = frozenset()
    """Keys that only this format has at its top level: where one is there, no other format is imported to be asked."""
    file_names: tuple[str, ...] = ()
    """Patterns of names that mark a file as a suite of this format, so that an unreadable one is a mistake."""
    written_to: tuple[str, ...] = ()
    """Patterns of names that ask for this format when a suite is written."""
    companions: tuple[str, ...] = ()
    """Files that stand beside its suites and are no suites."""
    parsers: Mapping[str, Callable[[Path, str], Json]] = NOTHING
    """Parsers by ending, for files that are neither JSON nor YAML."""
    resembles: Callable[[Path, str], bool] = lambda path, text: False
    """Whether a file that cannot be parsed was probably meant to be of this format."""
    refusal: Callable[[Mapping[str, Json]], str | None] = lambda data: None
    """Why data that is nearly this format is not, for the message about a file in no known format."""
    evaluator_names: Callable[[], Mapping[str, str]] = dict
    """Names that this format has for Proctor's evaluators."""
    agent_hint: str = ""
    """How a file of this format names its agent: the middle of a sentence, such as "add `agent: app.py:agent`, or "."""
    only_answers: bool = False
    """Whether its files can expect something of an answer alone, and nothing of tool calls, tokens or time."""
    edit: Callable[[Path, str, Suite, Mapping[int, Case]], str] | None = None
    """The text of a suite with some of its cases changed and every other line as it was, if the format can do that."""
    line_readers: Mapping[str, Callable[[Path], list[Suite] | None]] = NOTHING
    """By ending: reads a file line by line, which is never held whole; gives `None` for one that is no suite."""
    dialects: Mapping[str, Callable[[Sequence[Suite]], Written]] = NOTHING
    """Other names under which suites are written, in a spelling of their own that this format reads as well."""


class Format(Protocol):
    """A module that knows one file format. One that is installed with another package may leave out `DECLARED`."""

    NAME: str
    DECLARED: Declaration

    def recognises(self, path: Path, data: Json) -> bool: ...

    def read(self, document: Document) -> list[Suite]: ...

    def write(self, suites: Sequence[Suite], ending: str = "") -> Written: ...


def mentions_key(text: str, *keys: str) -> bool:
    """Whether one of the keys stands in text that cannot be parsed, as JSON or YAML write a key."""
    return re.search(rf'(?:^|[{{,\s"])(?:{"|".join(keys)})"?\s*:', text) is not None
