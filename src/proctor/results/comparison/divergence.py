"""The first difference between two trials; stored with gated runs, so it is separate from the code that finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DivergenceKind = Literal["question", "call", "argument", "sentence", "result", "end"]


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference between two trials."""

    kind: DivergenceKind
    turn: int
    """Counted from 1."""
    step: int
    """The index of the aligned step."""
    text: str
    """Both sides of the difference, in one line: `"A" → "B"`."""

    def __str__(self) -> str:
        return f"turn {self.turn}, {self.kind}: {self.text}"
