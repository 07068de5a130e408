"""What a gated run of a suite will cost and can see, from its baseline, before anything is spent."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from proctor.base.records import record
from proctor.results.baseline import Spread, Usual
from proctor.results.comparison_statistics import Enlargement, PlannedCase, detectable_drop, enlargement
from proctor.results.gate import DRIFT_SHARES, Gate, GateOptions, Past
from proctor.results.gate_evidence import UsualRates

ASSUMED_RATE = 0.9
ASSUMED_TRIALS = 10
"""What a plan assumes of a case that has no past: how often it passes, and how many trials will be recorded first."""

SIMULATED_TRIALS = 4000
"""Simulated gates together ask about so many cases: enough for a mean, and quick."""


@record
class GatePlan:
    """What can be said about a gated run beforehand."""

    cases: int
    known: int
    """Cases that have a past."""
    recorded: int
    """Trials recorded of them."""
    sees: Mapping[int, float | None]
    """By runs of each case: the smallest drop of all pass rates that is noticed with a chance of 80 %."""
    target: float
    to_see_target: Enlargement
    trials: float
    """Expected in a gated run if nothing changed."""
    trials_high: int
    """The most that nine in ten such runs take."""
    seconds: float | None
    tokens: float | None
    usd: float | None
    unmeasured: int
    """Cases whose time was never recorded; time and cost are scaled up for them."""


def plan_gate(usuals: Sequence[Usual], options: GateOptions, repeats: int, target: float) -> GatePlan:
    """Estimates by driving the shipped gate with simulated outcomes at the usual rates."""
    pasts = [usual.past for usual in usuals]
    known = [past for past in pasts if past is not None]
    rates = UsualRates((past.passes, past.trials) for past in known) if known else None
    planned = [_planned(past, rates) for past in pasts]
    spent = _simulated(pasts, planned, options)
    mean = math.fsum(spent) / len(spent)
    share = options.alpha * DRIFT_SHARES[0]
    runs = sorted({1, len(DRIFT_SHARES), repeats})
    return GatePlan(
        cases=len(usuals),
        known=len(known),
        recorded=sum(past.trials for past in known),
        sees={count: detectable_drop(planned, count, alpha=share) for count in runs},
        target=target,
        to_see_target=enlargement(planned, target, repeats, alpha=share),
        trials=mean,
        trials_high=round(sorted(spent)[min(len(spent) - 1, math.ceil(0.9 * len(spent)) - 1)]),
        seconds=_total([usual.seconds for usual in usuals], mean),
        tokens=_total([usual.tokens for usual in usuals], mean),
        usd=_total([usual.usd for usual in usuals], mean),
        unmeasured=sum(usual.seconds is None for usual in usuals),
    )


def _planned(past: Past | None, rates: UsualRates | None) -> PlannedCase:
    if past is None or rates is None:
        return PlannedCase(ASSUMED_RATE, ASSUMED_TRIALS)
    return PlannedCase(rates.belief(past.passes, past.trials).mean, past.trials)


def _simulated(pasts: Sequence[Past | None], planned: Sequence[PlannedCase], options: GateOptions) -> list[int]:
    """How many trials gated runs of the unchanged suite take; the same each time it is asked."""
    rng = random.Random(0)  # noqa: S311  the same answer each time is wanted
    assumed = Past(ASSUMED_TRIALS, round(ASSUMED_RATE * ASSUMED_TRIALS))
    names = {f"{at}": (past or assumed, case.rate) for at, (past, case) in enumerate(zip(pasts, planned, strict=True))}
    spent = []
    for _ in range(max(3, min(50, SIMULATED_TRIALS // max(1, len(names))))):
        gate, trials = Gate({name: past for name, (past, _) in names.items()}, options), 0
        while cases := gate.next_cases():
            trials += len(cases)
            for case in cases:
                gate.record(case, passed=rng.random() < names[case][1])
        spent.append(trials)
    return spent


def _total(spreads: Sequence[Spread | None], trials: float) -> float | None:
    """What so many trials take: the mean over cases, those that were never measured like the others."""
    known = [spread.mean for spread in spreads if spread is not None]
    return trials * math.fsum(known) / len(known) if known else None
