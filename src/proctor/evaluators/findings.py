"""Turns what a judge found, item by item, into a score and into a reason made of the reasons of the items."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from proctor.base.json_data import show
from proctor.base.records import record
from proctor.evaluators.evaluation import Evaluable, Evaluation, NothingToCompare
from proctor.evaluators.judged import passages

NAMED = 5
"""How many items a reason names; the details have them all."""
LONGEST_ITEM = 200


@record
class Finding:
    """One item that was judged, and how far it counts in favour of the answer."""

    text: str
    verdict: str
    holds: bool
    reason: str = ""
    partial_credit: float | None = None

    @property
    def credit(self) -> float:
        """All or nothing, or the partial credit where the judge measured it."""
        return float(self.holds) if self.partial_credit is None else self.partial_credit


def share(findings: Sequence[Finding], what: str, **details: Any) -> Evaluation:
    """The mean credit. `what` completes "2 of 3 …"; items that fall short are named with their reasons."""
    score = mean(finding.credit for finding in findings)
    return Evaluation(score, reasons(findings, what), {**details, "findings": as_details(findings)})


def mean(values: Iterable[float]) -> float:
    """The mean, kept within 0 and 1; of nothing it is 0."""
    given = list(values)
    return min(1.0, max(0.0, math.fsum(given) / len(given))) if given else 0.0


def reasons(findings: Sequence[Finding], what: str) -> str:
    """How many items hold, and why the others do not."""
    short = [finding for finding in findings if not finding.holds]
    said = f"{len(findings) - len(short)} of {len(findings)} {what}"
    if not short:
        return said
    named = "; ".join(_named(finding) for finding in short[:NAMED])
    more = f"; and {len(short) - NAMED} more" if len(short) > NAMED else ""
    return f"{said}. {named}{more}"


def as_details(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    return [
        {"text": item.text, "verdict": item.verdict, "credit": item.credit}
        | ({"reason": item.reason} if item.reason else {})
        for item in findings
    ]


def _named(finding: Finding) -> str:
    text = f"{finding.verdict}: “{show(finding.text.strip(), LONGEST_ITEM)}”"
    return f"{text} ({show(finding.reason.strip(), LONGEST_ITEM)})" if finding.reason.strip() else text


def texts_to_hold_against(evaluable: Evaluable, *, ideal_first: bool = False) -> list[str]:
    """The passages of a case that say anything."""
    found = [text for text in passages(evaluable, ideal_first=ideal_first) if text.strip()]
    if not found:
        raise NothingToCompare("needs passages to compare with, and those there are, are empty")
    return found
