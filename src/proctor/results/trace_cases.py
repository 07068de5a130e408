"""Cases made of traces, and proposed entries of datasets; what should have come out, a person adds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET, Json, parse_json_or_keep, to_json
from proctor.cases.evaluator_specs import with_implied
from proctor.cases.ids import UniqueIds
from proctor.cases.matchers import Equals
from proctor.cases.suite import Case, Expected, ExpectedCall, NamedData, Suite, Turn
from proctor.evaluators.evaluation import Evaluable
from proctor.evaluators.from_trace import as_evaluable
from proctor.results.run import TrialResult
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
"""What libraries call the two who speak."""


@dataclass(frozen=True, slots=True)
class TracedSuite:
    """The cases that traces came to, and what could not be made one."""

    suite: Suite
    notes: tuple[str, ...] = ()


def suite_from_traces(traces: Sequence[FileTrace], path: Path, agent: str | None = None) -> TracedSuite:
    """A case for each trace that shows what was asked and what came of it; raises `UsageError` where none does."""
    ids, cases, notes = UniqueIds(), [], []
    for trace in traces:
        name, turns, said = _turns_of(trace)
        notes += [f"trace {name}: {note}" for note in said]
        checks = with_implied((), turns)
        if not checks:
            notes.append(f"trace {name}: shows neither an answer nor a tool call, so that nothing could be expected")
            continue
        wanted = str(trace.trial.get("case") or f"trace-{name}")
        origin: dict[str, Json] = {"trace": trace.spans[0].trace_id}
        cases.append(Case(ids.claim(wanted), turns, evaluators=checks, metadata=origin))
    if not cases:
        raise UsageError("\n".join([f"no case can be made of {path}", *notes]))
    return TracedSuite(Suite(path.name.partition(".")[0], tuple(cases), agent=agent), tuple(notes))


def _turns_of(trace: FileTrace) -> tuple[str, tuple[Turn, ...], list[str]]:
    """What the application was given and gave back; where no step of it was seen, what the model was told and said."""
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
        return name, (), ["shows nothing that was asked"]
    calls, notes = _expected_calls(tool_calls_of(steps))
    output = last_text(root.output, "assistant")
    if root.output is None and conversation:
        output = conversation[-1].expected.output
    failed = root.error is not None or output is None
    return name, (Turn(user_text(root.input), Expected(UNSET if failed else output, tools=calls)),), notes


def user_text(value: Json) -> Json:
    """What a user said, of whatever an application was given; data that is more than one text stays what it is."""
    found = last_text(value, "user")
    if isinstance(found, Mapping) and len(found) == 1:
        [only] = found.values()
        return last_text(only, "user") if isinstance(only, (str, list, Mapping)) else to_json(found)
    return to_json(found)


def last_text(value: Json, role: str) -> Json:
    """The last text of a role in messages, a request or a reply as model clients write them; else the value itself."""
    data = parse_json_or_keep(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") else value
    found = _text_in(data, role)
    return to_json(value) if found is None else found


def _text_in(data: Any, role: str) -> str | None:
    if isinstance(data, Mapping):
        for key in ("messages", "choices", "candidates", "generations", "message", "kwargs"):
            if key in data and (found := _text_in(data[key], role)) is not None:
                return found
        return _content(data, role)
    if isinstance(data, list):
        found_texts = (_text_in(item, role) for item in reversed(data) if isinstance(item, (Mapping, list)))
        if len(data) == 2 and isinstance(data[1], str) and ROLES.get(str(data[0])) == role:
            return data[1]
        return next((text for text in found_texts if text is not None), None)
    return None


def _content(message: Mapping[str, Any], role: str) -> str | None:
    """The text of a message, if it is one of that role."""
    if ROLES.get(str(message.get("role", message.get("type")))) != role:
        return None
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        return content or None
    parts = content if isinstance(content, list) else []
    texts = [part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, (str, Mapping))]
    return "".join(text for text in texts if isinstance(text, str)) or None


def _conversation(spans: Iterable[Span]) -> tuple[Turn, ...]:
    """What the last model call was told and said, a turn for each time that the user spoke."""
    calls = [span for span in spans if isinstance(span, LLMSpan) and span.operation == "chat"]
    if not calls:
        return ()
    last = max(calls, key=lambda span: span.ended_at)
    spoken: list[list[Message]] = []
    for message in (*last.input_messages, *last.output_messages):
        if isinstance(message, UserMessage):
            spoken.append([message])
        elif spoken and not isinstance(message, SystemMessage):
            spoken[-1].append(message)
    return tuple(_turn(messages) for messages in spoken)


def _turn(messages: Sequence[Message]) -> Turn:
    answers = [message for message in messages[1:] if isinstance(message, AssistantMessage)]
    text = next((answer.text for answer in reversed(answers) if answer.text), None)
    calls, _ = _expected_calls([call for answer in answers for call in answer.tool_calls])
    return Turn(messages[0].text, Expected(UNSET if text is None else text, tools=calls))


def _expected_calls(calls: Iterable[ToolCall]) -> tuple[tuple[ExpectedCall, ...] | None, list[str]]:
    """Calls with their arguments as they stand; one that ended in an error is no example to follow."""
    expected, notes = [], []
    for call in calls:
        if call.error is not None:
            notes.append(f"the call of {call.name} ended in an error and is not expected")
            continue
        known = call.raw_arguments is None
        arguments = {name: Equals(to_json(value)) for name, value in call.arguments.items()} if known else None
        expected.append(ExpectedCall(call.name, arguments))
    return (tuple(expected) or None), notes


MAX_DESCRIPTION = 80


@dataclass(frozen=True, slots=True)
class EntryProposal:
    """A proposed entry: what evaluators would see, what the application is given, and notes on what was left out."""

    evaluable: Evaluable
    entry_kwargs: Mapping[str, Json]
    notes: tuple[str, ...] = ()


def proposal_from_spans(spans: Sequence[Span]) -> EntryProposal:
    """From the outermost step, and from what the application wrapped, where it wrapped anything."""
    wraps = [span for span in spans if isinstance(span, ObserveSpan) and span.kind == "wrap"]
    steps = [span for span in spans if span not in wraps]
    if not spans:
        raise UsageError("the trace has no spans, so that nothing can be made of it")
    root = build_tree(steps or spans)[0].span
    seen = as_evaluable(root)
    given = seen.eval_input[0].value if steps else {}
    if isinstance(root, LLMSpan):
        given = last_text(given, "user")
    kwargs = given if isinstance(given, Mapping) else {"input": given}
    inputs, notes = _once_each([span for span in wraps if _purpose(span) == "input"])
    outputs = [NamedData(span.name, span.output) for span in wraps if _purpose(span) != "input"]
    evaluable = replace(
        seen,
        eval_input=tuple(inputs) or (NamedData("input", dict(kwargs)),),
        eval_output=tuple(outputs) or _answered(seen),
        eval_metadata=None,
        description=_described(kwargs),
    )
    return EntryProposal(evaluable, dict(kwargs), tuple(notes))


def proposal_from_trial(trial: TrialResult) -> EntryProposal:
    """From what the trial asked and was answered, with what its case already expects."""
    if len(trial.case.turns) != 1:
        raise UsageError(f"case {trial.case.id!r} is a conversation of {len(trial.case.turns)} turns; an entry has one")
    [turn] = trial.case.turns
    notes = []
    kwargs = turn.input
    if not isinstance(kwargs, Mapping):
        notes.append("the input is not an object; it is written as the argument 'input'")
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
        description=trial.case.description or _described(kwargs),
    )
    return EntryProposal(evaluable, dict(kwargs), tuple(notes))


def _answered(seen: Evaluable) -> tuple[NamedData, ...]:
    """The answer as text, also where the step kept the whole reply of a model client."""
    return () if seen.output is None else (NamedData("output", last_text(seen.output, "assistant")),)


def _purpose(span: ObserveSpan) -> Json:
    return span.metadata.get("purpose")


def _once_each(wraps: Sequence[ObserveSpan]) -> tuple[list[NamedData], list[str]]:
    """A case has one value for each name: the first that the application saw is taken."""
    first: dict[str, Json] = {}
    notes = []
    for span in wraps:
        if span.name in first and first[span.name] != span.input:
            notes.append(f"the input {span.name!r} had several values; only the first is kept")
        first.setdefault(span.name, span.input)
    return [NamedData(name, value) for name, value in first.items()], list(dict.fromkeys(notes))


def _described(kwargs: Mapping[str, Json]) -> str | None:
    """The only text among the arguments, which best describes the entry; `None` if there are several or none."""
    texts = [text for value in kwargs.values() if isinstance(value, str) and (text := " ".join(value.split()))]
    if len(texts) != 1:
        return None
    return texts[0] if len(texts[0]) <= MAX_DESCRIPTION else f"{texts[0][: MAX_DESCRIPTION - 1]}…"
