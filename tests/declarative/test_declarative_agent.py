from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from scripted_model import Calls, Says, Talk, calls, model_server, says

import proctor
from proctor.cases.formats.loading import load
from proctor.results.model import Run

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
FUNCTIONS = [
    {"name": "rate", "type": "function", "file": "tools.py", "function": "rate"},
    {"name": "monthly", "type": "function", "file": "tools.py", "function": "monthly", "description": "Pays."},
]


def project(folder: Path, url: str, tests: list[Any] | None = None, **more: Any) -> Path:
    """An agent.yaml whose model is at `url`, with two tools."""
    (folder / "tools.py").write_text(TOOLS)
    data = {
        "name": "loans",
        "model": {"provider": "openai", "name": "gpt-4o", "endpoint": url},
        "instructions": {"inline": "You lend money."},
        "tools": FUNCTIONS,
        "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
        "test_cases": tests or [{"name": "one", "input": "Oslo", "ground_truth": "told"}],
        **more,
    }
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


def ran(path: Path) -> Run:
    [suite] = load([path])
    return proctor.run(suite)


def two_tools(talk: Talk) -> Says | Calls:
    """Looks up the rate, then what is paid, then tells both."""
    if not talk.results:
        return calls("rate", city=talk.user)
    if len(talk.results) == 1:
        return calls("monthly", amount=1200 * talk.turn)
    return says(f"turn {talk.turn}: {talk.results[1]} in {json.loads(talk.results[0])['city']}")


def test_two_tools_in_three_turns(tmp_path: Path) -> None:
    turns = [
        {
            "input": city,
            "ground_truth": f"turn {n}: {1200 * n / 360:.2f} in {city}",
            "expected_tools": [
                {"name": "rate", "args": {"city": city}},
                {"name": "monthly", "args": {"amount": 1200 * n}},
            ],
        }
        for n, city in enumerate(("Oslo", "Rome", "Lima"), 1)
    ]
    with model_server(two_tools) as server:
        [trial] = ran(project(tmp_path, server.url, [{"name": "talk", "turns": turns}])).trials
    assert trial.outcome == "passed", [(score.reason, score.evaluation) for score in trial.scores]
    assert [call.name for reply in trial.replies for call in reply.tool_calls] == ["rate", "monthly"] * 3
    assert trial.replies[0].tool_calls[0].result == {"city": "Oslo", "rate": 4}
    assert trial.replies[0].usage == proctor.Usage(33, 21, model_calls=3)
    assert server.requests[0].system == "You lend money."
    assert len(server.requests) == 9
