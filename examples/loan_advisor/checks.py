"""This project's own checks: three evaluators, and a grader for HoloDeck."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from money import amounts_in, dollars
from tools import TOOLS, InvalidLoan

from proctor import Evaluable, Evaluation
from proctor.base.json_data import to_json, to_text

if TYPE_CHECKING:
    from proctor.compat.holodeck import GraderContext


def mentions_expected_amounts(evaluable: Evaluable) -> Evaluation | None:
    """Pass if every sum of money in the expected answer is in the actual one."""
    expected = amounts_in(str(evaluable.expected_output))
    if not expected:
        return None
    missing = sorted(expected - amounts_in(str(evaluable.output)))
    reasoning = f"missing {', '.join(map(dollars, missing))}" if missing else f"all {len(expected)} amounts are there"
    return Evaluation(1 - len(missing) / len(expected), reasoning)


def results_are_reproducible(evaluable: Evaluable) -> Evaluation | None:
    """Pass if each tool, called again with the agent's arguments, returns the same result."""
    answered = [call for call in evaluable.tool_calls if call.result is not None]
    if not answered:
        return None
    differing = [call.name for call in answered if to_json(TOOLS[call.name](**call.arguments)) != call.result]
    reasoning = f"different results now: {', '.join(differing)}" if differing else f"{len(answered)} results reproduced"
    return Evaluation(float(not differing), reasoning)


def one_reproducible_call(evaluable: Evaluable) -> Evaluation | None:
    """Pass if at most one tool was called, and it returns or refuses the same when called again."""
    if not evaluable.tool_calls:
        return None
    if len(evaluable.tool_calls) > 1:
        return Evaluation(0.0, f"{len(evaluable.tool_calls)} calls, but one is enough")
    (call,) = evaluable.tool_calls
    try:
        again = to_json(TOOLS[call.name](**call.arguments))
    except InvalidLoan:
        return Evaluation(float(call.error is not None), "the tool refuses these arguments")
    except TypeError as error:
        return Evaluation(0.0, f"{call.name} cannot be called with these arguments: {error}")
    is_same = call.error is None and again == call.result
    return Evaluation(
        float(is_same), "the tool returns the same again" if is_same else f"the tool now returns {to_text(again, 120)}"
    )


def amounts_have_a_source(context: GraderContext) -> float:
    """Pass if every sum of money in the answer is in the input, a tool's result or the reference."""
    results = " ".join(to_text(invocation.result) for invocation in context.tool_invocations)
    allowed = amounts_in(f"{context.turn_input} {context.ground_truth} {results}") | _numbers_in(results)
    return float(amounts_in(context.agent_response) <= allowed)


def _numbers_in(text: str) -> set[Decimal]:
    return {Decimal(digits) for digits in re.findall(r"[0-9]+(?:\.[0-9]+)?", text)}
