from __future__ import annotations

import dataclasses
import datetime
import json
import math
from collections import namedtuple
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from proctor.agents.messages import to_tool_calls, to_usage
from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.agents.reply_reader import to_reply
from proctor.base.errors import UnreadableReply
from proctor.cases.suite import NamedData

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 3}'}}


@given(st.text(st.characters()))
def test_text_is_the_answer_as_it_is_even_with_lone_surrogates(text: str) -> None:
    assert to_reply(text) == Reply(text)


def test_a_ten_megabyte_answer_with_a_lone_surrogate_passes_unharmed() -> None:
    text = "x" * 10_000_000 + "\ud800"
    assert to_reply(text).text == text
    assert to_reply({"answer": text}).text == text


def test_nothing_is_an_empty_answer() -> None:
    assert to_reply(None) == Reply(text="", returned_none=True)


def test_a_reply_is_left_alone() -> None:
    reply = Reply("hi", state={"a": 1})
    assert to_reply(reply) is reply


@pytest.mark.parametrize("key", ["text", "output", "response", "answer", "content", "message"])
def test_words_are_found_under_the_names_people_use(key: str) -> None:
    reply = to_reply({key: "Paris", "tool_calls": [OPENAI_CALL]})
    assert (reply.text, reply.structured) == ("Paris", None)
    assert reply.tool_calls == (ToolCall("pay", {"amount": 3}, id="c1"),)


def test_every_known_part_of_a_mapping_is_read() -> None:
    reply = to_reply(
        {
            "answer": "done",
            "usage": {"prompt_tokens": 7, "completion_tokens": 2, "cost": 0.5},
            "outputs": {"price": Decimal("1.5")},
            "state": {"day": datetime.date(2024, 1, 2)},
            "retrieval_context": ["a", {"b": 1}],
        }
    )
    assert reply.usage == Usage(7, 2, 0.5)
    assert reply.outputs == (NamedData("price", 1.5),)
    assert reply.state == {"day": "2024-01-02"}
    assert reply.retrieval_context == ("a", '{"b": 1}')


def test_an_answer_of_data_is_kept_as_data_with_its_text() -> None:
    class Quote(BaseModel):
        price: float
        currency: str

    @dataclasses.dataclass
    class Point:
        x: int

    Pair = namedtuple("Pair", "left right")
    assert to_reply(Quote(price=2, currency="EUR")).structured == {"price": 2.0, "currency": "EUR"}
    assert to_reply(Point(3)).structured == {"x": 3}
    assert to_reply(Pair(1, 2)).structured == {"left": 1, "right": 2}
    assert to_reply([1, "é"]) == Reply('[1, "é"]', structured=[1, "é"], raw=[1, "é"])
    assert to_reply(True).text == "true"
    assert to_reply(math.nan).structured == "nan"
    assert to_reply({}).structured == {}


def test_data_that_only_shares_a_key_with_a_reply_stays_data() -> None:
    for data in ({"state": "Ohio"}, {"outputs": 3, "x": 1}, {"usage": "high"}, {"choices": ["a", "b"]}):
        assert to_reply(data).structured == data


def test_an_answer_under_output_that_is_data_is_structured() -> None:
    for value in ([{"type": "apple"}], {"type": "invoice", "content": "x"}, ["a", "b"], [], 0):
        assert to_reply({"output": value}).structured == value


def test_words_that_are_absent_while_tools_are_called_are_an_empty_text() -> None:
    reply = to_reply({"content": None, "tool_calls": [{"name": "search", "args": {"q": "x"}}]})
    assert (reply.text, reply.tool_calls) == ("", (ToolCall("search", {"q": "x"}),))


def test_a_chat_completion_is_read() -> None:
    message = {"role": "assistant", "content": "Hello", "tool_calls": [OPENAI_CALL]}
    completion = {"choices": [{"message": message}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    for value in (completion, _as_object(completion)):
        reply = to_reply(value)
        assert (reply.text, reply.usage) == ("Hello", Usage(1, 2))
        assert [call.name for call in reply.tool_calls] == ["pay"]


def test_content_in_parts_is_joined_and_its_calls_are_found() -> None:
    content = [
        {"type": "text", "text": "Let me "},
        {"type": "tool_use", "id": "t", "name": "search", "input": {"q": "x"}},
        {"type": "text", "text": "see"},
    ]
    for value in ({"content": content}, SimpleNamespace(content=[SimpleNamespace(**part) for part in content])):
        reply = to_reply(value)
        assert reply.text == "Let me see"
        assert reply.tool_calls == (ToolCall("search", {"q": "x"}, id="t"),)


def test_a_conversation_gives_its_last_words_and_the_calls_since_the_person_spoke() -> None:
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "old", "name": "old", "args": {}}]},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "paid"},
        {"role": "assistant", "content": "Paid."},
    ]
    for value in (SimpleNamespace(messages=messages), {"messages": messages}):
        reply = to_reply(value)
        assert reply.text == "Paid."
        assert reply.tool_calls == (ToolCall("pay", {"amount": 3}, result="paid", id="c1"),)


def test_objects_with_words_are_read_by_their_attributes() -> None:
    assert to_reply(SimpleNamespace(final_output={"a": 1})).structured == {"a": 1}
    result = SimpleNamespace(output="hi", tool_calls=[SimpleNamespace(tool_name="t", tool_input={"a": 1})], usage=None)
    assert to_reply(result).tool_calls == (ToolCall("t", {"a": 1}),)


def test_a_property_that_raises_is_as_good_as_absent() -> None:
    class Awkward:
        content = "fine"

        @property
        def text(self) -> str:
            raise RuntimeError("not yet")

        def usage(self) -> str:
            return "a method"

    assert to_reply(Awkward()).text == "fine"


@pytest.mark.parametrize("value", [object(), int, len, json, SimpleNamespace, lambda: 1, ValueError("x")])
def test_what_holds_no_answer_is_named_and_refused(value: Any) -> None:
    with pytest.raises(UnreadableReply) as caught:
        to_reply(value)
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    assert name in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("t", {"a": 1}),
        {"name": "t", "arguments": {"a": 1}},
        {"name": "t", "arguments": '{"a": 1}'},
        {"name": "t", "args": {"a": 1}},
        {"name": "t", "input": {"a": 1}},
        {"name": "t", "parameters": {"a": 1}},
        {"tool_name": "t", "tool_input": {"a": 1}},
        {"type": "function", "function": {"name": "t", "arguments": '{"a": 1}'}},
        SimpleNamespace(name="t", args=SimpleNamespace(model_dump=lambda: {"a": 1})),
        SimpleNamespace(function=SimpleNamespace(name="t", arguments='{"a": 1}')),
    ],
)
def test_tool_calls_are_read_in_every_shape(call: Any) -> None:
    assert to_tool_calls([call]) == (ToolCall("t", {"a": 1}),)


def test_arguments_that_are_not_json_are_kept_as_they_were_written() -> None:
    (broken,) = to_tool_calls([{"name": "t", "arguments": '{"a": '}])
    assert (broken.arguments, broken.raw_arguments) == ({}, '{"a": ')
    (listed,) = to_tool_calls([{"name": "t", "arguments": [1]}])
    assert listed.raw_arguments == "[1]"
    (deep,) = to_tool_calls([{"name": "t", "arguments": "[" * 200_000}])
    assert deep.raw_arguments == "[" * 200_000
    (nan,) = to_tool_calls([{"name": "t", "arguments": '{"a": NaN}'}])
    assert nan.arguments == {"a": "nan"}


def test_result_error_and_id_of_a_call_are_kept() -> None:
    (call,) = to_tool_calls([{"name": "t", "result": {1, 2}, "error": ValueError("no"), "id": 7}])
    assert (call.result, call.error, call.id) == ([1, 2], "ValueError: no", "7")


def test_no_calls_are_an_empty_list_not_an_error() -> None:
    assert to_reply({"text": "x", "tool_calls": None}).tool_calls == ()
    assert to_reply({"text": "x", "tool_calls": []}).tool_calls == ()


@pytest.mark.parametrize("calls", [{"name": "t"}, "search", 3])
def test_calls_that_are_no_list_cannot_be_read(calls: Any) -> None:
    with pytest.raises(UnreadableReply, match="list"):
        to_reply({"text": "x", "tool_calls": calls})


@pytest.mark.parametrize("call", [{"arguments": {}}, {"name": ""}, {}, 3, None, {"name": 4}])
def test_a_call_without_a_name_cannot_be_read_and_is_counted_out(call: Any) -> None:
    with pytest.raises(UnreadableReply, match="tool call 2 has no name"):
        to_tool_calls(["search", call])


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input_tokens": 1, "output_tokens": 2}, Usage(1, 2)),
        ({"prompt_tokens": 1, "completion_tokens": 2}, Usage(1, 2)),
        ({"promptTokenCount": 1, "candidatesTokenCount": 2}, Usage(1, 2)),
        (SimpleNamespace(input_tokens=0, output_tokens=0, requests=3), Usage(0, 0, None, 3)),
        ({"input_tokens": "many", "output_tokens": math.nan, "cost": -1}, None),
        ({"input_tokens": True}, None),
        ("nothing", None),
        (Usage(5), Usage(5)),
    ],
)
def test_usage_is_read_under_any_common_name_and_nonsense_is_not_known(usage: Any, expected: Usage | None) -> None:
    assert to_usage(usage) == expected


def test_outputs_that_have_no_names_cannot_be_read() -> None:
    with pytest.raises(UnreadableReply, match="outputs"):
        to_reply({"text": "x", "outputs": [1]})


@given(JSON)
def test_any_json_is_read_or_refused_but_never_crashes(value: Any) -> None:
    try:
        reply = to_reply(value)
    except UnreadableReply:
        return
    assert isinstance(reply.text, str)
    json.dumps([reply.structured, dict(reply.state or {})], allow_nan=False)


@given(st.dictionaries(st.sampled_from(["text", "message", "messages", "choices", "tool_calls", "state"]), JSON))
def test_any_envelope_is_read_or_refused_but_never_crashes(value: Any) -> None:
    try:
        to_reply(value)
    except UnreadableReply:
        pass


def _as_object(value: Any) -> Any:
    if isinstance(value, dict):
        return SimpleNamespace(**{key: _as_object(item) for key, item in value.items()})
    return [_as_object(item) for item in value] if isinstance(value, list) else value


def test_a_bare_list_of_messages_is_a_conversation_and_not_data() -> None:
    reply = to_reply(
        [
            {"role": "user", "content": "Pay three."},
            {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "paid"},
            {"role": "assistant", "content": "Done."},
        ]
    )
    assert reply.text == "Done."
    assert [(call.name, call.arguments, call.result) for call in reply.tool_calls] == [("pay", {"amount": 3}, "paid")]


@pytest.mark.parametrize("data", [[], [1, 2], [{"role": "admin", "name": "Ada"}], [{"role": "user", "content": "hi"}]])
def test_a_list_without_a_message_of_the_agents_stays_data(data: list[Any]) -> None:
    assert to_reply(data).structured == data


def test_the_single_function_call_of_older_messages_is_a_tool_call() -> None:
    message = {"role": "assistant", "content": None, "function_call": {"name": "pay", "arguments": '{"amount": 3}'}}
    reply = to_reply({"messages": [message]})
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("pay", {"amount": 3})]
