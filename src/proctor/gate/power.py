"""The power estimate: what a gated run costs and what it can detect, before anything is spent.

Two questions, two methods. The number of trials that a run takes if nothing changed comes from a simulation: the
decision that ships gets random outcomes at the rates of the baseline. The smallest drop in all pass rates that the
suite detects comes from a normal approximation of the suite-wide test. The textbook formula, which takes the rates as
known, would promise too much: with few recorded trials the rates are uncertain, and a drop within that uncertainty
cannot be detected with any number of repeats. So the uncertainty of the baseline is part of the variance here.
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
from proctor.results.score import Outcome

ASSUMED_RATE = 0.9
ASSUMED_TRIALS = 10
"""Assumptions about a case without a baseline: its pass rate, and how many trials will be recorded."""

SIMULATED_TRIALS = 4000
"""The simulated runs together have about this many first trials: enough for a mean, and fast."""


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """The assumed pass rate of a case, and the number of recorded trials behind it."""

    rate: float
    trials: int


def power(cases: Sequence[PlannedCase], drop: float, repeats: int, *, alpha: float = 0.05, copies: int = 1) -> float:
    """The probability of detecting a drop in all pass rates (one-sided, normal approximation).

    `drop` is the drop in each rate, `repeats` the number of trials per case, and `copies` multiplies the cases.
    """
    shift = before = after = 0.0
    for case in cases:
        rate = min(max(case.rate, 0.01), 0.99)
        lower = max(rate - drop, 0.0)
        weight = 1 / (rate * (1 - rate) + 0.02)  # nearly certain cases weigh most, but no single failure decides
        baseline_variance = rate * (1 - rate) / case.trials if case.trials else 0.25
        shift += weight * (rate - lower)
        before += weight**2 * (rate * (1 - rate) / repeats + baseline_variance)
        after += weight**2 * (lower * (1 - lower) / repeats + baseline_variance)
    if not cases:
        return 0.0
    critical = NormalDist().inv_cdf(1 - alpha) * math.sqrt(before * copies)
    return NormalDist().cdf((shift * copies - critical) / math.sqrt(max(after * copies, 1e-12)))


def detectable_drop(
    cases: Sequence[PlannedCase], repeats: int, *, alpha: float = 0.05, chance: float = 0.8
) -> float | None:
    """The smallest drop in all pass rates that is detected with probability `chance`; `None` if none is."""
    if power(cases, 1.0, repeats, alpha=alpha) < chance:
        return None
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if power(cases, middle, repeats, alpha=alpha) >= chance else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class RequiredEffort:
    """What is needed to detect a drop: more trials per case or more cases. Either is enough; `None` if it never is."""

    repeats: int | None
    """Trials per case, in total."""
    cases: int | None
    """More cases like the existing ones."""


def required_effort(
    cases: Sequence[PlannedCase], drop: float, repeats: int, *, alpha: float = 0.05, chance: float = 0.8
) -> RequiredEffort:
    """How many trials per case, or how many more cases, are needed to detect a drop."""

    def enough(runs: int, copies: int) -> bool:
        return power(cases, drop, runs, alpha=alpha, copies=copies) >= chance

    runs = _smallest(lambda count: enough(repeats + count, 1))
    copies = _smallest(lambda count: enough(repeats, 1 + count))
    return RequiredEffort(None if runs is None else repeats + runs, None if copies is None else copies * len(cases))


def _smallest(holds: Callable[[int], bool], most: int = 4096) -> int | None:
    """The smallest count for which `holds` is true, if it is true for all larger ones; `None` if it is above `most`."""
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
    """What a gated run costs, and what it can detect."""

    cases: int
    known: int
    """Number of cases with a baseline."""
    recorded: int
    """Number of their recorded trials."""
    detectable_drops: Mapping[int, float | None]
    """By number of trials per case: the smallest drop in all pass rates that is detected with 80 % probability."""
    target: float
    """The drop that the user wants to detect."""
    to_detect_target: RequiredEffort
    trials: float
    """The mean number of trials of a gated run if nothing changed."""
    trials_high: int
    """The 90th percentile of that number."""
    seconds: float | None
    tokens: float | None
    usd: float | None
    unmeasured: int
    """Number of cases whose time was never recorded; time and cost assume the mean of the others."""


def estimate_power(
    baselines: Mapping[CaseAddress, CaseBaseline], settings: GateSettings, repeats: int, target: float
) -> PowerEstimate:
    """What a gated run of these cases costs and can detect.

    `repeats` is the number of trials per case, and `target` the drop in pass rates that the user wants to detect.
    """
    records = {case: baseline.record for case, baseline in baselines.items()}
    known = [record for record in records.values() if record is not None]
    prior = SuitePrior((record.passes, record.trials) for record in known) if known else None
    planned = {case: _planned_case(record, prior) for case, record in records.items()}
    rates = list(planned.values())
    trials = _simulated_trials(records, planned, settings)
    mean = math.fsum(trials) / len(trials)
    alpha = settings.alpha * SUITE_TEST_SHARES[0]
    return PowerEstimate(
        cases=len(baselines),
        known=len(known),
        recorded=sum(record.trials for record in known),
        detectable_drops={
            count: detectable_drop(rates, count, alpha=alpha) for count in sorted({1, len(SUITE_TEST_SHARES), repeats})
        },
        target=target,
        to_detect_target=required_effort(rates, target, repeats, alpha=alpha),
        trials=mean,
        trials_high=round(sorted(trials)[min(len(trials) - 1, math.ceil(0.9 * len(trials)) - 1)]),
        seconds=_total([baseline.seconds for baseline in baselines.values()], mean),
        tokens=_total([baseline.tokens for baseline in baselines.values()], mean),
        usd=_total([baseline.usd for baseline in baselines.values()], mean),
        unmeasured=sum(baseline.seconds is None for baseline in baselines.values()),
    )


def _planned_case(record: BaselineRecord | None, prior: SuitePrior | None) -> PlannedCase:
    if record is None or prior is None:
        return PlannedCase(ASSUMED_RATE, ASSUMED_TRIALS)
    return PlannedCase(prior.belief(record.passes, record.trials).mean, record.trials)


def _simulated_trials(
    records: Mapping[CaseAddress, BaselineRecord | None],
    planned: Mapping[CaseAddress, PlannedCase],
    settings: GateSettings,
) -> list[int]:
    """The number of trials of simulated gated runs in which nothing changed."""
    rng = random.Random(0)  # noqa: S311  a fixed seed, so that the estimate is the same each time
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
    """The total over this many trials, each with the mean of the cases that have statistics."""
    known = [item.mean for item in statistics if item is not None]
    return trials * math.fsum(known) / len(known) if known else None
