from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from declared_projects import FUNCTIONS, last_reply, project, run_project
from judge_server import status
from scripted_model import Conversation, TextReply, ToolCallReply, calls, model_server, says

import proctor
from proctor.agents.resolve import resolve_agent
from proctor.cases.formats.loading import load
from proctor.cases.suite import ToolMock


def two_tools(talk: Conversation) -> TextReply | ToolCallReply:
    """Looks up the rate, then what is paid, then tells both."""
    if not talk.results:
        return calls("rate", city=talk.user)
    if len(talk.results) == 1:
        return calls("monthly", amount=1200 * talk.turn)
    return says(f"turn {talk.turn}: {talk.results[1]} in {json.loads(talk.results[0])['city']}")


CITIES = ("Oslo", "Rome", "Lima")
CONVERSATION: dict[str, Any] = {
    "name": "talk",
    "turns": [
        {
            "input": city,
            "ground_truth": f"turn {n}: {1200 * n / 360:.2f} in {city}",
            "expected_tools": [
                {"name": "rate", "args": {"city": city}},
                {"name": "monthly", "args": {"amount": 1200 * n}},
            ],
        }
        for n, city in enumerate(CITIES, 1)
    ],
}


@pytest.mark.parametrize("provider", ["openai", "anthropic", "ollama"])
def test_two_tools_are_used_in_each_of_three_turns(tmp_path: Path, provider: str) -> None:
    with model_server(two_tools) as server:
        model = {"provider": provider, "name": "m", "endpoint": server.root if provider == "anthropic" else server.url}
        [trial] = run_project(tmp_path, "", model=model, test_cases=[CONVERSATION]).trials
    assert trial.outcome == "passed", trial.scores
    assert [call.name for reply in trial.replies for call in reply.tool_calls] == ["rate", "monthly"] * 3
    assert trial.replies[0].tool_calls[0].result == {"city": "Oslo", "rate": 4}
    assert trial.replies[0].usage == proctor.Usage(33, 21, model_calls=3, model="m")
    assert server.requests[0].system == "You lend money."
    assert len(server.requests) == 9


@pytest.mark.parametrize(
    ("provider", "truth", "code"), [("openai", None, 0), ("anthropic", None, 0), ("anthropic", "x", 1)]
)
def test_the_command_examines_a_conversation_with_tools(
    tmp_path: Path, commanded: Callable[..., tuple[int, str]], provider: str, truth: str | None, code: int
) -> None:
    turns = (
        CONVERSATION["turns"] if truth is None else [*CONVERSATION["turns"][:2], {"input": "c", "ground_truth": truth}]
    )
    with model_server(two_tools) as server:
        model = {"provider": provider, "name": "m", "endpoint": server.root if provider == "anthropic" else server.url}
        project(tmp_path, "", model=model, test_cases=[{"name": "talk", "turns": turns}])
        ended, said = commanded("test", "agent.yaml")
    assert ended == code, said
    assert len(server.requests) == 9
    assert "talk" in said


def test_many_conversations_at_once_are_kept_apart(tmp_path: Path) -> None:
    tests = [{"name": city, "input": city, "ground_truth": f"turn 1: 3.33 in {city}"} for city in map(str, range(24))]
    with model_server(two_tools) as server:
        run = run_project(tmp_path, server.url, test_cases=tests, execution={"parallel_test_cases": 12})
    assert [trial.outcome for trial in run.trials] == ["passed"] * 24


def test_a_tool_that_fails_tells_the_model_and_the_report(tmp_path: Path) -> None:
    def script(talk: Conversation) -> TextReply | ToolCallReply:
        return says(f"sorry: {talk.results[-1]}") if talk.results else calls("rate", city="Nowhere")

    with model_server(script) as server:
        reply = last_reply(tmp_path, server.url)
    assert "ValueError: there is no such city" in reply.text
    assert reply.tool_calls[0].error == "ValueError: there is no such city"


def test_an_empty_answer_is_scored_as_an_empty_answer(tmp_path: Path) -> None:
    metrics = {"metrics": [{"type": "standard", "metric": "equality"}]}
    with model_server(lambda talk: says("")) as server:
        [trial] = run_project(
            tmp_path, server.url, evaluations=metrics, test_cases=[{"input": "Oslo", "ground_truth": "done"}]
        ).trials
    assert trial.outcome == "failed"
    assert trial.replies[0].text == ""
    assert trial.scores[0].reasoning == 'expected "done", got ""'


def test_invalid_arguments_are_reported_to_the_model_which_may_try_again(tmp_path: Path) -> None:
    def script(talk: Conversation) -> TextReply | ToolCallReply:
        if talk.asked.number == 0:
            return calls("monthly", amount="much", months=3)
        return says(talk.results[-1]) if len(talk.results) > 1 else calls("monthly", amount=720)

    with model_server(script) as server:
        reply = last_reply(tmp_path, server.url)
    assert reply.text == "2.00"
    assert [call.error is None for call in reply.tool_calls] == [False, True]


def test_a_case_may_double_the_tools_of_the_file(tmp_path: Path) -> None:
    from dataclasses import replace

    with model_server(two_tools) as server:
        [suite] = load([project(tmp_path, server.url)])
        case = replace(suite.cases[0], mocks={"rate": (ToolMock(result={"city": "doubled"}),)})
        [trial] = proctor.run(replace(suite, cases=(case,))).trials
    assert trial.replies[0].text == "turn 1: 3.33 in doubled"


def test_an_answer_of_a_given_shape_is_data(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}

    def script(talk: Conversation) -> TextReply | ToolCallReply:
        shape = next(name for name, given in talk.tools.items() if "sum" in given["properties"])
        return calls(shape, sum="many" if talk.asked.number == 0 else 42)

    with model_server(script) as server:
        reply = last_reply(tmp_path, server.url, tools=None, response_format=schema)
    assert reply.structured == {"sum": 42}, "the first answer did not fit, and was not taken"
    assert json.loads(reply.text) == {"sum": 42}
    assert reply.tool_calls == ()


def test_the_shape_of_the_answer_may_stand_in_a_file(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}}
    (tmp_path / "shape.json").write_text(json.dumps(schema))
    with model_server(lambda talk: calls(next(iter(talk.tools)), sum=1)) as server:
        reply = last_reply(tmp_path, server.url, tools=None, response_format="shape.json")
    assert reply.structured == {"sum": 1}


def test_a_prompt_is_a_tool_that_asks_a_model(tmp_path: Path) -> None:
    def script(talk: Conversation) -> TextReply | ToolCallReply:
        if talk.asked.body["model"] == "small":
            return says(f"[{talk.user}]")
        return says(talk.results[-1]) if talk.results else calls("sum_up", text="long story {{text}}")

    with model_server(script) as server:
        model = {"provider": "openai", "name": "small", "endpoint": server.url, "temperature": 1.5}
        tool = {"name": "sum_up", "type": "prompt", "template": "Sum up: {{text}}", "model": model}
        reply = last_reply(tmp_path, server.url, tools=[tool])
    assert reply.text == "[Sum up: long story {{text}}]", "what fills a gap is not filled in again"
    assert server.requests[1].body["temperature"] == 1.5


def test_instructions_may_stand_in_a_file_whose_notes_are_not_said(tmp_path: Path) -> None:
    (tmp_path / "said.md").write_text("---\nversion: 3\n---\n\nBe kind.\n")
    with model_server(lambda talk: says("done")) as server:
        last_reply(tmp_path, server.url, instructions={"file": "said.md"})
    assert server.requests[0].system.strip() == "Be kind."


def test_a_busy_model_is_asked_again_and_is_not_the_agents_fault(tmp_path: Path) -> None:
    with model_server(lambda talk: status(503) if talk.asked.number < 1 else says("done")) as server:
        [trial] = run_project(tmp_path, server.url).trials
    assert trial.outcome == "passed"
    assert len(server.requests) == 2
    with model_server(lambda talk: status(503)) as server:
        [suite] = load([project(tmp_path, server.url)])
        [trial] = proctor.run(suite, retries=0).trials
    assert trial.outcome == "error", trial.reason
    assert "openai:gpt-4o failed with a server error" in trial.reason


def test_a_key_is_read_from_the_environment_when_it_is_needed_and_never_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-verysecret")
    with model_server(lambda talk: status(401, "bad key sk-verysecret")) as server:
        model = {"provider": "openai", "name": "m", "endpoint": server.url, "api_key": "${MY_KEY}"}
        [trial] = run_project(tmp_path, "", model=model).trials
    assert server.requests[0].headers["authorization"] == "Bearer sk-verysecret"
    assert "sk-verysecret" not in repr(trial)


def fingerprint(folder: Path, url: str, **more: Any) -> str:
    [suite] = load([project(folder, url, **more)])
    return resolve_agent(suite.agent, suite.base).fingerprint


def test_the_fingerprint_changes_with_what_changes_the_agent(tmp_path: Path) -> None:
    first = fingerprint(tmp_path, "http://127.0.0.1:1/v1")
    assert fingerprint(tmp_path, "http://127.0.0.1:1/v1") == first
    assert fingerprint(tmp_path, "http://127.0.0.1:1/v1", instructions={"inline": "Be brief."}) != first
    assert fingerprint(tmp_path, "http://127.0.0.1:1/v1", tools=FUNCTIONS[:1]) != first
    assert fingerprint(tmp_path, "http://127.0.0.1:2/v1") != first


def test_a_folder_that_is_called_like_an_sdk_is_not_an_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "claude_agent_sdk").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    model = {"provider": "anthropic", "name": "m", "endpoint": "http://127.0.0.1:9"}
    [suite] = load([project(tmp_path, "", model=model)])
    assert "pydantic-ai" in repr(resolve_agent(suite.agent, suite.base))


def test_a_file_that_changes_after_it_was_read_does_not_mix_two_versions(tmp_path: Path) -> None:
    """Cases, agent and model all come from the text that was read first."""
    tests = [{"name": "one", "input": "Oslo", "ground_truth": "You lend money."}]
    with model_server(lambda talk: says("You lend money.")) as server:
        file = project(tmp_path, server.url, test_cases=tests)
        suites = load([file])
        file.write_text(file.read_text().replace("You lend money.", "You sell cars."))
        [trial] = proctor.run(suites[0]).trials
    assert server.requests[0].system == "You lend money."
    assert trial.outcome == "passed", trial.scores
