"""The plainest measure there is, words in common: a judge that loses to it has earned nobody's trust."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proctor.plain import show
from proctor.running.calibration_rows import LabelledRow


def word_overlap(rows: Sequence[LabelledRow]) -> tuple[str, list[float]] | None:
    """What is measured and each row's share; `None` where rows have nothing to compare with."""
    if all(row.context for row in rows):
        return "share of the answer's words that the context has", [
            _share(show(row.answer), "\n".join(row.context or ())) for row in rows
        ]
    if all(row.reference is not None for row in rows):
        return "share of the reference's words that the answer has", [
            _share(show(row.reference), show(row.answer)) for row in rows
        ]
    return None


def _share(wanted: str, given: str) -> float:
    words = re.findall(r"\w+", wanted.casefold())
    there = set(re.findall(r"\w+", given.casefold()))
    return sum(word in there for word in words) / len(words) if words else 0.0
