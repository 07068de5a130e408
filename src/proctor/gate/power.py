"""The power estimate: what a gated run costs and what it can detect, before anything is spent.

A formula for one test would not do: the gate looks several times, re-runs suspects, stops early, and with two versions
compares pairs. So the gate that ships is simulated, many times, with random outcomes. The pass rates are drawn from
what the baseline says about each case (`beliefs`), so they are as uncertain as they really are: with few recorded
trials, a drop within that uncertainty is found rarely, and the estimate says so. The provider has no bad days in it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from proctor.cases.identity import CaseAddress
from proctor.gate.baseline import CaseBaseline, SampleStats
from proctor.gate.beliefs import BaselineRecord, RateBelief, SuitePrior
from proctor.gate.decision import Gate
from proctor.gate.settings import GateSettings
from proctor.gate.two_arm import TwoArmGate
from proctor.results.gate_result import NEW_ARM, GateVerdict
from proctor.results.score import Outcome

ASSUMED_RATE = 0.9
ASSUMED_TRIALS = 10
"""Assumptions about a case without a baseline: its pass rate, and how many trials will be recorded."""

SIMULATED_TRIALS = 3000
MIN_RUNS, MAX_RUNS = 20, 60
"""Simulated runs for each question: together they have about this many first trials, within these bounds."""

WANTED_CHANCE = 0.8
"""A drop is called detectable if this share of the simulated builds is red."""
DROPS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)
"""The drops of all pass rates that are tried."""
MAX_CASES = 800
"""The largest suite that is simulated to answer how many more cases would be enough."""


@dataclass(frozen=True, slots=True)
class RequiredEffort:
    """What is needed to detect a drop; `None` if even the largest simulated suite does not."""

    cases: int | None
    """More cases like the existing ones; 0 if none are needed."""


@dataclass(frozen=True, slots=True)
class PowerEstimate:
    """What a gated run costs, and what it can detect."""

    cases: int
    known: int
    """Number of cases with a baseline."""
    recorded: int
    """Number of their recorded trials."""
    against: str
    """The version that the agent is compared with; empty if only the baseline."""
    chances: Mapping[float, float]
    """By drop in all pass rates: the share of builds that are red."""
    one_broken: float
    """The share of builds that are red if one case that usually passes always fails."""
    detectable_drop: float | None
    """The smallest of the drops tried that makes 80 % of builds red."""
    target: float
    """The drop that the user wants to detect."""
    to_detect_target: RequiredEffort
    trials: float
    """The mean number of trials of a gated run if nothing changed, of both versions if there are two."""
    trials_high: int
    """The 90th percentile of that number."""
    seconds: float | None
    tokens: float | None
    usd: float | None
    unmeasured: int
    """Number of cases whose time was never recorded; time and cost assume the mean of the others."""


Change = Callable[[random.Random, list[float]], list[float]]
"""From the pass rates of the old version to those of the new one."""


class GateSimulation:
    """Runs of the gate with random outcomes, at rates drawn from what is believed about each case."""

    def __init__(self, records: Sequence[BaselineRecord | None], settings: GateSettings) -> None:
        known = [record for record in records if record is not None and record.trials]
        self._settings = settings
        self._prior = SuitePrior((record.passes, record.trials) for record in known) if known else None
        assumed = BaselineRecord(ASSUMED_TRIALS, round(ASSUMED_RATE * ASSUMED_TRIALS))
        # Two versions are compared without a baseline; one version alone will have been recorded by then.
        self._records = [record or (None if settings.against else assumed) for record in records]
        self._beliefs = [self._belief(record) for record in records]

    def _belief(self, record: BaselineRecord | None) -> RateBelief:
        if record is None or self._prior is None:
            return RateBelief(((1.0, ASSUMED_RATE * ASSUMED_TRIALS, (1 - ASSUMED_RATE) * ASSUMED_TRIALS),))
        return self._prior.belief(record.passes, record.trials)

    def red_share(self, change: Change, copies: int = 1) -> float:
        """The share of builds that are red after a change; `copies` multiplies the cases."""
        runs = self._runs(copies)
        return sum(self._run(number, change, copies)[0] is GateVerdict.REGRESSION for number in range(runs)) / runs

    def trials_if_unchanged(self) -> list[int]:
        """The number of trials of each simulated run in which nothing changed."""
        return [self._run(number, lambda rng, rates: rates, 1)[1] for number in range(self._runs(1))]

    def _runs(self, copies: int) -> int:
        return max(MIN_RUNS, min(MAX_RUNS, SIMULATED_TRIALS // max(1, copies * len(self._records))))

    def _run(self, number: int, change: Change, copies: int) -> tuple[GateVerdict, int]:
        rng = random.Random(number)  # noqa: S311  fixed, so that the estimate is the same each time
        beliefs = self._beliefs * copies
        before = [_drawn_rate(rng, belief) for belief in beliefs]
        rates = {NEW_ARM: change(rng, before), "": before}
        records = {("", str(at)): record for at, record in enumerate(self._records * copies)}
        settings = self._settings
        gate = Gate(records, settings) if settings.against is None else TwoArmGate(records, settings, seed=number)
        trials = 0
        while requests := gate.next_trials():
            trials += len(requests)
            for request in requests:
                rate = rates[NEW_ARM if request.arm == NEW_ARM else ""][int(request.case[1])]
                outcome = Outcome.PASSED if rng.random() < rate else Outcome.FAILED
                gate.record(request.case, outcome, arm=request.arm)
        return gate.result().verdict, trials


def _drawn_rate(rng: random.Random, belief: RateBelief) -> float:
    parts = belief.parts
    _, passes, failures = rng.choices(parts, [weight for weight, _, _ in parts])[0]
    return rng.betavariate(passes, failures)


def _dropped(drop: float) -> Change:
    return lambda rng, rates: [max(0.0, rate - drop) for rate in rates]


def _one_broken(rng: random.Random, rates: list[float]) -> list[float]:
    usual = [at for at, rate in enumerate(rates) if rate >= 0.5] or list(range(len(rates)))
    broken = rng.choice(usual)
    return [0.0 if at == broken else rate for at, rate in enumerate(rates)]


def estimate_power(
    baselines: Mapping[CaseAddress, CaseBaseline], settings: GateSettings, target: float
) -> PowerEstimate:
    """What a gated run of these cases costs and can detect. `target` is the drop in pass rates to detect."""
    records = [baseline.record for baseline in baselines.values()]
    known = [record for record in records if record is not None]
    simulation = GateSimulation(records, settings)
    chances = {}
    for drop in sorted({*DROPS, target}):
        chances[drop] = simulation.red_share(_dropped(drop))
        if chances[drop] >= WANTED_CHANCE and drop >= target:
            break  # larger drops are found even more often
    detectable = next((drop for drop, chance in chances.items() if chance >= WANTED_CHANCE), None)
    trials = simulation.trials_if_unchanged()
    mean = math.fsum(trials) / len(trials)
    return PowerEstimate(
        cases=len(baselines),
        known=len(known),
        recorded=sum(record.trials for record in known),
        against=settings.against or "",
        chances=chances,
        one_broken=simulation.red_share(_one_broken),
        detectable_drop=detectable,
        target=target,
        to_detect_target=_required_effort(simulation, len(baselines), target, chances[target]),
        trials=mean,
        trials_high=sorted(trials)[min(len(trials) - 1, math.ceil(0.9 * len(trials)) - 1)],
        seconds=_total([baseline.seconds for baseline in baselines.values()], mean),
        tokens=_total([baseline.tokens for baseline in baselines.values()], mean),
        usd=_total([baseline.usd for baseline in baselines.values()], mean),
        unmeasured=sum(baseline.seconds is None for baseline in baselines.values()),
    )


def _required_effort(simulation: GateSimulation, cases: int, target: float, chance: float) -> RequiredEffort:
    """How many more cases like the existing ones are needed: twice as many, four times, and so on."""
    if chance >= WANTED_CHANCE:
        return RequiredEffort(0)
    copies = 2
    while copies * cases <= MAX_CASES:
        if simulation.red_share(_dropped(target), copies) >= WANTED_CHANCE:
            return RequiredEffort((copies - 1) * cases)
        copies *= 2
    return RequiredEffort(None)


def _total(statistics: Sequence[SampleStats | None], trials: float) -> float | None:
    """The total over this many trials, each with the mean of the cases that have statistics."""
    known = [item.mean for item in statistics if item is not None]
    return trials * math.fsum(known) / len(known) if known else None
