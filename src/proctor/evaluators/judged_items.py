"""Turns the items that a judge decided one by one into a score, and their reasons into one reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from proctor.base.json_data import show
from proctor.base.records import record
from proctor.evaluators.evaluation import Evaluation

NAMED = 5
"""How many items a reason names; the details have them all."""
LONGEST_ITEM = 200
AT_BEST = "at_best"
"""The detail of an evaluation with the score if everything held of which the judge could not tell."""
UNCLEAR = "cannot tell"


@record
class JudgedItem:
    """One item that was judged, and how far it counts in favour of the answer."""

    text: str
    verdict: str
    holds: bool
    reason: str = ""
    partial_credit: float | None = None
    unclear: bool = False
    """Whether the judge could not tell."""

    @property
    def credit(self) -> float:
        """All or nothing, or the partial credit where the judge measured one."""
        return float(self.holds) if self.partial_credit is None else self.partial_credit


def score_of_items(items: Sequence[JudgedItem], what: str, **details: Any) -> Evaluation:
    """The mean credit. `what` completes "2 of 3 …"; items that do not hold are named with their reasons."""
    score = mean(item.credit for item in items)
    details |= {"findings": items_as_details(items)}
    if any(item.unclear for item in items):
        details[AT_BEST] = mean(1.0 if item.unclear else item.credit for item in items)
    return Evaluation(score, reasons_of_items(items, what), details)


def mean(values: Iterable[float]) -> float:
    """The mean, kept within 0 and 1; of nothing it is 0."""
    given = list(values)
    return min(1.0, max(0.0, math.fsum(given) / len(given))) if given else 0.0


def reasons_of_items(items: Sequence[JudgedItem], what: str) -> str:
    """How many items hold, and why the others do not."""
    failed = [item for item in items if not item.holds]
    counted = f"{len(items) - len(failed)} of {len(items)} {what}"
    if not failed:
        return counted
    named = "; ".join(_named(item) for item in failed[:NAMED])
    more = f"; and {len(failed) - NAMED} more" if len(failed) > NAMED else ""
    return f"{counted}. {named}{more}"


def items_as_details(items: Iterable[JudgedItem]) -> list[dict[str, Any]]:
    """The items as plain data, for the details of an evaluation."""
    return [
        {"text": item.text, "verdict": item.verdict, "credit": item.credit}
        | ({"reason": item.reason} if item.reason else {})
        for item in items
    ]


def _named(item: JudgedItem) -> str:
    text = f"{item.verdict}: “{show(item.text.strip(), LONGEST_ITEM)}”"
    return f"{text} ({show(item.reason.strip(), LONGEST_ITEM)})" if item.reason.strip() else text
