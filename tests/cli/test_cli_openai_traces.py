"""An application that calls a model through a real, instrumented client: each trial keeps its own model calls."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="spans of OpenTelemetry need its SDK")
pytest.importorskip("openinference.instrumentation.openai", reason="it is what makes spans of OpenAI's calls")
pytest.importorskip("openai", reason="the client whose calls are looked at")

from proctor.agents.reply import ToolCall
from proctor.results.store.store import Store
from proctor.tracing.otlp import read_trace_file
from proctor.tracing.spans import AssistantMessage, LLMSpan, ObserveSpan, ToolResultMessage

CITIES = ("Oslo", "Rome", "Lima", "Bern", "Cork", "Pune", "Riga", "Kyiv")
APP = """
import json
import os

import openai
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import proctor

trace.set_tracer_provider(TracerProvider())
OpenAIInstrumentor().instrument()
client = openai.OpenAI(api_key="sk-test-0123456789abcdefghij", base_url=os.environ["MODEL_URL"], max_retries=0)
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


@proctor.tool
def weather(city):
    return f"rain in {city}"


@proctor.observe("desk")
def agent(question):
    messages = [{"role": "user", "content": question}]
    first = client.chat.completions.create(model="gpt-x", messages=messages, tools=TOOLS)
    message = first.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        result = weather(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return client.chat.completions.create(model="gpt-x", messages=messages).choices[0].message.content


def saw_its_own_calls(evaluable, *, trace=None):
    [root] = trace
    first, tool, second = root.children
    city = evaluable.input.split()[-1]
    return tool.span.input == {"city": city} and city in second.span.output_messages[0].text
"""


class Model(BaseHTTPRequestHandler):
    """Asks for the weather of the city it is asked about, and says what it was told."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        last = asked["messages"][-1]
        if last["role"] == "tool":
            message: dict[str, Any] = {"role": "assistant", "content": f"There is {last['content']}."}
        else:
            city = re.findall(r"\w+", last["content"])[-1]
            function = {"name": "weather", "arguments": json.dumps({"city": city})}
            calls = [{"id": f"call_{city}", "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        finish = "stop" if message["content"] else "tool_calls"
        usage = {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}
        choices = [{"index": 0, "message": message, "finish_reason": finish}]
        whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-x-1", "choices": choices}
        data = json.dumps({**whole, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_each_of_many_trials_at_once_keeps_its_own_model_calls(
    proctor_process: Callable[..., Any], project: Path, address: str
) -> None:
    (project / "app.py").write_text(APP)
    cases = "".join(
        f"  - {{id: {city}, input: 'How is {city}', expected: There is rain in {city}.}}\n" for city in CITIES
    )
    evaluators = "evaluators: [ExactMatch, 'app.py:saw_its_own_calls']\n"
    (project / "suite.yaml").write_text(f"agent: app.py:agent\n{evaluators}cases:\n{cases}")
    ended = proctor_process("test", "suite.yaml", "-j", len(CITIES), MODEL_URL=address)
    assert ended.code == 0, ended.out

    trials = list(Store(project / ".proctor").find_run("last").trials)
    assert [trial.case.id for trial in trials] == list(CITIES)
    for trial in trials:
        city = trial.case.id
        assert [call.arguments for call in trial.replies[0].tool_calls] == [{"city": city}]
        assert trial.usage is not None and trial.usage.total_tokens == 30
        [root] = trial.trace
        first, used, second = (node.span for node in root.children)
        assert isinstance(first, LLMSpan) and isinstance(used, ObserveSpan) and isinstance(second, LLMSpan)
        [asked] = first.output_messages
        assert isinstance(asked, AssistantMessage)
        assert asked.tool_calls == (ToolCall("weather", {"city": city}, id=f"call_{city}"),)
        assert (first.input_tokens, first.output_tokens, first.finish_reasons) == (11, 4, ("tool_calls",))
        assert [tool.name for tool in first.tool_definitions] == ["weather"]
        assert (used.kind, used.input, used.output) == ("tool", {"city": city}, f"rain in {city}")
        assert second.input_messages[-1] == ToolResultMessage(f"rain in {city}", f"call_{city}")

    again = proctor_process("rescore", "last", MODEL_URL="http://127.0.0.1:9/nobody")
    assert again.code == 0, again
    assert proctor_process("trace", "export", "last", "-o", "run.json").code == 0
    assert [found.trial["case"] for found in read_trace_file(project / "run.json")] == list(CITIES)


def test_a_traced_application_shows_its_model_calls_without_a_line_of_its_own(
    proctor_process: Callable[..., Any], project: Path, address: str
) -> None:
    (project / "app.py").write_text(APP.replace("OpenAIInstrumentor().instrument()", ""))
    (project / "kwargs.json").write_text('{"question": "How is Oslo"}')
    ended = proctor_process(
        "trace", "--runnable", "app.py:agent", "--input", "kwargs.json", "--output", "t.jsonl", MODEL_URL=address
    )
    assert ended.code == 0, ended.out
    records = [json.loads(line) for line in (project / "t.jsonl").read_text().splitlines()]
    assert [record["type"] for record in records] == ["kwargs", "llm_span", "llm_span"]
    assert records[1]["output_messages"][0]["tool_calls"][0]["arguments"] == {"city": "Oslo"}
    shown = proctor_process("trace", "last").out
    assert "2 model calls with 22 tokens in, 8 out; tools: weather (1)" in shown
    assert "chat gpt-x [" in shown and "weather({" in shown
