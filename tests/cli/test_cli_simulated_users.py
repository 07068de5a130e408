"""What a run tells of the model that played its users."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judge_server import ModelRequest, judge_server

Command = Callable[..., Any]

AGENT = """
def agent(question, history):
    return "Which order?" if not history else "It will be refunded."
"""

SCENARIO = {"start": "I want a refund.", "plan": "You want a refund for order A-1. Say the number when asked."}


def plays(asked: ModelRequest) -> dict[str, Any]:
    said = asked.prompt.count("user:")
    if said == 1:
        return {"reason": "asked for the order", "status": "says", "message": "Order A-1."}
    return {"reason": "done", "status": "finished", "message": ""}


def write_project(folder: Path, url: str, **scenario: Any) -> None:
    (folder / "desk.py").write_text(AGENT, encoding="utf-8")
    suite = {
        "name": "desk",
        "agent": "desk.py:agent",
        "judge": {"model": "openai:scripted", "base_url": url},
        "cases": [{"id": "refund", "scenario": {**SCENARIO, **scenario}}],
        "evaluators": [{"Contains": {"any": ["order", "refunded"]}}],
    }
    (folder / "desk.json").write_text(json.dumps(suite), encoding="utf-8")


def test_the_calls_that_played_a_user_are_listed_beside_those_of_judges(proctor: Command, project: Path) -> None:
    with judge_server(plays) as server:
        write_project(project, server.url)
        assert proctor("test", "desk.json").code == 0
        assert len(server.requests) == 2
    brief = proctor("show", "--judge-calls")
    assert "desk/refund  simulated user by openai:scripted" in brief.out
    assert brief.out.count("next-user-message v2 by openai:scripted") == 2
    assert "the user ended it" in brief.out
    assert "say the number when asked" not in brief.out.lower()
    full = proctor("show", "--judge-calls", "-v")
    assert "say the number when asked" in full.out.lower()
    assert '"message": "Order A-1."' in full.out


def test_as_data_they_have_their_words_and_what_they_cost(proctor: Command, project: Path) -> None:
    with judge_server(plays) as server:
        write_project(project, server.url)
        proctor("test", "desk.json")
    shown = json.loads(proctor("show", "--judge-calls", "--json", "-").out)
    (user,) = shown["users"]
    assert (user["case"], user["model"], user["ended"]) == ("refund", "openai:scripted", "the user ended it")
    assert [call["kind"] for call in user["calls"]] == ["next-user-message"] * 2
    assert all(call["version"] == 2 and call["model"] == "openai:scripted" for call in user["calls"])
    assert "Order A-1." in user["calls"][0]["reply"]
    assert user["usage"]["input_tokens"] > 0


def test_a_user_who_broke_down_is_listed_with_the_reply_that_did_not_fit(proctor: Command, project: Path) -> None:
    def refuses(asked: ModelRequest) -> dict[str, Any]:
        return {"reason": "it is not safe", "status": "cannot", "message": ""}

    with judge_server(refuses) as server:
        write_project(project, server.url)
        assert proctor("test", "desk.json").code == 4
    ended = proctor("show", "--judge-calls", "--failed")
    assert "ERROR  desk/refund  simulated user by openai:scripted" in ended.out
    assert "it is not safe" in ended.out
    assert "first reply rejected" in ended.out


@pytest.mark.parametrize("given", [["--case", "refund"], ["-k", "refund"]])
def test_only_those_of_chosen_cases_are_listed(proctor: Command, project: Path, given: list[str]) -> None:
    with judge_server(plays) as server:
        write_project(project, server.url)
        proctor("test", "desk.json")
    assert "simulated user by" in proctor("show", "--judge-calls", *given).out
    assert proctor("show", "--judge-calls", "-k", "other").out == ""


def test_a_simulated_user_stays_in_this_process_while_the_agent_is_on_a_worker(proctor: Command, project: Path) -> None:
    with judge_server(plays) as server:
        write_project(project, server.url)
        ended = proctor("test", "desk.json", "--workers", "1", "--json", "report.json")
        assert ended.code == 0, ended.out + ended.err
        assert len(server.requests) == 2
    (trial,) = json.loads((project / "report.json").read_text(encoding="utf-8"))["trials"]
    assert [reply["text"] for reply in trial["replies"]] == ["Which order?", "It will be refunded."]
