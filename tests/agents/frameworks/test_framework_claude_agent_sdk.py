"""Runs with the real claude-agent-sdk in an environment of its own: `make frameworks-all`. Starts no Claude Code."""

from __future__ import annotations

import asyncio
import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
from framework_contract import PROMPTS, TOOL_INPUTS, FrameworkContract, case, rate_of, run_cases, two_turns

import proctor
from proctor.agents.frameworks.claude_agent_sdk import ClaudeAgent
from proctor.cases.suite import Case, ToolMock, Turn

pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk has an environment of its own: make frameworks-all")

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, create_sdk_mcp_server, tool
from claude_code import RuledClaudeCode

pytestmark = pytest.mark.filterwarnings("ignore")


@tool("get_rate", "The rate in a city.", {"city": str})
async def get_rate(arguments: dict[str, Any]) -> dict[str, Any]:
    said = await asyncio.to_thread(rate_of, arguments["city"])  # a tool that blocks the loop cannot be ended
    return {"content": [{"type": "text", "text": said}]}


OPTIONS = ClaudeAgentOptions(
    system_prompt="Use tools.", mcp_servers={"rates": create_sdk_mcp_server("rates", tools=[get_rate])}
)


def step(questions: list[str], result: Any) -> Any:
    """Calls one tool with the user's words, then tells its result."""
    PROMPTS.append(list(questions))
    return f"It says {result}" if result else SimpleNamespace(name="get_rate", arguments={"city": questions[-1]})


def agent(decide: Any = step, options: Any = OPTIONS, seen: list[Any] | None = None) -> ClaudeAgent:
    def client(given: Any) -> ClaudeSDKClient:
        if seen is not None:
            seen.append(given)
        return ClaudeSDKClient(given, RuledClaudeCode("rates", decide))

    return ClaudeAgent(options, "rates", client)


class Replay(RuledClaudeCode):
    """Answers every question with the same frames."""

    def __init__(self, *turns: list[dict[str, Any]]) -> None:
        super().__init__("rates", step)
        self._left = list(turns)

    async def _answer(self) -> None:
        for frame in self._left.pop(0):
            await self._frames.put(frame)


def replayed(*turns: list[dict[str, Any]]) -> ClaudeAgent:
    return ClaudeAgent(OPTIONS, "replay", lambda given: ClaudeSDKClient(given, Replay(*turns)))


def used(identity: str, name: str, parent: str | None = None) -> dict[str, Any]:
    block = {"type": "tool_use", "id": identity, "name": name, "input": {"of": identity}}
    return {"type": "assistant", "parent_tool_use_id": parent, "message": {"model": "m", "content": [block]}}


def told(identity: str, content: Any, parent: str | None = None, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": identity, "content": content, **more}
    return {"type": "user", "parent_tool_use_id": parent, "message": {"role": "user", "content": [block]}}


def result(text: str = "done", **more: Any) -> dict[str, Any]:
    fixed = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "session_id": "s"}
    return {**fixed, "duration_ms": 1, "duration_api_ms": 1, "result": text, **more}


class TestClaudeAgentSdk(FrameworkContract):
    counts_tokens_as_it_goes = False
    folder = "claude_agent_sdk"
    source = "from claude_agent_sdk import ClaudeAgentOptions\nagent = ClaudeAgentOptions(system_prompt='Be kind')\n"

    def agent(self) -> Any:
        return agent()

    def broken_agent(self) -> Any:
        return replayed([result("the model is on strike", is_error=True)])

    def other_agents(self) -> list[Any]:
        return [agent(options=dataclasses.replace(OPTIONS, system_prompt="Be brief"))]

    def result(self, told: str) -> Any:
        return told


def test_each_turn_tells_its_own_cost() -> None:
    (trial,) = run_cases(agent(), two_turns())
    assert [reply.usage and reply.usage.cost_usd for reply in trial.replies] == pytest.approx([0.01, 0.01])


def test_tokens_by_model_are_told_for_the_session_and_counted_for_the_turn() -> None:
    def spent(tokens: int) -> dict[str, Any]:
        return {"modelUsage": {"a": {"inputTokens": tokens, "outputTokens": 1, "cacheReadInputTokens": tokens}}}

    turns = [[result(**spent(100))], [result(**spent(250))]]
    (trial,) = run_cases(replayed(*turns), Case(id="two", turns=(Turn("a"), Turn("b"))))
    assert [reply.usage and reply.usage.input_tokens for reply in trial.replies] == [200, 300]


def test_calls_of_a_subagent_are_inside_the_call_that_started_it_and_parallel_calls_are_not() -> None:
    frames = [
        used("t1", "Task"),
        used("t2", "Read"),
        used("i1", "mcp__rates__get_rate", "t1"),
        told("t2", [{"type": "text", "text": "a file"}]),
        told("i1", "rate", "t1"),
        told("t1", "the report"),
        result(),
    ]
    (trial,) = run_cases(replayed(frames), Case(id="a", turns=(Turn("a"),)))
    calls = [(call.name, call.result, call.parent) for call in trial.replies[0].tool_calls]
    assert calls == [("Task", "the report", None), ("Read", "a file", None), ("get_rate", "rate", "t1")]


def test_the_report_of_a_background_task_does_not_end_the_turn() -> None:
    aside = result("a task has ended", origin={"kind": "task-notification"})
    (trial,) = run_cases(replayed([aside, result("the answer")]), Case(id="a", turns=(Turn("a"),)))
    assert trial.replies[0].text == "the answer"


def test_a_tool_beside_a_mocked_one_is_called() -> None:
    (trial,) = run_cases(agent(), case("Oslo", mocks={"another": (ToolMock(result="mocked"),)}))
    assert TOOL_INPUTS == ["Oslo"]
    assert trial.outcome == "passed"


def test_mocks_at_once_answer_their_own_trials() -> None:
    cases = [case(f"city{i}", mocks={"get_rate": (ToolMock(result=f"mock {i}"),)}) for i in range(12)]
    for number, trial in enumerate(run_cases(agent(), *cases)):
        assert trial.replies[0].text == f"It says mock {number}"


def test_a_mocked_tool_of_claude_code_itself_is_refused_and_says_so() -> None:
    def reading(questions: list[str], told: Any) -> Any:
        return f"It says {told}" if told else SimpleNamespace(name="Bash", arguments={"command": "ls"})

    (trial,) = run_cases(agent(reading), case("Oslo", mocks={"Bash": (ToolMock(result="mocked"),)}))
    assert trial.outcome != "passed"
    assert "the case mocks Bash" in trial.reason


def test_mocks_without_a_server_of_the_application_are_refused_before_anything_runs() -> None:
    target = ClaudeAgent(ClaudeAgentOptions())
    assert "in-process" in str(target.check(case("Oslo", mocks={"Bash": (ToolMock(result="x"),)})))
    assert target.check(case("Oslo")) is None


def test_no_trial_goes_on_with_the_session_of_another() -> None:
    seen: list[Any] = []
    options = dataclasses.replace(OPTIONS, continue_conversation=True, session_id="fixed")
    run_cases(agent(options=options, seen=seen), case("Oslo"))
    run_cases(agent(options=dataclasses.replace(OPTIONS, resume="earlier"), seen=seen), case("Oslo"))
    assert [(given.session_id, given.continue_conversation) for given in seen] == [(None, False)] * 2
    assert (seen[1].resume, seen[1].fork_session) == ("earlier", True)
    assert (options.session_id, options.continue_conversation) == ("fixed", True)


def test_hooks_of_the_application_are_kept_beside_those_for_mocks() -> None:
    heard: list[str] = []

    async def hook(call: Any, *_: Any) -> dict[str, Any]:
        heard.append(call["tool_name"])
        return {}

    options = dataclasses.replace(OPTIONS, hooks={"PreToolUse": [HookMatcher(hooks=[hook])]})
    run_cases(agent(options=options), case("Oslo", mocks={"get_rate": (ToolMock(result="mocked"),)}))
    assert heard == ["mcp__rates__get_rate"]
    assert len(options.hooks["PreToolUse"]) == 1


def test_an_answer_with_a_schema_is_data() -> None:
    (trial,) = run_cases(replayed([result("", structured_output={"city": "Oslo"})]), Case(id="a", turns=(Turn("a"),)))
    assert trial.replies[0].structured == {"city": "Oslo"}
    assert trial.replies[0].text == '{"city": "Oslo"}'


def test_a_result_that_is_an_error_is_a_failure_with_its_reason() -> None:
    (trial,) = run_cases(replayed([result("out of turns", is_error=True)]), case("Oslo"))
    assert trial.outcome == "failed"
    assert "out of turns" in trial.reason


def test_a_busy_service_is_not_held_against_the_agent() -> None:
    async def ask() -> None:
        target = replayed([result("overloaded", is_error=True, api_error_status=529)])
        async with target.session(case("Oslo")) as session:
            await session.send(Turn("Oslo"))

    with pytest.raises(proctor.base.errors.AgentFailed) as caught:
        asyncio.run(ask())
    assert caught.value.transient
