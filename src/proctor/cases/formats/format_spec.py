"""What a file format brings: how to recognise, read and write it.

Gives every case an id of its own where a format has none, stable when cases are appended.

What every writer of a foreign format needs: text that any file can hold, and a sentence for all it leaves unsaid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol

from proctor.base.fields import Document
from proctor.base.json_data import Json, plain
from proctor.base.records import record
from proctor.cases.suite import Suite


@record
class Written:
    """A suite in some format, and everything that format could not say."""

    text: str
    losses: tuple[str, ...] = ()
    """One sentence per thing left out: `case 'refund': tags cannot be expressed`."""
    companions: tuple[tuple[str, str], ...] = ()
    """Further files that belong beside it, as (name, text): ADK's `test_config.json`."""


class Format(Protocol):
    """A module that knows one file format."""

    NAME: str

    def recognises(self, path: Path, data: Json) -> bool: ...

    def read(self, document: Document) -> list[Suite]: ...

    def write(self, suites: Sequence[Suite]) -> Written: ...


_LONGEST_SLUG = 60


def slug(text: str) -> str:
    """`"Asks for a refund!"` as `asks-for-a-refund`; empty when there is nothing to make one of."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST_SLUG].rstrip("-")


class UniqueIds:
    """Hands out each id once; whoever wants a taken one gets it with `-2`, `-3`, and so on."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def preview(self, wanted: str) -> str:
        """The id that `claim` would give."""
        number = self._last.get(wanted, 1)
        candidate = wanted if number == 1 else f"{wanted}-{number}"
        while candidate in self._taken:
            number += 1
            candidate = f"{wanted}-{number}"
        self._last[wanted] = number
        return candidate

    def claim(self, wanted: str) -> str:
        given = self.preview(wanted)
        self._taken.add(given)
        return given


def unsaid(thing: Any, said: Collection[str], owner: str) -> list[str]:
    """One sentence for each field of a dataclass that holds something and is not among those the format says."""
    return [
        f"{owner}: {field.name} cannot be expressed"
        for field in fields(thing)
        if field.name not in said and getattr(thing, field.name) != field.default
    ]


def json_text(data: Json) -> str:
    """Indented JSON, readable where UTF-8 can hold it and escaped where it cannot."""
    text = json.dumps(plain(data), indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(plain(data), indent=2)
    return f"{text}\n"
