"""The table that all benchmarks print."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line: what was measured, the limit, the result. A row without a limit is only shown."""

    what: str
    measured: str
    limit: str = ""
    ok: bool | None = None

    @property
    def word(self) -> str:
        return "" if self.ok is None else "ok" if self.ok else "over"


HEAD = ("what", "limit", "measured", "")


def at_most(what: str, value: float, limit: float, unit: str = "x", note: str = "") -> Row:
    """A row that is over if the value is above the limit."""
    return Row(what, f"{value:.3g}{unit}{note}", f"at most {limit:g}{unit}", value <= limit)


def below(what: str, value: float, limit: float, note: str = "") -> Row:
    """A row that is over unless the ratio is smaller than the limit."""
    return Row(what, f"{value:.3g}x{note}", f"below {limit:g}x", value < limit)


def as_text(rows: Iterable[Row]) -> str:
    """A Markdown table that is also easy to read as it is."""
    lines = [HEAD, *((row.what, row.limit, row.measured, row.word) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    padded = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([padded[0], rule, *padded[1:]])
