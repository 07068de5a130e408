"""Worlds for the gate that compares two versions of an agent: known rates, days, outages, errors, caches.

`gate_accuracy.py --parts versions` runs the shipped gate in them. A world is asked for one trial at a time, in the
order in which the gate requests them, and each round of requests is one batch: an outage or a day hits both versions.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proctor.gate.beliefs import BaselineRecord
from proctor.gate.decision import TrialRequest
from proctor.gate.other_days import Counts
from proctor.gate.two_arm import TwoArmGate
from proctor.results.gate_result import NEW_ARM, GateVerdict
from proctor.results.score import Outcome

Rates = list[float]


@dataclass(frozen=True)
class Conditions:
    """What else happens while the gate runs."""

    day_deviation: float = 0.0
    """Each day shifts the log odds of all rates, of both versions, by a normal amount."""
    recorded: int = 10
    """Trials per case in the baseline; 0 for none."""
    days: int = 5
    """The days on which they were recorded."""
    outage: float = 0.0
    """The share of the trials of one round that fail because of an outage."""
    outage_round: int = 0
    """Which round; 0 is the first of the new version, -1 is every round, from its beginning (a cold start)."""
    is_burst: bool = False
    """Whether the outage takes one stretch of the round instead of scattered trials."""
    world_drop: float = 0.0
    """How much worse both versions are than when the baseline was recorded."""
    errors: tuple[float, float] = (0.0, 0.0)
    """The share of trials of the new and of the old version that end in an error of the infrastructure."""
    cached: str = ""
    """`hidden`: each version repeats its first outcome of a case. `known`: the same, and the gate is told."""
    is_interleaved: bool = True
    """`False` runs the new version first. It is only there to show what that does."""


def shifted(rate: float, shift: float) -> float:
    rate = min(max(rate, 1e-4), 1 - 1e-4)
    return 1 / (1 + (1 - rate) / rate * math.exp(-shift))


class World:
    """Two versions of an agent, and the baseline of the old one."""

    def __init__(self, rng: random.Random, before: Rates, now: Rates, conditions: Conditions) -> None:
        self._rng = rng
        self._conditions = conditions
        self._round = -1
        shift = rng.gauss(0, conditions.day_deviation)
        drop = conditions.world_drop
        self._rates = {
            arm: [self._on_day(max(rate - drop, 0.0), shift) for rate in rates]
            for arm, rates in (("new", now), ("old", before))
        }
        self._first_outcomes: dict[TrialRequest, bool] = {}
        self.runs = self._recorded_runs(before)

    def _on_day(self, rate: float, shift: float) -> float:
        return shifted(rate, shift) if self._conditions.day_deviation else rate

    def _recorded_runs(self, before: Rates) -> list[list[Counts]]:
        conditions, rng = self._conditions, self._rng
        if not conditions.recorded:
            return []
        each = max(1, conditions.recorded // conditions.days)
        runs = []
        for _ in range(conditions.recorded // each):
            shift = rng.gauss(0, conditions.day_deviation)
            rates = [self._on_day(rate, shift) for rate in before]
            runs.append([Counts(sum(rng.random() < rate for _ in range(each)), each) for rate in rates])
        return runs

    def run(self, requests: Sequence[TrialRequest]) -> list[tuple[TrialRequest, Outcome]]:
        """The outcome of each request, and whether it is known to be new."""
        conditions, rng = self._conditions, self._rng
        self._round += 1
        if not conditions.is_interleaved:
            requests = sorted(requests, key=lambda request: request.arm != NEW_ARM)
        has_outage = conditions.outage and conditions.outage_round in (self._round, -1)
        start = rng.random() * (1 - conditions.outage) if conditions.outage_round >= 0 else 0.0
        results = []
        for at, request in enumerate(requests):
            passed = rng.random() < self._rates[request.arm][int(request.case[1])]
            if has_outage:
                place = at / len(requests)
                in_burst = start <= place < start + conditions.outage
                passed = passed and not (in_burst if conditions.is_burst else rng.random() < conditions.outage)
            is_repeated = bool(conditions.cached) and request in self._first_outcomes
            if conditions.cached:
                passed = self._first_outcomes.setdefault(request, passed)
            outcome = Outcome.PASSED if passed else Outcome.FAILED
            if is_repeated and conditions.cached == "known":
                outcome = Outcome.SKIPPED
            if rng.random() < conditions.errors[request.arm != NEW_ARM]:
                outcome = Outcome.ERROR
            results.append((request, outcome))
        return results


@dataclass(frozen=True)
class Cell:
    """Verdicts and trials of many simulated suites."""

    suites: int
    verdicts: Counter[str]
    trials: float
    """Per case, both versions counted."""

    def share(self, verdict: GateVerdict) -> float:
        return self.verdicts[verdict] / self.suites


def decide(world: World, cases: int, seed: int) -> tuple[GateVerdict, int]:
    """The verdict of the shipped gate in a world, and the number of trials it took."""
    addresses = [("suite", str(case)) for case in range(cases)]
    records: dict[tuple[str, str], BaselineRecord | None] = dict.fromkeys(addresses)
    if world.runs:
        for address, counts in zip(addresses, zip(*world.runs, strict=True), strict=True):
            records[address] = BaselineRecord(sum(c.trials for c in counts), sum(c.passes for c in counts))
    runs = [dict(zip(addresses, run, strict=True)) for run in world.runs]
    gate = TwoArmGate(records, recorded_runs=runs, seed=seed)
    trials = 0
    while requests := gate.next_trials():
        trials += len(requests)
        for request, outcome in world.run(requests):
            gate.record(request.case, outcome, arm=request.arm)
    return gate.result().verdict, trials


def simulate_pairs(
    mixture: Callable[[random.Random, int], Rates],
    change: Callable[[random.Random, Rates], Rates],
    cases: int,
    conditions: Conditions,
    suites: int,
    seed: str,
) -> Cell:
    """Run the gate for many suites, each in its own world."""
    verdicts: Counter[str] = Counter()
    trials = 0
    for suite in range(suites):
        rng = random.Random(f"{seed} {suite}")
        before = mixture(rng, cases)
        world = World(rng, before, change(rng, before), conditions)
        verdict, count = decide(world, cases, suite)
        verdicts[verdict] += 1
        trials += count
    return Cell(suites, verdicts, trials / suites / cases)
