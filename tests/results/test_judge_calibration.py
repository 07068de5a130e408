"""What is kept of a judge's agreement with people, and when it applies to a run."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.results.judge_calibration import (
    Binding,
    Calibration,
    Calibrations,
    JudgedScores,
    LabelledScore,
    file_digest,
    prompt_versions,
    stale_reason,
)
from proctor.results.store.store import Store


def calibration(*rows: tuple[float, bool], threshold: float = 0.5, **changes: object) -> Calibration:
    measured = tuple(LabelledScore(f"row {number}", *row) for number, row in enumerate(rows))
    fields = {
        "judge": "embedded",
        "evaluator": "Faithfulness",
        "fingerprint": "f",
        "threshold": threshold,
        "versions": {"claims": 1},
        "data": "d",
        "source": "rows.jsonl",
        "rows": measured,
    }
    return Calibration(**{**fields, **changes})  # type: ignore[arg-type]


def kept(folder: Path, *given: Calibration) -> dict[str, list[Calibration]]:
    with closing(Store(folder)) as store, closing(Calibrations(store.path)) as calibrations:
        for item in given:
            calibrations.add(item)
        return calibrations.latest({"Faithfulness", "\udfff"})


def test_nothing_is_kept_in_a_new_store(tmp_path: Path) -> None:
    assert kept(tmp_path) == {}


def test_the_latest_calibration_comes_first_and_comes_back_whole(tmp_path: Path) -> None:
    first, second = calibration((0.5, True)), calibration((0.1 + 0.2, False), (1.0, True), data="e")
    found = kept(tmp_path, first, second, calibration((1.0, True), evaluator="GEval"))["Faithfulness"]
    assert [item.data for item in found] == ["e", "d"]
    assert found[0].rows == second.rows
    assert found[0].created_at > 0


def test_names_with_half_a_character_are_kept(tmp_path: Path) -> None:
    (found,) = kept(tmp_path, calibration((0.5, True), judge="half \ud800", evaluator="\udfff"))["\udfff"]
    assert (found.judge, found.evaluator) == ("half \ud800", "\udfff")


def test_a_threshold_that_was_chosen_on_one_half_is_vouched_for_by_the_other() -> None:
    rows = [(0.9, True), (0.8, True), (0.7, False), (0.6, False), (0.9, True), (0.8, True), (0.7, False), (0.6, False)]
    measured = calibration(*rows)
    suggested = measured.suggestion()
    assert suggested is not None
    assert measured.agreement_at(0.5).count == 8
    assert measured.agreement_at(suggested.value).count == 4
    assert measured.agreement_at(round(suggested.value, 2)).count == 4


def test_the_usual_threshold_was_not_chosen_and_counts_on_all_rows() -> None:
    rows = [(0.9, True), (0.1, False)] * 4
    measured = calibration(*rows, threshold=0.5)
    assert measured.suggestion() is None
    assert measured.agreement_at(0.5).count == 8


DAY = 86_400.0
BINDING = Binding(
    {"model": "rules", "version": 2}, {"criteria": "Is it polite?"}, "/no/rows.jsonl", "abc", 30, ["small-1"]
)
JUDGED = JudgedScores("rules", "f", {"claims": 1}, {"criteria": "Is it polite?"}, 100 * DAY, ["small-1"])


def bound(**changes: object) -> Calibration:
    return calibration((0.5, True), judge="rules", created_at=90 * DAY, binding=BINDING, **changes)


def test_a_calibration_holds_for_the_judge_the_rubric_the_prompts_and_the_days_it_was_made_for() -> None:
    assert stale_reason(bound(), JUDGED) == ""
    assert stale_reason(bound(), replace(JUDGED, versions={}, arguments=None)) == ""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"judge": "openai:small"}, "the judge is now openai:small"),
        ({"versions": {"claims": 3}}, "the prompt changed: claims (version 1, now 3)"),
        ({"arguments": {"criteria": "Is it rude?"}}, "the criteria or other arguments of Faithfulness changed"),
        ({"fingerprint": "g"}, "the version of the judge changed; it was"),
        ({"served": ["small-2"]}, "the model behind the name is now small-2 (it was small-1)"),
        ({"judged_at": 121 * DAY}, "it is 31 days old, and holds for 30"),
    ],
)
def test_a_calibration_is_stale_if_what_it_depends_on_changed(changes: dict[str, object], reason: str) -> None:
    assert reason in stale_reason(bound(), replace(JUDGED, **changes))  # type: ignore[arg-type]


def test_a_calibration_is_stale_if_the_rows_changed(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("one")
    measured = replace(bound(), binding=replace(BINDING, rows_file=str(rows), rows_digest=file_digest(rows)))
    assert stale_reason(measured, JUDGED) == ""
    rows.write_text("two")
    assert stale_reason(measured, JUDGED) == "the rows in rows.jsonl changed"


def test_a_calibration_of_an_earlier_release_can_be_read_and_is_not_used(tmp_path: Path) -> None:
    (found,) = kept(tmp_path, calibration((0.5, True), judge="rules"))["Faithfulness"]
    assert found.rows == (LabelledScore("row 0", 0.5, True),)
    assert "an earlier Proctor stored it" in stale_reason(found, JUDGED)


def test_what_a_calibration_depends_on_is_stored_with_it(tmp_path: Path) -> None:
    (found,) = kept(tmp_path, bound())["Faithfulness"]
    assert found.binding == BINDING


@pytest.mark.parametrize(
    "details", [{}, {"judge": None}, {"judge": {"calls": 3}}, {"judge": {"calls": [3, {"kind": 5}]}}]
)
def test_an_evaluation_that_says_nothing_of_its_calls_has_no_versions(details: dict[str, object]) -> None:
    assert prompt_versions([details]) == {}


@given(rows=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30), threshold=st.floats(0, 1))
def test_any_rows_have_an_agreement_at_any_threshold(rows: list[tuple[float, bool]], threshold: float) -> None:
    found = calibration(*rows).agreement_at(threshold)
    assert 0 <= found.accuracy.mean <= 1
    assert found.count in (len(rows), len(rows) // 2)
