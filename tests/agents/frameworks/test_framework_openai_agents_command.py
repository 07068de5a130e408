"""`proctor test agent.yaml` with the real openai-agents, in an environment of its own, and a model on this machine."""

from __future__ import annotations

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

AGENT = """
import os

from openai import AsyncOpenAI

from agents import Agent, OpenAIChatCompletionsModel, function_tool


@function_tool
def rate(city: str) -> dict:
    '''The rate in a city.'''
    return {"city": city, "rate": len(city)}


@function_tool
async def monthly(amount: float, years: int = 30) -> str:
    '''What is paid each month.'''
    return f"{amount / years / 12:.2f}"


client = AsyncOpenAI(base_url=os.environ["MODEL_URL"], api_key="none")
loans = Agent(
    name="loans",
    instructions="You lend money.",
    model=OpenAIChatCompletionsModel("gpt-4o", client),
    tools=[rate, monthly],
)
"""
CITIES = ("Oslo", "Rome", "Lima")


def two_tools(talk: Conversation) -> TextReply | ToolCallReply:
    if not talk.results:
        return calls("rate", city=talk.user)
    if len(talk.results) == 1:
        return calls("monthly", amount=1200 * talk.turn, years=30)
    return says(f"turn {talk.turn}: {talk.results[1]} in {talk.user}")


def turn(number: int, city: str, **more: Any) -> dict[str, Any]:
    expected = [{"name": "rate", "args": {"city": city}}, {"name": "monthly", "args": {"amount": 1200 * number}}]
    truth = f"turn {number}: {1200 * number / 360:.2f} in {city}"
    return {"input": city, "ground_truth": truth, "expected_tools": expected, **more}


@pytest.mark.parametrize(("wrong", "code"), [({}, 0), ({"ground_truth": "something else"}, 1)])
def test_two_tools_in_three_turns_pass_or_fail_by_what_was_said(
    tmp_path: Path, wrong: dict[str, Any], code: int
) -> None:
    (tmp_path / "desk.py").write_text(AGENT)
    turns = [turn(n, city, **(wrong if n == 3 else {})) for n, city in enumerate(CITIES, 1)]
    data = {
        "name": "loans",
        "agent": "desk.py:loans",
        "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
        "test_cases": [{"name": "talk", "turns": turns}],
    }
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    command = [sys.executable, "-m", "proctor", "test", "agent.yaml", "--json", "report.json"]
    with model_server(two_tools) as server:
        environment = {**os.environ, "MODEL_URL": server.url, "HOME": str(tmp_path)}
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert len(server.requests) == 9
    heard = [said["content"] for said in server.requests[-1].messages if said["role"] == "user"]
    assert heard == list(CITIES), "the third turn has heard the first two"
    told = json.dumps(json.loads((tmp_path / "report.json").read_text()))
    assert told.count('"monthly"') >= 3
