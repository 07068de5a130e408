"""Notes at the head of a file of instructions, between two lines of dashes: for people, and not for the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from proctor.errors import InvalidSuite, Problem
from proctor.plain import Json

DASHES = "---"


def split_front_matter(path: Path, text: str) -> tuple[Mapping[str, Json], str]:
    """The notes, and what the model is told; raises `InvalidSuite` for notes that are none, lest text goes unsaid."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != DASHES:
        return {}, text
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == DASHES), None)
    if end is None:
        raise InvalidSuite([Problem("begins with --- and never ends its notes; close them with another ---", path, 1)])
    return _notes(path, "".join(lines[1:end])), "".join(lines[end + 1 :]).lstrip("\n")


def _notes(path: Path, notes: str) -> Mapping[str, Json]:
    from proctor.cases.yaml_source import parse_yaml

    try:
        found = parse_yaml(path, notes)
    except InvalidSuite as error:
        first = error.problems[0]
        line = None if first.line is None else first.line + 1
        raise InvalidSuite(
            [Problem(f"has notes between --- and --- that {_as_notes(first.message)}", path, line)]
        ) from None
    if found is not None and not isinstance(found, dict):
        raise InvalidSuite([Problem("has text between --- and --- at its head, where only notes may stand", path, 1)])
    return found or {}


def _as_notes(message: str) -> str:
    return "are" + message.removeprefix("is") if message.startswith("is ") else message
