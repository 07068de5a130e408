"""Expectations that are assertions by nature bring their own evaluator, so that none is ever silently ignored."""

from __future__ import annotations

from proctor.cases.model import UNSET, EvaluatorSpec, Turn

TOOL_EVALUATORS = frozenset({"ToolTrajectory", "ToolCorrectness", "ExpectedTools"})


def with_implied(
    specs: tuple[EvaluatorSpec, ...], turns: tuple[Turn, ...], *, final_state: bool = False
) -> tuple[EvaluatorSpec, ...]:
    """`specs` plus what the expectations of `turns` call for.

    Keywords bring `Contains`, tool calls `ExpectedTools`, a final state `FinalState`, unless an evaluator of that
    family is named. A reference answer is compared exactly only when no evaluator at all is named, since most
    evaluators have their own use for it.
    """
    named = {spec.name for spec in specs}
    implied: list[str] = []
    if "Contains" not in named and any(turn.expected.keywords is not None for turn in turns):
        implied.append("Contains")
    if not named & TOOL_EVALUATORS and any(turn.expected.tool_calls is not None for turn in turns):
        implied.append("ExpectedTools")
    if final_state and "FinalState" not in named:
        implied.append("FinalState")
    if not specs and any(turn.expected.output is not UNSET for turn in turns):
        implied.insert(0, "ExactMatch")
    return specs + tuple(EvaluatorSpec(name) for name in implied)
