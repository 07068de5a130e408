"""Runs with the real `mcp` package: servers of tools over stdio, HTTP and SSE, on this machine."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_desk
import pytest
import yaml
from declared_projects import last_reply, project, run_project, spec_of
from mcp_desk import ServedDesk, serve_desk, stdio, unresponsive_address
from scripted_model import Conversation, TextReply, ToolCallReply, calls, model_server, says

from proctor.base.errors import InvalidSuite
from proctor.base.installation import install_command
from proctor.cases.formats.loading import load

NOWHERE = "http://127.0.0.1:1/v1"
needs_mcp = pytest.mark.skipif(importlib.util.find_spec("fastmcp") is None, reason="needs pydantic-ai-slim[mcp]")


@pytest.fixture(scope="module")
def desk() -> Iterator[ServedDesk]:
    with serve_desk() as where:
        yield where


def tool_caller(tool: str, **arguments: Any) -> Any:
    def script(talk: Conversation) -> TextReply | ToolCallReply:
        return says("done") if talk.results else calls(tool, **arguments)

    return script


@pytest.mark.process
@needs_mcp
def test_a_server_over_stdio_gives_its_tools_to_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the person who tests")
    monkeypatch.setenv("WORD", "hello")
    (tmp_path / "mcp.env").write_text("# notes\nexport GREETING='from the file'\nSECRET=whispered\n")
    started = {"command": sys.executable, "args": [mcp_desk.__file__]}
    tool = {"name": "desk", "type": "mcp", **started, "env": {"GREETING": "${WORD}"}, "env_file": "mcp.env"}
    with model_server(tool_caller("mcp__desk__status", order="A-17")) as server:
        reply = last_reply(tmp_path, server.url, tools=[tool])
    [call] = reply.tool_calls
    assert (call.name, dict(call.arguments)) == ("mcp__desk__status", {"order": "A-17"})
    assert "A-17 is shipped, hello, whispered" in str(call.result), "env beats env_file, and nothing else is passed on"
    assert reply.retrieval_context is None


@needs_mcp
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_server_may_be_anywhere_and_retrieve_what_the_answer_rests_on(
    tmp_path: Path, desk: ServedDesk, transport: str
) -> None:
    before = len(desk.seen)
    tool = desk.tool(transport, is_retrieval=True, headers={"x-team": "loans"})
    with model_server(tool_caller("mcp__desk__status", order="A-18")) as server:
        reply = last_reply(tmp_path, server.url, tools=[tool])
    [passage] = reply.retrieval_context
    assert "A-18 is shipped" in passage
    assert {seen.get("x-team") for seen in desk.seen[before:]} == {"loans"}


@needs_mcp
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_one_server_serves_all_trials_of_a_run(tmp_path: Path, desk: ServedDesk, transport: str) -> None:
    tests = [{"name": str(n), "input": "q", "ground_truth": "done", "expected_tools": ["status"]} for n in range(6)]
    parallel = {"parallel_test_cases": 3}
    with model_server(tool_caller("mcp__desk__status", order="A-17")) as server:
        run = run_project(tmp_path, server.url, tools=[desk.tool(transport)], test_cases=tests, execution=parallel)
    assert [trial.outcome for trial in run.trials] == ["passed"] * 6


@needs_mcp
def test_a_tool_of_a_server_that_fails_tells_the_model(tmp_path: Path, desk: ServedDesk) -> None:
    with model_server(tool_caller("mcp__desk__fails")) as server:
        reply = last_reply(tmp_path, server.url, tools=[desk.tool()])
    assert reply.text == "done"
    assert "fails" in reply.tool_calls[0].error


@needs_mcp
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_tool_that_never_answers_is_given_up_after_request_timeout(
    tmp_path: Path, desk: ServedDesk, transport: str
) -> None:
    with model_server(tool_caller("mcp__desk__hangs")) as server:
        reply = last_reply(tmp_path, server.url, tools=[desk.tool(transport, request_timeout=0.5)])
    assert reply.text == "done"
    assert reply.tool_calls[0].error is not None


@needs_mcp
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_server_that_never_answers_is_given_up_after_timeout(tmp_path: Path, transport: str) -> None:
    with unresponsive_address() as url, model_server(tool_caller("mcp__desk__status")) as server:
        tool = {"name": "desk", "type": "mcp", "transport": transport, "url": url, "timeout": 0.3}
        [trial] = run_project(tmp_path, server.url, tools=[tool]).trials
    assert trial.outcome == "error"
    assert "the MCP server desk could not be used" in trial.reason
    assert not server.requests


@pytest.mark.process
@needs_mcp
def test_a_server_that_does_not_start_says_why_and_the_run_is_an_error(tmp_path: Path) -> None:
    tool = stdio(args=["-c", "import sys; sys.exit('the licence has expired')"])
    with model_server(tool_caller("mcp__desk__status")) as server:
        [trial] = run_project(tmp_path, server.url, tools=[tool]).trials
    assert trial.outcome == "error"
    assert "the MCP server desk could not be used" in trial.reason
    assert "the licence has expired" in trial.reason


@needs_mcp
def test_configuration_gives_servers_to_every_agent(tmp_path: Path, desk: ServedDesk) -> None:
    shared = {key: value for key, value in desk.tool().items() if key != "type"}
    (tmp_path / "config.yml").write_text(yaml.safe_dump({"mcp_servers": [shared]}))
    with model_server(tool_caller("mcp__desk__status", order="A-19")) as server:
        reply = last_reply(tmp_path, server.url, tools=None)
    assert "A-19 is shipped" in str(reply.tool_calls[0].result)


@needs_mcp
@pytest.mark.parametrize(
    "block", [{"disallowed_tools": ["mcp__desk__fails", "mcp__desk__hangs"]},
              {"permissions": {"allowed_tools": ["mcp__desk__status"]}}]
)  # fmt: skip
def test_tools_of_a_server_that_are_not_allowed_are_not_offered(
    tmp_path: Path, desk: ServedDesk, block: dict[str, Any]
) -> None:
    with model_server(lambda talk: says("done")) as server:
        last_reply(tmp_path, server.url, tools=[desk.tool()], openai=block)
    offered = server.requests[0].body["tools"]
    assert [tool["function"]["name"] for tool in offered] == ["mcp__desk__status"]


@needs_mcp
def test_defer_loading_hides_the_tools_of_a_server_until_they_are_searched_for(
    tmp_path: Path, desk: ServedDesk
) -> None:
    with model_server(lambda talk: says("done")) as server:
        last_reply(tmp_path, server.url, tools=[desk.tool(defer_loading=True)])
    offered = server.requests[0].body["tools"]
    assert not any("status" in tool["function"]["name"] for tool in offered)


@needs_mcp
@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"transport": "websocket"}, "transport is 'websocket', which Proctor does not support"),
        ({"transport": "stdo"}, "did you mean 'stdio'?"),
        ({"command": None}, "needs 'command'"),
        ({"command": "no-such-program"}, "command names no-such-program, which is not an executable"),
        ({"command": "./no-such-program"}, "command names ./no-such-program, which is not an executable"),
        ({"command": "a\0b"}, "which is not an executable"),
        ({"url": "http://x"}, "url does not apply to the transport stdio"),
        ({"load_tools": False}, "load_tools is false"),
        ({"load_prompts": True}, "load_prompts is true"),
        ({"timeout": 0}, "timeout must be more than 0"),
        ({"env": {"API_TOKEN": "written-out"}}, "env.API_TOKEN is a secret"),
        ({"env": {"API_TOKEN": "${NO_SUCH_TOKEN}"}}, "uses ${NO_SUCH_TOKEN}, which is not set"),
        ({"env_file": "no.env"}, "env_file names no.env, which cannot be read"),
        ({"transport": "http", "command": None, "args": None}, "needs 'url'"),
        ({"transport": "sse", "command": None, "args": None, "url": "ws://x"}, "url must be a URL that starts"),
        ({"colour": 1}, "colour is not a known key"),
    ],
)
def test_a_server_that_cannot_be_used_is_a_problem(tmp_path: Path, more: dict[str, Any], complaint: str) -> None:
    assert "NO_SUCH_TOKEN" not in os.environ
    [suite] = load([project(tmp_path, NOWHERE, tools=[stdio(**more)])])
    with pytest.raises(InvalidSuite) as caught:
        spec_of(suite)
    [problem] = caught.value.problems
    assert complaint in str(problem)


def test_without_the_package_its_extra_is_named_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "mcp" else known(name, *more))
    [suite] = load([project(tmp_path, NOWHERE, tools=[stdio()])])
    with pytest.raises(InvalidSuite, match=re.escape(install_command("mcp"))):
        spec_of(suite)
