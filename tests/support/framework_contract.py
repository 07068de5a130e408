"""What the adapter of every framework must do: a test file subclasses `FrameworkContract` and builds the agents."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.agents.resolve import resolve_agent
from proctor.agents.tool_rerun import rerun_tools
from proctor.agents.tools import find_tools
from proctor.base.json_data import Json
from proctor.cases.suite import Case, EvaluatorSpec, Expected, ExpectedCall, Settings, Suite, ToolMock, Turn

TOOL_INPUTS: list[str] = []
"""The cities that the real tool was called with since the last run began."""
NEVER = threading.Event()
"""Never set: the tool does not come back from Pompeii."""
PROMPTS: list[list[str]] = []
"""For each model call, everything that the user had said until then."""


def rate_of(city: str) -> str:
    """What the tool `get_rate` of every agent does."""
    TOOL_INPUTS.append(city)
    if city == "Pompeii":
        NEVER.wait(60)
    if city == "Atlantis":
        raise ValueError("no such city")
    return f"rate of {city}"


def case(name: str, **more: Any) -> Case:
    """Asks for the rate in the city `name`, and expects that the tool is called with it."""
    return Case(id=name, turns=(Turn(name, Expected(tools=(ExpectedCall("get_rate", {"city": name}),))),), **more)


def two_turns(**more: Any) -> Case:
    return Case(
        id="two", turns=(Turn("Oslo"), Turn("Rome")), evaluators=(EvaluatorSpec("ToolCount", {"exactly": 1}),), **more
    )


def run_cases(target: Any, *cases: Case) -> list[proctor.Trial]:
    TOOL_INPUTS.clear()
    PROMPTS.clear()
    suite = Suite("contract", cases, evaluators=(EvaluatorSpec("ToolTrajectory"),))
    return list(proctor.run(suite, agent=target).trials)


class FrameworkContract:
    """The model of every agent calls `get_rate` with the user's words, then tells the result that it was given.

    It counts 11 tokens in and 7 out for each call, and notes in `HEARD` what the user said.
    """

    folder: str
    """The name of the adapter, and the folder of the framework's example."""
    source: str
    """A module with a smallest agent, called `agent`."""
    model_calls = 2
    raising_tool_fails_the_run = False
    """Whether the framework gives up when a tool raises, instead of telling the model."""
    counts_tokens_as_it_goes = True
    """Whether the framework tells what a model call took before the whole run is over."""
    outer_tool = "ask_rates"

    def agent(self) -> Any:
        raise NotImplementedError

    def broken_agent(self) -> Any:
        """Its model raises "the model is on strike"."""
        raise NotImplementedError

    def other_agents(self) -> list[Any]:
        """Each differs from `agent()` and from the others."""
        raise NotImplementedError

    def remembering_agent(self) -> Any:
        """Needed where the framework remembers only on request."""
        return self.agent()

    def visiting_agent(self) -> Any:
        """Its tool says "rate of CITY for CUSTOMER", with the customer in the state, and adds the city to `seen`."""
        pytest.skip("the tools of this framework have no state")

    def silent_agent(self) -> Any:
        """Its model counts no tokens."""
        pytest.skip("the models of this framework always count tokens")

    def nested_agent(self) -> Any:
        """Its tool `outer_tool` asks `agent()`."""
        pytest.skip("the tools of this framework ask no agents in this process")

    def agent_with_one_id(self) -> Any:
        """Its model calls `get_rate` and then, with the same id, `other`, as services do that number each response."""
        pytest.skip("the ids of calls in this framework are its own")

    def result(self, told: str) -> Json:
        """What the tool returns when it says `told`."""
        return {"rate": told}

    def test_text_calls_with_results_and_tokens_are_seen(self) -> None:
        (trial,) = run_cases(self.agent(), case("Oslo"))
        (reply,) = trial.replies
        (call,) = reply.tool_calls
        assert trial.outcome == "passed", trial.reason
        assert "rate of Oslo" in reply.text
        assert (call.name, dict(call.arguments)) == ("get_rate", {"city": "Oslo"})
        assert (call.result, call.error) == (self.result("rate of Oslo"), None)
        assert call.duration_ms is not None
        assert call.started_at is not None
        assert reply.usage is not None
        tokens = (reply.usage.input_tokens, reply.usage.output_tokens)
        assert (*tokens, reply.usage.model_calls) == (11 * self.model_calls, 7 * self.model_calls, self.model_calls)

    def test_tokens_that_the_model_does_not_count_are_unknown_rather_than_zero(self) -> None:
        (trial,) = run_cases(self.silent_agent(), case("Oslo"))
        assert trial.replies[0].usage == proctor.Usage(model_calls=self.model_calls)

    def test_many_at_once_do_not_mix(self) -> None:
        names = [f"city{number}" for number in range(24)]
        for trial in run_cases(self.agent(), *map(case, names)):
            (reply,) = trial.replies
            (call,) = reply.tool_calls
            assert trial.outcome == "passed", trial.reason
            assert re.search(rf"rate of {trial.case.id}\b", reply.text)
            assert call.result == self.result(f"rate of {trial.case.id}")
        assert sorted(TOOL_INPUTS) == sorted(names)

    def test_many_at_once_keep_their_state_apart(self) -> None:
        names = [f"city{number}" for number in range(24)]
        for trial in run_cases(
            self.visiting_agent(), *(case(name, state={"customer": name.upper()}) for name in names)
        ):
            (reply,) = trial.replies
            name = trial.case.id
            assert trial.outcome == "passed", trial.reason
            assert re.search(rf"rate of {name} for {name.upper()}\b", reply.text)
            assert reply.state is not None
            assert (reply.state["customer"], reply.state["seen"]) == (name.upper(), [name])

    def test_turns_of_one_case_share_what_was_said_and_two_trials_do_not(self) -> None:
        target = self.remembering_agent()
        (trial,) = run_cases(target, two_turns())
        assert trial.outcome == "passed", trial.reason
        assert PROMPTS[-1] == ["Oslo", "Rome"]
        assert [len(reply.tool_calls) for reply in trial.replies] == [1, 1]
        assert [reply.usage and reply.usage.model_calls for reply in trial.replies] == [self.model_calls] * 2
        run_cases(target, case("Bonn"))
        assert PROMPTS[-1] == ["Bonn"]

    def test_turns_of_one_case_share_a_state(self) -> None:
        (trial,) = run_cases(self.visiting_agent(), two_turns(state={"customer": "Ann"}))
        assert [reply.state and reply.state["seen"] for reply in trial.replies] == [["Oslo"], ["Oslo", "Rome"]]

    def test_what_an_inner_agent_does_is_inside_the_call_of_it_and_its_tokens_count(self) -> None:
        target = self.nested_agent()
        steps = {"steps": [{"name": self.outer_tool, "steps": ["get_rate"]}], "extra": False}
        cases = tuple(Case(id=name, turns=(Turn(name),)) for name in ("Oslo", "Rome", "Bonn"))
        suite = Suite("nested", cases, evaluators=(EvaluatorSpec("Trajectory", steps),))
        for trial in proctor.run(suite, agent=target).trials:
            (reply,) = trial.replies
            outside, inside = reply.tool_calls
            assert (outside.name, inside.name, inside.parent) == (self.outer_tool, "get_rate", outside.id)
            assert dict(inside.arguments) == {"city": trial.case.id}
            assert f"rate of {trial.case.id}" in str(outside.result)
            assert trial.outcome == "passed", trial.scores
            assert reply.usage is not None
            assert (reply.usage.model_calls, reply.usage.input_tokens) == (4, 44)

    def test_two_calls_with_one_id_are_two_calls(self) -> None:
        (trial,) = run_cases(self.agent_with_one_id(), Case(id="Oslo", turns=(Turn("Oslo"),)))
        (reply,) = trial.replies
        assert [call.name for call in reply.tool_calls] == ["get_rate", "other"], trial.reason
        assert all(call.error is None and call.result is not None for call in reply.tool_calls)
        assert len({call.id for call in reply.tool_calls}) == 2

    def test_a_mocked_tool_is_not_called(self) -> None:
        mock = ToolMock(result=self.result("mocked"))
        (trial,) = run_cases(self.agent(), case("Oslo", mocks={"get_rate": (mock,)}))
        assert TOOL_INPUTS == []
        assert "mocked" in trial.replies[0].text
        assert trial.replies[0].tool_calls[0].result == self.result("mocked")

    def test_a_mocked_tool_of_an_inner_agent_is_not_called(self) -> None:
        mock = ToolMock(result=self.result("mocked"))
        (trial,) = run_cases(self.nested_agent(), case("Oslo", mocks={"get_rate": (mock,)}))
        assert TOOL_INPUTS == []
        assert "mocked" in trial.replies[0].text

    def test_a_mock_that_fails_is_seen_with_its_reason(self) -> None:
        (trial,) = run_cases(self.agent(), case("Oslo", mocks={"get_rate": (ToolMock(error="the bank is closed"),)}))
        assert TOOL_INPUTS == []
        assert "the bank is closed" in _failure_text(trial)

    def test_a_tool_that_raises_does_what_it_does_without_proctor(self) -> None:
        (trial,) = run_cases(self.agent(), case("Atlantis"))
        assert "no such city" in _failure_text(trial)
        assert (trial.outcome == "failed" and not trial.is_answered) == self.raising_tool_fails_the_run

    def test_a_model_that_raises_fails_the_trial_with_its_reason(self) -> None:
        (trial,) = run_cases(self.broken_agent(), case("Oslo"))
        assert trial.outcome != "passed"
        assert "the model is on strike" in trial.reason

    def test_a_trial_that_breaks_off_in_a_tool_keeps_the_call_and_the_tokens(self) -> None:
        city = "Atlantis" if self.raising_tool_fails_the_run else "Pompeii"
        suite = Suite("contract", (case(city),), settings=Settings(timeout=2.0))
        (trial,) = proctor.run(suite, agent=self.agent()).trials

        (reply,) = trial.replies
        assert trial.outcome is proctor.Outcome.FAILED
        assert trial.reason
        assert [(call.name, call.arguments) for call in reply.tool_calls] == [("get_rate", {"city": city})]
        assert reply.tool_calls[0].result is None
        if self.counts_tokens_as_it_goes:
            assert reply.usage is not None
            assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 7)

    def test_tools_can_be_called_again_with_what_the_agent_gave_them(self) -> None:
        (trial,) = run_cases(self.agent(), case("Oslo"))
        tools = find_tools(agent=resolve_agent(self.agent()))
        if "get_rate" not in tools:
            pytest.skip("agents of this framework do not show their tools")
        (again,) = asyncio.run(rerun_tools(trial.replies[0].tool_calls, tools))
        assert (again.changed, again.error, again.skipped) == (False, None, None)
        assert again.result == self.result("rate of Oslo")

    def test_agents_that_differ_have_other_fingerprints(self) -> None:
        prints = [resolve_agent(target).fingerprint for target in (self.agent(), *self.other_agents())]
        assert resolve_agent(self.agent()).fingerprint == prints[0]
        assert len(set(prints)) == len(prints) > 1

    def test_an_agent_is_recognised_by_its_type_from_a_reference(self, tmp_path: Path) -> None:
        name = f"{self.folder}_smallest.py"
        (tmp_path / name).write_text(self.source)
        found: Any = resolve_agent(f"{name}:agent", tmp_path)
        assert (found.adapter.name, found.name) == (self.folder, f"{name}:agent")


def _failure_text(trial: proctor.Trial) -> str:
    errors = [str(call.error) for reply in trial.replies for call in reply.tool_calls]
    return "\n".join([trial.reason, *errors])
