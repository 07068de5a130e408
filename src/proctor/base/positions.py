"""Where in a document a value is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Pointer: TypeAlias = Sequence[str | int]
"""The way from the root of a document to a value in it."""

Place: TypeAlias = "tuple[int, dict[str, Place] | list[Place] | None]"
"""The line of a value, and the places of the values inside it."""

Lines: TypeAlias = Callable[[Pointer], int | None]
"""Returns the line of the value at a pointer, or of its nearest parent that can be found."""


@dataclass(frozen=True, slots=True)
class Position:
    """The file and line where something is written."""

    path: Path
    line: int | None = None
    """Counted from 1; `None` if only the file is known."""


MAX_DEPTH = 200
"""Levels of nesting a document may have: more is no real data, and could exhaust the stack of code that walks it."""


def pointer_text(pointer: Pointer) -> str:
    """`("evalCases", 3, "conversation")` as people write it: `evalCases[3].conversation`."""
    text = ""
    for part in pointer:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def line_at(place: Place, pointer: Pointer) -> int:
    """The line of the value at `pointer`, or of its nearest parent, in a document whose root is `place`."""
    for part in pointer:
        inside = place[1]
        if isinstance(inside, dict) and isinstance(part, str) and part in inside:
            place = inside[part]
        elif isinstance(inside, list) and isinstance(part, int) and part < len(inside):
            place = inside[part]
        else:
            break
    return place[0]
