"""One endpoint is asked with as many requests at once as it accepts, in fair order, and never hangs."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_time import run_virtually

from proctor.base.rate_limit import EndpointDown, RateLimiter, RateLimits, RequestSlot
from proctor.judging.call_log import WaitTimer, count_waits, waiting


class Watch:
    """How many turns were taken at once, and when each began."""

    def __init__(self, limiter: RateLimiter, seconds: float = 1.0) -> None:
        self.limiter = limiter
        self.seconds = seconds
        self.now = 0
        self.peak = 0
        self.began: list[tuple[float, int]] = []

    async def ask(self, number: int, tokens: int = 0) -> None:
        with await self.limiter.acquire(tokens) as slot:
            self.began.append((asyncio.get_running_loop().time(), number))
            self.now += 1
            self.peak = max(self.peak, self.now)
            await asyncio.sleep(self.seconds)
            self.now -= 1
            slot.answered()


async def _crowd(watch: Watch, count: int, tokens: Callable[[int], int] = lambda _: 0) -> None:
    await asyncio.gather(*(watch.ask(number, tokens(number)) for number in range(count)))


def test_the_first_requests_are_few_and_their_number_grows_while_all_goes_well() -> None:
    async def main() -> tuple[int, int]:
        watch = Watch(RateLimiter(RateLimits(initial=2, maximum=16)))
        await _crowd(watch, 2)
        first = watch.peak
        await _crowd(watch, 100)
        return first, watch.peak

    assert run_virtually(main()) == (2, 16)


async def refused(limiter: RateLimiter, seconds: float, retry_after: float | None = None) -> None:
    with await limiter.acquire() as slot:
        await asyncio.sleep(seconds)
        slot.limited(retry_after)


def test_a_refusal_shows_how_many_requests_the_endpoint_takes() -> None:
    async def main() -> int:
        watch = Watch(RateLimiter(RateLimits(initial=8, maximum=64)))
        accepted = [asyncio.create_task(watch.ask(number)) for number in range(5)]
        await asyncio.gather(*(refused(watch.limiter, 0.1) for _ in range(3)))
        more = asyncio.create_task(_crowd(watch, 20))
        await asyncio.sleep(0.5)
        in_flight = watch.now
        await asyncio.gather(more, *accepted)
        return in_flight

    assert run_virtually(main()) == 5


def test_after_a_refusal_one_more_is_tried_per_round_and_more_if_nothing_is_refused() -> None:
    async def main() -> list[int]:
        watch = Watch(RateLimiter(RateLimits(initial=3, maximum=64)))
        accepted = [asyncio.create_task(watch.ask(number)) for number in range(2)]
        await refused(watch.limiter, 0.1)
        await asyncio.gather(*accepted)
        watch.began.clear()
        await _crowd(watch, 2 + 3 + 5 + 9)
        times = sorted({at for at, _ in watch.began})
        return [sum(at == moment for at, _ in watch.began) for moment in times]

    assert run_virtually(main()) == [2, 3, 5, 9]


def test_one_refusal_does_not_make_all_requests_wait_for_long() -> None:
    async def main() -> list[float]:
        watch = Watch(RateLimiter(RateLimits(initial=4)))
        loop = asyncio.get_running_loop()
        start = loop.time()
        await refused(watch.limiter, 0, 30)
        await _crowd(watch, 2)
        return [at - start for at, _ in watch.began]

    assert max(run_virtually(main())) <= 2


def test_several_refusals_make_all_requests_wait_as_long_as_the_endpoint_asks() -> None:
    async def main() -> float:
        watch = Watch(RateLimiter(RateLimits(initial=4, max_pause=120)))
        start = asyncio.get_running_loop().time()
        await asyncio.gather(*(refused(watch.limiter, 0, 30) for _ in range(3)))
        await _crowd(watch, 2)
        return min(at - start for at, _ in watch.began)

    assert run_virtually(main()) == 30


def test_a_retry_after_that_is_too_long_is_cut() -> None:
    async def main() -> float:
        watch = Watch(RateLimiter(RateLimits(max_pause=120)))
        start = asyncio.get_running_loop().time()
        await asyncio.gather(*(refused(watch.limiter, 0, 1e12) for _ in range(3)))
        await _crowd(watch, 1)
        return watch.began[0][0] - start

    assert run_virtually(main()) == 120


def test_refusals_of_a_single_request_make_longer_and_longer_pauses() -> None:
    async def main() -> list[float]:
        limiter = RateLimiter(RateLimits(initial=1, refusal_pause=1))
        loop = asyncio.get_running_loop()
        times = []
        for _ in range(4):
            with await limiter.acquire() as slot:
                times.append(loop.time())
                slot.limited()
        return [later - sooner for sooner, later in itertools.pairwise(times)]

    assert run_virtually(main()) == [1, 2, 4]


class Provider:
    """Answers requests in virtual time; refuses, queues or loses some of them."""

    def __init__(self, limiter: RateLimiter, seconds: float = 0.3) -> None:
        self.limiter = limiter
        self.requests = self.in_flight = 0
        self.latencies = random.Random(7)
        self.seconds = seconds
        self.places: asyncio.Semaphore | None = None  # more requests wait
        self.most: int | None = None  # more requests are refused
        self.rate = 0.0  # of requests that are accepted, each second; more are refused with a time
        self.burst = 1
        self.down = (math.inf, math.inf)
        self._tokens, self._filled_at = 0.0, 0.0

    async def ask(self) -> None:
        """Send one request until it is answered."""
        while True:
            with await self.limiter.acquire() as slot:
                self.requests += 1
                self.in_flight += 1
                wait = await self._answer(slot)
                self.in_flight -= 1
            if wait is None:
                return
            await asyncio.sleep(wait)

    async def _answer(self, slot: RequestSlot) -> float | None:
        """Answer or refuse a request; returns how long it pauses if it is sent again."""
        if self.down[0] <= asyncio.get_running_loop().time() < self.down[1]:
            await asyncio.sleep(0.02)
            slot.failed()
            return 0.5
        if (wait := self._refill()) > 0:
            await asyncio.sleep(0.02)
            slot.limited(wait)
            return wait
        if self.most is not None and self.in_flight > self.most:
            await asyncio.sleep(0.02)
            slot.limited()
            return 0.5
        async with self.places or contextlib.nullcontext():
            await asyncio.sleep(self.seconds * math.exp(self.latencies.gauss(0, 0.8)))
        slot.answered()
        return None

    def _refill(self) -> float:
        """Take a token if there is one; returns how long it takes until there is, if not."""
        if not self.rate:
            return 0.0
        now = asyncio.get_running_loop().time()
        self._tokens = min(self.burst, self._tokens + self.rate * (now - self._filled_at))
        self._filled_at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self.rate
        self._tokens -= 1
        return 0.0


def provider(requests: int, **settings: Any) -> tuple[Provider, float]:
    """A provider after so many requests were answered, and the seconds that it took."""

    async def main() -> tuple[Provider, float]:
        instance = Provider(RateLimiter(RateLimits(initial=20, maximum=64)))
        start = asyncio.get_running_loop().time()
        for name, value in settings.items():
            setattr(instance, name, value)
        if "down" in settings:
            instance.down = (start + settings["down"][0], start + settings["down"][1])
        await asyncio.gather(*(instance.ask() for _ in range(requests)))
        return instance, asyncio.get_running_loop().time() - start

    return run_virtually(main())


@pytest.mark.parametrize("most", [1, 5, 16, 40])
def test_an_endpoint_that_takes_few_requests_at_once_refuses_few(most: int) -> None:
    asked, _ = provider(400, most=most)
    assert asked.requests <= 1.15 * 400 + 20


@pytest.mark.parametrize(("rate", "burst"), [(5, 5), (20, 20), (50, 10), (20, 200)])
def test_the_rate_that_an_endpoint_accepts_is_found_and_used(rate: float, burst: int) -> None:
    asked, seconds = provider(400, rate=rate, burst=burst)
    assert seconds <= 1.1 * (400 - burst) / rate + 5
    assert asked.requests <= 1.12 * 400


def test_two_limiters_of_one_rate_limit_use_more_than_half_of_it() -> None:
    """The agent and the judge of a run, with a limit of 20 per second that says in whole seconds when to come back."""
    tokens, filled_at = 20.0, 0.0

    def take_token(now: float) -> float:
        """Seconds to wait, rounded up; 0 if there was a token."""
        nonlocal tokens, filled_at
        tokens, filled_at = min(20.0, tokens + 20 * (now - filled_at)), now
        if tokens < 1:
            return math.ceil((1 - tokens) / 20)
        tokens -= 1
        return 0.0

    async def send(limiter: RateLimiter, seconds: float) -> None:
        wait = 1.0
        while wait:
            with await limiter.acquire() as slot:
                wait = take_token(asyncio.get_running_loop().time())
                if wait:
                    await asyncio.sleep(0.02)
                    slot.limited(wait)
                else:
                    await asyncio.sleep(seconds)
                    slot.answered()
            await asyncio.sleep(wait)

    async def main(seed: int) -> float:
        nonlocal tokens, filled_at
        loop, latency, places = asyncio.get_running_loop(), random.Random(seed), asyncio.Semaphore(64)
        tokens, filled_at, start = 20.0, loop.time(), loop.time()
        agent, judge = RateLimiter(RateLimits(initial=20, maximum=64)), RateLimiter(RateLimits())

        async def trial(seconds: float) -> None:
            async with places:
                await send(agent, seconds)
                await send(judge, seconds)

        await asyncio.gather(*(trial(latency.lognormvariate(-1.2, 0.8)) for _ in range(400)))
        return loop.time() - start

    ideal = 800 / 20 - 1
    assert max(run_virtually(main(seed)) for seed in range(4)) < 2 * ideal


def test_an_endpoint_that_queues_requests_gets_hardly_more_than_it_works_on() -> None:
    async def main() -> int:
        limiter = RateLimiter(RateLimits(initial=20, maximum=64))
        asked = Provider(limiter)
        asked.places = asyncio.Semaphore(30)
        tasks = [asyncio.create_task(asked.ask()) for _ in range(400)]
        await asyncio.sleep(3.5)
        in_flight = asked.in_flight
        await asyncio.gather(*tasks)
        return in_flight

    assert run_virtually(main()) <= 45


def test_in_an_outage_one_request_at_a_time_finds_out_whether_it_is_over() -> None:
    outages: list[bool] = []

    async def main() -> tuple[int, float]:
        limiter = RateLimiter(RateLimits(initial=20, maximum=64), outages.append)
        asked = Provider(limiter)
        start = asyncio.get_running_loop().time()
        asked.down = (start + 1, start + 31)
        await asyncio.gather(*(asked.ask() for _ in range(400)))
        assert limiter.events.outages == 1
        return asked.requests, asyncio.get_running_loop().time() - start

    requests, seconds = run_virtually(main())
    assert requests <= 400 + 70 + 20  # those in flight when it began, and one about every two seconds
    assert seconds <= 31 + 2 + 8
    assert outages == [True, False]


def test_an_endpoint_that_has_never_answered_is_not_waited_for() -> None:
    async def main() -> bool:
        limiter = RateLimiter(RateLimits(initial=20))
        for _ in range(10):
            with await limiter.acquire() as slot:
                slot.failed()
        return limiter.is_down

    assert not run_virtually(main())


def test_single_faults_among_answers_are_no_outage() -> None:
    async def main() -> int:
        limiter = RateLimiter(RateLimits(initial=20, maximum=64))

        async def ask(number: int) -> None:
            with await limiter.acquire() as slot:
                await asyncio.sleep(0.3)
                slot.failed() if number % 10 == 3 else slot.answered()

        await asyncio.gather(*(ask(number) for number in range(400)))
        return limiter.events.outages

    assert run_virtually(main()) == 0


def test_after_a_long_outage_waiting_requests_fail() -> None:
    async def main() -> tuple[float, float]:
        limiter = RateLimiter(RateLimits(initial=20, maximum=64, max_outage=60))
        loop = asyncio.get_running_loop()
        with await limiter.acquire() as slot:
            slot.answered()
        for _ in range(4):
            with await limiter.acquire() as slot:
                slot.failed()
        start = loop.time()

        async def wait() -> float:
            while True:
                try:
                    with await limiter.acquire() as slot:
                        slot.failed()
                except EndpointDown:
                    return loop.time() - start

        first = max(await asyncio.gather(*(wait() for _ in range(30))))
        return first, await wait() - first

    first, later = run_virtually(main())
    assert first == 60
    assert later <= 2


def test_never_more_requests_go_out_in_a_minute_than_allowed() -> None:
    async def main() -> list[tuple[float, int]]:
        watch = Watch(RateLimiter(RateLimits(requests_per_minute=5, initial=64)), seconds=0.1)
        await _crowd(watch, 17)
        return watch.began

    began = [at for at, _ in run_virtually(main())]
    assert all(sum(at <= other < at + 60 for other in began) <= 5 for at in began)
    assert began[-1] - began[0] == 180


@given(
    sizes=st.lists(st.integers(0, 250), min_size=1, max_size=12),
    per_minute=st.integers(1, 200),
    requests=st.none() | st.integers(0, 3),
)
def test_a_prompt_larger_than_the_budget_goes_out_alone_in_a_fresh_window(
    sizes: list[int], per_minute: int, requests: int | None
) -> None:
    async def main() -> list[tuple[float, int]]:
        limits = RateLimits(tokens_per_minute=per_minute, requests_per_minute=requests, initial=64)
        watch = Watch(RateLimiter(limits), seconds=0.1)
        await asyncio.wait_for(_crowd(watch, len(sizes), lambda number: sizes[number]), timeout=100_000)
        return watch.began

    began = run_virtually(main())
    assert [number for _, number in began] == list(range(len(sizes)))
    for at, number in began:
        together = [sizes[other] for when, other in began if at - 60 < when <= at and other <= number]
        assert sum(together) <= per_minute or sum(together) == sizes[number]


def test_who_came_first_is_served_first() -> None:
    async def main() -> list[int]:
        watch = Watch(RateLimiter(RateLimits(initial=1, maximum=3)))
        await _crowd(watch, 30)
        return [number for _, number in watch.began]

    assert run_virtually(main()) == list(range(30))


@given(st.lists(st.integers(0, 19), max_size=20))
def test_a_cancelled_request_takes_no_slot_of_another(leaving: list[int]) -> None:
    async def main() -> set[int]:
        watch = Watch(RateLimiter(RateLimits(initial=2, maximum=2)))
        tasks = [asyncio.create_task(watch.ask(number)) for number in range(20)]
        for number in leaving:
            await asyncio.sleep(0.4)
            tasks[number].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert watch.now <= 2 + len(leaving)
        latecomer = Watch(watch.limiter)
        await _crowd(latecomer, 2)
        assert latecomer.peak == 2
        return {number for _, number in watch.began}

    assert set(range(20)) - set(leaving) <= run_virtually(main())


def test_a_request_admitted_and_cancelled_at_once_gives_its_slot_to_the_next() -> None:
    async def main() -> list[int]:
        watch = Watch(RateLimiter(RateLimits(initial=1, maximum=1)))
        holder = asyncio.create_task(watch.ask(0))
        await asyncio.sleep(0)
        unlucky, lucky = asyncio.create_task(watch.ask(1)), asyncio.create_task(watch.ask(2))
        asyncio.get_running_loop().call_later(1.0, lambda: asyncio.get_running_loop().call_soon(unlucky.cancel))
        await asyncio.gather(holder, unlucky, lucky, return_exceptions=True)
        return [number for _, number in watch.began]

    assert 2 in run_virtually(main())


def test_one_rate_limiter_serves_one_event_loop_after_another() -> None:
    limiter = RateLimiter(RateLimits(initial=1, maximum=1))

    async def leaves_without_a_word() -> None:
        with await limiter.acquire():
            await asyncio.get_running_loop().create_future()

    async def main() -> None:
        task = asyncio.create_task(leaves_without_a_word())
        await asyncio.sleep(0)
        del task

    for _ in range(3):
        run_virtually(main())


def test_waiting_for_a_slot_is_excluded_from_the_timeout() -> None:
    async def main() -> float:
        limiter, waits = RateLimiter(RateLimits(initial=1, maximum=1)), WaitTimer()
        released = asyncio.Event()

        async def holder() -> None:
            with await limiter.acquire():
                await released.wait()

        async def waiter() -> None:
            with count_waits(waits), await limiter.acquire(waiting=waiting()):
                pass

        tasks = [asyncio.create_task(holder()), asyncio.create_task(waiter())]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        growing = waits.seconds
        assert waits.seconds >= growing > 0
        released.set()
        await asyncio.gather(*tasks)
        settled = waits.seconds
        return waits.seconds - settled

    assert asyncio.run(main()) == 0
