"""Cases and dataset entries made from traces.

The input of a trace becomes the input of a case, and what the application answered and called becomes what the case
expects. That is a proposal: a trace shows what happened, not what should have happened, so a person has to check it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET, Json, parse_json_or_keep, to_json
from proctor.cases.ids import UniqueIds
from proctor.cases.matchers import Equals
from proctor.cases.suite import Case, Expected, ExpectedCall, NamedData, Suite, Turn, with_implied
from proctor.evaluators.evaluation import Evaluable
from proctor.evaluators.from_trace import as_evaluable
from proctor.results.trial import Trial
from proctor.tracing.otlp import FileTrace
from proctor.tracing.spans import (
    AssistantMessage,
    LLMSpan,
    Message,
    ObserveSpan,
    Span,
    SystemMessage,
    UserMessage,
    build_tree,
    tool_calls_of,
)

ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant", "model": "assistant"}
"""The roles of messages, by the names that libraries give them."""


@dataclass(frozen=True, slots=True)
class TracedSuite:
    """The cases made from traces, and notes on what could not be used."""

    suite: Suite
    notes: tuple[str, ...] = ()


def suite_from_traces(traces: Sequence[FileTrace], path: Path, agent: str | None = None) -> TracedSuite:
    """One case per trace that has an input and an answer or tool calls; raises `UsageError` if no trace has."""
    ids, cases, notes = UniqueIds(), [], []
    for trace in traces:
        name, turns, trace_notes = _turns_of(trace)
        notes += [f"trace {name}: {note}" for note in trace_notes]
        checks = with_implied((), turns)
        if not checks:
            notes.append(f"trace {name}: has neither an answer nor a tool call, so there is nothing to expect")
            continue
        case_id = str(trace.trial.get("case") or f"trace-{name}")
        origin: dict[str, Json] = {"trace": trace.spans[0].trace_id}
        cases.append(Case(id=ids.claim(case_id), turns=turns, evaluators=checks, metadata=origin))
    if not cases:
        raise UsageError("\n".join([f"no case can be made from {path}", *notes]))
    return TracedSuite(Suite(path.name.partition(".")[0], tuple(cases), agent=agent), tuple(notes))


def _turns_of(trace: FileTrace) -> tuple[str, tuple[Turn, ...], list[str]]:
    """The name of a trace, its turns and notes: the application's input and output, or else the last model call's."""
    steps = [span for span in trace.spans if not (isinstance(span, ObserveSpan) and span.kind == "wrap")]
    if not steps:
        return "without steps", (), []
    tree = build_tree(steps)
    root = tree[0].span
    name = root.trace_id[:8] or "without an id"
    conversation = _conversation(steps)
    if not isinstance(root, ObserveSpan) or root.input is None:
        if conversation:
            return name, conversation, []
        return name, (), ["has no input"]
    calls, notes = _expected_calls(tool_calls_of(steps))
    output = last_text(root.output, "assistant")
    if root.output is None and conversation:
        output = conversation[-1].expected.output
    failed = root.error is not None or output is None
    return name, (Turn(user_text(root.input), Expected(UNSET if failed else output, tools=calls)),), notes


def user_text(value: Json) -> Json:
    """What the user said, from the input of an application; data that is more than one text is returned unchanged."""
    text = last_text(value, "user")
    if isinstance(text, Mapping) and len(text) == 1:
        [only] = text.values()
        return last_text(only, "user") if isinstance(only, (str, list, Mapping)) else to_json(text)
    return to_json(text)


def last_text(value: Json, role: str) -> Json:
    """The last text of a role in messages, a request or a reply of a model client; otherwise the value itself."""
    data = parse_json_or_keep(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") else value
    text = _text_in(data, role)
    return to_json(value) if text is None else text


def _text_in(data: Any, role: str) -> str | None:
    if isinstance(data, Mapping):
        for key in ("messages", "choices", "candidates", "generations", "message", "kwargs"):
            if key in data and (inner := _text_in(data[key], role)) is not None:
                return inner
        return _content(data, role)
    if isinstance(data, list):
        found_texts = (_text_in(item, role) for item in reversed(data) if isinstance(item, (Mapping, list)))
        if len(data) == 2 and isinstance(data[1], str) and ROLES.get(str(data[0])) == role:
            return data[1]
        return next((text for text in found_texts if text is not None), None)
    return None


def _content(message: Mapping[str, Any], role: str) -> str | None:
    """The text of a message, if it has this role."""
    if ROLES.get(str(message.get("role", message.get("type")))) != role:
        return None
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        return content or None
    parts = content if isinstance(content, list) else []
    texts = [part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, (str, Mapping))]
    return "".join(text for text in texts if isinstance(text, str)) or None


def _conversation(spans: Iterable[Span]) -> tuple[Turn, ...]:
    """The messages of the last model call, one turn per user message."""
    calls = [span for span in spans if isinstance(span, LLMSpan) and span.operation == "chat"]
    if not calls:
        return ()
    last = max(calls, key=lambda span: span.ended_at)
    turns: list[list[Message]] = []
    for message in (*last.input_messages, *last.output_messages):
        if isinstance(message, UserMessage):
            turns.append([message])
        elif turns and not isinstance(message, SystemMessage):
            turns[-1].append(message)
    return tuple(_turn(messages) for messages in turns)


def _turn(messages: Sequence[Message]) -> Turn:
    answers = [message for message in messages[1:] if isinstance(message, AssistantMessage)]
    text = next((answer.text for answer in reversed(answers) if answer.text), None)
    calls, _ = _expected_calls([call for answer in answers for call in answer.tool_calls])
    return Turn(messages[0].text, Expected(UNSET if text is None else text, tools=calls))


def _expected_calls(calls: Iterable[ToolCall]) -> tuple[tuple[ExpectedCall, ...] | None, list[str]]:
    """The tool calls with their exact arguments; a call that ended in an error is not expected."""
    expected, notes = [], []
    for call in calls:
        if call.error is not None:
            notes.append(f"the call of {call.name} ended in an error and is not expected")
            continue
        is_parsed = call.raw_arguments is None
        arguments = {name: Equals(to_json(value)) for name, value in call.arguments.items()} if is_parsed else None
        expected.append(ExpectedCall(call.name, arguments))
    return (tuple(expected) or None), notes


MAX_DESCRIPTION = 80


@dataclass(frozen=True, slots=True)
class EntryProposal:
    """A proposed entry of a dataset: what evaluators see, the arguments of the application, and notes."""

    evaluable: Evaluable
    entry_kwargs: Mapping[str, Json]
    notes: tuple[str, ...] = ()


def proposal_from_spans(spans: Sequence[Span]) -> EntryProposal:
    """An entry from the outermost step of a trace, and from the values that the application wrapped, if any."""
    wraps = [span for span in spans if isinstance(span, ObserveSpan) and span.kind == "wrap"]
    steps = [span for span in spans if span not in wraps]
    if not spans:
        raise UsageError("the trace has no spans")
    root = build_tree(steps or spans)[0].span
    evaluable = as_evaluable(root)
    value = evaluable.eval_input[0].value if steps else {}
    if isinstance(root, LLMSpan):
        value = last_text(value, "user")
    kwargs = value if isinstance(value, Mapping) else {"input": value}
    inputs, notes = _first_values([span for span in wraps if _purpose(span) == "input"])
    outputs = [NamedData(span.name, span.output) for span in wraps if _purpose(span) != "input"]
    evaluable = replace(
        evaluable,
        eval_input=tuple(inputs) or (NamedData("input", dict(kwargs)),),
        eval_output=tuple(outputs) or _answer(evaluable),
        eval_metadata=None,
        description=_description(kwargs),
    )
    return EntryProposal(evaluable, dict(kwargs), tuple(notes))


def proposal_from_trial(trial: Trial) -> EntryProposal:
    """An entry from the input and answer of a trial, with what its case expects."""
    if len(trial.case.turns) != 1:
        raise UsageError(f"case {trial.case.id!r} has {len(trial.case.turns)} turns; an entry can have only one")
    [turn] = trial.case.turns
    notes = []
    kwargs = turn.input
    if not isinstance(kwargs, Mapping):
        notes.append("the input is not an object; it becomes the argument 'input'")
        kwargs = {"input": kwargs}
    outputs: tuple[NamedData, ...] = ()
    for reply in trial.replies[:1] if trial.is_answered else ():
        answer = reply.text if reply.structured is None else reply.structured
        outputs = reply.outputs or (NamedData("output", answer),)
    evaluable = Evaluable(
        eval_input=trial.case.inputs or (NamedData("input", turn.input),),
        eval_output=outputs,
        expectation=turn.expected.output,
        eval_metadata=trial.case.metadata_for_evaluators or None,
        description=trial.case.description or _description(kwargs),
    )
    return EntryProposal(evaluable, dict(kwargs), tuple(notes))


def _answer(evaluable: Evaluable) -> tuple[NamedData, ...]:
    """The answer as text, even if the step returned the whole reply of a model client."""
    return () if evaluable.output is None else (NamedData("output", last_text(evaluable.output, "assistant")),)


def _purpose(span: ObserveSpan) -> Json:
    return span.metadata.get("purpose")


def _first_values(wraps: Sequence[ObserveSpan]) -> tuple[list[NamedData], list[str]]:
    """The first value of each name, because a case has one value per name; and notes on further values."""
    first: dict[str, Json] = {}
    notes = []
    for span in wraps:
        if span.name in first and first[span.name] != span.input:
            notes.append(f"the input {span.name!r} had several values; only the first one is used")
        first.setdefault(span.name, span.input)
    return [NamedData(name, value) for name, value in first.items()], list(dict.fromkeys(notes))


def _description(kwargs: Mapping[str, Json]) -> str | None:
    """The only text among the arguments, as a description of the entry; `None` if there are several or none."""
    texts = [text for value in kwargs.values() if isinstance(value, str) and (text := " ".join(value.split()))]
    if len(texts) != 1:
        return None
    return texts[0] if len(texts[0]) <= MAX_DESCRIPTION else f"{texts[0][: MAX_DESCRIPTION - 1]}…"
