from __future__ import annotations

from proctor.agents.reply import ToolCall, Usage
from proctor.tracing.spans import AssistantMessage, LLMSpan, ObserveSpan, ToolResultMessage, tool_calls_of, usage_of


def call(span_id: str, tokens: tuple[int | None, int | None], parent: str | None = None, at: float = 0.0) -> LLMSpan:
    return LLMSpan(span_id, "t", parent, at, at + 1, input_tokens=tokens[0], output_tokens=tokens[1])


def test_the_usage_of_a_reply_is_the_sum_of_its_model_calls() -> None:
    assert usage_of([call("a", (10, 1)), call("b", (20, 2))]) == Usage(30, 3, model_calls=2)


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    assert usage_of([call("a", (10, None)), call("b", (20, 2))]) == Usage(30, None, model_calls=2)


def test_the_usage_is_unknown_without_model_calls() -> None:
    assert usage_of([]) is None
    assert usage_of([ObserveSpan("a", "t"), LLMSpan("e", "t", operation="embedding", input_tokens=5)]) is None


def test_a_call_that_two_libraries_recorded_counts_once() -> None:
    spans = [ObserveSpan("step", "t"), call("outer", (10, 1), "step"), call("inner", (10, 1), "outer")]
    assert usage_of(spans) == Usage(10, 1, model_calls=1)


def test_tools_that_are_steps_of_the_trace_are_the_tools_used() -> None:
    spans = [
        ObserveSpan("2", "t", None, 2.0, 3.0, 1000.0, "pay", "not an object", error="ValueError: no", kind="tool"),
        ObserveSpan("1", "t", None, 1.0, 2.0, 1000.0, "search", {"q": 1}, [1], {"tool.id": "c1"}, kind="tool"),
        ObserveSpan("3", "t", name="chain", kind="chain"),
        LLMSpan("4", "t", output_messages=(AssistantMessage((), (ToolCall("search", {"q": 1}),)),)),
    ]
    assert tool_calls_of(spans) == (
        ToolCall("search", {"q": 1}, [1], id="c1", started_at=1.0, duration_ms=1000.0),
        ToolCall("pay", error="ValueError: no", started_at=2.0, duration_ms=1000.0, raw_arguments="not an object"),
    )


def test_without_tool_spans_the_tools_used_are_read_from_the_models_messages() -> None:
    message = AssistantMessage((), (ToolCall("search", {"q": 1}, id="c1"), ToolCall("pay", id="c2")))
    spans = [
        LLMSpan("b", "t", None, 3.0, 4.0, input_messages=(message, ToolResultMessage('{"found": 1}', "c1"))),
        LLMSpan("a", "t", None, 1.0, 2.0, output_messages=(message,)),
    ]
    assert tool_calls_of(spans) == (
        ToolCall("search", {"q": 1}, {"found": 1}, id="c1", started_at=2.0),
        ToolCall("pay", id="c2", started_at=2.0),
    )
    assert tool_calls_of([]) == ()
