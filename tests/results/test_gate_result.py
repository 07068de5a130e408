"""What a gated run stores: the words of the file stay as they are, whatever the names in Python."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.base.errors import StoreError
from proctor.results.comparison.alignment import Divergence
from proctor.results.gate_result import (
    CaseStatus,
    GatedCaseResult,
    GatedSuite,
    GateResult,
    GateVerdict,
    SuiteWideResult,
    gate_from_json,
    gate_to_json,
)
from proctor.results.score import Outcome

RESULT = GateResult(
    verdict=GateVerdict.REGRESSION,
    reason="refund got worse",
    baseline="desk.baseline.jsonl",
    alpha=0.05,
    max_trials=10,
    extra_trials=2,
    stopped=None,
    suite_wide=SuiteWideResult(1, 0.4, 0.6, False, False),
    cases=(
        GatedCaseResult(
            "desk",
            "refund",
            CaseStatus.REGRESSED,
            Outcome.FAILED,
            baseline_trials=10,
            baseline_passes=10,
            rerun_trials=2,
            p_value=0.01,
            divergence=Divergence("sentence", 1, 2, "five days → call us"),
        ),
        GatedCaseResult("desk", "hours", CaseStatus.UNDECIDED, Outcome.FAILED, trials_to_decide=3),
        GatedCaseResult("desk", "new", CaseStatus.NEW, None, no_baseline_because="the case is new"),
    ),
    suites=(GatedSuite("desk", GateVerdict.REGRESSION, "refund got worse"),),
)


def stored(result: GateResult) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(gate_to_json(result)))
    return data


def test_a_result_is_read_back_as_it_was_stored() -> None:
    assert gate_from_json(stored(RESULT)) == RESULT


def test_stores_and_reports_keep_their_words() -> None:
    refund, hours, new = stored(RESULT)["cases"]

    assert refund["standing"] == "proven" and refund["first"] == "failed"
    assert hours["standing"] == "open" and hours["needed"] == 3
    assert new["standing"] == "new" and new["no_past"] == "the case is new"
    assert set(refund) == {
        *("suite", "case", "standing", "first", "past_trials", "past_passes", "no_past", "fresh_trials"),
        *("fresh_passes", "errors", "p_value", "by_score", "usual_score", "score", "needed", "divergence"),
        *("old_trials", "old_passes"),
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.clear(),
        lambda data: data.update(verdict="cursed"),
        lambda data: data["cases"][0].update(standing="doubled"),
        lambda data: data["suites"][0].update(verdict="unheard of"),
    ],
)
def test_what_another_version_wrote_is_refused_in_a_sentence(change: Any) -> None:
    data = stored(RESULT)
    change(data)
    with pytest.raises(StoreError, match="another version"):
        gate_from_json(data)


def test_a_key_of_a_newer_version_is_left_out() -> None:
    data = stored(RESULT)
    data["cause"] = data["cases"][0]["cause"] = "the change"

    assert gate_from_json(data) == RESULT
