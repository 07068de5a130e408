"""What a file format brings: how to recognise, read and write it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from proctor.cases.fields import Document
from proctor.cases.model import Suite
from proctor.plain import Json
from proctor.records import record


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
