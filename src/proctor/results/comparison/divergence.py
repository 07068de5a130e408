"""Where two trials part. Stored with a gated run, so it stands apart from the code that finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DivergenceKind = Literal["question", "call", "argument", "sentence", "result", "end"]


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first step where two trials part."""

    kind: DivergenceKind
    turn: int
    """Counted from 1."""
    step: int
    """Its index in the aligned steps."""
    text: str
    """What happened before and what after, in one line."""

    def __str__(self) -> str:
        return f"turn {self.turn}, {self.kind}: {self.text}"
