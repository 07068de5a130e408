"""`--hedge`: if an answer is late, the agent is asked again, and the first answer counts."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import cases, run, suite, trials_of
from loopback_server import serve
from virtual_time import run_virtually

import proctor
from proctor.agents.reply import Reply, Usage
from proctor.agents.trial_context import TrialContext
from proctor.base.clock import Clock
from proctor.base.errors import InvalidSuite
from proctor.cases.suite import Case, Expected, Turn
from proctor.results.score import Outcome
from proctor.results.trial import Trial
from proctor.running.answer_times import SentTurn
from proctor.running.conversation import ConversationResult
from proctor.running.hedging import Hedging

HANGING = "case-0"
"""The first request for this case is answered when the test is over."""
HEDGED: dict[str, Any] = {"side_effects": False, "parallel": 16, "timeout": 20.0}


@dataclass
class Service:
    """A service of which one request hangs."""

    address: str = ""
    requests: Counter[str] = field(default_factory=Counter)
    is_over: threading.Event = field(default_factory=threading.Event)

    def ask(self, question: str) -> str:
        request = urllib.request.Request(self.address, json.dumps(question).encode())
        with urllib.request.urlopen(request) as response:
            return str(json.loads(response.read()))

    async def agent(self, question: str) -> str:
        return await asyncio.to_thread(self.ask, question)


@pytest.fixture
def service() -> Iterator[Service]:
    state = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests[question] += 1
            if question == HANGING and state.requests[question] == 1:
                state.is_over.wait()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(question).encode())

        def log_message(self, *_: object) -> None:
            pass

    with serve(Handler) as state.address:
        yield state
        state.is_over.set()


def hedged(of: tuple[Case, ...], agent: Any, **more: Any) -> list[Trial]:
    return trials_of(run(suite(of, **HEDGED), agent=agent, hedge=True, **more))


def test_if_an_answer_is_late_the_agent_is_asked_again_and_the_second_answer_counts(service: Service) -> None:
    run_, verdict = run(suite(cases(40), **HEDGED), agent=service.agent, hedge=True)
    assert verdict.outcome is Outcome.PASSED
    assert service.requests[HANGING] == 2
    assert "asked again" in run_.trials[0].warnings[0]
    assert run_.hedging_note.startswith("hedged ")


@pytest.mark.process
def test_it_works_for_agents_in_processes_of_their_own(service: Service) -> None:
    trials = hedged(cases(40), service.ask, isolate=True)
    assert {trial.outcome for trial in trials} == {Outcome.PASSED}
    assert service.requests[HANGING] == 2


def test_nothing_of_the_slower_request_is_in_the_trial(service: Service) -> None:
    attempts: Counter[str] = Counter()

    @proctor.tool
    def look_up(key: str, attempt: int) -> str:
        return key

    @proctor.observe(name="ask")
    async def agent(question: str) -> str:
        attempts[question] += 1
        print(f"attempt {attempts[question]}")
        look_up(question, attempts[question])
        return await service.agent(question)

    trial = hedged(cases(40), agent)[0]
    assert [call.arguments for call in trial.replies[0].tool_calls] == [{"key": HANGING, "attempt": 2}]
    assert trial.captured.stdout == "attempt 2\n"
    assert [span.name for span in trial.spans].count("ask") == 1


def test_conversations_of_several_turns_are_not_hedged(service: Service) -> None:
    conversation = Case(id="long", turns=(Turn(HANGING, Expected(output=HANGING)), Turn("b", Expected(output="b"))))
    threading.Timer(1.5, service.is_over.set).start()
    trials = hedged((conversation, *cases(40, start=1)), service.agent)
    assert {trial.outcome for trial in trials} == {Outcome.PASSED}
    assert service.requests[HANGING] == 1


def test_trials_that_run_one_after_another_are_not_hedged(service: Service) -> None:
    threading.Timer(1.5, service.is_over.set).start()
    last = tuple(reversed(cases(30)))
    settings = {"side_effects": False, "parallel": 1}
    run_, _ = run(suite(last, **settings), agent=service.agent, hedge=True)
    assert {trial.outcome for trial in run_.summaries} == {Outcome.PASSED}
    assert service.requests[HANGING] == 1


def test_without_the_option_no_agent_is_asked_twice(service: Service) -> None:
    threading.Timer(1.5, service.is_over.set).start()
    trials = trials_of(run(suite(cases(40), side_effects=False, parallel=16), agent=service.agent))
    assert {trial.outcome for trial in trials} == {Outcome.PASSED}
    assert service.requests[HANGING] == 1


def test_at_most_one_trial_in_twenty_is_hedged() -> None:
    requests: Counter[str] = Counter()

    async def agent(question: str) -> str:
        requests[question] += 1
        is_slow = int(question.removeprefix("case-")) >= 96
        await asyncio.sleep(1.5 if is_slow else 0.0)
        return question

    trials = hedged(cases(104), agent)
    assert {trial.outcome for trial in trials} == {Outcome.PASSED}
    assert sum(requests.values()) <= 104 + 104 // 20


@pytest.mark.parametrize("settings", [{}, {"side_effects": True}])
def test_an_agent_that_may_have_side_effects_is_refused_before_anything_runs(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidSuite, match="side_effects: false"):
        run(suite(cases(1), **settings), agent=lambda question: pytest.fail("the agent was called"), hedge=True)


def test_the_message_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "desk.yaml").write_text("agent: oracle\nsettings: {parallel: 4}\ncases: [{input: a, expected: a}]\n")
    with pytest.raises(InvalidSuite) as caught:
        proctor.run(tmp_path / "desk.yaml", hedge=True)
    assert "desk.yaml:2: " in str(caught.value)


# The race itself, in virtual time and without an agent


def result(text: str, outcome: Outcome | None = None) -> ConversationResult:
    return ConversationResult((Reply(text),), outcome, "", attempts=1, started_at=0.0, duration_ms=0.0)


class Race:
    """Two requests for one case, of which the first is late: how long each takes, and how it ends."""

    def __init__(self, *requests: tuple[float, ConversationResult], usage: Usage | None = None) -> None:
        self.spent: list[Usage | None] = []
        self.is_stopping = False
        self.hedging = Hedging(self.spent.append, lambda: self.is_stopping)
        self.cancelled = 0
        self._requests = [(0.01, result("quick"))] * 40 + list(requests)
        self._usage = usage

    async def _converse(self, turn: SentTurn) -> ConversationResult:
        seconds, answer = self._requests.pop(0)
        turn.usage = lambda: self._usage
        try:
            with turn.timed(TrialContext()):
                await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return answer

    async def run(self) -> ConversationResult:
        planned: Any = "the suite"
        for _ in range(40):
            await self.hedging.converse(planned, self._converse)
        answer = await self.hedging.converse(planned, self._converse)
        await self.hedging.close()
        return answer


@pytest.fixture
def virtual_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Clock, "monotonic", lambda: asyncio.get_running_loop().time())


@pytest.mark.usefixtures("virtual_clock")
class TestRace:
    def test_the_summary_says_what_it_cost_and_gained(self) -> None:
        race = Race((60.0, result("first")), (1.0, result("second")))
        answer = run_virtually(race.run())
        assert answer.replies[0].text == "second"
        assert race.cancelled == 1
        assert race.hedging.summary() == "hedged 1 of 41 trials: 1 answered sooner; 1 more request"

    def test_the_first_answer_counts_if_it_comes_after_all(self) -> None:
        race = Race((1.0, result("first")), (60.0, result("second")))
        answer = run_virtually(race.run())
        assert answer == result("first")
        assert race.hedging.summary() == "hedged 1 of 41 trials: 0 answered sooner; 1 more request"

    def test_an_error_of_one_request_is_not_an_answer(self) -> None:
        race = Race((1.0, result("", Outcome.ERROR)), (2.0, result("second")))
        assert run_virtually(race.run()).replies[0].text == "second"
        race = Race((5.0, result("first")), (1.0, result("", Outcome.ERROR)))
        assert run_virtually(race.run()) == result("first")

    def test_a_failure_of_the_agent_is_an_answer(self) -> None:
        race = Race((60.0, result("first")), (1.0, result("second", Outcome.FAILED)))
        assert run_virtually(race.run()).outcome is Outcome.FAILED

    def test_if_both_requests_end_in_errors_the_first_error_is_reported(self) -> None:
        race = Race((2.0, result("first", Outcome.ERROR)), (1.0, result("second", Outcome.ERROR)))
        assert run_virtually(race.run()) == result("first", Outcome.ERROR)

    @pytest.mark.parametrize("usage", [Usage(20, 6), None])
    def test_the_tokens_of_the_slower_request_are_spent_if_they_are_known(self, usage: Usage | None) -> None:
        race = Race((60.0, result("first")), (1.0, result("second")), usage=usage)
        run_virtually(race.run())
        assert race.spent == [usage]

    def test_nothing_is_asked_again_when_the_budget_is_spent(self) -> None:
        race = Race((60.0, result("first")), (1.0, result("second")))
        race.is_stopping = True
        assert run_virtually(race.run()) == result("first")

    def test_both_requests_end_if_the_run_is_interrupted(self) -> None:
        race = Race((60.0, result("first")), (60.0, result("second")))

        async def interrupt() -> None:
            task = asyncio.create_task(race.run())
            await asyncio.sleep(10.0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        run_virtually(interrupt())
        assert race.cancelled == 2
