"""Agents behind a rate limit or an outage: every case is measured, with few refusals."""

from __future__ import annotations

import asyncio
import math
import time

from engine_helpers import cases, run, suite

from proctor.cases.suite import Case, Expected, Turn
from proctor.results.score import Outcome

WINDOW = 0.2
PER_WINDOW = 10


class Busy(Exception):
    """As a client raises it: the status, and the response with its headers."""

    def __init__(self, seconds: float) -> None:
        self.response = type("Response", (), {"status_code": 429, "headers": {"retry-after-ms": str(seconds * 1000)}})()
        super().__init__("rate limit")


class Service:
    """Takes ten requests in each window, and refuses the rest with the time until the next one."""

    def __init__(self) -> None:
        self.refusals = 0
        self._window = 0
        self._taken = 0

    async def answer(self, question: str) -> str:
        now = time.monotonic()
        window = int(now / WINDOW)
        if window != self._window:
            self._window, self._taken = window, 0
        self._taken += 1
        if self._taken > PER_WINDOW:
            self.refusals += 1
            raise Busy((window + 1) * WINDOW - now)
        await asyncio.sleep(WINDOW / 10)
        return question


def test_all_cases_behind_a_rate_limit_are_measured() -> None:
    service = Service()
    run_, verdict = run(suite(cases(60), parallel=20), agent=service.answer, backoff=0.5)
    assert {trial.outcome for trial in run_.summaries} == {Outcome.PASSED}
    assert verdict.exit_code == 0
    assert service.refusals < 40  # without a limit, each of the waiting trials is refused in every window


def test_waiting_for_the_rate_limit_is_not_the_agents_time() -> None:
    turns: list[str] = []

    async def agent(question: str) -> str:
        turns.append(question)
        if turns == ["a", "b"]:
            raise Busy(1.3)
        return question

    conversation = Case(id="c", turns=tuple(Turn(question, Expected(output=question)) for question in "ab"))
    run_, _ = run(suite([conversation], timeout=1.0), agent=agent, backoff=0.5)
    assert [trial.outcome for trial in run_.summaries] == [Outcome.PASSED]


class Unavailable(Exception):
    status_code = 503


class Failing:
    """Answers some turns, then is down for a while."""

    def __init__(self, answers: int, seconds: float) -> None:
        self.requests = 0
        self._answers = answers
        self._seconds = seconds
        self._down_until = math.inf

    async def answer(self, question: str) -> str:
        self.requests += 1
        if self.requests > self._answers:
            self._down_until = min(self._down_until, time.monotonic() + self._seconds)
            if time.monotonic() < self._down_until:
                raise Unavailable("down")
        await asyncio.sleep(0.01)
        return question


def test_an_outage_delays_trials_and_leaves_no_errors() -> None:
    service = Failing(answers=30, seconds=1.0)
    run_, _ = run(suite(cases(80)), agent=service.answer, backoff=0.1)
    assert {trial.outcome for trial in run_.summaries} == {Outcome.PASSED}
    assert service.requests < 80 + 40  # those in flight when it began, and a few that find out when it is over
    (trouble,) = run_.endpoints
    assert trouble.down_seconds > 0.5
    assert "while the provider was down" in trouble.text


def test_an_outage_that_does_not_end_is_an_error_after_the_time_that_turns_wait() -> None:
    service = Failing(answers=10, seconds=60)
    run_, verdict = run(suite(cases(40), retry_seconds=0.6), agent=service.answer, backoff=0.1)
    outcomes = [trial.outcome for trial in run_.summaries]
    assert len(outcomes) == 40
    assert outcomes.count(Outcome.PASSED) >= 8
    assert set(outcomes) == {Outcome.PASSED, Outcome.ERROR}
    assert verdict.exit_code == 4
    assert any("the service has been down for" in trial.reason for trial in run_.trials)
    (trouble,) = run_.endpoints
    assert trouble.down_seconds >= 0.6


def test_the_reason_names_the_cause_that_an_exception_of_the_agent_wraps() -> None:
    async def agent(question: str) -> str:
        try:
            raise Unavailable("down")
        except Unavailable as error:
            raise RuntimeError("the model call failed") from error

    run_, _ = run(suite(cases(1), retries=0), agent=agent)
    (trial,) = run_.trials
    assert trial.outcome is Outcome.ERROR
    assert trial.reason.startswith("the agent raised RuntimeError: the model call failed")
    assert trial.reason.endswith("; cause: HTTP 503")


def test_a_suite_that_runs_one_trial_after_another_stays_sequential() -> None:
    together: list[int] = []
    running = 0

    async def agent(question: str) -> str:
        nonlocal running
        running += 1
        together.append(running)
        await asyncio.sleep(0.002)
        running -= 1
        return question

    run(suite(cases(30), parallel=1), agent=agent)
    assert max(together) == 1
