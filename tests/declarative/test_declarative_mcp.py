"""Runs with the real `mcp` package: servers of tools over stdio and HTTP, on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from declared_projects import answered, project, ran
from scripted_model import Calls, Says, Talk, calls, model_server, says

from proctor.cases.formats.loading import load
from proctor.declarative.reading import read_agent
from proctor.errors import InvalidSuite

SERVER = """
import os
import sys

from mcp.server import MCPServer

server = MCPServer("desk")


@server.tool()
def status(order: str) -> str:
    '''Where an order is.'''
    return f"{order} is shipped, {os.environ.get('GREETING', 'no greeting')}, {os.environ.get('SECRET', 'no secret')}"


@server.tool()
def fails() -> str:
    '''Never works.'''
    raise ValueError("the warehouse is closed")


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
"""
NOWHERE = "http://127.0.0.1:1/v1"


def using(tool: str, **arguments: Any) -> Any:
    def script(talk: Talk) -> Says | Calls:
        return says("done") if talk.results else calls(tool, **arguments)

    return script


def stdio(folder: Path, **more: Any) -> dict[str, Any]:
    (folder / "server.py").write_text(SERVER)
    return {
        "name": "desk",
        "type": "mcp",
        "transport": "stdio",
        "command": sys.executable,
        "args": ["server.py", "stdio"],
        **more,
    }


@contextmanager
def http_server(folder: Path) -> Iterator[str]:
    (folder / "server.py").write_text(SERVER)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(folder / "server.py"), "http", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the server ended before it listened")


needs_mcp = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("fastmcp") is None, reason="needs pydantic-ai-slim[mcp]"
)


@needs_mcp
def test_a_server_over_stdio_gives_its_tools_to_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the person who tests")
    monkeypatch.setenv("WORD", "hello")
    (tmp_path / "mcp.env").write_text("# notes\nexport GREETING='from the file'\n")
    tool = stdio(tmp_path, env={"GREETING": "${WORD}"}, env_file="mcp.env", request_timeout=30, timeout=30)
    with model_server(using("mcp__desk__status", order="A-17")) as server:
        reply = answered(tmp_path, server.url, tools=[tool])
    [call] = reply.tool_calls
    assert (call.name, dict(call.arguments)) == ("mcp__desk__status", {"order": "A-17"})
    assert "A-17 is shipped, hello, no secret" in str(call.result)
    assert reply.retrieval_context is None


@needs_mcp
def test_one_server_serves_all_trials_of_a_run(tmp_path: Path) -> None:
    tests = [{"name": str(n), "input": "q", "ground_truth": "done", "expected_tools": ["status"]} for n in range(6)]
    with model_server(using("mcp__desk__status", order="A-17")) as server:
        run = ran(tmp_path, server.url, tools=[stdio(tmp_path)], test_cases=tests, execution={"parallel_test_cases": 3})
    assert [trial.outcome for trial in run.trials] == ["passed"] * 6


@needs_mcp
def test_a_server_over_http_may_retrieve_what_the_answer_rests_on(tmp_path: Path) -> None:
    with http_server(tmp_path) as url, model_server(using("mcp__desk__status", order="A-18")) as server:
        tool = {"name": "desk", "type": "mcp", "transport": "http", "url": url, "is_retrieval": True}
        reply = answered(tmp_path, server.url, tools=[{**tool, "headers": {"x-team": "loans"}}])
    [passage] = reply.retrieval_context
    assert "A-18 is shipped" in passage


@needs_mcp
def test_a_tool_of_a_server_that_fails_tells_the_model(tmp_path: Path) -> None:
    with model_server(using("mcp__desk__fails")) as server:
        reply = answered(tmp_path, server.url, tools=[stdio(tmp_path)])
    assert reply.text == "done"
    assert "fails" in reply.tool_calls[0].error


@needs_mcp
def test_a_server_that_does_not_start_says_why_and_the_run_is_an_error(tmp_path: Path) -> None:
    tool = stdio(tmp_path, args=["-c", "import sys; sys.exit('the licence has expired')"])
    with model_server(using("mcp__desk__status")) as server:
        [trial] = ran(tmp_path, server.url, tools=[tool]).trials
    assert trial.outcome == "error"
    assert "the MCP server desk could not be used" in trial.reason
    assert "the licence has expired" in trial.reason


@needs_mcp
def test_configuration_gives_servers_to_every_agent(tmp_path: Path) -> None:
    import yaml

    server_config = {key: value for key, value in stdio(tmp_path).items() if key != "type"}
    (tmp_path / "config.yml").write_text(yaml.safe_dump({"mcp_servers": [server_config]}))
    with model_server(using("mcp__desk__status", order="A-19")) as server:
        reply = answered(tmp_path, server.url, tools=None)
    assert "A-19 is shipped" in str(reply.tool_calls[0].result)


@needs_mcp
@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"transport": "websocket"}, "transport is 'websocket', which Proctor does not speak"),
        ({"command": None}, "needs 'command'"),
        ({"url": "http://x"}, "url has no meaning for a server reached by stdio"),
        ({"load_tools": False}, "load_tools is false"),
        ({"load_prompts": True}, "load_prompts is true"),
        ({"timeout": 0}, "timeout must be more than 0"),
        ({"env": {"API_TOKEN": "written-out"}}, "env.API_TOKEN was written out"),
        ({"env": {"API_TOKEN": "${NO_SUCH_TOKEN}"}}, "uses ${NO_SUCH_TOKEN}, which is not set"),
        ({"env_file": "no.env"}, "env_file names no.env, which cannot be read"),
        ({"transport": "http", "command": None, "args": None}, "needs 'url'"),
        ({"colour": 1}, "colour is not a known key"),
    ],
)
def test_a_server_that_cannot_be_used_is_a_problem(tmp_path: Path, more: dict[str, Any], complaint: str) -> None:
    assert "NO_SUCH_TOKEN" not in os.environ
    [suite] = load([project(tmp_path, NOWHERE, tools=[stdio(tmp_path, **more)])])
    with pytest.raises(InvalidSuite) as caught:
        read_agent(suite)
    [problem] = caught.value.problems
    assert complaint in str(problem)


def test_without_the_package_its_extra_is_named_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "mcp" else known(name, *more))
    [suite] = load([project(tmp_path, NOWHERE, tools=[stdio(tmp_path)])])
    with pytest.raises(InvalidSuite, match=r"pip install 'proctor\[mcp\]'"):
        read_agent(suite)
