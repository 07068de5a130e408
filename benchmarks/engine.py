"""How close the engine comes to the ideal when agents only wait: 200 calls of 50 ms, 20 at a time, ideally take 0.5 s.

    python benchmarks/engine.py                     # an async agent, and a synchronous one in threads
    python benchmarks/engine.py --cases 2000 --rounds 9
    python benchmarks/engine.py --profile async     # where the time of the event loop goes

Time is from the start of the first call to the end of the last one, so starting up and reporting are not part of it.
Results are stored on disk, as for every run of `proctor test`. `bare` calls the same function in a loop without
Proctor: it shows what timers and threads of this machine cost.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import proctor

SECONDS = 0.05
AT_ONCE = 20

_times: list[float] = []
"""When each call started and ended."""


async def wait(question: str) -> str:
    _times.append(time.perf_counter())
    await asyncio.sleep(SECONDS)
    _times.append(time.perf_counter())
    return question


def wait_in_thread(question: str) -> str:
    _times.append(time.perf_counter())
    time.sleep(SECONDS)
    _times.append(time.perf_counter())
    return question


def run_proctor(agent: Callable[[str], object], cases: int) -> None:
    rows = [proctor.Case(f"question {number}", f"question {number}", id=str(number)) for number in range(cases)]
    suite = proctor.Suite("engine", rows, evaluators=["ExactMatch"])
    with tempfile.TemporaryDirectory(prefix="engine-") as store:
        run = proctor.run(suite, agent=agent, parallel=AT_ONCE, store=store)
    assert run.passed, run.reason


def run_bare(agent: Callable[[str], object], cases: int) -> None:
    if agent is wait_in_thread:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(agent, map(str, range(cases))))
        return

    async def call(places: asyncio.Semaphore, number: int) -> None:
        async with places:
            await wait(str(number))

    async def call_all() -> None:
        places = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(call(places, number) for number in range(cases)))

    asyncio.run(call_all())


def share_of_ideal(
    run: Callable[[Callable[[str], object], int], None], agent: Callable[[str], object], cases: int
) -> float:
    """The ideal time divided by the time that it took."""
    _times.clear()
    run(agent, cases)
    return SECONDS * cases / AT_ONCE / (max(_times) - min(_times))


def main() -> None:
    parser = argparse.ArgumentParser(description="How close the engine comes to the ideal when agents only wait.")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", choices=AGENTS, help="profile one run of this agent instead")
    arguments = parser.parse_args()
    if arguments.profile:
        run_proctor(AGENTS[arguments.profile], 20)  # imports
        with cProfile.Profile() as profile:
            run_proctor(AGENTS[arguments.profile], arguments.cases)
        pstats.Stats(profile).sort_stats("tottime").print_stats(40)
        return
    shares: dict[tuple[str, str], list[float]] = {}
    for _ in range(arguments.rounds):
        for kind, agent in AGENTS.items():
            for name, run in (("proctor", run_proctor), ("bare", run_bare)):
                shares.setdefault((kind, name), []).append(share_of_ideal(run, agent, arguments.cases))
    for (kind, name), values in shares.items():
        print(
            f"{kind:8} {name:8} {statistics.median(values):.1%} of the ideal ({min(values):.1%} to {max(values):.1%})"
        )


AGENTS: dict[str, Callable[[str], object]] = {"async": wait, "threads": wait_in_thread}


if __name__ == "__main__":
    main()
