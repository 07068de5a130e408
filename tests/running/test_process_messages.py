"""The messages that the process of an agent sends: data, whatever the agent or the sender makes of them."""

from __future__ import annotations

import json
import pickle
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.agents.reply import HiddenCalls, Reply, ToolCall, Usage
from proctor.agents.turn_recorder import CallEvent, PartialEvent, UsageEvent
from proctor.base.diagnosis import Diagnosis, FailureKind
from proctor.base.errors import AgentFailed, UnreadableReply
from proctor.base.output_capture import CapturedOutput
from proctor.cases.suite import NamedData
from proctor.running.failures import ConversationInvalid
from proctor.running.messages import (
    HostStatus,
    InvalidMessage,
    LostTime,
    Printed,
    SessionOpened,
    TurnAnswered,
    TurnFailed,
    TurnProgress,
    decode_message,
    encode_message,
)
from proctor.tracing.spans import AssistantMessage, ImageContent, LLMSpan, ObserveSpan, ToolDefinition, UserMessage

LIMIT = 100_000
REPLY = Reply(
    "yes",
    (ToolCall("look", {"key": [1, None]}, result={"a": 1.5}, error="late", id="1", parent="0", handoff=True),),
    Usage(1, 2, 0.5, 1, "model", estimated=True),
    (NamedData("answer", ["x"]),),
    structured={"a": {"b": [1]}},
    state={"n": 1},
    retrieval_context=("passage",),
    duration_ms=5.0,
    thoughts="hm",
    hidden_calls=HiddenCalls("because", "do this", ("look",)),
    reports_calls=True,
)
SPANS = (
    LLMSpan(
        "1",
        "2",
        input_messages=(UserMessage.from_text("hi"),),
        output_messages=(AssistantMessage((ImageContent("http://x"),), (ToolCall("look"),), "stop"),),
        tool_definitions=(ToolDefinition("look", "looks", {"type": "object"}),),
        finish_reasons=("stop",),
    ),
    ObserveSpan("3", "2", "1", 1.0, 2.0, 1000.0, "step", {"x": 1}, [1], {"m": "n"}, kind="tool"),
)


def sent(message: Any, *kinds: type) -> Any:
    return decode_message(encode_message(message), *(kinds or (type(message),)), limit=LIMIT)


@pytest.mark.parametrize(
    "message",
    [
        TurnAnswered(REPLY, SPANS, CapturedOutput("out", "err", "log")),
        TurnProgress((CallEvent(1, ToolCall("look"), ended=True, marked=False), PartialEvent(REPLY), UsageEvent(None))),
        Printed(CapturedOutput("\x1b[1mbold \ud800")),
        HostStatus((LostTime(1, 0.5), LostTime(2, 1.0)), 0.0, None),
        CallEvent(1, ToolCall("look", result="there"), ended=True, marked=True),
        SessionOpened(None),
    ],
)
def test_a_message_arrives_as_it_was_sent(message: Any) -> None:
    assert sent(message) == message


def test_whether_an_agent_reports_its_calls_arrives_with_its_reply() -> None:
    assert sent(TurnAnswered(REPLY)).reply.reports_calls


def test_whose_failure_an_error_is_arrives_with_it() -> None:
    diagnosis = Diagnosis(FailureKind.TRANSIENT, "busy", retry_after=3.0, limited=True)
    failed = sent(TurnFailed(AgentFailed("it broke", places=("app.py:3",), diagnosis=diagnosis), Reply("half")))
    assert (str(failed.error), failed.error.places, failed.error.diagnosis) == ("it broke", ("app.py:3",), diagnosis)
    assert failed.partial.text == "half"

    refused = sent(SessionOpened(ConversationInvalid("no key", diagnosis))).error
    assert isinstance(refused, ConversationInvalid)
    assert refused.diagnosis == diagnosis
    assert isinstance(sent(TurnFailed(UnreadableReply("?"))).error, UnreadableReply)


def test_what_is_not_data_arrives_as_text() -> None:
    reply = sent(TurnAnswered(Reply("x", structured={"lock": threading.Lock(), "set": {1}}))).reply
    assert "lock" in reply.structured["lock"]
    assert reply.structured["set"] == [1]


def test_a_reply_with_a_field_of_the_wrong_type_is_not_accepted() -> None:
    with pytest.raises(InvalidMessage, match="int instead of text"):
        sent(TurnAnswered(Reply("x", (ToolCall(5),))))  # type: ignore[arg-type]


def test_a_message_that_is_too_large_is_a_failed_turn() -> None:
    data = encode_message(TurnAnswered(Reply("x" * LIMIT)), LIMIT)
    assert "the limit for a reply" in str(decode_message(data, TurnFailed, limit=LIMIT).error)
    assert decode_message(encode_message(Printed(CapturedOutput("x" * LIMIT)), LIMIT), object, limit=LIMIT)


class Hostile:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("it was unpickled",))


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Hostile()),
        Hostile(),
        None,
        b"",
        b"{}",
        b"[]",
        b"\xff\xfe",
        b"[" * 50_000,
        b'{"answers": 0, "message": {"type": "Popen", "args": ["sh"]}}',
        b'{"answers": 0, "message": {"type": ["SessionOpened"]}}',
        b'{"answers": 0, "message": {"type": "TurnAnswered", "reply": {"text": 5}}}',
        b'{"answers": 0, "message": {"type": "TurnAnswered", "reply": {"state": ' + b"[" * 500 + b"]" * 500 + b"}}}",
        b'{"answers": 0, "message": {"type": "TurnAnswered", "reply": {"duration_ms": NaN}}}',
        b'{"answers": 0, "message": {"type": "TurnAnswered", "reply": {"duration_ms": 1e999}}}',
        b'{"answers": 0, "message": {"type": "TurnFailed", "error": {"kind": "SystemExit", "message": "x"}}}',
        b'{"answers": 0, "message": {"type": "HostStatus", "lost": [], "blocked_seconds": "long", "blocked_by": null}}',
        b'{"answers": 0, "message": {"type": "HostStatus", "lost": [[1, 2]], "blocked_seconds": 0}}',
        b'{"answers": 1, "message": {"type": "SessionOpened", "error": null}}',
        encode_message(Printed(CapturedOutput("x" * LIMIT))),
    ],
    ids=range(19),
)
def test_anything_else_is_refused_without_running_it(data: Any) -> None:
    with pytest.raises(InvalidMessage):
        decode_message(data, TurnAnswered, TurnFailed, HostStatus, SessionOpened, limit=LIMIT)


def test_an_answer_to_another_call_is_refused() -> None:
    data = encode_message(SessionOpened(None), call=7)
    assert decode_message(data, SessionOpened, limit=LIMIT, call=7).error is None
    with pytest.raises(InvalidMessage, match="another call"):
        decode_message(data, SessionOpened, limit=LIMIT, call=8)
    with pytest.raises(InvalidMessage, match="SessionOpened instead of TurnAnswered"):
        decode_message(data, TurnAnswered, limit=LIMIT, call=7)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
VALID = [encode_message(message) for message in (TurnAnswered(REPLY, SPANS), SessionOpened(AgentFailed("x")))]


@given(st.sampled_from(VALID), st.data(), VALUES)
def test_a_message_with_any_value_replaced_is_read_or_refused(valid: bytes, data: st.DataObject, value: Any) -> None:
    written = json.loads(valid)
    place: Any = written
    while True:
        key = data.draw(st.sampled_from(sorted(place)) if isinstance(place, dict) else st.integers(0, len(place) - 1))
        if not (isinstance(place[key], (dict, list)) and place[key] and data.draw(st.booleans())):
            break
        place = place[key]
    place[key] = value
    try:
        decode_message(json.dumps(written).encode(), object, limit=LIMIT)
    except InvalidMessage:
        pass
