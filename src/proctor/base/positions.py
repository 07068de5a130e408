"""Positions in a document: pointers to values, and the lines of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Pointer: TypeAlias = Sequence[str | int]
"""The keys and indices that lead from the root of a document to a value."""

LineTree: TypeAlias = "tuple[int, dict[str, LineTree] | list[LineTree] | None]"
"""The line of a value, and the same for the values inside it."""

Lines: TypeAlias = Callable[[Pointer], int | None]
"""Returns the line of the value at a pointer, or of its nearest parent that can be found."""


@dataclass(frozen=True, slots=True)
class Position:
    """The file and line where something is written."""

    path: Path
    line: int | None = None
    """Counted from 1; `None` if only the file is known."""


MAX_DEPTH = 200
"""Levels of nesting that a document may have. More could exhaust the stack of code that walks the data."""


def pointer_text(pointer: Pointer) -> str:
    """`("evalCases", 3, "conversation")` as people write it: `evalCases[3].conversation`."""
    text = ""
    for part in pointer:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def line_at(tree: LineTree, pointer: Pointer) -> int:
    """The line of the value at `pointer`, or of its nearest parent, in a document with this tree."""
    for part in pointer:
        inside = tree[1]
        if isinstance(inside, dict) and isinstance(part, str) and part in inside:
            tree = inside[part]
        elif isinstance(inside, list) and isinstance(part, int) and part < len(inside):
            tree = inside[part]
        else:
            break
    return tree[0]
