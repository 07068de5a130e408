"""Checks of this project's own: three evaluators, and a grader in HoloDeck's manner."""

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
    """Every sum of money in the expected answer is in the given one."""
    wanted = amounts_in(str(evaluable.expected_output))
    if not wanted:
        return None
    missing = sorted(wanted - amounts_in(str(evaluable.output)))
    reasoning = f"missing {', '.join(map(dollars, missing))}" if missing else f"all {len(wanted)} amounts are there"
    return Evaluation(1 - len(missing) / len(wanted), reasoning)


def results_are_reproducible(evaluable: Evaluable) -> Evaluation | None:
    """Each tool, called again with the agent's own arguments, gives what the agent was given."""
    answered = [call for call in evaluable.tool_calls if call.result is not None]
    if not answered:
        return None
    differing = [call.name for call in answered if to_json(TOOLS[call.name](**call.arguments)) != call.result]
    reasoning = f"another result now: {', '.join(differing)}" if differing else f"{len(answered)} results reproduced"
    return Evaluation(float(not differing), reasoning)


def one_call_that_holds(evaluable: Evaluable) -> Evaluation | None:
    """At most one tool was used, and used again with the agent's own arguments it gives or refuses the same."""
    if not evaluable.tool_calls:
        return None
    if len(evaluable.tool_calls) > 1:
        return Evaluation(0.0, f"{len(evaluable.tool_calls)} calls where one is enough")
    (call,) = evaluable.tool_calls
    try:
        again = to_json(TOOLS[call.name](**call.arguments))
    except InvalidLoan:
        return Evaluation(float(call.error is not None), "the tool refuses these arguments")
    except TypeError as error:
        return Evaluation(0.0, f"{call.name} cannot be called like that: {error}")
    holds = call.error is None and again == call.result
    return Evaluation(
        float(holds), "the tool still gives the same" if holds else f"the tool gives {to_text(again, 120)}"
    )


def amounts_come_from_somewhere(context: GraderContext) -> float:
    """A grader: no sum of money in the answer is made up; the user, a tool or the reference mentions it."""
    results = " ".join(to_text(invocation.result) for invocation in context.tool_invocations)
    allowed = amounts_in(f"{context.turn_input} {context.ground_truth} {results}") | _numbers_in(results)
    return float(amounts_in(context.agent_response) <= allowed)


def _numbers_in(text: str) -> set[Decimal]:
    return {Decimal(digits) for digits in re.findall(r"[0-9]+(?:\.[0-9]+)?", text)}
