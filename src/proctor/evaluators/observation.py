"""Whether the score of an evaluator of tool calls can be trusted if some calls may not have been observed.

"Not observed" is not "not called": an agent that hides its calls would fail every expected call and pass every
forbidden one. `Reply.hidden_calls` says whether calls of a turn may be missing. What the observed calls alone decide
stands all the same: an expected call that was seen was made, and so was a forbidden one. Everything else is an error,
which says how to make the calls visible.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from proctor.base.errors import ProctorError
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation


class CallsNotObserved(ProctorError):
    """The score depends on tool calls that may not have been observed. The outcome is `error`."""


def require_observed(evaluable: Evaluable) -> None:
    """Raise `CallsNotObserved` if tool calls may be missing, for evaluators that need all of them."""
    hidden = evaluable.hidden_calls
    if hidden is not None:
        raise CallsNotObserved(f"the tool calls are unknown: {hidden.reason}; {hidden.fix}")


def settle(evaluable: Evaluable, evaluation: Evaluation, *, is_certain: bool, tools: Iterable[str] = ()) -> Evaluation:
    """The evaluation, if calls that were not observed could not change it; else raise `CallsNotObserved`.

    `is_certain` says whether the observed calls alone decide it. `tools` are the only tools that matter, if they are
    known: the calls of tools that are marked with `@proctor.tool` are always recorded.
    """
    if evaluable.hidden_calls is not None and not is_certain:
        names = set(tools)
        if not names or not names.issubset(evaluable.hidden_calls.visible):
            require_observed(evaluable)
    return evaluation


def settle_comparison(evaluable: Evaluable, evaluation: Evaluation, *, extra_allowed: bool) -> Evaluation:
    """`settle` for a comparison of expected and actual calls, whose faults are in its details.

    A call that should not have been made is certain. A missing or different one is not, because the right call may have
    been made unobserved. Without any fault it depends on whether further calls would matter.
    """
    faults: list[dict[str, Any]] = evaluation.details.get("faults", [])
    is_certain = any(item["kind"] in ("extra", "forbidden") for item in faults) or (extra_allowed and not faults)
    return settle(evaluable, evaluation, is_certain=is_certain, tools=[item["tool"] for item in faults])
