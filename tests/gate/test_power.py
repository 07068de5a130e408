"""The power estimate: it says of a gate what that gate does."""

from __future__ import annotations

import random

import pytest

from proctor.gate.baseline import CaseBaseline, CaseIdentity
from proctor.gate.beliefs import BaselineRecord
from proctor.gate.decision import Gate
from proctor.gate.power import PowerEstimate, estimate_power
from proctor.gate.settings import GateSettings
from proctor.results.gate_result import GateVerdict
from proctor.results.score import Outcome


def estimate(records: list[BaselineRecord | None], target: float = 0.1, against: str | None = None) -> PowerEstimate:
    baselines = {
        ("desk", str(at)): CaseBaseline(CaseIdentity("desk", str(at), "agent", "c", "e"), record)
        for at, record in enumerate(records)
    }
    return estimate_power(baselines, GateSettings(against=against), target)


USUAL: list[BaselineRecord | None] = [BaselineRecord(20, 20)] * 20 + [BaselineRecord(20, 15)] * 10
SMALL: list[BaselineRecord | None] = [BaselineRecord(20, 20)] * 10 + [BaselineRecord(20, 15)] * 4


@pytest.mark.parametrize("against", [None, "main"])
def test_a_larger_drop_is_found_more_often_and_one_broken_case_usually(against: str | None) -> None:
    found = estimate(SMALL, target=0.3, against=against)
    assert found.chances[0.05] < 0.8 <= found.chances[0.3]
    assert found.detectable_drop is not None and 0.05 < found.detectable_drop <= 0.3
    assert found.one_broken >= 0.75
    assert found.to_detect_target.cases == 0


def test_few_cases_find_little_and_more_cases_would_find_it() -> None:
    found = estimate([BaselineRecord(10, 9)] * 5, target=0.15)
    assert found.chances[0.15] < 0.8
    assert found.to_detect_target.cases, "it advises more cases, not more repeats: the gate rejects those"


def test_a_comparison_of_two_versions_can_be_planned_without_a_baseline_and_counts_both() -> None:
    found = estimate([None] * 12, target=0.3, against="main")
    assert found.known == 0 and found.against == "main"
    assert found.trials > 12, "suspects run on both versions"
    assert found.one_broken >= 0.6


def test_the_planned_chance_is_about_what_the_gate_reaches() -> None:
    rng = random.Random(5)
    rates = [0.99] * 20 + [0.75] * 10
    red = 0
    for _ in range(100):
        past = {("s", str(at)): sum(rng.random() < rate for _ in range(20)) for at, rate in enumerate(rates)}
        gate = Gate({case: BaselineRecord(20, passes) for case, passes in past.items()})
        while requests := gate.next_trials():
            for request in requests:
                passed = rng.random() < rates[int(request.case[1])] - 0.15
                gate.record(request.case, Outcome.PASSED if passed else Outcome.FAILED)
        red += gate.result().verdict is GateVerdict.REGRESSION
    assert estimate(USUAL, target=0.15).chances[0.15] == pytest.approx(red / 100, abs=0.2)
