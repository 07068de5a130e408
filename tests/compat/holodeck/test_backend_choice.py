"""Which backend runs a described agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from declared_projects import project, spec_of

from proctor.agents.resolve import resolve_agent
from proctor.base.errors import InvalidSuite
from proctor.cases.formats.loading import load
from proctor.compat.holodeck import backend_choice
from proctor.compat.holodeck.backend_choice import choose_backend
from proctor.compat.holodeck.models import AgentDescription


def description(provider: str, **more: Any) -> AgentDescription:
    model = {"provider": provider, "name": "m", **more.pop("model", {})}
    return AgentDescription.model_validate({"model": model, "instructions": {"inline": "x"}, **more})


@pytest.fixture
def everything_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_choice, "is_installed", lambda distribution: True)


@pytest.mark.usefixtures("everything_installed")
@pytest.mark.parametrize(
    ("agent", "backend"),
    [
        (description("anthropic"), "claude-agent-sdk"),
        (description("openai"), "openai-agents"),
        (description("azure_openai"), "openai-agents"),
        (description("ollama"), "pydantic-ai"),
        (description("google"), "pydantic-ai"),
        (description("anthropic", model={"temperature": 0.9}), "pydantic-ai"),
        (description("openai", openai={"max_turns": 3}), "openai-agents"),
        (description("openai", openai={"fallback_model": "spare"}), "pydantic-ai"),
        (description("anthropic", model={"temperature": 0.9}, claude={"web_search": True}), "claude-agent-sdk"),
        (description("openai", backend="pydantic-ai"), "pydantic-ai"),
    ],
)
def test_the_provider_chooses_the_backend_unless_the_file_pins_it(agent: AgentDescription, backend: str) -> None:
    assert choose_backend(agent).name == backend
    assert choose_backend(agent).problem == ""


def test_without_the_sdk_pydantic_ai_runs_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_choice, "is_installed", lambda distribution: False)
    choice = choose_backend(description("openai"))
    assert (choice.name, choice.reason) == ("pydantic-ai", "model.provider; openai-agents is not installed")


@pytest.mark.parametrize(
    ("backend", "complaint"),
    [
        ("claude-agent-sdk", "backend is claude-agent-sdk, which does not run models of openai"),
        ("openai-agents", "backend is openai-agents, which is not installed"),
        ("langchain", "backend must be one of claude-agent-sdk, openai-agents, pydantic-ai"),
    ],
)
def test_a_pinned_backend_that_cannot_run_the_agent_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, complaint: str
) -> None:
    monkeypatch.setattr(backend_choice, "is_installed", lambda distribution: False)
    [suite] = load([project(tmp_path, "http://127.0.0.1:1/v1", backend=backend)])
    with pytest.raises(InvalidSuite) as caught:
        spec_of(suite)
    assert complaint in str(caught.value)
    assert "agent.yaml:" in str(caught.value)


def test_a_package_of_the_project_that_is_called_agents_is_not_an_sdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agents").mkdir()
    for name in ("__init__.py", "run.py"):
        (tmp_path / "agents" / name).write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    [suite] = load([project(tmp_path, "http://127.0.0.1:1/v1", backend=None)])
    installed = backend_choice.is_installed("openai-agents")
    assert resolve_agent(suite.agent, suite.base).name == f"loans ({'openai-agents' if installed else 'pydantic-ai'})"
    assert not backend_choice.is_installed("agents")


def test_the_backend_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    from proctor.compat.holodeck.agent import HoloDeckAgent

    [suite] = load([project(tmp_path, "http://127.0.0.1:1/v1")])
    spec = spec_of(suite)
    assert HoloDeckAgent(spec, "pydantic-ai").fingerprint != HoloDeckAgent(spec, "openai-agents").fingerprint
