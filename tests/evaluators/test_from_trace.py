from __future__ import annotations

import sys
from typing import Any

import pytest

from proctor.agents.reply import ToolCall, Usage
from proctor.base.json_data import UNSET
from proctor.cases.suite import NamedData
from proctor.evaluators.from_trace import as_evaluable, by_name, last_llm_call, root
from proctor.tracing.capture import capture_traces
from proctor.tracing.instrumentation import CLIENTS
from proctor.tracing.observe import observe
from proctor.tracing.spans import (
    AssistantMessage,
    ImageContent,
    LLMSpan,
    ObservationNode,
    ObserveSpan,
    SystemMessage,
    TextContent,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
    build_tree,
)


def step(span_id: str, parent: str | None = None, **rest: Any) -> ObserveSpan:
    return ObserveSpan(span_id, "t", parent, **rest)


def call(span_id: str, parent: str | None = None, **rest: Any) -> LLMSpan:
    return LLMSpan(span_id, "t", parent, **rest)


def test_a_step_is_its_input_and_its_output_as_plain_data() -> None:
    span = step("s", input={"question": "Hi"}, output={"answer": ["yes"]}, metadata={"user": 7}, duration_ms=3.0)
    seen = as_evaluable(span)
    assert seen.eval_input == [NamedData("input", {"question": "Hi"})]
    assert seen.eval_output == [NamedData("output", {"answer": ["yes"]})]
    assert seen.eval_metadata == {"user": 7, "trace_id": "t", "span_id": "s"}
    assert seen.expectation is UNSET
    assert seen.duration_ms == 3.0


def test_an_observed_functions_answer_is_the_value_and_not_a_text_of_it() -> None:
    @observe
    def answer(question: str) -> dict[str, int]:
        return {"n": len(question)}

    with capture_traces() as seen:
        answer("four")
    found = root(build_tree(seen.spans))
    assert (found.input, found.output) == ({"question": "four"}, {"n": 4})


def test_a_step_that_failed_says_so() -> None:
    metadata = as_evaluable(step("s", error="ValueError: no")).eval_metadata
    assert metadata is not None
    assert metadata["error"] == "ValueError: no"


def test_a_model_call_is_its_messages_and_the_text_it_ended_with() -> None:
    span = call(
        "s",
        provider="openai",
        request_model="small",
        response_model="small-1",
        input_tokens=3,
        output_tokens=2,
        finish_reasons=("stop",),
        input_messages=(
            SystemMessage("Be kind."),
            UserMessage((TextContent("What is "), TextContent("this?"))),
            UserMessage((TextContent("Look"), ImageContent("http://x/y.png"))),
            AssistantMessage((), (ToolCall("look", {"at": "it"}, id="c1"),)),
            ToolResultMessage("a cat", "c1", "look"),
        ),
        output_messages=(AssistantMessage((TextContent("A "), TextContent("cat."))),),
        tool_definitions=(ToolDefinition("look", "Looks.", {"type": "object"}),),
    )
    seen = as_evaluable(span)
    assert seen.output == "A cat."
    assert seen.input == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "What is this?"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Look"}, {"type": "image", "url": "http://x/y.png", "detail": None}],
        },
        {"role": "assistant", "content": "", "tool_calls": [{"name": "look", "arguments": {"at": "it"}, "id": "c1"}]},
        {"role": "tool", "content": "a cat", "tool_call_id": "c1", "tool_name": "look"},
    ]
    assert seen.usage == Usage(3, 2, model_calls=1, model="small-1")
    assert seen.eval_metadata == {
        "trace_id": "t",
        "span_id": "s",
        "provider": "openai",
        "request_model": "small",
        "response_model": "small-1",
        "operation": "chat",
        "input_tokens": 3,
        "output_tokens": 2,
        "cache_read_tokens": None,
        "cache_creation_tokens": None,
        "finish_reasons": ["stop"],
        "response_id": None,
        "output_type": None,
        "error_type": None,
        "tool_definitions": [{"name": "look", "description": "Looks.", "parameters": {"type": "object"}}],
    }


def test_a_model_call_that_said_nothing_has_no_text_but_its_tool_calls() -> None:
    wanted = ToolCall("look", {"at": "it"})
    seen = as_evaluable(call("s", output_messages=(AssistantMessage((), (wanted,)),)))
    assert seen.output is None
    assert seen.tool_calls == (wanted,)
    assert as_evaluable(call("s")).output is None


def test_the_root_is_the_first_step_that_is_part_of_no_other() -> None:
    trace = build_tree(
        [step("in", "out", started_at=2), step("later", started_at=9), step("out", started_at=1, output="whole")]
    )
    assert root(trace).output == "whole"


def test_an_empty_trace_has_no_root() -> None:
    with pytest.raises(ValueError, match=r"^Trace is empty$"):
        root([])


def test_the_last_model_call_is_the_one_that_ended_last_wherever_it_is() -> None:
    text = {name: (AssistantMessage((TextContent(name),)),) for name in ("deep", "early", "late")}
    trace = build_tree(
        [
            step("r"),
            call("early", "r", started_at=1, ended_at=2, output_messages=text["early"]),
            step("s", "r", started_at=2, ended_at=99),
            call("deep", "s", started_at=3, ended_at=9, output_messages=text["deep"]),
            call("late", started_at=8, ended_at=8.5, output_messages=text["late"]),
        ]
    )
    assert last_llm_call(trace).output == "deep"


@pytest.mark.parametrize("trace", [[], [ObservationNode(step("s"))]])
def test_a_trace_without_a_model_call_has_no_last_one(
    trace: list[ObservationNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    for client in CLIENTS:
        monkeypatch.delitem(sys.modules, client, raising=False)
    with pytest.raises(ValueError, match=r"^No LLMSpan found in the trace$"):
        last_llm_call(trace)


def test_by_name_is_the_last_of_that_name() -> None:
    trace = build_tree(
        [
            step("1", name="look", started_at=1, output="first"),
            step("2", "1", name="look", started_at=5, output="last"),
            step("3", name="look", started_at=3, output="middle"),
            step("4", name="other", started_at=9),
        ]
    )
    assert by_name(trace, "look").output == "last"


def test_of_two_that_began_at_once_the_later_in_the_trace_is_the_last() -> None:
    trace = build_tree([step("1", name="look", output="first"), step("2", name="look", output="last")])
    assert by_name(trace, "look").output == "last"


def test_a_name_that_is_not_there_is_told_with_those_that_are() -> None:
    trace = build_tree([step("1", name="look"), step("2", name="plan"), call("3", request_model="small")])
    with pytest.raises(ValueError, match=r"^No span named 'lok' found in the trace; it has 'look', 'plan', 'small'$"):
        by_name(trace, "lok")
    with pytest.raises(ValueError, match="it has nothing"):
        by_name([], "look")


def test_a_deep_trace_is_no_problem() -> None:
    spans = [step(str(n), str(n - 1) if n else None, name=f"s{n}", started_at=n, output=n) for n in range(5000)]
    assert by_name(build_tree(spans), "s4999").output == 4999
