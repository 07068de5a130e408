"""What spans and requests say about tool calls that nobody saw."""

from __future__ import annotations

from proctor.agents.reply import ToolCall
from proctor.agents.turn_recorder import ModelRequest
from proctor.tracing.hidden_calls import hidden_calls
from proctor.tracing.model_requests import _MODEL_PATH as MODEL_PATH
from proctor.tracing.spans import AssistantMessage, LLMSpan, ObserveSpan, tool_calls_of

REQUEST = ModelRequest(10.0, "openai", "api.openai.com/v1/chat/completions", ("add",))


def call(started_at: float, ended_at: float, *calls: ToolCall, finish: str = "stop") -> LLMSpan:
    message = AssistantMessage(tool_calls=calls)
    return LLMSpan("1", "2", None, started_at, ended_at, finish_reasons=(finish,), output_messages=(message,))


def test_a_request_is_observed_if_it_was_sent_during_a_model_call_of_the_trace() -> None:
    assert hidden_calls([REQUEST], [call(9.9, 10.5)], ()) is None
    assert hidden_calls([REQUEST, REQUEST], [call(9.9, 10.5)], ()) is None  # it was sent again after a rate limit
    assert hidden_calls([REQUEST], [call(8.0, 9.0)], ()) is not None
    assert hidden_calls([REQUEST], [ObserveSpan("1", "2", None, 9.9, 10.5)], ()) is not None
    assert hidden_calls([REQUEST], [LLMSpan("1", "2", None, 9.9, 10.5)], ()) is not None  # it does not say the answer
    assert hidden_calls([REQUEST], [LLMSpan("1", "2", None, 9.9, 10.5, error_type="refused")], ()) is None


def test_marking_every_offered_tool_is_enough_and_marking_others_is_not() -> None:
    assert hidden_calls([REQUEST], [], {"add"}) is None
    hidden = hidden_calls([REQUEST], [], {"search"})
    assert hidden is not None
    assert hidden.visible == ("search",)


def test_a_span_that_leaves_out_which_tools_the_model_asked_for_hides_them() -> None:
    assert hidden_calls([], [call(1, 2, finish="tool_calls")], ()) is not None
    assert hidden_calls([], [call(1, 2, ToolCall("add"), finish="tool_calls")], ()) is None
    assert hidden_calls([], [call(1, 2, finish="tool_calls"), ObserveSpan("3", "2", kind="tool")], ()) is None
    assert hidden_calls([], [call(1, 2)], ()) is None


def test_only_requests_to_models_count() -> None:
    models = [
        "/v1/chat/completions",
        "/openai/deployments/x/chat/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1beta/models/gemini-2.0-flash:streamGenerateContent",
        "/api/chat",
        "/v2/chat",
        "/model/anthropic.claude-3/converse-stream",
    ]
    others = ["/v1/embeddings", "/channels/7/messages", "/orders", "/v1/models", "/chat", "/users/me/messages/send"]
    assert [path for path in models if not MODEL_PATH.search(path)] == []
    assert [path for path in others if MODEL_PATH.search(path)] == []


def test_the_calls_of_a_span_without_messages_are_those_of_the_span_inside_it() -> None:
    """As if two libraries observe one client, and the outer one leaves messages out."""
    outer = LLMSpan("outer", "t", None, 1, 4, finish_reasons=("tool_calls",))
    message = AssistantMessage(tool_calls=(ToolCall("add"),))
    inner = LLMSpan("inner", "t", "outer", 2, 3, finish_reasons=("tool_calls",), output_messages=(message,))
    assert [call.name for call in tool_calls_of([outer, inner])] == ["add"]
    assert hidden_calls([], [outer, inner], ()) is None
    assert hidden_calls([], [outer], ()) is not None
