"""The rate limiter against simulated providers, on a clock that jumps from event to event.

    python benchmarks/provider_simulation.py                  # about a hundred providers, five orders of cases each
    python benchmarks/provider_simulation.py outage 20        # those with this text in their names, 20 orders

The limiter and the provider (`provider_server.Provider`) are the real ones; the client between them is a loop that
retries as `running/retries.py` does. Nothing else takes time, so this shows what the limiter costs, and not Proctor.
Providers have other limits, latencies and numbers of cases than those of `provider.py`: the constants
of the limiter were chosen on all of them. `provider_schedule.py` says what the ideal time is.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
from dataclasses import dataclass, replace

from environments import ROOT
from provider_schedule import SETTINGS, Setting, ideal_seconds, minimum_requests
from provider_server import MODEL, Entry, Provider, Refused

sys.path.insert(0, str(ROOT / "tests" / "support"))

from virtual_time import run_virtually

from proctor.base.rate_limit import EndpointDown, RateLimiter, RateLimits
from proctor.running.rate_limit import INITIAL_PARALLEL

RETRIES = 2
PARALLEL = 64


class VirtualProvider(Provider):
    """The provider of the benchmark on the clock of the event loop."""

    def now(self) -> float:
        time = asyncio.get_running_loop().time()
        self._started_at = self._started_at or time
        return time - self._started_at


@dataclass(frozen=True, slots=True)
class Scenario:
    """A provider and what it is asked."""

    setting: Setting
    cases: int = 400
    is_rounded: bool = False
    """Whether it says how long to wait in whole seconds only."""
    refusal_seconds: float = 0.02
    """The mean time until a refusal arrives."""


@dataclass(frozen=True, slots=True)
class Result:
    """Time over ideal, requests over the least possible, and cases without an answer."""

    time: float
    requests: float
    errors: int


class Client:
    """Sends all cases, each until it is answered or its retries are used up."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._provider = VirtualProvider(scenario.setting, scenario.cases)
        limits = RateLimits(initial=INITIAL_PARALLEL, maximum=PARALLEL, max_pause=300, refusal_pause=0.5)
        self._limiter = RateLimiter(limits)
        self._random = random.Random(scenario.setting.seed)
        self._errors = 0

    async def run(self) -> Result:
        places, cases = asyncio.Semaphore(PARALLEL), self._scenario.cases
        self._provider.now()

        async def trial(number: int) -> None:
            async with places:
                await self._send(number)

        await asyncio.gather(*(trial(number) for number in range(cases)))
        setting, log = self._scenario.setting, self._provider.log
        end = max((entry.ended for entry in log if entry.status == 200), default=0.0)
        return Result(end / ideal_seconds(setting, cases), len(log) / minimum_requests(setting, cases), self._errors)

    async def _send(self, number: int) -> None:
        faults = attempt = 0
        while True:
            attempt += 1
            try:
                refusal = await self._attempt(number, attempt)
            except EndpointDown:
                self._errors += 1
                return
            if refusal is None:
                return
            is_limited = refusal.status == 429
            if not is_limited and faults >= RETRIES and not self._limiter.is_down:
                self._errors += 1
                return
            backoff = 0.5 * 2 ** min(6, faults) * self._random.uniform(0.8, 1.2)
            await asyncio.sleep(self._wait(refusal) or backoff)
            faults += not is_limited and not self._limiter.is_down

    async def _attempt(self, number: int, attempt: int) -> Refused | None:
        with await self._limiter.acquire(first=attempt > 1) as slot:
            entry = Entry(number, MODEL, self._provider.now())
            self._provider.log.append(entry)
            try:
                await self._provider.complete({}, entry)
            except Refused as refusal:
                spread = self._random.uniform(0.5, 1.5)
                await asyncio.sleep(
                    refusal.seconds if refusal.status == 500 else self._scenario.refusal_seconds * spread
                )
                entry.status = refusal.status
                if refusal.status == 429:
                    slot.limited(self._wait(refusal))
                else:
                    slot.failed()
                return refusal
            slot.answered()
            entry.status, entry.ended = 200, self._provider.now()
            return None

    def _wait(self, refusal: Refused) -> float | None:
        if "Retry-After" not in refusal.headers:
            return None
        if self._scenario.is_rounded:
            return float(refusal.headers["Retry-After"])
        return float(refusal.headers["x-ratelimit-reset-requests"].removesuffix("ms")) / 1000


def scenarios() -> dict[str, Scenario]:
    """The providers by name: those of `provider.py`, and variations of them."""
    generous, rate, concurrency, outage = (SETTINGS[name] for name in ("generous", "rate", "concurrency", "outage"))
    result = {name: Scenario(setting) for name, setting in SETTINGS.items()}
    for cases in (50, 100, 1000, 2000):
        result |= {f"{name}, {cases} cases": Scenario(setting, cases) for name, setting in SETTINGS.items()}
    for is_rounded in (False, True):
        text = "whole seconds" if is_rounded else "exact"
        for per_second, burst in ((5, 5), (5, 1), (20, 20), (50, 50), (50, 10), (100, 1), (2, 10), (20, 200), (20, 1)):
            setting = replace(rate, rate=per_second, burst=burst)
            for delay in (0.02, 0.3):
                name = f"rate {per_second}/s, burst {burst}, {text}, refusals in {delay} s"
                result[name] = Scenario(setting, is_rounded=is_rounded, refusal_seconds=delay)
        for latency in (0.05, 2.0, 10.0):
            setting = replace(rate, median_seconds=latency)
            result[f"rate, answers in {latency} s, {text}"] = Scenario(setting, is_rounded=is_rounded)
    for places in (1, 2, 5, 8, 24, 40, 50):
        for setting in (generous, concurrency, outage):
            result[f"{setting.name}, {places} places"] = Scenario(replace(setting, places=places))
    for setting in (generous, concurrency, outage):
        for latency in (0.02, 2.0, 10.0):
            result[f"{setting.name}, answers in {latency} s"] = Scenario(replace(setting, median_seconds=latency))
        for spread in (0.1, 0.4, 1.2):
            result[f"{setting.name}, spread {spread}"] = Scenario(replace(setting, spread=spread))
    for seconds in (1, 3, 30, 100):
        result[f"outage of {seconds} s"] = Scenario(replace(outage, outage_seconds=seconds))
    return result


def main(pattern: str = "", orders: str = "5") -> None:
    for name, scenario in scenarios().items():
        if pattern not in name:
            continue
        results = [
            run_virtually(Client(replace(scenario, setting=replace(scenario.setting, seed=34 + number))).run())
            for number in range(int(orders))
        ]
        times, requests = [item.time for item in results], [item.requests for item in results]
        print(
            f"{name:60} time {statistics.median(times):.2f} (to {max(times):.2f}), "
            f"requests {statistics.median(requests):.3f} (to {max(requests):.3f}), "
            f"errors {sum(item.errors for item in results)}",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
