"""An agent.yaml as options of the real claude-agent-sdk, in an environment of its own. Starts no Claude Code."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from declared_projects import spec_of

import proctor
from proctor.cases.formats.loading import load
from proctor.compat.holodeck import claude_backend
from proctor.compat.holodeck.backends import BackendSelector

pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk has an environment of its own: make frameworks-all")

from claude_agent_sdk import ClaudeSDKClient
from claude_code import RuledClaudeCode

from proctor.agents.frameworks.claude_agent_sdk import ClaudeAgent

pytestmark = pytest.mark.filterwarnings("ignore")

TOOLS = "def rate(city: str) -> dict:\n    '''The rate in a city.'''\n    return {'rate': len(city)}\n"


def described_agent(folder: Path, **more: Any) -> Any:
    (folder / "tools.py").write_text(TOOLS)
    data = {
        "name": "loans",
        "model": {"provider": "anthropic", "name": "claude-x", "endpoint": "http://127.0.0.1:1", "api_key": "${KEY}"},
        "instructions": {"inline": "You lend money."},
        "tools": [{"name": "rate", "type": "function", "file": "tools.py", "function": "rate"}],
        "test_cases": [
            {"name": "oslo", "input": "Oslo", "expected_tools": [{"name": "rate", "args": {"city": "Oslo"}}]}
        ],
        **more,
    }
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump(data))
    [suite] = load([path])
    return suite


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "sk-test")


def test_functions_of_the_file_are_tools_of_a_server_in_this_process(tmp_path: Path) -> None:
    suite = described_agent(tmp_path)
    options = claude_backend.build_options(spec_of(suite))

    def decide(questions: list[str], result: Any) -> Any:
        return f"It says {result}" if result else SimpleNamespace(name="rate", arguments={"city": questions[-1]})

    def client(given: Any) -> ClaudeSDKClient:
        return ClaudeSDKClient(given, RuledClaudeCode(claude_backend.SERVER_NAME, decide))

    [trial] = proctor.run(suite, agent=ClaudeAgent(options, "loans", client)).trials
    assert trial.outcome == "passed", trial
    assert trial.replies[0].text == 'It says {"rate": 4}'
    assert trial.replies[0].tool_calls[0].name == "rate"


def test_each_key_becomes_an_option(tmp_path: Path) -> None:
    server = {"name": "desk", "type": "mcp", "transport": "http", "url": "http://127.0.0.1:1/mcp"}
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}}
    manner = {
        "max_turns": 3,
        "effort": "high",
        "fallback_model": "spare",
        "disallowed_tools": ["mcp__desk__drop"],
        "extended_thinking": {"enabled": True, "budget_tokens": 2000},
    }
    options = claude_backend.build_options(
        spec_of(described_agent(tmp_path, tools=[server], claude=manner, response_format=schema))
    )
    assert (options.model, options.system_prompt, options.tools) == ("claude-x", "You lend money.", [])
    assert options.mcp_servers["desk"] == {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {}}
    assert (options.max_turns, options.effort, options.fallback_model) == (3, "high", "spare")
    assert options.disallowed_tools == ["mcp__desk__drop"]
    assert options.allowed_tools == ["mcp__desk"]
    assert options.thinking == {"type": "enabled", "budget_tokens": 2000}
    assert options.output_format == {"type": "json_schema", "schema": schema}
    assert options.env == {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "ANTHROPIC_API_KEY": "sk-test"}
    assert options.setting_sources == []


def test_the_sdk_is_chosen_for_its_own_models(tmp_path: Path) -> None:
    async def chosen() -> Any:
        backend = await BackendSelector.select(described_agent(tmp_path))
        inner = backend.agent._inner  # type: ignore[attr-defined]
        await backend.teardown()
        return inner

    assert isinstance(asyncio.run(chosen()), ClaudeAgent)
