"""The plainest measure there is, words in common: a judge that loses to it has earned nobody's trust."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proctor.plain import show
from proctor.running.calibration_rows import LabelledRow


def word_overlap(rows: Sequence[LabelledRow]) -> tuple[str, list[float]] | None:
    """What is measured and each row's share; `None` where rows have nothing to compare with."""
    if all(row.context for row in rows):
        shares = [_share(show(row.answer), "\n".join(row.context or ())) for row in rows]
        return "share of the answer's words that the context has", shares
    if all(row.reference is not None for row in rows):
        shares = [_best_share(show(row.reference), show(row.answer)) for row in rows]
        return "share of the reference's words that the answer has", shares
    return None


def _best_share(reference: str, answer: str) -> float:
    """References often give several ways to say it, parted by a slash; one of them is enough."""
    return max(_share(way, answer) for way in reference.split("/"))


def _share(wanted: str, given: str) -> float:
    words, there = (set(re.findall(r"\w+", text.casefold())) for text in (wanted, given))
    return len(words & there) / len(words) if words else 0.0
