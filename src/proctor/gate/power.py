"""The power estimate: what a gated run costs and what it can detect, before anything is spent.

Two questions, two methods. How many trials a run takes if nothing changed is found by driving the shipped decision
with simulated outcomes at the usual rates. Which drop of all pass rates the suite notices is computed from a normal
approximation of the suite-level test, which knows that the recorded trials are few: a drop that they leave in doubt
cannot be seen with any number of repeats.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from proctor.cases.identity import CaseAddress
from proctor.gate.baseline import CaseBaseline, SampleStats
from proctor.gate.beliefs import BaselineRecord, SuitePrior
from proctor.gate.decision import Gate
from proctor.gate.settings import SUITE_TEST_SHARES, GateSettings
from proctor.results.run import Outcome

ASSUMED_RATE = 0.9
ASSUMED_TRIALS = 10
"""What is assumed of a case that has no baseline: how often it passes, and how many trials will be recorded first."""

SIMULATED_TRIALS = 4000
"""Simulated runs together have about so many first trials: enough for a mean, and quick."""


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """What a plan assumes of one case: its usual pass rate and how many trials that rests on."""

    rate: float
    trials: int


def power(cases: Sequence[PlannedCase], drop: float, repeats: int, *, alpha: float = 0.05, copies: int = 1) -> float:
    """The chance that a drop of all rates by so much is noticed when each case runs so many times (one-sided, normal).

    `copies` stands for a suite with that many times the cases.
    """
    shift = before = after = 0.0
    for case in cases:
        rate = min(max(case.rate, 0.01), 0.99)
        lower = max(rate - drop, 0.0)
        weight = 1 / (rate * (1 - rate) + 0.02)  # near-certain cases tell most, but no failure tells everything
        doubt = rate * (1 - rate) / case.trials if case.trials else 0.25
        shift += weight * (rate - lower)
        before += weight**2 * (rate * (1 - rate) / repeats + doubt)
        after += weight**2 * (lower * (1 - lower) / repeats + doubt)
    if not cases:
        return 0.0
    critical = NormalDist().inv_cdf(1 - alpha) * math.sqrt(before * copies)
    return NormalDist().cdf((shift * copies - critical) / math.sqrt(max(after * copies, 1e-12)))


def detectable_drop(
    cases: Sequence[PlannedCase], repeats: int, *, alpha: float = 0.05, chance: float = 0.8
) -> float | None:
    """The smallest drop of all rates that is noticed with this chance; `None` if not even a drop to nothing is."""
    if power(cases, 1.0, repeats, alpha=alpha) < chance:
        return None
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if power(cases, middle, repeats, alpha=alpha) >= chance else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class RequiredEffort:
    """What would have to be added to see a drop; each alone is enough, `None` where it never is."""

    repeats: int | None
    """Runs of each case altogether."""
    cases: int | None
    """Further cases like those there are."""


def required_effort(
    cases: Sequence[PlannedCase], drop: float, repeats: int, *, alpha: float = 0.05, chance: float = 0.8
) -> RequiredEffort:
    """How many repeats of these cases, or how many further cases like them, it takes to see a drop."""

    def enough(runs: int, copies: int) -> bool:
        return power(cases, drop, runs, alpha=alpha, copies=copies) >= chance

    runs = _smallest(lambda count: enough(repeats + count, 1))
    copies = _smallest(lambda count: enough(repeats, 1 + count))
    return RequiredEffort(None if runs is None else repeats + runs, None if copies is None else copies * len(cases))


def _smallest(holds: Callable[[int], bool], most: int = 4096) -> int | None:
    """The smallest count for which it holds, where it holds for all larger ones; `None` if it is above `most`."""
    if holds(0):
        return 0
    high = 1
    while not holds(high):
        high *= 2
        if high > most:
            return None
    return bisect_left(range(high), True, key=holds)


@dataclass(frozen=True, slots=True)
class PowerEstimate:
    """What a gated run will cost, and what it can detect."""

    cases: int
    known: int
    """Cases that have a baseline."""
    recorded: int
    """Trials recorded of them."""
    sees: Mapping[int, float | None]
    """By trials of each case: the smallest drop of all pass rates that is noticed with a probability of 80 %."""
    target: float
    """The drop that the user wants to detect."""
    to_see_target: RequiredEffort
    trials: float
    """Expected in a gated run if nothing changed."""
    trials_high: int
    """The most that nine in ten such runs take."""
    seconds: float | None
    tokens: float | None
    usd: float | None
    unmeasured: int
    """Cases whose time was never recorded; time and cost are scaled up for them."""


def estimate_power(
    baselines: Mapping[CaseAddress, CaseBaseline], settings: GateSettings, repeats: int, target: float
) -> PowerEstimate:
    """What a gated run of these cases costs and can detect; `repeats` and `target` are what the user asks about."""
    records = {case: baseline.record for case, baseline in baselines.items()}
    known = [record for record in records.values() if record is not None]
    prior = SuitePrior((record.passes, record.trials) for record in known) if known else None
    planned = {case: _planned(record, prior) for case, record in records.items()}
    rates = list(planned.values())
    spent = _simulated_trials(records, planned, settings)
    mean = math.fsum(spent) / len(spent)
    alpha = settings.alpha * SUITE_TEST_SHARES[0]
    return PowerEstimate(
        cases=len(baselines),
        known=len(known),
        recorded=sum(record.trials for record in known),
        sees={
            count: detectable_drop(rates, count, alpha=alpha) for count in sorted({1, len(SUITE_TEST_SHARES), repeats})
        },
        target=target,
        to_see_target=required_effort(rates, target, repeats, alpha=alpha),
        trials=mean,
        trials_high=round(sorted(spent)[min(len(spent) - 1, math.ceil(0.9 * len(spent)) - 1)]),
        seconds=_total([baseline.seconds for baseline in baselines.values()], mean),
        tokens=_total([baseline.tokens for baseline in baselines.values()], mean),
        usd=_total([baseline.usd for baseline in baselines.values()], mean),
        unmeasured=sum(baseline.seconds is None for baseline in baselines.values()),
    )


def _planned(record: BaselineRecord | None, prior: SuitePrior | None) -> PlannedCase:
    if record is None or prior is None:
        return PlannedCase(ASSUMED_RATE, ASSUMED_TRIALS)
    return PlannedCase(prior.belief(record.passes, record.trials).mean, record.trials)


def _simulated_trials(
    records: Mapping[CaseAddress, BaselineRecord | None],
    planned: Mapping[CaseAddress, PlannedCase],
    settings: GateSettings,
) -> list[int]:
    """How many trials each of some gated runs of the unchanged suite takes; the same each time."""
    rng = random.Random(0)  # noqa: S311  the same answer each time is wanted
    assumed = BaselineRecord(ASSUMED_TRIALS, round(ASSUMED_RATE * ASSUMED_TRIALS))
    complete = {case: record or assumed for case, record in records.items()}
    spent = []
    for _ in range(max(3, min(50, SIMULATED_TRIALS // max(1, len(records))))):
        gate, trials = Gate(complete, settings), 0
        while requests := gate.next_trials():
            trials += len(requests)
            for request in requests:
                passed = rng.random() < planned[request.case].rate
                gate.record(request.case, Outcome.PASSED if passed else Outcome.FAILED)
        spent.append(trials)
    return spent


def _total(statistics: Sequence[SampleStats | None], trials: float) -> float | None:
    """What so many trials take: the mean over cases, those that were never measured like the others."""
    known = [item.mean for item in statistics if item is not None]
    return trials * math.fsum(known) / len(known) if known else None
