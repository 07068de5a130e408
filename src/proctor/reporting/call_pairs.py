"""Puts expected and actual tool calls side by side, for whoever has to see where they part."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from proctor.agents.model import ToolCall
from proctor.cases.matchers import Ignore
from proctor.cases.model import ExpectedCall
from proctor.evaluators.tools.calls import fitting, repeated
from proctor.evaluators.tools.differences import differences
from proctor.evaluators.tools.pairing import most_pairs
from proctor.records import record

MOST_COMPARED = 100
"""More calls than this in one turn are only listed: nobody would read the comparison."""


class Fit(enum.StrEnum):
    """How an actual call relates to an expected one. Which order is right is the evaluators' business."""

    AS_EXPECTED = "as expected"
    DIFFERS = "differs"
    MISSING = "missing"
    NOT_EXPECTED = "not expected"


@record
class CallPair:
    """What was expected, what was done, and how the two fit; `None` where nothing is compared."""

    expected: ExpectedCall | None
    call: ToolCall | None
    fit: Fit | None


def pair_calls(expected: Sequence[ExpectedCall] | None, calls: Sequence[ToolCall]) -> list[CallPair]:
    """In the order of what was done; what is missing comes last."""
    if expected is None:
        return [CallPair(None, call, None) for call in calls]
    if max(len(expected), len(calls)) > MOST_COMPARED:
        return [CallPair(wanted, None, None) for wanted in expected] + [CallPair(None, call, None) for call in calls]
    relation = fitting(expected, calls)
    units = repeated(expected, len(calls))
    pairs = [(units[unit], column) for unit, column in most_pairs([relation[index] for index in units])]
    found = differences(expected, calls, pairs)
    partners = {column: (index, Fit.AS_EXPECTED) for index, column in pairs}
    partners |= {column: (index, Fit.DIFFERS) for index, column, _ in found.different}
    rows = []
    for column, call in enumerate(calls):
        if column in partners:
            index, fit = partners[column]
            rows.append(CallPair(expected[index], call, fit))
        else:
            rows.append(CallPair(None, call, Fit.NOT_EXPECTED))
    return rows + [CallPair(expected[index], None, Fit.MISSING) for index in found.missing]


def wrong_arguments(expected: ExpectedCall, call: ToolCall) -> dict[str, str]:
    """Each argument that is not as expected, and why."""
    rules = expected.arguments
    if rules is None or call.raw_arguments is not None:
        return {}
    wrong: dict[str, str] = {}
    for name, matcher in rules.items():
        if name not in call.arguments:
            if not isinstance(matcher, Ignore):
                wrong[name] = "is missing"
        elif why := matcher.mismatch(call.arguments[name]):
            wrong[name] = why
    if not expected.extra_arguments:
        wrong |= {name: "was not expected" for name in call.arguments if name not in rules}
    return wrong
