"""What the loopback provider does to each case, and the least time in which any client can get all answers.

Latency belongs to the case, not to the request: a request that is refused and sent again takes as long as it would have
taken at first, so refusals gain nothing. The latencies are quantiles of one lognormal distribution in a fixed random
order, so that every run and every tool gets the same cases, and a small suite has the same shape as a large one.

The ideal is the time of a client that knows everything and is never refused: it sends the cases in the order of the
file, each as soon as the provider would accept it, and repeats a faulty request at once. It is computed by simulating
that client (`ideal_seconds`): a heap has the times at which the provider's places become free; a case starts when a
place is free, the rate limit has a token for it and the provider is not down. Sorting the slow cases first would be
faster still, but needs latencies that nobody knows in advance. A tool can therefore be a little faster than the ideal
if its order happens to be a better one.

If each answer is also judged by a model of the same provider, the ideal client sends the cases first and then the judge
requests, each when its answer is there: what has the most left to do goes first. A judge request takes as long as its
case.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, replace
from statistics import NormalDist

MEDIAN_SECONDS = 0.3
LONGEST_SECONDS = 3.0
SPREAD = 0.8
"""The standard deviation of the logarithm: about one case in 500 is longer than three seconds, and is cut there."""

FAULT_SHARE = 0.01
FAULT_SECONDS = 0.05
REFUSAL_SECONDS = 0.02
WRONG_ANSWERS_EVERY = 10
"""The model answers every tenth case wrongly, so that a tool has something to find."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A provider: what it accepts, and when it is down.

    `places` requests are answered at a time. Further ones wait in the provider's queue, or are refused with a bare 429
    if `refuses_above_places`. `rate` requests per second are accepted, after a first `burst`; others get a 429 with
    `Retry-After`. It is down for `outage_seconds` in the middle of the run: half of the requests, new or in its queue,
    get a 503, for the other half the connection is closed; those that it works on are answered. `slow_share` of the
    cases take `slow_seconds`, but only for their first request: one that is sent again takes as long as an ordinary
    case.
    """

    name: str
    summary: str
    places: int = 64
    refuses_above_places: bool = False
    rate: float = 0.0
    burst: int = 0
    outage_seconds: float = 0.0
    slow_share: float = 0.0
    slow_seconds: float = 0.0
    median_seconds: float = MEDIAN_SECONDS
    spread: float = SPREAD
    seed: int = 34
    """Of the order of the cases."""


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("generous", "answers 64 requests at a time; more wait in its queue"),
        Setting("rate", "20 requests per second after a first 20; then 429 with `Retry-After`", rate=20, burst=20),
        Setting("concurrency", "16 at a time; more get a 429 without a header", places=16, refuses_above_places=True),
        Setting("outage", "32 at a time, more wait; down for 10 s after 60 % of it", places=32, outage_seconds=10),
        Setting("tail", "like generous, but 2 % of the cases take 20 s", slow_share=0.02, slow_seconds=20),
    )
}


@dataclass(frozen=True, slots=True)
class CasePlan:
    """What the provider does with one case."""

    seconds: float
    is_faulty: bool
    is_slow: bool


def plan_cases(setting: Setting, cases: int) -> list[CasePlan]:
    """The plan of each case, the same for every run."""
    shuffle = random.Random(setting.seed).shuffle
    normal = NormalDist()
    seconds = [
        setting.median_seconds
        * min(LONGEST_SECONDS / MEDIAN_SECONDS, math.exp(setting.spread * normal.inv_cdf((number + 0.5) / cases)))
        for number in range(cases)
    ]
    shuffle(seconds)
    numbers = list(range(cases))
    shuffle(numbers)
    faulty = set(numbers[: round(FAULT_SHARE * cases)])
    slow = set(numbers[-round(setting.slow_share * cases) :]) if setting.slow_share else set()
    return [CasePlan(seconds[number], number in faulty, number in slow) for number in range(cases)]


def outage_start(setting: Setting, cases: int) -> float:
    """When the outage begins, in seconds after the first request: when the ideal client has sent 60 % of the cases."""
    if not setting.outage_seconds:
        return float("inf")
    starts, _ = _simulate(replace(setting, outage_seconds=0.0), cases, down_from=float("inf"))
    return starts[round(0.6 * cases)]


def ideal_seconds(setting: Setting, cases: int, *, judged: bool = False) -> float:
    """The time in which a client that knows everything gets all answers, and has them judged."""
    return _simulate(setting, cases, outage_start(setting, cases), judged=judged)[1]


def minimum_requests(setting: Setting, cases: int, *, judged: bool = False) -> int:
    """One request for each case, another one after each fault, and one for each answer that is judged."""
    return (2 if judged else 1) * cases + sum(plan.is_faulty for plan in plan_cases(setting, cases))


def _simulate(setting: Setting, cases: int, down_from: float, *, judged: bool = False) -> tuple[list[float], float]:
    """When the ideal client sends each case, and when it has the last answer or verdict."""
    free = [0.0] * setting.places
    starts: list[float] = []
    answers: list[tuple[float, float]] = []
    sent = 0

    def accepted_at(earliest: float) -> float:
        nonlocal sent
        time = max(earliest, (sent + 1 - setting.burst) / setting.rate) if setting.rate else earliest
        sent += 1
        return down_from + setting.outage_seconds if down_from <= time < down_from + setting.outage_seconds else time

    for plan in plan_cases(setting, cases):
        time = accepted_at(heapq.heappop(free))
        starts.append(time)
        if plan.is_faulty:
            time = accepted_at(time + FAULT_SECONDS)
        time += setting.slow_seconds if plan.is_slow else plan.seconds
        heapq.heappush(free, time)
        answers.append((time, plan.seconds))
    for answered_at, seconds in sorted(answers) if judged else ():
        heapq.heappush(free, accepted_at(max(heapq.heappop(free), answered_at)) + seconds)
    return starts, max(free)


def question(number: int) -> str:
    return f"Question {number}: what is the answer?"


def right_answer(number: int) -> str:
    return f"The answer is {number}."


def is_right(number: int) -> bool:
    """Whether the model answers this case correctly."""
    return number % WRONG_ANSWERS_EVERY != 3


def answer(number: int) -> str:
    return right_answer(number) if is_right(number) else "I do not know."
