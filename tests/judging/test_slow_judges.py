"""Judges that are slow: a server with fewer slots than requests, requests without an answer, what is said of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
from judge_server import hangs, judge_server
from virtual_time import run_virtually

from proctor.base.rate_limit import RateLimiter
from proctor.cases.suite import NamedData
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.evaluators.geval import GEval
from proctor.judging.call_log import WaitTimer, count_waits, waiting
from proctor.judging.judge import EndpointFailed
from proctor.judging.judges import Judges
from proctor.judging.questions import claims
from proctor.judging.rate_limit import RetryOptions, send_with_retries
from proctor.running.assertions.score_matrix import NamedEvaluator
from proctor.running.timeouts import Watchdog

RETRY = RetryOptions(retries=3, timeout=120)


class SlowServer:
    """Answers so many requests at once, each in so many seconds; the others wait their turn inside it."""

    def __init__(self, slots: int, seconds: float) -> None:
        self.peak = self.timeouts = self.answered = 0
        self._in_flight = 0
        self._slots = asyncio.Semaphore(slots)
        self._seconds = seconds

    async def send(self) -> str:
        self._in_flight += 1
        self.peak = max(self.peak, self._in_flight)
        try:
            async with asyncio.timeout(RETRY.timeout), self._slots:
                await asyncio.sleep(self._seconds)
        except TimeoutError:
            self.timeouts += 1
            raise EndpointFailed("did not answer in time", transient=True, timed_out=True) from None
        finally:
            self._in_flight -= 1
        self.answered += 1
        return "yes"


def asked(slots: int, seconds: float, requests: int = 40) -> SlowServer:
    async def main() -> SlowServer:
        server, limiter = SlowServer(slots, seconds), RateLimiter()
        sent: list[Awaitable[str]] = [send_with_retries(server.send, limiter, RETRY) for _ in range(requests)]
        await asyncio.gather(*sent)
        return server

    return run_virtually(main())


def test_a_slow_server_with_two_slots_is_not_sent_more_than_it_can_answer_in_time() -> None:
    server = asked(slots=2, seconds=20)
    assert (server.timeouts, server.answered) == (0, 40)
    assert server.peak <= 8


def test_a_model_that_always_takes_its_time_is_still_asked_many_things_at_once() -> None:
    server = asked(slots=64, seconds=70, requests=80)
    assert (server.timeouts, server.answered) == (0, 80)
    assert server.peak > 16


def test_requests_without_an_answer_in_time_halve_the_number_at_once() -> None:
    peaks: list[int] = []

    async def main() -> None:
        limiter, in_flight = RateLimiter(), 0

        async def send() -> str:
            nonlocal in_flight
            in_flight += 1
            peaks.append(in_flight)
            await asyncio.sleep(120)
            in_flight -= 1
            raise EndpointFailed("did not answer in time", transient=True, timed_out=True)

        results = await asyncio.gather(
            *(send_with_retries(send, limiter, RETRY) for _ in range(4)), return_exceptions=True
        )
        assert all(isinstance(result, EndpointFailed) for result in results)

    run_virtually(main())
    assert max(peaks[:4]) == 4
    assert max(peaks[4:8]) == 2
    assert max(peaks[8:]) == 1


def test_a_request_that_is_given_up_says_how_long_each_try_took_and_how_many_were_in_flight() -> None:
    with judge_server(hangs()) as server:
        judge = Judges().panel({"model": "openai:slow", "base_url": server.url, "timeout": 0.1}).judges[0]
        waits = WaitTimer()

        async def work() -> None:
            with count_waits(waits):
                await judge.ask(claims(["Refunds take 5 days."], ["Refunds take 5 days."]))

        with pytest.raises(EndpointFailed) as failure:
            asyncio.run(work())
    assert "openai:slow did not answer in time (tried 4 times: " in str(failure.value)
    assert str(failure.value).count("s with 1 in flight") == 4
    (call,) = waits.calls
    assert call.abandoned == 4
    assert call.abandoned_tokens > 4 * 100


async def cell(evaluator: NamedEvaluator, evaluable: Evaluable) -> Evaluation:
    with Watchdog() as watchdog:
        return await evaluator.cell(evaluable, watchdog)


def test_from_python_the_time_in_a_queue_is_not_the_evaluators_and_a_timeout_says_what_took_so_long() -> None:
    async def waits_then_answers(evaluable: Evaluable) -> float:
        with waiting():
            await asyncio.sleep(0.3)
        return 1.0

    case = Evaluable(
        eval_input=(NamedData("input", "How long?"),), eval_output=(NamedData("output", "Refunds take 5 days."),)
    )
    patient = NamedEvaluator("patient", waits_then_answers, timeout=0.1)
    assert asyncio.run(cell(patient, case)).score == 1.0
    with judge_server(hangs()) as server:
        asking = GEval(
            evaluation_steps=("See whether it is short.",), model={"model": "openai:slow", "base_url": server.url}
        )
        found = asyncio.run(cell(NamedEvaluator("asking", asking, timeout=0.2), case))
    assert found.details["outcome"] == "error"
    assert "gave no score within 0.2 s; its requests to the judge took " in found.reasoning
    assert "with 1 in flight" in found.reasoning
