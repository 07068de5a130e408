"""Trials as JSON and back; what is at its default is left out, so that a stored trial is small.

Content addresses: what a case says, and what of it the agent is asked.
"""

from __future__ import annotations

import hashlib
import json

from proctor.agents.agent import Reply, ToolCall, Usage
from proctor.base.json_data import Json, fingerprint, plain
from proctor.cases.formats.native.parts import write_doubles, write_scenario
from proctor.cases.formats.native.writer import write_case
from proctor.cases.suite import NOTHING, Case, NamedData, Turn
from proctor.results.run import Outcome, Score, TrialResult

ESCAPED = "\x00json:"
"""Marks text in a column that stands there as JSON."""

dumps = json.JSONEncoder(separators=(",", ":"), default=plain).encode
"""Compact JSON in ASCII: every text survives it, lone surrogates included."""


def trial_content(trial: TrialResult) -> dict[str, Json]:
    """Everything of a trial but its case, its scores and what the store keeps in columns."""
    data: dict[str, Json] = {"replies": [reply_to_json(reply) for reply in trial.replies]}
    if trial.reason:
        data["reason"] = trial.reason
    if trial.attempts != 1:
        data["attempts"] = trial.attempts
    if trial.warnings:
        data["warnings"] = list(trial.warnings)
    if trial.reused:
        data["reused"] = True
    return data


def reply_to_json(reply: Reply) -> dict[str, Json]:
    data: dict[str, Json] = {"text": reply.text}
    if reply.tool_calls:
        data["tool_calls"] = [call_to_json(call) for call in reply.tool_calls]
    if reply.usage is not None:
        data["usage"] = _given(reply.usage, ("input_tokens", "output_tokens", "cost_usd", "model_calls"))
    if reply.outputs:
        data["outputs"] = [[item.name, plain(item.value)] for item in reply.outputs]
    if reply.structured is not None:
        data["structured"] = plain(reply.structured)
    if reply.state is not None:
        data["state"] = plain(reply.state)
    if reply.retrieval_context is not None:
        data["retrieval_context"] = list(reply.retrieval_context)
    if reply.duration_ms is not None:
        data["duration_ms"] = reply.duration_ms
    return data


def reply_from_json(data: Json) -> Reply:
    usage, context = data.get("usage"), data.get("retrieval_context")
    return Reply(
        text=data["text"],
        tool_calls=tuple(ToolCall(**call) for call in data.get("tool_calls", ())),
        usage=None if usage is None else Usage(**usage),
        outputs=tuple(NamedData(name, value) for name, value in data.get("outputs", ())),
        structured=data.get("structured"),
        state=data.get("state"),
        retrieval_context=None if context is None else tuple(context),
        duration_ms=data.get("duration_ms"),
    )


def call_to_json(call: ToolCall) -> dict[str, Json]:
    data: dict[str, Json] = {"name": call.name, "arguments": plain(call.arguments)}
    if call.result is not None:
        data["result"] = plain(call.result)
    return data | _given(call, ("error", "id", "started_at", "duration_ms", "raw_arguments", "parent"))


def score_to_json(score: Score) -> list[Json]:
    """A score as a list, short and in a fixed order: the store's view `scores` names its places."""
    return [
        score.evaluator,
        score.outcome.value,
        score.value,
        score.threshold,
        score.gates,
        score.turn,
        score.fingerprint,
        score.reasoning,
        plain(score.details) if score.details else None,
        round(score.duration_ms, 3),
    ]


def score_from_json(row: list[Json]) -> Score:
    evaluator, outcome, value, threshold, gates, turn, fingerprint, reasoning, details, duration_ms = row
    return Score(
        evaluator=evaluator,
        outcome=Outcome(outcome),
        value=value,
        threshold=threshold,
        reasoning=reasoning,
        turn=turn,
        gates=gates,
        details=details or NOTHING,
        fingerprint=fingerprint,
        duration_ms=duration_ms,
    )


def kept_text(text: str) -> str:
    """Text as SQLite takes it: it refuses lone surrogates, which then stand there as JSON."""
    if text.isascii() and not text.startswith(ESCAPED):
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return ESCAPED + dumps(text)
    return ESCAPED + dumps(text) if text.startswith(ESCAPED) else text


def text_kept(text: str) -> str:
    """The text that `kept_text` was given."""
    return json.loads(text[len(ESCAPED) :]) if text.startswith(ESCAPED) else text


def _given(value: object, names: tuple[str, ...]) -> dict[str, Json]:
    pairs = ((name, getattr(value, name)) for name in names)
    return {name: item for name, item in pairs if item is not None}


def case_content(case: Case) -> str:
    """The whole case as text, in the order its author gave it."""
    return dumps(write_case(case))


def case_key(content: str) -> str:
    """The address of a case's content: changes whenever anything in the case changes."""
    return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


def question_key(case: Case) -> str:
    """Changes only when the agent would be asked something else: expectations and evaluators do not count."""
    planned = case.as_planned
    turns = [[turn.input, _files(turn)] for turn in planned.turns]
    asked: list[Json] = [turns, [[item.name, item.value] for item in case.inputs], dict(case.state)]
    if case.doubles:
        asked.append(write_doubles(case))
    if case.scenario is not None:
        asked.append(write_scenario(case.scenario))
    return fingerprint(*asked)


def _files(turn: Turn) -> list[Json]:
    """What is told of the files: what they say, not where they are; where that is not known, their address."""
    if not turn.attachments:
        return []
    from proctor.cases.files.attachments import contents_of
    from proctor.cases.files.file_kinds import kind_said

    return [
        [
            item.path if content is None else f"content:{content}",
            item.url,
            kind_said(item),
            item.description,
            plain(item.options),
        ]
        for item, content in zip(turn.attachments, contents_of(turn), strict=True)
    ]
