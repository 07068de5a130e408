"""The table that all benchmarks end in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line: what was measured, what is allowed, what came out. A row without budget only informs."""

    what: str
    measured: str
    budget: str = ""
    ok: bool | None = None

    @property
    def word(self) -> str:
        return "" if self.ok is None else "ok" if self.ok else "over"


HEAD = ("what", "budget", "measured", "")


def at_most(what: str, ratio: float, limit: float, note: str = "") -> Row:
    return Row(what, f"{ratio:.2f}x{note}", f"at most {limit:g}x", ratio <= limit)


def as_text(rows: Iterable[Row]) -> str:
    """A Markdown table that is also easy to read as it is."""
    lines = [HEAD, *((row.what, row.budget, row.measured, row.word) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    padded = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([padded[0], rule, *padded[1:]])
