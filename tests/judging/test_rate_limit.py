"""One endpoint is asked with as many requests at once as it accepts, in fair order, and never hangs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from virtual_time import run_virtually

from proctor.base.rate_limit import RateLimiter, RateLimits
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
        with await self.limiter.acquire(tokens):
            self.began.append((asyncio.get_running_loop().time(), number))
            self.now += 1
            self.peak = max(self.peak, self.now)
            await asyncio.sleep(self.seconds)
            self.now -= 1


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


def test_a_refusal_halves_the_number_at_once_and_requests_refused_together_count_once() -> None:
    async def main() -> int:
        watch = Watch(RateLimiter(RateLimits(initial=8, maximum=8, refusal_pause=1)))

        async def refused() -> None:
            with await watch.limiter.acquire() as slot:
                await asyncio.sleep(1)
                slot.limited()

        await asyncio.gather(*(refused() for _ in range(8)))
        await _crowd(watch, 8)
        return sum(at == watch.began[0][0] for at, _ in watch.began)

    assert run_virtually(main()) == 4


def test_after_a_refusal_the_number_grows_by_one_a_round_and_no_longer_doubles() -> None:
    async def main() -> list[int]:
        limiter = RateLimiter(RateLimits(initial=8, maximum=64, refusal_pause=1))

        async def refused() -> None:
            with await limiter.acquire() as slot:
                slot.limited()

        await refused()
        watch = Watch(limiter)
        await _crowd(watch, 4 + 4 + 5)
        times = sorted({at for at, _ in watch.began})
        return [sum(at == moment for at, _ in watch.began) for moment in times]

    assert run_virtually(main()) == [4, 4, 5]


def test_all_requests_wait_as_long_as_the_endpoint_asked_one_of_them_to() -> None:
    async def main() -> list[float]:
        watch = Watch(RateLimiter(RateLimits(initial=4)))
        loop = asyncio.get_running_loop()
        start = loop.time()
        with await watch.limiter.acquire() as slot:
            slot.limited(30)
        await _crowd(watch, 2)
        return [at - start for at, _ in watch.began]

    assert run_virtually(main()) == [30, 30]


def test_a_retry_after_that_is_too_long_is_cut() -> None:
    async def main() -> float:
        watch = Watch(RateLimiter(RateLimits(max_pause=120)))
        start = asyncio.get_running_loop().time()
        with await watch.limiter.acquire() as slot:
            slot.limited(1e12)
        await _crowd(watch, 1)
        return watch.began[0][0] - start

    assert run_virtually(main()) == 120


def test_a_fault_of_the_server_makes_for_a_short_pause_and_not_for_fewer_requests() -> None:
    async def main() -> tuple[float, int]:
        watch = Watch(RateLimiter(RateLimits(initial=4, maximum=4, fault_pause=0.5)))
        start = asyncio.get_running_loop().time()
        with await watch.limiter.acquire() as slot:
            slot.failed()
        await _crowd(watch, 4)
        return watch.began[0][0] - start, watch.peak

    assert run_virtually(main()) == (0.5, 4)


def test_refusals_without_retry_after_make_longer_and_longer_pauses() -> None:
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
