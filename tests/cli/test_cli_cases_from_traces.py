"""A trace of another tool becomes a suite that `proctor test` takes: text asked, answer and tool calls expected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from otlp_documents import to_otlp
from test_cli_openai_traces import address

from proctor.agents.reply import ToolCall
from proctor.tracing.spans import AssistantMessage, LLMSpan, ObserveSpan, Span, TextContent, UserMessage

__all__ = ["address"]
Command = Callable[..., Any]

EXPORTER = '''
import json
import os
import sys

import openai
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult


def value(given):
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, float):
        return {"doubleValue": given}
    if isinstance(given, (list, tuple)):
        return {"arrayValue": {"values": [value(item) for item in given]}}
    return {"stringValue": given}


class Lines(SpanExporter):
    """OTLP JSON, a line for each span, as the file exporter of a collector writes it."""

    def export(self, spans):
        with open("otlp.json", "a") as file:
            for span in spans:
                context, parent = span.get_span_context(), span.parent
                written = {
                    "traceId": format(context.trace_id, "032x"),
                    "spanId": format(context.span_id, "016x"),
                    "parentSpanId": format(parent.span_id, "016x") if parent else "",
                    "name": span.name,
                    "startTimeUnixNano": str(span.start_time),
                    "endTimeUnixNano": str(span.end_time),
                    "attributes": [{"key": k, "value": value(v)} for k, v in span.attributes.items()],
                    "status": {},
                }
                document = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [written]}]}]}
                file.write(json.dumps(document) + "\\n")
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(Lines()))
OpenAIInstrumentor().instrument(tracer_provider=provider)
tracer = provider.get_tracer("shop")
client = openai.OpenAI(api_key="sk-test-0123456789abcdefghij", base_url=os.environ["MODEL_URL"], max_retries=0)
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


def answer(question):
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": question}]
    first = client.chat.completions.create(model="gpt-x", messages=messages, tools=TOOLS).choices[0].message
    messages.append(first.model_dump(exclude_none=True))
    for call in first.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "rain in Oslo"})
    return client.chat.completions.create(model="gpt-x", messages=messages).choices[0]


with tracer.start_as_current_span("request"):
    answer("How is Oslo")
with tracer.start_as_current_span("agent") as span:
    asked = {"messages": [{"role": "user", "content": [{"type": "text", "text": "And how is Rome"}]}]}
    span.set_attributes({"openinference.span.kind": "AGENT", "input.mime_type": "application/json"})
    span.set_attribute("input.value", json.dumps(asked))
    with tracer.start_as_current_span("weather") as tool:
        tool.set_attributes({"openinference.span.kind": "TOOL", "tool.name": "weather"})
        tool.set_attributes({"input.value": '{"city": "Rome"}', "input.mime_type": "application/json"})
        tool.set_attribute("output.value", "rain in Rome")
    said = {"choices": [{"message": {"role": "assistant", "content": "There is rain in Rome."}}]}
    span.set_attributes({"output.value": json.dumps(said), "output.mime_type": "application/json"})
'''

AGENT = """
import proctor


@proctor.tool
def weather(city):
    return f"rain in {city}"


def agent(question):
    city = question.split()[-1]
    return f"There is {weather(city)}."


def forgetful(question):
    return f"There is rain in {question.split()[-1]}."


def confused(question):
    return f"There is {weather('Lima')}."
"""


@pytest.mark.process
def test_what_real_instrumentations_exported_becomes_a_suite_that_tells_agents_apart(
    proctor: Command, project: Path, address: str
) -> None:
    pytest.importorskip("opentelemetry.sdk")
    pytest.importorskip("openinference.instrumentation.openai")
    (project / "export.py").write_text(EXPORTER)
    (project / "app.py").write_text(AGENT)
    environment = {**os.environ, "MODEL_URL": address}
    subprocess.run([sys.executable, "export.py"], cwd=project, env=environment, check=True, timeout=60)

    ended = proctor("trace", "to-case", "--input", "otlp.json", "--output", "cases.yaml", "--agent", "app.py:agent")
    assert ended.code == 0, ended
    assert "review them before you rely on them" in ended.err
    document = yaml.safe_load((project / "cases.yaml").read_text())
    assert [case["input"] for case in document["cases"]] == ["How is Oslo", "And how is Rome"]
    assert [case["expected"] for case in document["cases"]] == [
        {"output": "There is rain in Oslo.", "tools": [{"name": "weather", "args": {"city": "Oslo"}}]},
        {"output": "There is rain in Rome.", "tools": [{"name": "weather", "args": {"city": "Rome"}}]},
    ]

    assert proctor("test", "cases.yaml").code == 0
    for other, said in (("forgetful", "ExpectedTools 0.00"), ("confused", "Lima")):
        ended = proctor("test", "cases.yaml", "--agent", f"app.py:{other}")
        assert ended.code == 1
        assert said in ended.out

    assert proctor("dataset", "convert", "otlp.json", "converted.json").code == 0
    assert proctor("test", "converted.json", "--agent", "app.py:agent").code == 0
    assert proctor("test", "converted.json", "--agent", "app.py:confused").code == 1


def written(project: Path, *spans: Span) -> None:
    (project / "t.json").write_text(json.dumps(to_otlp(spans)))


def cases(proctor: Command, project: Path) -> list[dict[str, Any]]:
    ended = proctor("trace", "to-case", "--input", "t.json", "--to", "suite", "--output", "made.json")
    assert ended.code == 0, ended
    found: list[dict[str, Any]] = json.loads((project / "made.json").read_text())["cases"]
    assert proctor("dataset", "validate", "made.json").code == 0
    return found


def step(given: Any, output: Any, **more: Any) -> ObserveSpan:
    return ObserveSpan("1" * 16, "a" * 32, None, 1.0, 9.0, 8000.0, "desk", given, output, **more)


INPUTS = {
    "text": ("hi", "hi"),
    "the only argument": ({"question": "hi"}, "hi"),
    "several arguments": ({"question": "hi", "user": 3}, {"question": "hi", "user": 3}),
    "messages": ({"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "hi"}]}, "hi"),
    "messages beside settings": ({"messages": [{"role": "user", "content": "hi"}], "temperature": 1}, "hi"),
    "messages as pairs": ({"messages": [["user", "hi"]]}, "hi"),
    "messages of LangChain": ({"messages": [{"id": ["x"], "kwargs": {"type": "human", "content": "hi"}}]}, "hi"),
    "parts": ([{"role": "user", "parts": [{"text": "h"}, {"text": "i"}]}], "hi"),
    "text that looks like JSON": ("[not JSON", "[not JSON"),
    "a number": (5, 5),
}


@pytest.mark.parametrize("name", INPUTS)
def test_what_was_asked_is_text_where_it_was_text(proctor: Command, project: Path, name: str) -> None:
    given, asked = INPUTS[name]
    written(project, step(given, "bye"))
    [case] = cases(proctor, project)
    assert (case["input"], case["expected"]) == (asked, "bye")


OUTPUTS = {
    "an object of one's own": ({"answer": "x"}, {"output": {"answer": "x"}}),
    "messages": ({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "x"}]}, "x"),
    "a reply of a client": ({"choices": [{"message": {"role": "assistant", "content": "x"}}]}, "x"),
    "a list": ([1, 2], [1, 2]),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_what_was_answered_is_text_where_it_was_a_message(proctor: Command, project: Path, name: str) -> None:
    output, expected = OUTPUTS[name]
    written(project, step("hi", output))
    [case] = cases(proctor, project)
    assert case["expected"] == expected


def test_a_conversation_of_a_model_becomes_turns(proctor: Command, project: Path) -> None:
    said = (
        UserMessage.from_text("hi"),
        AssistantMessage((TextContent("hello"),)),
        UserMessage.from_text("refund 7"),
        AssistantMessage((), (ToolCall("refund", {"id": 7, "note": {"$regex": "x"}}),)),
    )
    written(
        project, LLMSpan("1" * 16, "a" * 32, None, 1.0, 2.0, 1.0, input_messages=said[:3], output_messages=said[3:])
    )
    [case] = cases(proctor, project)
    tools = [{"name": "refund", "args": {"id": 7, "note": {"$equals": {"$regex": "x"}}}}]
    assert case["turns"] == [
        {"input": "hi", "expected": "hello"},
        {"input": "refund 7", "expected": {"tools": tools}},
    ]


def test_a_call_that_failed_is_not_expected_and_a_trace_without_an_answer_is_left_out(
    proctor: Command, project: Path
) -> None:
    failed = ObserveSpan("2" * 16, "a" * 32, "1" * 16, 2.0, 3.0, 1.0, "pay", {"n": 1}, kind="tool", error="down")
    silent = ObserveSpan("3" * 16, "b" * 32, None, 1.0, 2.0, 1.0, "desk", "hi")
    written(project, step("hi", "bye"), failed, silent)
    ended = proctor("trace", "to-case", "--input", "t.json", "--to", "suite")
    assert [case["expected"] for case in yaml.safe_load(ended.out)["cases"]] == ["bye"]
    assert "trace aaaaaaaa: the call of pay ended in an error and is not expected" in ended.err
    assert "trace bbbbbbbb: has neither an answer nor a tool call" in ended.err
    written(project, silent)
    ended = proctor("trace", "to-case", "--input", "t.json", "--output", "none.yaml")
    assert (ended.code, (project / "none.yaml").exists()) == (2, False)
    assert "no case can be made from t.json" in ended.err


def test_a_kept_trace_becomes_a_suite_too_and_an_entry_names_no_agent(proctor: Command, project: Path) -> None:
    written(project, step({"question": "hello"}, "hello"))
    proctor("trace", "import", "t.json")
    assert proctor("trace", "to-case", "--output", "s.yaml", "--agent", "agents.py:echo").code == 0
    assert proctor("test", "s.yaml").code == 0
    ended = proctor("trace", "to-case", "--agent", "agents.py:echo")
    assert (ended.code, "--to suite" in ended.err) == (2, True)


def test_a_suite_that_exists_is_not_overwritten_by_the_cases_of_a_trace(proctor: Command, project: Path) -> None:
    written(project, step("hello", "hello"))
    for name in ("cases.yaml", "entry.json"):
        (project / name).write_text("mine")
        ended = proctor("trace", "to-case", "--input", "t.json", "--output", name)
        assert (ended.code, (project / name).read_text()) == (2, "mine")
        assert f"{name} exists; name another file, or add --force to overwrite it" in ended.err
    assert proctor("trace", "to-case", "--input", "t.json", "--output", "cases.yaml", "--force").code == 0
    assert "hello" in (project / "cases.yaml").read_text()
