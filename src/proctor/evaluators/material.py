"""The material that judges see: question, answer, passages, and the agent's instructions, tools and calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.base.json_data import UNSET, Json, to_json, to_text
from proctor.evaluators.evaluable import Evaluable, Exchange
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.values import as_text, call_text
from proctor.tracing.spans import AssistantMessage, LLMSpan, Message, SystemMessage, UserMessage

NO_CALLS = "No tools were used."


def tool_call_lines(calls: Sequence[ToolCall]) -> list[str]:
    """One text per tool call, with its arguments and its result."""
    return [f"{call_text(call)}\n{_result(call)}" for call in calls] or [NO_CALLS]


def transcript(turns: Sequence[Exchange]) -> list[str]:
    """The conversation line by line: messages of the user, tool calls and answers of the agent."""
    lines: list[str] = []
    for number, exchange in enumerate(turns, 1):
        lines.append(f"user, turn {number}: {as_text(exchange.turn.input)}")
        lines += [f"agent uses a tool, turn {number}: {step}" for step in _calls_made(exchange)]
        lines.append(f"agent, turn {number}: {answer_of(exchange)}")
    return lines


def previous_turns(evaluable: Evaluable) -> list[str]:
    """The transcript of the turns before this one."""
    return transcript(evaluable.turns[:-1])


def instructions_of(evaluable: Evaluable) -> str:
    """The system prompt of the agent's model, if the trace has it."""
    call = _model_call(evaluable)
    messages = () if call is None else call.input_messages
    return "\n".join(message.text for message in messages if isinstance(message, SystemMessage))


def tools_offered(evaluable: Evaluable) -> list[str]:
    """The tools that the agent's model could choose from, if the trace has them."""
    call = _model_call(evaluable)
    return [] if call is None else [to_text(_without_nulls(to_json(tool))) for tool in call.tool_definitions]


def intermediate_texts(evaluable: Evaluable) -> list[str]:
    """The texts of the model in this turn before its final answer, if the trace has them."""
    call = _model_call(evaluable)
    if call is None:
        return []
    since: list[Message] = []
    for message in call.input_messages:
        since = [] if isinstance(message, UserMessage) else [*since, message]
    return [message.text for message in since if isinstance(message, AssistantMessage) and message.text.strip()]


def _model_call(evaluable: Evaluable) -> LLMSpan | None:
    """The last model call of this turn.

    A trace covers the whole trial, so the calls of a turn are found by the user's message.
    """
    calls = [span for span in _spans(evaluable.trace) if isinstance(span, LLMSpan) and span.operation == "chat"]
    words = as_text(evaluable.turns[-1].turn.input if evaluable.turns else evaluable.input)
    own = [span for span in calls if _last_user_message(span) == words]
    if not own and len(evaluable.turns) <= 1:
        own = calls
    return max(own, key=lambda span: span.ended_at, default=None)


def _last_user_message(span: LLMSpan) -> str | None:
    messages = [message.text for message in span.input_messages if isinstance(message, UserMessage)]
    return messages[-1] if messages else None


def _spans(trace: Any) -> Iterator[Any]:
    for node in trace or ():
        for _, below in node.walk():
            yield below.span


def _result(call: ToolCall) -> str:
    return f"failed: {call.error}" if call.error else f"returned: {to_text(to_json(call.result))}"


def _calls_made(exchange: Exchange) -> list[str]:
    return [f"{call_text(call)} {_result(call)}" for call in exchange.reply.tool_calls]


def answer_of(exchange: Exchange) -> str:
    """The agent's answer in a turn, as text."""
    return as_text(exchange.reply.answer)


def _without_nulls(tool: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in tool.items() if value is not None}


def question_text(evaluable: Evaluable) -> str:
    """The input as text."""
    return as_text(evaluable.input)


def answer_text(evaluable: Evaluable) -> str:
    """The answer as text."""
    return as_text(evaluable.output)


def expected_text(evaluable: Evaluable, what: str = "an expected answer") -> str:
    """The expected answer as text; raises `NothingToCompare` if the case has none."""
    if evaluable.expectation is UNSET or evaluable.expectation is None or evaluable.expectation == "":
        raise NothingToCompare(f"needs {what} (`expected`), and the case has none")
    return as_text(evaluable.expectation)


def user_messages(evaluable: Evaluable) -> list[str]:
    """What an answer may repeat without a passage: what the user said.

    The arguments of tool calls do not belong here: the agent chose them, and it may have made them up.
    """
    said = [as_text(exchange.turn.input) for exchange in evaluable.turns]
    return list(dict.fromkeys(text for text in [*said, question_text(evaluable)] if text.strip()))


def passages(evaluable: Evaluable, *, prefer_context: bool = False) -> list[str]:
    """The texts that an answer is compared with: retrieved passages, else the ideal context, else results of tools.

    Passages that the case gives win over results of tools: who writes them says what the answer must follow from.
    """
    metadata: Mapping[str, Json] = evaluable.eval_metadata or {}
    retrieved, ideal = evaluable.retrieval_context, evaluable.context
    found = (ideal or retrieved) if prefer_context else (retrieved or ideal)
    if found is None and metadata.get("context"):
        context = metadata["context"]
        found = tuple(as_text(item) for item in context) if isinstance(context, list) else (as_text(context),)
    found = found or tuple(tool_results(evaluable.tool_calls))
    if not found:
        raise NothingToCompare(
            "needs passages (`retrieval_context`, `context` or results of tools), and there are none"
        )
    return list(found)


def nonblank_passages(evaluable: Evaluable, *, prefer_context: bool = False) -> list[str]:
    """The passages of a case that are not blank."""
    found = [text for text in passages(evaluable, prefer_context=prefer_context) if text.strip()]
    if not found:
        raise NothingToCompare("needs passages, and all of them are empty")
    return found


def tool_results(calls: Sequence[ToolCall]) -> list[str]:
    """What the agent's tools returned, as evidence: without the arguments, which the agent may have made up."""
    return [
        to_text({"tool": call.name, **_outcome(call)})
        for call in calls
        if call.result is not None or call.error is not None
    ]


def _outcome(call: ToolCall) -> dict[str, Json]:
    """The error of a call that failed, which is evidence of the error only; otherwise its result.

    A result may repeat what the agent wrote (`{"sent": true, "body": "Your loan is approved."}`), and an error what it
    refuses (`amount 500 refused`). Neither makes it true, so sentences of the agent are left out of results, and all of
    its values out of errors. A shorter value in a result, such as the city of a rate, is the tool's answer.
    """
    texts = sorted(map(to_text, _scalars(to_json(call.arguments))), key=len, reverse=True)
    sentences = [text for text in texts if len(text.split()) >= MIN_SENTENCE_WORDS]
    if call.error is not None:
        return {"error": _without(call.error, texts)}
    result = to_json(call.result)
    if isinstance(result, dict) and "error" in result:
        return {"result": {**_without(result, sentences), "error": _without(result["error"], texts)}}
    return {"result": _without(result, sentences)}


MIN_SENTENCE_WORDS = 4
"""From this length on, a text that the agent passed to a tool is a statement, and not the name of a thing."""


def _scalars(value: Json) -> Iterator[Json]:
    """The texts and numbers in JSON, at any depth."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _scalars(item)
    elif isinstance(value, list):
        for item in value:
            yield from _scalars(item)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool) and to_text(value).strip():
        yield value


def _without(value: Any, texts: Sequence[str]) -> Any:
    """The value with an ellipsis for each of the texts that stands in it as whole words."""
    if not texts:
        return value
    if isinstance(value, dict):
        return {key: _without(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [_without(item, texts) for item in value]
    if isinstance(value, str):
        for text in texts:
            value = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", "…", value)
        return value
    return "…" if to_text(value) in texts and not isinstance(value, bool) and value is not None else value
