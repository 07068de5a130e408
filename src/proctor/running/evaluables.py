"""Builds `Evaluable`s, the input of evaluators, from a case and the replies to its turns.

Each answered turn is one `Evaluable`, for evaluators of turns. The whole conversation is another, for evaluators of the
case: it has the last answer, the tool calls and the expected calls of all turns, and the total usage. The obvious
version, the calls of all turns with the expectation of the last one, would fail agents that did everything right.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from proctor.agents.reply import Reply, Usage
from proctor.cases.suite import Case, ExpectedCall, NamedData
from proctor.evaluators.evaluation import Evaluable, Exchange
from proctor.tracing.spans import ObservationNode, Span, build_tree


def evaluable_of(case: Case, replies: Sequence[Reply], spans: Sequence[Span] = ()) -> Evaluable:
    """The whole conversation, for evaluators of a case; there must be at least one reply."""
    return conversation_evaluable(case, turn_evaluables(case, replies, spans))


def turn_evaluables(case: Case, replies: Sequence[Reply], spans: Sequence[Span] = ()) -> list[Evaluable]:
    """Each turn that has a reply, for evaluators of turns; `spans` is the trace of the application."""
    exchanges = tuple(Exchange(turn, reply) for turn, reply in zip(case.turns, replies, strict=False))
    trace = build_tree(spans) if spans else None
    last = len(case.turns) - 1
    return [_turn_evaluable(case, exchanges[: at + 1], trace, is_last=at == last) for at in range(len(exchanges))]


def conversation_evaluable(case: Case, turns: Sequence[Evaluable]) -> Evaluable:
    """The whole conversation, from the result of `turn_evaluables`."""
    last = turns[-1]
    if len(turns) == 1:
        return last
    expected: list[ExpectedCall] | None = None
    usage: Usage | None = None
    for item in turns:
        if item.expected_tool_calls is not None:
            expected = [*(expected or []), *item.expected_tool_calls]
        if item.usage is not None:
            usage = item.usage if usage is None else usage + item.usage
    passages = [passage for item in turns for passage in item.retrieval_context or ()]
    return replace(
        last,
        eval_input=case.inputs or (NamedData("input", [turn.input for turn in case.turns]),),
        tool_calls=tuple(call for item in turns for call in item.tool_calls),
        expected_tool_calls=None if expected is None else tuple(expected),
        retrieval_context=tuple(passages) or None,
        usage=usage,
        duration_ms=sum(item.duration_ms or 0.0 for item in turns),
        hidden_calls=next((item.hidden_calls for item in turns if item.hidden_calls is not None), None),
    )


_FIELDS_OF_PARTS: Mapping[str, tuple[str, ...]] = {
    "text": ("eval_output",),
    "outputs": ("eval_output",),
    "structured": ("eval_output",),
    "input": ("eval_input",),
    "inputs": ("eval_input",),
    "expected": ("expectation", "expected_tool_calls", "keywords", "context"),
    "final_state": ("expected_state",),
}
"""By field of a reply, a turn or a case: the fields of an `Evaluable` that are made of it, if they have other names."""
_PART = re.compile(r"(replies|case\.turns)\[([0-9]+)\]\.(.+)")


def masked_fields(parts: Collection[str], turn: int | None, replies: int) -> frozenset[str]:
    """The fields of the evaluable of a turn, or of a conversation of so many replies, that are made of these parts.

    The parts are named as in `Trial.masked`.
    """
    last = replies - 1 if turn is None else turn
    names: set[str] = set()
    for part in parts:
        match = _PART.fullmatch(part)
        if match is None:
            names.update(_fields_of_case_part(part))
            continue
        at, name = int(match[2]), match[3]
        if at > last:
            continue
        names.add("turns")
        is_of_turn = at == last or (turn is None and name in ("tool_calls", "retrieval_context", "input", "expected"))
        if is_of_turn:
            metadata = match[1] != "replies" and name == "metadata"
            names.update(("turn_metadata",) if metadata else _FIELDS_OF_PARTS.get(name, (name,)))
    return frozenset(name for name in names if name in Evaluable.__dataclass_fields__)


def _fields_of_case_part(part: str) -> tuple[str, ...]:
    name = part.removeprefix("case.")
    if name in ("metadata", "scenario"):
        return ("eval_metadata",)
    return ("trace",) if name == "spans" else _FIELDS_OF_PARTS.get(name, (name,))


def _turn_evaluable(
    case: Case, exchanges: tuple[Exchange, ...], trace: list[ObservationNode] | None, *, is_last: bool
) -> Evaluable:
    turn, reply = exchanges[-1].turn, exchanges[-1].reply
    return Evaluable(
        eval_input=case.inputs or (NamedData("input", turn.input),),
        eval_output=tuple(reply.named_outputs),
        expectation=turn.expected.output,
        eval_metadata=case.metadata_for_evaluators or None,
        description=case.description or None,
        tool_calls=reply.tool_calls,
        expected_tool_calls=turn.expected.tools,
        keywords=turn.expected.contains,
        context=turn.expected.context,
        retrieval_context=reply.retrieval_context if turn.retrieval_context is None else turn.retrieval_context,
        turns=exchanges,
        usage=reply.usage,
        duration_ms=reply.duration_ms,
        state=reply.state,
        expected_state=case.final_state if is_last else None,
        turn_metadata=turn.metadata,
        trace=trace,
        hidden_calls=reply.hidden_calls,
    )
