"""Model clients report their calls without a line in the application."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="spans of OpenTelemetry need its SDK")
pytest.importorskip("openinference.instrumentation.openai", reason="it is what makes spans of OpenAI's calls")
pytest.importorskip("openai", reason="the client whose calls are looked at")
pytest.importorskip("pydantic_ai", reason="the framework whose calls are looked at")

from scripted_model import model_server, says

pytestmark = pytest.mark.process

CLIENT = """
def ask(question):
    import openai
    client = openai.OpenAI(api_key="k", max_retries=0)
    said = client.chat.completions.create(model="gpt-x", messages=[{"role": "user", "content": question}])
    return said.choices[0].message.content
"""
"""The client is imported only when the application is asked."""


def python(script: str, folder: Path, *arguments: str, **environment: str) -> str:
    import os

    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    command = [sys.executable, str(path), *arguments]
    process = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(CLIENT)
    return tmp_path


@pytest.mark.parametrize("early", ["import openai", ""], ids=["imported before", "imported inside"])
def test_a_capture_has_the_calls_of_a_client_whenever_it_is_imported(app: Path, early: str) -> None:
    script = f"""
        {early}
        import json, sys
        from proctor.tracing.capture import capture_traces
        from app import ask
        with capture_traces() as handler:
            ask("Is it raining?")
        ask("Outside of the capture")
        assert not [finder for finder in sys.meta_path if type(finder).__module__.startswith("proctor")]
        print(json.dumps([[m.text for m in s.input_messages] + [s.output_messages[0].text] for s in handler.spans]))
    """
    with model_server(lambda messages: says("Yes.")) as server:
        output = python(script, app, OPENAI_BASE_URL=server.url)
    assert json.loads(output) == [["Is it raining?", "Yes."]]


def test_proctor_test_shows_an_evaluator_the_messages_of_the_model(app: Path) -> None:
    (app / "checks.py").write_text(
        "from proctor import Evaluation, last_llm_call\n"
        "def asked(evaluable, *, trace=None):\n"
        "    said = last_llm_call(trace)\n"
        "    return Evaluation(float(said.output == 'Yes.'), str(said.output))\n"
    )
    suite = {"agent": "app.py:ask", "evaluators": ["checks.py:asked"], "cases": [{"id": "rain", "input": "Rain?"}]}
    (app / "suite.json").write_text(json.dumps(suite))
    with model_server(lambda messages: says("Yes.")) as server:
        run = "import runpy\nrunpy.run_module('proctor', run_name='__main__')"
        python(run, app, "test", "suite.json", "--json", "out.json", OPENAI_BASE_URL=server.url)
    report = json.loads((app / "out.json").read_text())
    assert report["verdict"]["outcome"] == "passed"


def test_a_missing_instrumentation_package_is_reported(tmp_path: Path) -> None:
    pytest.importorskip("anthropic", reason="a client for which no instrumentation is installed here")
    if _has_instrumentation("anthropic"):
        pytest.skip("it is installed")
    script = """
        import anthropic
        from proctor import EvalAssertionError
        from proctor.compat.pixie import assert_pass_sync, last_llm_call
        try:
            assert_pass_sync(lambda question: "no", ["a"], [lambda seen: 1.0])
        except EvalAssertionError as error:
            print(error)
        try:
            last_llm_call([])
        except ValueError as error:
            print(error)
    """
    nothing, no_call = python(script, tmp_path).strip().split("\n")[-2:]
    assert "pip install openinference-instrumentation-anthropic" in nothing
    assert no_call.replace(": uv pip", ": pip").startswith(
        "No LLMSpan found in the trace; to trace the calls of anthropic: pip install "
    )


def _has_instrumentation(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(f"openinference.instrumentation.{name}") is not None


def test_messages_of_a_pydantic_ai_agent_are_in_the_trace_without_instrument(tmp_path: Path) -> None:
    script = """
        import json
        from proctor.tracing.capture import capture_traces
        from proctor.tracing.spans import LLMSpan
        def ask(question):
            from pydantic_ai import Agent
            from pydantic_ai.models.test import TestModel
            return Agent(TestModel(custom_output_text="Yes."), instructions="Be brief.").run_sync(question).output
        with capture_traces() as handler:
            ask("Rain?")
        [call] = [span for span in handler.spans if isinstance(span, LLMSpan)]
        print(json.dumps([message.text for message in (*call.input_messages, *call.output_messages)]))
    """
    assert json.loads(python(script, tmp_path))[-2:] == ["Rain?", "Yes."]


def test_an_application_can_switch_off_the_instrumentation_of_its_agents(tmp_path: Path) -> None:
    script = """
        from pydantic_ai import Agent
        from pydantic_ai.models.test import TestModel
        from proctor.tracing.capture import capture_traces
        with capture_traces() as handler:
            agent = Agent(TestModel())
            agent.instrument = False
            agent.run_sync("Rain?")
        print(len(handler.spans))
    """
    assert python(script, tmp_path).strip() == "0"


def test_nothing_is_loaded_for_clients_that_are_not_used(tmp_path: Path) -> None:
    script = """
        import sys
        from proctor.tracing.instrumentation import instrument_clients
        with instrument_clients():
            import json
        print([name for name in ("openai", "opentelemetry", "openinference", "pydantic_ai") if name in sys.modules])
    """
    assert python(script, tmp_path).strip() == "[]"


def test_a_broken_instrumentation_does_not_disturb_the_application(tmp_path: Path) -> None:
    (tmp_path / "groq.py").write_text("answer = 42\n")
    package = tmp_path / "openinference" / "instrumentation" / "groq"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('made for another version')\n")
    script: Any = """
        from proctor.tracing.capture import capture_traces
        with capture_traces():
            import groq
        print(groq.answer)
    """
    assert python(script, tmp_path).strip() == "42"


def test_instrumentations_are_on_only_during_a_capture(tmp_path: Path) -> None:
    script = """
        from openinference.instrumentation.openai import OpenAIInstrumentor
        from pydantic_ai import Agent
        import openai
        from proctor.tracing.capture import capture_traces
        def state():
            return OpenAIInstrumentor().is_instrumented_by_opentelemetry, Agent._instrument_default is not False
        with capture_traces():
            with capture_traces():
                print(*state())
            print(*state())
        print(*state())
        with capture_traces():
            print(*state())
        print(*state())
    """
    assert python(script, tmp_path).split("\n") == [
        "True True",
        "True True",
        "False False",
        "True True",
        "False False",
        "",
    ]


def test_an_instrumentation_that_the_application_switched_on_stays_on(tmp_path: Path) -> None:
    script = """
        import openai
        from openinference.instrumentation.openai import OpenAIInstrumentor
        from pydantic_ai import Agent
        from proctor.tracing.capture import capture_traces
        OpenAIInstrumentor().instrument()
        Agent.instrument_all(True)
        with capture_traces():
            pass
        print(OpenAIInstrumentor().is_instrumented_by_opentelemetry, Agent._instrument_default)
    """
    assert python(script, tmp_path).strip() == "True True"


def test_the_applications_exporter_does_not_get_the_spans_that_proctor_switches_on(app: Path) -> None:
    script = """
        import json
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        from proctor.tracing.capture import capture_traces
        from app import ask
        exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(provider)
        with capture_traces() as handler, trace.get_tracer("app").start_as_current_span("own"):
            ask("Is it raining?")
        print(json.dumps([len(handler.spans), [span.name for span in exporter.get_finished_spans()]]))
    """
    with model_server(lambda messages: says("Yes.")) as server:
        assert json.loads(python(script, app, OPENAI_BASE_URL=server.url)) == [2, ["own"]]
