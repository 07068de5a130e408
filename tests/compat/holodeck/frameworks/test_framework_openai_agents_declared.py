"""An agent.yaml run by the real openai-agents, in an environment of its own, against a server on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("agents.run", reason="openai-agents has an environment of its own: make frameworks")

from scripted_model import Conversation, TextReply, ToolCallReply, calls, model_server, says

import proctor
from proctor.cases.formats.loading import load
from proctor.compat.holodeck.backends import BackendAgent, BackendSelector

TOOLS = """
def rate(city: str) -> dict:
    '''The rate in a city.'''
    if city == "Nowhere":
        raise ValueError("there is no such city")
    return {"city": city, "rate": len(city)}


async def monthly(amount: float, years: int = 30) -> str:
    '''What is paid each month.'''
    return f"{amount / years / 12:.2f}"
"""
SERVER = """
from mcp.server import MCPServer

server = MCPServer("desk")


@server.tool()
def status(order: str) -> str:
    '''Where an order is.'''
    return f"{order} is shipped"


server.run("stdio")
"""


def function(name: str) -> dict[str, Any]:
    return {"name": name, "type": "function", "file": "tools.py", "function": name}


def project(folder: Path, url: str, **more: Any) -> Path:
    (folder / "tools.py").write_text(TOOLS)
    data = {
        "name": "loans",
        "model": {"provider": "openai", "name": "gpt-4o", "endpoint": url, "temperature": 0.6, "max_tokens": 50},
        "instructions": {"inline": "You lend money."},
        "tools": [function("rate"), function("monthly")],
        "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
        "test_cases": [{"name": "one", "input": "Oslo", "ground_truth": "done"}],
        **more,
    }
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in data.items() if value is not None}, sort_keys=False))
    return path


def run_file(path: Path) -> Any:
    """The only trial, run by the backend that is chosen."""
    [suite] = load([path])

    async def run() -> Any:
        backend = await BackendSelector.select(suite)
        agent = BackendAgent(backend, "loans")
        return await proctor.run_async(suite, agent=agent)

    [trial] = asyncio.run(run()).trials
    return trial


def three_turns() -> list[dict[str, Any]]:
    return [
        {
            "input": city,
            "ground_truth": f"turn {n}: {1200 * n / 360:.2f} in {city}",
            "expected_tools": [{"name": "rate", "args": {"city": city}}, {"name": "monthly"}],
        }
        for n, city in enumerate(("Oslo", "Rome", "Lima"), 1)
    ]


def two_tools(talk: Conversation) -> TextReply | ToolCallReply:
    if not talk.results:
        return calls("rate", city=talk.user)
    if len(talk.results) == 1:
        return calls("monthly", amount=1200 * talk.turn)
    return says(f"turn {talk.turn}: {talk.results[1]} in {json.loads(talk.results[0])['city']}")


def test_two_tools_are_used_in_each_of_three_turns(tmp_path: Path) -> None:
    with model_server(two_tools) as server:
        trial = run_file(project(tmp_path, server.url, test_cases=[{"name": "talk", "turns": three_turns()}]))
    assert trial.outcome == "passed", trial
    assert [call.name for reply in trial.replies for call in reply.tool_calls] == ["rate", "monthly"] * 3
    assert trial.replies[0].usage.total_tokens == 54
    assert len(server.requests) == 9
    sent = server.requests[0]
    assert (sent.system, sent.body["temperature"], sent.body["max_tokens"]) == ("You lend money.", 0.6, 50)


def test_a_tool_that_raises_tells_the_model_and_the_report(tmp_path: Path) -> None:
    def script(talk: Conversation) -> TextReply | ToolCallReply:
        return says(f"sorry: {talk.results[-1]}") if talk.results else calls("rate", city="Nowhere")

    truth = "sorry: ValueError: there is no such city"
    with model_server(script) as server:
        trial = run_file(project(tmp_path, server.url, test_cases=[{"input": "Nowhere", "ground_truth": truth}]))
    assert trial.outcome == "passed", trial
    assert trial.replies[0].tool_calls[0].error == "ValueError: there is no such city"


def test_invalid_arguments_are_reported_to_the_model_which_may_try_again(tmp_path: Path) -> None:
    def script(talk: Conversation) -> TextReply | ToolCallReply:
        if talk.asked.number == 0:
            return calls("monthly", amount="much", months=3)
        return says(talk.results[-1]) if len(talk.results) > 1 else calls("monthly", amount=720)

    with model_server(script) as server:
        trial = run_file(project(tmp_path, server.url, test_cases=[{"input": "720", "ground_truth": "2.00"}]))
    assert trial.outcome == "passed", trial
    assert [call.error is None for call in trial.replies[0].tool_calls] == [False, True]


def test_the_command_line_chooses_the_same_backend_and_doctor_says_so(tmp_path: Path) -> None:
    def proctor_says(*arguments: str) -> str:
        command = [sys.executable, "-m", "proctor", *arguments]
        environment = {**os.environ, "HOME": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    with model_server(two_tools) as server:
        project(tmp_path, server.url, test_cases=[{"name": "talk", "turns": three_turns()}])
        assert "1 of 1 cases passed" in proctor_says("test", "agent.yaml")
    assert len(server.requests) == 9
    assert all("Agents/Python" in asked.headers["user-agent"] for asked in server.requests)
    assert "openai-agents" in proctor_says("doctor", "agent.yaml")


def test_an_answer_of_a_given_shape_is_data(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    with model_server(lambda talk: says('{"sum": 42}')) as server:
        trial = run_file(project(tmp_path, server.url, tools=None, response_format=schema))
    assert trial.replies[0].structured == {"sum": 42}
    assert server.requests[0].body["response_format"]["json_schema"]["schema"] == schema


def test_a_server_of_tools_over_stdio_is_used(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    tool = {"name": "desk", "type": "mcp", "command": sys.executable, "args": ["server.py"], "is_retrieval": True}

    def script(talk: Conversation) -> TextReply | ToolCallReply:
        name = next(iter(talk.tools))
        return says("done") if talk.results else calls(name, order="A-17")

    with model_server(script) as server:
        trial = run_file(project(tmp_path, server.url, tools=[tool]))
    [reply] = trial.replies
    assert reply.tool_calls[0].name == "mcp_desk__status"
    assert "A-17 is shipped" in "".join(reply.retrieval_context)


def test_files_are_searched_and_prompts_asked(tmp_path: Path) -> None:
    (tmp_path / "faq.md").write_text("A refund takes 30 days.")
    store = {"name": "faq", "type": "vectorstore", "source": "faq.md", "embedding_model": "e"}
    prompt = {"name": "sum_up", "type": "prompt", "template": "Sum up: {{text}}"}

    def script(talk: Conversation) -> TextReply | ToolCallReply:
        if not talk.tools:
            return says("in short")
        steps = [calls("faq_search", query="refund"), calls("sum_up", text="long"), says("done")]
        return steps[len(talk.results)]

    with model_server(script) as server:
        trial = run_file(project(tmp_path, server.url, tools=[store, prompt]))
    [reply] = trial.replies
    assert reply.retrieval_context == ("A refund takes 30 days.",)
    assert [call.result for call in reply.tool_calls][1] == "in short"


def test_a_tool_that_fails_tells_the_model(tmp_path: Path) -> None:
    def script(talk: Conversation) -> TextReply | ToolCallReply:
        return says(talk.results[-1]) if talk.results else calls("monthly", amount="much")

    with model_server(script) as server:
        trial = run_file(project(tmp_path, server.url))
    assert "arguments are invalid" in trial.replies[0].text
