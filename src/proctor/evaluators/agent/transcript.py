"""What a judge is shown of an agent at work: its instructions, tools, steps, and texts before the final answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from proctor.agents.agent import ToolCall
from proctor.base.json_data import Json, plain, show
from proctor.evaluators.evaluation import Evaluable, Exchange
from proctor.evaluators.judged_evaluator import as_text
from proctor.tracing.spans import AssistantMessage, LLMSpan, Message, SystemMessage, UserMessage

NO_CALLS = "No tools were used."


def steps_of(calls: Sequence[ToolCall]) -> list[str]:
    """One text per tool call: what it was given, and what came of it."""
    return [f"{_call(call)}\n{_result(call)}" for call in calls] or [NO_CALLS]


def dialogue_of(turns: Sequence[Exchange]) -> list[str]:
    """The conversation line by line: what the user said, which tools were used, what the agent answered."""
    lines: list[str] = []
    for number, exchange in enumerate(turns, 1):
        lines.append(f"user, turn {number}: {as_text(exchange.turn.input)}")
        lines += [f"agent uses a tool, turn {number}: {step}" for step in _calls_made(exchange)]
        lines.append(f"agent, turn {number}: {answer_of(exchange)}")
    return lines


def earlier(evaluable: Evaluable) -> list[str]:
    """The conversation before the turn in question."""
    return dialogue_of(evaluable.turns[:-1])


def instructions_of(evaluable: Evaluable) -> str:
    """What the agent's model was told about its task, where the trace shows it."""
    call = _model_call(evaluable)
    messages = () if call is None else call.input_messages
    return "\n".join(message.text for message in messages if isinstance(message, SystemMessage))


def tools_offered(evaluable: Evaluable) -> list[str]:
    """The tools the agent's model could choose from, where the trace shows them."""
    call = _model_call(evaluable)
    return [] if call is None else [show(_without_nulls(plain(tool))) for tool in call.tool_definitions]


def intermediate_texts(evaluable: Evaluable) -> list[str]:
    """What the model said in this turn before its final answer, where the trace shows it."""
    call = _model_call(evaluable)
    if call is None:
        return []
    since: list[Message] = []
    for message in call.input_messages:
        since = [] if isinstance(message, UserMessage) else [*since, message]
    return [message.text for message in since if isinstance(message, AssistantMessage) and message.text.strip()]


def _model_call(evaluable: Evaluable) -> LLMSpan | None:
    """The last model call of this turn: the one that answers what the user said in it.

    A trace is that of the whole trial, so that a turn is known by the user's words.
    """
    calls = [span for span in _spans(evaluable.trace) if isinstance(span, LLMSpan) and span.operation == "chat"]
    words = as_text(evaluable.turns[-1].turn.input if evaluable.turns else evaluable.input)
    own = [span for span in calls if _asked(span) == words]
    if not own and len(evaluable.turns) <= 1:
        own = calls
    return max(own, key=lambda span: span.ended_at, default=None)


def _asked(span: LLMSpan) -> str | None:
    asked = [message.text for message in span.input_messages if isinstance(message, UserMessage)]
    return asked[-1] if asked else None


def _spans(trace: Any) -> Iterator[Any]:
    for node in trace or ():
        for _, below in node.walk():
            yield below.span


def _call(call: ToolCall) -> str:
    given = call.raw_arguments if call.raw_arguments is not None else show(plain(call.arguments))
    return f"{call.name}({given})"


def _result(call: ToolCall) -> str:
    return f"failed: {call.error}" if call.error else f"returned: {show(plain(call.result))}"


def _calls_made(exchange: Exchange) -> list[str]:
    return [f"{_call(call)} {_result(call)}" for call in exchange.reply.tool_calls]


def answer_of(exchange: Exchange) -> str:
    """What the agent answered in a turn, as text."""
    reply = exchange.reply
    if reply.outputs:
        return show({item.name: plain(item.value) for item in reply.outputs})
    return reply.text if reply.structured is None else show(plain(reply.structured))


def _without_nulls(tool: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in tool.items() if value is not None}
