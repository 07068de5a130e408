"""Agents behind a rate limit: every case is measured, with few refusals."""

from __future__ import annotations

import asyncio
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
