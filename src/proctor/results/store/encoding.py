"""A trial as it is kept: secrets masked, as JSON and back; what is at its default is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.json_data import Json, plain
from proctor.cases.encoding import dumps
from proctor.cases.suite import Case, NamedData
from proctor.results.run import Outcome, Score, ScoreRow, TrialResult
from proctor.results.store.database import Database
from proctor.results.store.traces import StoredSpans

ESCAPED = "\x00json:"
"""Marks text in a column that is kept as JSON."""

_USAGE = ("input_tokens", "output_tokens", "cost_usd", "model_calls", "model")
_CALL = frozenset(field.name for field in fields(ToolCall))


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
    if trial.ended_early or trial.reason:
        data["ended_early"] = trial.ended_early
    if any(reply.usage is not None and reply.usage.estimated for reply in trial.replies):
        data["estimated"] = True
    return data


def ended_early(content: Mapping[str, Json], *, has_scores: bool) -> bool:
    """Whether a stored trial ended before it was scored.

    Stores of older versions do not say so; there, a reason without scores meant that, except for one sentence.
    """
    known = content.get("ended_early")
    if isinstance(known, bool):
        return known
    return bool(content.get("reason")) and not has_scores and content["reason"] != "nothing scores this case"


def reply_to_json(reply: Reply) -> dict[str, Json]:
    data: dict[str, Json] = {"text": reply.text}
    if reply.tool_calls:
        data["tool_calls"] = [call_to_json(call) for call in reply.tool_calls]
    if reply.usage is not None:
        data["usage"] = _given(reply.usage, _USAGE) | ({"estimated": True} if reply.usage.estimated else {})
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
    if reply.error is not None:
        data["error"] = reply.error
    return data


def reply_from_json(data: Json) -> Reply:
    usage, context = data.get("usage"), data.get("retrieval_context")
    return Reply(
        text=data["text"],
        tool_calls=tuple([_call_from_json(call) for call in data.get("tool_calls", ())]),
        usage=None if usage is None else _usage_from_json(usage),
        outputs=tuple(NamedData(name, value) for name, value in data.get("outputs", ())),
        structured=data.get("structured"),
        state=data.get("state"),
        retrieval_context=None if context is None else tuple(context),
        duration_ms=data.get("duration_ms"),
        error=data.get("error"),
    )


def _usage_from_json(data: Mapping[str, Any]) -> Usage:
    return Usage(**{name: data.get(name) for name in _USAGE}, estimated=bool(data.get("estimated")))


def call_to_json(call: ToolCall) -> dict[str, Json]:
    data: dict[str, Json] = {"name": call.name, "arguments": plain(call.arguments)}
    if call.result is not None:
        data["result"] = plain(call.result)
    return data | _given(call, ("error", "id", "started_at", "duration_ms", "raw_arguments", "parent"))


def _call_from_json(data: Mapping[str, Any]) -> ToolCall:
    return ToolCall(**{name: value for name, value in data.items() if name in _CALL})


def score_to_json(score: Score) -> list[Json]:
    """A score as a list, short and in a fixed order: the store's view `scores` names its places.

    A new place goes to the end, where programs that do not know it leave it alone.
    """
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
    evaluator, outcome, value, threshold, gates, turn, fingerprint, reasoning, details, duration_ms = row[:10]
    return Score(
        evaluator=evaluator,
        outcome=Outcome(outcome),
        value=value,
        threshold=threshold,
        reasoning=reasoning,
        turn=turn,
        gates=gates,
        details=details or {},
        fingerprint=fingerprint,
        duration_ms=duration_ms,
    )


def score_rows_from_json(rows: list[list[Json]]) -> tuple[ScoreRow, ...]:
    """The part of kept scores that verdicts need."""
    return tuple([ScoreRow(name, Outcome(outcome), *more) for name, outcome, *more in (row[:5] for row in rows)])


def encode_text(text: str) -> str:
    """Text for a column: SQLite refuses lone surrogates, so such text is kept as JSON."""
    if text.isascii() and not text.startswith(ESCAPED):
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return ESCAPED + dumps(text)
    return ESCAPED + dumps(text) if text.startswith(ESCAPED) else text


def decode_text(text: str) -> str:
    """The text that `encode_text` was given."""
    return json.loads(text[len(ESCAPED) :]) if text.startswith(ESCAPED) else text


def _given(value: object, names: tuple[str, ...]) -> dict[str, Json]:
    pairs = ((name, getattr(value, name)) for name in names)
    return {name: item for name, item in pairs if item is not None}


SELECT_TRIAL = (
    "SELECT t.suite, c.content, t.number, t.position, t.outcome, t.started_at, t.duration_ms, t.agent, t.content,"
    " t.scores FROM trials t JOIN cases c ON c.no = t.case_no"
)


class TrialColumns(NamedTuple):
    """What `SELECT_TRIAL` gives, in its order."""

    suite: str
    case: str
    number: int
    position: int
    outcome: str
    started_at: float
    duration_ms: float
    agent: str
    content: str
    scores: str


def trial_of_columns(columns: TrialColumns, case: Case, database: Database) -> TrialResult:
    content = json.loads(columns.content)
    return TrialResult(
        suite=decode_text(columns.suite),
        case=case,
        number=columns.number,
        position=columns.position,
        outcome=Outcome(columns.outcome),
        reason=content.get("reason", ""),
        replies=tuple([reply_from_json(reply) for reply in content["replies"]]),
        scores=tuple([score_from_json(score) for score in json.loads(columns.scores)]),
        started_at=columns.started_at,
        duration_ms=columns.duration_ms,
        attempts=content.get("attempts", 1),
        agent=decode_text(columns.agent),
        warnings=tuple(content.get("warnings", ())),
        reused=content.get("reused", False),
        ended_early=ended_early(content, has_scores=columns.scores != "[]"),
        spans=_spans(database, content["trace"]) if "trace" in content else (),
    )


def _spans(database: Database, trace: Any) -> StoredSpans:
    return StoredSpans(database, trace)
