from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="spans of OpenTelemetry need its SDK")
pytest.importorskip("openinference.instrumentation.openai", reason="it is what makes spans of OpenAI's calls")
pytest.importorskip("openai", reason="the client whose calls are looked at")

import openai

from proctor.agents.reply import ToolCall
from proctor.tracing.capture import capture_traces
from proctor.tracing.observe import observe
from proctor.tracing.otel import enable_llm_tracing
from proctor.tracing.spans import (
    AssistantMessage,
    LLMSpan,
    SystemMessage,
    TextContent,
    ToolResultMessage,
    UserMessage,
    build_tree,
)

TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tells the weather.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


class Model(BaseHTTPRequestHandler):
    """Asks for a tool first, and answers when it has the tool's result."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/responses"):
            self.answer(self.response(request))
        elif request["messages"][-1]["content"] == "fail":
            self.answer({"error": {"message": "no", "type": "bad"}}, 400)
        elif request["messages"][-1]["role"] == "tool":
            self.answer(self.completion({"role": "assistant", "content": "Rain in Oslo."}, "stop"))
        else:
            function = {"name": "weather", "arguments": '{"city": "Oslo"}'}
            calls = [{"id": "call_1", "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
            self.answer(self.completion(message, "tool_calls"))

    def completion(self, message: dict[str, Any], finish: str) -> dict[str, Any]:
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-x-2025",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15},
        }

    def response(self, request: dict[str, Any]) -> dict[str, Any]:
        content = [{"type": "output_text", "text": "Hello.", "annotations": []}]
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "gpt-x-2025",
            "status": "completed",
            "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": 3,
                "output_tokens": 2,
                "total_tokens": 5,
                "input_tokens_details": {"cached_tokens": 1},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }

    def answer(self, body: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    assert "openai" in enable_llm_tracing()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with openai.OpenAI(
        api_key="k", base_url=f"http://127.0.0.1:{server.server_port}/v1", max_retries=0
    ) as openai_client:
        yield openai_client
    server.shutdown()
    server.server_close()


@observe("weather")
def weather(city: str) -> str:
    return f"rain in {city}"


@observe("desk")
def agent(client: Any, question: str) -> str:
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
    first = client.chat.completions.create(model="gpt-x", messages=messages, tools=TOOLS, temperature=0.5)
    message = first.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        result = weather(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return str(client.chat.completions.create(model="gpt-x", messages=messages).choices[0].message.content)


def test_calls_of_the_openai_openai_clienthave_their_messages_tool_calls_and_tokens(client: Any) -> None:
    with capture_traces() as handler:
        assert agent(client, "Weather in Oslo?") == "Rain in Oslo."
    [root] = build_tree(handler.spans)
    assert root.name == "desk"
    assert [child.name for child in root.children] == ["gpt-x", "weather", "gpt-x"]
    first, second = (node.span for node in root.find_by_type(LLMSpan))
    assert isinstance(first, LLMSpan) and isinstance(second, LLMSpan)
    assert first.input_messages == (SystemMessage("Be brief."), UserMessage.from_text("Weather in Oslo?"))
    assert [tool.name for tool in first.tool_definitions] == ["weather"]
    [request] = first.output_messages
    assert isinstance(request, AssistantMessage)
    assert request.tool_calls == (ToolCall("weather", {"city": "Oslo"}, id="call_1"),)
    assert (first.input_tokens, first.output_tokens, first.finish_reasons) == (11, 4, ("tool_calls",))
    assert (first.provider, first.request_model, first.response_model) == ("openai", "gpt-x", "gpt-x-2025")
    assert (first.request_temperature, first.response_id) == (0.5, "chatcmpl-1")
    assert second.input_messages[-1] == ToolResultMessage("rain in Oslo", "call_1")
    [answer] = second.output_messages
    assert (answer.text, second.finish_reasons) == ("Rain in Oslo.", ("stop",))


def test_a_call_of_the_responses_api_has_its_messages(client: Any) -> None:
    with capture_traces() as handler:
        client.responses.create(model="gpt-x", instructions="Be brief.", input="Hi!")
    [span] = handler.spans
    assert isinstance(span, LLMSpan)
    assert span.input_messages == (SystemMessage("Be brief."), UserMessage.from_text("Hi!"))
    assert span.output_messages == (AssistantMessage((TextContent("Hello."),)),)
    assert (span.input_tokens, span.output_tokens, span.cache_read_tokens) == (3, 2, 1)
    assert (span.request_model, span.response_model, span.response_id) == ("gpt-x", "gpt-x-2025", "resp_1")


def test_a_rejected_call_is_recorded_as_an_error(client: Any) -> None:
    with capture_traces() as handler, pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="gpt-x", messages=[{"role": "user", "content": "fail"}])
    [span] = handler.spans
    assert isinstance(span, LLMSpan)
    assert "BadRequestError" in (span.error_type or "")
    assert span.input_tokens is None
