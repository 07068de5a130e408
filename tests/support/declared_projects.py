"""Projects of one agent.yaml whose model is on the loopback interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

import proctor
from proctor.base.errors import InvalidSuite
from proctor.cases.formats.loading import load
from proctor.cases.suite import Suite
from proctor.compat.holodeck.agent_reader import read_agent
from proctor.compat.holodeck.agent_spec import AgentSpec
from proctor.results.run import Run

TOOLS = """
import enum


class Kind(enum.Enum):
    FIXED = "fixed"
    FLOATING = "floating"


def rate(city: str) -> dict:
    '''The rate in a city.'''
    if city == "Nowhere":
        raise ValueError("there is no such city")
    return {"city": city, "rate": len(city)}


async def monthly(amount: float, years: int = 30) -> str:
    '''What is paid each month.'''
    return f"{amount / years / 12:.2f}"


def kind_of(kind: Kind) -> str:
    return f"it is {kind.name}"


def by_place(*given, last):
    return given


def anything(**given):
    return given


NOT_A_FUNCTION = 3
"""
FUNCTIONS = [
    {"name": "rate", "type": "function", "file": "tools.py", "function": "rate"},
    {"name": "monthly", "type": "function", "file": "tools.py", "function": "monthly", "description": "Pays."},
]


def agent_document(url: str, **more: Any) -> dict[str, Any]:
    """An agent with two tools and one test; `None` leaves a key out."""
    data = {
        "name": "loans",
        "model": {"provider": "openai", "name": "gpt-4o", "endpoint": url},
        "instructions": {"inline": "You lend money."},
        "tools": FUNCTIONS,
        "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
        "test_cases": [{"name": "one", "input": "Oslo", "ground_truth": "done"}],
        **more,
    }
    return {key: value for key, value in data.items() if value is not None}


def project(folder: Path, url: str, **more: Any) -> Path:
    (folder / "tools.py").write_text(TOOLS)
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump(agent_document(url, **more), sort_keys=False))
    return path


def spec_of(suite: Suite) -> AgentSpec:
    """What the agent of a suite is built of; problems say their file and line."""
    assert isinstance(suite.agent, dict)
    try:
        return read_agent(suite.agent["holodeck"], suite.base)[0]
    except InvalidSuite as error:
        raise InvalidSuite([suite.located(problem) for problem in error.problems]) from None


def run_project(folder: Path, url: str, **more: Any) -> Run:
    [suite] = load([project(folder, url, **more)])
    return proctor.run(suite)


def last_reply(folder: Path, url: str, **more: Any) -> Any:
    """The last reply of the only test."""
    [trial] = run_project(folder, url, **more).trials
    assert trial.replies, trial.reason
    return trial.replies[-1]
