"""An agent.yaml as options of the real claude-agent-sdk, in an environment of its own. Starts no Claude Code."""

from __future__ import annotations

import asyncio
import json
import os
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
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport
from claude_code import RuledClaudeCode
from scripted_claude import LOG, install

from proctor.agents.frameworks.claude_agent_sdk import ClaudeAgent

pytestmark = pytest.mark.filterwarnings("ignore")

TOOLS = """
def rate(city: str) -> dict:
    '''The rate in a city.'''
    if city == "Nowhere":
        raise ValueError("there is no such city")
    return {'rate': len(city)}
"""


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
    assert options.cwd == tmp_path
    assert options.mcp_servers["desk"] == {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {}}
    assert (options.max_turns, options.effort, options.fallback_model) == (3, "high", "spare")
    assert options.disallowed_tools == ["mcp__desk__drop"]
    assert options.allowed_tools == ["mcp__desk"]
    assert options.thinking == {"type": "enabled", "budget_tokens": 2000}
    assert options.output_format == {"type": "json_schema", "schema": schema}
    assert options.env == {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
        "ANTHROPIC_API_KEY": "sk-test",
        "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB": "1",
    }
    assert options.setting_sources == []


def test_the_sdk_is_chosen_for_its_own_models(tmp_path: Path) -> None:
    async def chosen() -> Any:
        backend = await BackendSelector.select(described_agent(tmp_path))
        inner = backend.agent._inner  # type: ignore[attr-defined]
        await backend.teardown()
        return inner

    assert isinstance(asyncio.run(chosen()), ClaudeAgent)


# Everything that a file can say, with a process in place of Claude Code

EVERYTHING = {
    "working_directory": "desk",
    "permission_mode": "acceptEdits",
    "max_turns": 7,
    "max_concurrent_sessions": 3,
    "session_memory_estimate_mib": 400,
    "extended_thinking": {"enabled": True, "budget_tokens": 2000},
    "web_search": True,
    "bash": {"enabled": True, "excluded_commands": ["rm -rf", "shutdown"], "allow_unsafe": False},
    "file_system": {"read": True, "write": True, "edit": False},
    "agents": {
        "auditor": {"description": "Checks sums.", "prompt_file": "auditor.md", "tools": ["Read"], "model": "haiku"},
        "clerk": {"description": "Files letters.", "prompt": "File them."},
    },
    "allowed_tools": ["WebFetch", "Bash(git log:*)"],
    "effort": "high",
    "max_budget_usd": 2.5,
    "fallback_model": "spare",
    "disallowed_tools": ["NotebookEdit"],
    "setting_sources": ["project"],
    "i_understand_this_is_unsafe": False,
    "disable_default_hooks": False,
    "disable_subprocess_env_scrub": False,
}


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the program in place of Claude Code writes down how it was started."""
    install(tmp_path)
    monkeypatch.setattr(SubprocessCLITransport, "_find_bundled_cli", lambda self: None)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv(LOG, str(tmp_path / "starts.jsonl"))
    (tmp_path / "desk").mkdir()
    (tmp_path / "auditor.md").write_text("Add up.")
    return tmp_path / "starts.jsonl"


def run_file(suite: Any) -> Any:
    [trial] = proctor.run(suite).trials
    return trial


def option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1]


def test_every_documented_key_reaches_claude_code(tmp_path: Path, starts: Path) -> None:
    tests = [{"input": 'call rate {"city": "Oslo"}', "ground_truth": 'It says {"rate": 4}', "expected_tools": ["rate"]}]
    metrics = {"metrics": [{"type": "standard", "metric": "equality"}]}
    suite = described_agent(tmp_path, claude=EVERYTHING, test_cases=tests, evaluations=metrics)
    trial = run_file(suite)
    assert trial.outcome == "passed", trial
    [start] = map(json.loads, starts.read_text().splitlines())
    arguments = start["arguments"]
    own_tools = "Bash,Read,Glob,Grep,Write,WebSearch,WebFetch,Agent,Task"
    assert option(arguments, "--tools") == own_tools
    allowed = option(arguments, "--allowedTools").split(",")
    assert allowed[0] == "mcp__holodeck_tools__rate"
    assert {"Bash", "Read", "Write", "WebSearch", "WebFetch", "Bash(git log:*)"} <= {*allowed}
    assert option(arguments, "--disallowedTools") == "NotebookEdit,Bash(rm -rf:*),Bash(shutdown:*)"
    assert option(arguments, "--permission-mode") == "acceptEdits"
    assert option(arguments, "--max-turns") == "7"
    assert option(arguments, "--max-budget-usd") == "2.5"
    assert option(arguments, "--fallback-model") == "spare"
    assert option(arguments, "--effort") == "high"
    assert "project" in " ".join(word for word in arguments if word.startswith("--setting-sources"))
    assert Path(start["folder"]) == tmp_path / "desk"
    agents = start["initialize"].get("agents") or json.loads(option(arguments, "--agents"))
    assert agents["auditor"]["prompt"] == "Add up."
    assert (agents["auditor"]["tools"], agents["auditor"]["model"]) == (["Read"], "haiku")
    assert agents["clerk"]["description"] == "Files letters."
    assert start["environment"]["ANTHROPIC_API_KEY"] == "sk-test"
    assert start["environment"]["CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"] == "1"
    warnings = [str(warning) for warning in suite.warnings]
    assert [key for key in EVERYTHING if any(f"claude.{key} has no effect" in warning for warning in warnings)] == [
        "max_concurrent_sessions",
        "session_memory_estimate_mib",
    ]


def test_a_file_that_turns_everything_off_has_no_tools_of_claude_code(tmp_path: Path, starts: Path) -> None:
    block = {"permission_mode": "manual", "bash": {"enabled": False}, "file_system": {}, "web_search": False}
    trial = run_file(described_agent(tmp_path, claude=block))
    assert trial.replies[0].text == "Oslo"
    [start] = map(json.loads, starts.read_text().splitlines())
    assert option(start["arguments"], "--tools") == ""
    assert option(start["arguments"], "--permission-mode") == "default"


def test_a_tool_of_claude_code_counts_as_a_call(tmp_path: Path, starts: Path) -> None:
    expected = [{"name": "Bash", "args": {"command": "ls"}}]
    tests = [{"input": 'run Bash {"command": "ls"}', "expected_tools": expected}]
    trial = run_file(described_agent(tmp_path, claude={"bash": {"enabled": True}}, test_cases=tests))
    assert trial.outcome == "passed", trial


def test_a_tool_that_raises_tells_the_model_and_the_report(tmp_path: Path, starts: Path) -> None:
    truth = "It says ValueError: there is no such city"
    tests = [{"input": 'call rate {"city": "Nowhere"}', "ground_truth": truth}]
    metrics = {"metrics": [{"type": "standard", "metric": "equality"}]}
    trial = run_file(described_agent(tmp_path, test_cases=tests, evaluations=metrics))
    assert trial.outcome == "passed", trial
    assert trial.replies[0].tool_calls[0].error == "ValueError: there is no such city"


def test_invalid_arguments_are_an_error_of_the_call(tmp_path: Path, starts: Path) -> None:
    trial = run_file(described_agent(tmp_path, test_cases=[{"input": 'call rate {"town": "Oslo"}'}]))
    [call] = trial.replies[0].tool_calls
    assert "town" in (call.error or "")


def test_accepting_everything_takes_a_second_key(tmp_path: Path, starts: Path) -> None:
    with pytest.raises(proctor.InvalidSuite, match="i_understand_this_is_unsafe"):
        run_file(described_agent(tmp_path, claude={"permission_mode": "acceptAll"}))
    run_file(described_agent(tmp_path, claude={"permission_mode": "acceptAll", "i_understand_this_is_unsafe": True}))
    [start] = map(json.loads, starts.read_text().splitlines())
    assert option(start["arguments"], "--permission-mode") == "bypassPermissions"


@pytest.mark.parametrize(
    ("auth", "needed", "passed"),
    [
        (
            "oauth_token",
            {"CLAUDE_CODE_OAUTH_TOKEN": "tok"},
            {"CLAUDE_CODE_OAUTH_TOKEN": "tok", "ANTHROPIC_API_KEY": ""},
        ),
        ("custom", {"ANTHROPIC_AUTH_TOKEN": "tok"}, {"ANTHROPIC_AUTH_TOKEN": "tok"}),
        ("bedrock", {"AWS_REGION": "eu-1"}, {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "eu-1"}),
        ("foundry", {"ANTHROPIC_FOUNDRY_RESOURCE": "r"}, {"CLAUDE_CODE_USE_FOUNDRY": "1"}),
        (
            "vertex",
            {"CLOUD_ML_REGION": "eu-1", "ANTHROPIC_VERTEX_PROJECT_ID": "p"},
            {"CLAUDE_CODE_USE_VERTEX": "1", "ANTHROPIC_VERTEX_PROJECT_ID": "p"},
        ),
    ],
)
def test_each_way_to_log_in_reaches_claude_code_or_says_what_is_missing(
    tmp_path: Path,
    starts: Path,
    monkeypatch: pytest.MonkeyPatch,
    auth: str,
    needed: dict[str, str],
    passed: dict[str, str],
) -> None:
    model = {"provider": "anthropic", "name": "claude-x", "auth_provider": auth}
    for name in needed:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(proctor.InvalidSuite, match=f"model.auth_provider is {auth}, which needs a variable: set"):
        run_file(described_agent(tmp_path, model=model))
    for name, value in needed.items():
        monkeypatch.setenv(name, value)
    assert run_file(described_agent(tmp_path, model=model)).replies[0].text == "Oslo"
    [start] = map(json.loads, starts.read_text().splitlines())
    assert passed.items() <= start["environment"].items()


def test_sampling_settings_do_not_keep_an_agent_from_claude_code(tmp_path: Path, starts: Path) -> None:
    model = {"provider": "anthropic", "name": "claude-x", "endpoint": "http://127.0.0.1:1", "temperature": 0}
    suite = described_agent(tmp_path, model=model, claude={"web_search": True})
    assert run_file(suite).replies[0].text == "Oslo"
    assert any("model.temperature has no effect" in str(warning) for warning in suite.warnings)


def test_a_subagents_prompt_is_part_of_the_fingerprint(tmp_path: Path, starts: Path) -> None:
    claude = {"agents": {"auditor": EVERYTHING["agents"]["auditor"]}}  # type: ignore[index]
    before = spec_of(described_agent(tmp_path, claude=claude)).fingerprint
    (tmp_path / "auditor.md").write_text("Add up twice.")
    assert spec_of(described_agent(tmp_path, claude=claude)).fingerprint != before
