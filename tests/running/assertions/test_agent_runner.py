"""`AgentRunner`: what comes back from any kind of agent, and calling its tools again."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from proctor.agents.reply import Reply, ToolCall
from proctor.base.errors import AgentFailed, ProctorError, UsageError
from proctor.cases.suite import Case, Expected, ExpectedCall, Turn
from proctor.evaluators.tools.checks import ToolTrajectory
from proctor.running.assertions.agent_runner import AgentRunner
from proctor.tracing.tool import tool

COMPLETION = {
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "3"},
        {"role": "assistant", "content": "It is 3."},
    ]
}


class LoanRequest(BaseModel):
    amount: Decimal
    months: int


@dataclass
class Payment:
    monthly: Decimal


def pay(request: LoanRequest) -> Payment:
    return Payment(request.amount / request.months)


def test_tool_calls_are_taken_from_the_messages_of_a_reply_with_their_arguments_parsed() -> None:
    run = AgentRunner(lambda question: COMPLETION).run_test_case("1 + 2?")

    assert run.actual_output == run["actual_output"] == "It is 3."
    assert run.tools_called == ["add"]
    assert run.tool_calls_with_args == [{"name": "add", "arguments": {"a": 1, "b": 2}}]
    assert run.retrieval_context == ["3"]
    assert json.loads(json.dumps(run))["tools_called"] == ["add"]


def test_tools_marked_with_tool_are_recorded_with_their_results() -> None:
    @tool
    def add(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    run = AgentRunner(lambda question: str(add(a=1, b=2))).run_test_case("1 + 2?")

    assert run.tool_calls_with_args == [{"name": "add", "arguments": {"a": 1, "b": 2}}]
    assert run.retrieval_context == ['{"sum": 3}']


def test_an_agent_that_calls_no_tool_has_empty_lists() -> None:
    run = AgentRunner(lambda question: "hello").run_test_case("hi")

    assert (run.tools_called, run.tool_calls_with_args, run.retrieval_context) == ([], [], [])
    assert run.error is None


def test_arguments_that_are_not_json_are_kept_as_the_model_wrote_them() -> None:
    run = AgentRunner(lambda question: Reply("x", (ToolCall.parse("add", "{a: 1"),))).run_test_case("hi")

    assert run.tool_calls_with_args == [{"name": "add", "arguments": {}, "raw_arguments": "{a: 1"}]


def test_an_agent_that_raises_has_failed() -> None:
    def agent(question: str) -> str:
        raise KeyError("lost")

    with pytest.raises(AgentFailed, match="the agent raised KeyError: 'lost'"):
        AgentRunner(agent).run_test_case("hi")


def test_an_agent_that_hangs_is_left_behind() -> None:
    async def agent(question: str) -> str:
        await asyncio.sleep(60)
        return ""

    with pytest.raises(AgentFailed, match=r"no answer within 0\.2 s"):
        AgentRunner(agent, timeout=0.2).run_test_case("hi")


def test_the_asynchronous_form_works_where_a_loop_is_running() -> None:
    async def main() -> str:
        run = await AgentRunner(lambda question: "hello").run_test_case_async("hi")
        return str(run.actual_output)

    assert asyncio.run(main()) == "hello"


def test_tools_are_called_again_with_the_agents_own_arguments_and_results_become_json() -> None:
    calls = (ToolCall("pay", {"amount": 100, "months": 8}), ToolCall("pay", {"amount": 1}), ToolCall("other", result=7))
    run = AgentRunner(lambda question: Reply("x", calls), tools=[pay]).run_test_case("hi")

    first, third = run.retrieval_context
    assert json.loads(first) == {"monthly": 12.5}
    assert third == "7"
    assert "months" in run.reexecuted[1]["error"]


def test_what_is_not_a_tool_is_refused() -> None:
    with pytest.raises(UsageError, match="is not a tool"):
        AgentRunner(lambda question: "x", tools=[3])


def test_what_a_run_does_not_have_is_reported_with_what_it_has() -> None:
    run = AgentRunner(lambda question: "hello").run_test_case("hi")

    with pytest.raises(AttributeError, match="actual_output"):
        _ = run.answer
    with pytest.raises(KeyError):
        _ = run["answer"]


def test_the_evaluable_of_a_run_is_what_evaluators_see_in_a_suite() -> None:
    run = AgentRunner(lambda question: COMPLETION).run_test_case("1 + 2?")

    assert run.evaluable.output == "It is 3."
    assert run.evaluable.retrieval_context == ("3",)
    assert [call.name for call in run.evaluable.tool_calls] == ["add"]


def test_calls_of_several_turns_are_compared_with_what_all_turns_expect() -> None:
    def expects(name: str) -> Expected:
        return Expected(tools=(ExpectedCall(name),))

    def agent(question: str) -> Reply:
        return Reply("done", (ToolCall(question),))

    case = Case(id="trip", turns=(Turn("search", expects("search")), Turn("book", expects("book"))))
    [run] = AgentRunner(agent).run_cases([case])

    verdict = ToolTrajectory()(run.evaluable)
    assert verdict is not None
    assert verdict.score == 1.0


def test_the_answer_of_a_run_is_the_one_that_evaluators_see() -> None:
    run = AgentRunner(lambda question: Reply("Here it is.", structured={"total": 3})).run_test_case("hi")

    assert json.loads(run.actual_output) == {"total": 3}
    assert run.evaluable.output == {"total": 3}


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_whatever_a_tool_gives_back_becomes_text(result: Any) -> None:
    run = AgentRunner(lambda question: Reply("x", (ToolCall("t", result=result),))).run_test_case("hi")

    assert all(isinstance(passage, str) for passage in run.retrieval_context)


def test_cases_may_be_dicts_as_test_modules_write_them() -> None:
    cases = [{"id": "a", "input": "hello", "expected_output_contains": ["hel"]}, {"id": "b", "input": {"x": 1}}]
    first, second = AgentRunner(lambda question: f"{question}").run_cases(cases)
    assert (first["id"], first["actual_output"], first["expected_output_contains"]) == ("a", "hello", ["hel"])
    assert (second["id"], second["input"]) == ("b", {"x": 1})


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ({"id": "a", "inputs": "hello"}, "a case has no 'inputs'; did you mean 'input'?"),
        ({"id": "a"}, "needs 'input'"),
        ("hello", "a case must be a Case or a dict with 'id' and 'input', not str"),
        ({"id": "a", "input": "x", "expected_output_contains": []}, "is empty; add at least one word"),
    ],
)
def test_what_is_not_a_case_is_refused_by_name(case: Any, told: str) -> None:
    with pytest.raises(ProctorError, match=re.escape(told)):
        AgentRunner(lambda question: question).run_cases([case])
