"""`proctor doctor` says what will be observed of an agent, and what would make the rest visible."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def observed(proctor: Command, *arguments: str) -> dict[str, Any]:
    done = proctor("doctor", *arguments, "--json")
    assert done.code == 0, done.err
    [suite] = json.loads(done.out)["suites"]
    [parts] = suite["observed"].values()
    return dict(parts)


def test_a_client_without_instrumentation_is_named_with_the_package_to_install(project: Path, proctor: Command) -> None:
    (project / "helpers.py").write_text("import anthropic\n")
    (project / "app.py").write_text("from helpers import anthropic\n\n\ndef agent(q):\n    raise SystemExit('ran')\n")
    parts = observed(proctor, "app.py:agent")
    assert "not observed through anthropic" in parts["model calls"]
    assert "openinference-instrumentation-anthropic" in parts["model calls"]
    assert "openinference-instrumentation-anthropic" in parts["tool calls"]
    assert "@proctor.tool" in parts["tool calls"]
    assert "not observed" in parts["tokens"]


def test_marked_tools_and_instrumented_clients_are_observed(project: Path, proctor: Command) -> None:
    pytest.importorskip("openinference.instrumentation.openai")
    source = (
        "import proctor\n\n\n@proctor.tool\ndef add(a, b):\n    return a + b\n\n\ndef agent(q):\n    import openai\n"
    )
    (project / "app.py").write_text(source)
    (project / "suite.yaml").write_text("agent: app.py:agent\ncases:\n  - {id: one, input: hi, expected: hi}\n")
    for parts in (observed(proctor, "app.py:agent"), observed(proctor, "suite.yaml")):
        assert parts["model calls"] == "observed through openai"
        assert "add (marked with @proctor.tool)" in parts["tool calls"]
    assert "agent app.py:agent" in proctor("doctor", "suite.yaml").out


def test_agents_of_a_framework_are_observed_by_their_adapter_and_services_by_their_replies(
    project: Path, proctor: Command
) -> None:
    source = (
        "from pydantic_ai import Agent\nfrom pydantic_ai.models.test import TestModel\n\nagent = Agent(TestModel())\n"
    )
    (project / "app.py").write_text(source)
    assert observed(proctor, "app.py:agent", "--load")["tool calls"] == "observed, by the adapter for Pydantic AI"
    suite = "agent: {http: {url: 'http://localhost:1/chat', headers: {x-token: hidden-value}}}\n"
    (project / "suite.yaml").write_text(f"{suite}cases:\n  - {{id: one, input: hi, expected: hi}}\n")
    assert "`tool_calls`" in observed(proctor, "suite.yaml")["tool calls"]
    assert "hidden-value" not in proctor("doctor", "suite.yaml").out


def test_an_agent_that_does_not_exist_is_a_problem(project: Path, proctor: Command) -> None:
    done = proctor("doctor", "nowhere.py:agent")
    assert done.code == 2
    assert "nowhere.py" in done.out
