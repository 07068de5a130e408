"""How far a judge agrees with people: compared with brute force, and honest where there is nothing to say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.results.agreement import corrected_pass_rate, judge_agreement, kappa, suggest_threshold
from proctor.results.statistics import Estimate, estimate

VERDICTS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)
SCORED = st.lists(
    st.tuples(st.floats(-5, 5) | st.sampled_from([0.0, 0.5, 1.0]), st.booleans()), min_size=1, max_size=60
)


@given(VERDICTS)
def test_counts_are_those_of_the_rows(rows: list[tuple[bool, bool]]) -> None:
    verdicts, labels = [row[0] for row in rows], [row[1] for row in rows]
    found = judge_agreement(verdicts, labels)
    assert found.accuracy.mean == pytest.approx(sum(one == other for one, other in rows) / len(rows))
    assert found.base_rate == sum(labels) / len(labels)
    assert found.accuracy.low <= found.accuracy.mean <= found.accuracy.high
    assert (found.true_positive_rate is None) == (not any(labels))
    assert (found.true_negative_rate is None) == all(labels)


@given(VERDICTS)
def test_kappa_is_the_share_of_agreement_beyond_chance(rows: list[tuple[bool, bool]]) -> None:
    verdicts, labels = [row[0] for row in rows], [row[1] for row in rows]
    found = kappa(verdicts, labels)
    chance = sum((verdicts.count(value) / len(rows)) * (labels.count(value) / len(rows)) for value in (True, False))
    if chance == 1:
        assert found is None
        return
    observed = sum(one == other for one, other in rows) / len(rows)
    assert found is not None
    assert found.value == pytest.approx((observed - chance) / (1 - chance))
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert kappa(labels, verdicts) is not None


def test_kappa_of_the_textbook_example() -> None:
    rows = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    found = kappa([row[0] for row in rows], [row[1] for row in rows])
    assert found is not None
    assert found.value == pytest.approx(0.4)
    assert found.low == pytest.approx(0.16, abs=0.06)
    assert found.high == pytest.approx(0.64, abs=0.06)
    assert kappa([row[0] for row in rows], [row[1] for row in rows]) == found


def test_full_agreement_on_two_rows_proves_little() -> None:
    found = kappa([True, False], [True, False])
    assert found is not None
    assert found.value == 1.0
    assert found.low < 0.0


def test_kappa_of_many_rows_is_narrow() -> None:
    rows = ([(True, True)] * 8 + [(True, False)] * 2 + [(False, False)] * 8 + [(False, True)] * 2) * 1000
    found = kappa([row[0] for row in rows], [row[1] for row in rows])
    assert found is not None
    assert 0.58 < found.low < 0.6 < found.high < 0.62


@given(SCORED)
def test_the_suggested_threshold_is_the_best_on_the_half_it_was_chosen_on(rows: list[tuple[float, bool]]) -> None:
    scores, labels = [row[0] for row in rows], [row[1] for row in rows]
    found = suggest_threshold(scores, labels) if rows else None
    if found is None:
        return

    def skill(threshold: float) -> float:
        half = judge_agreement([score >= threshold for score in scores[::2]], labels[::2])
        assert half.true_positive_rate is not None
        assert half.true_negative_rate is not None
        return half.true_positive_rate.mean + half.true_negative_rate.mean

    assert skill(found.value) == pytest.approx(max(skill(score) for score in scores[::2]))
    assert found.chosen_on.count + found.checked_on.count == len(rows)


def test_no_threshold_is_suggested_when_a_half_lacks_a_kind() -> None:
    assert suggest_threshold([0.1, 0.9, 0.2, 0.8], [False, True, False, True]) is None


@given(st.floats(0, 1), st.floats(0.56, 1), st.floats(0.56, 1))
def test_the_corrected_rate_takes_out_what_the_judge_gets_wrong(
    true_rate: float, hits: float, rejections: float
) -> None:
    seen = true_rate * hits + (1 - true_rate) * (1 - rejections)
    perfect = judge_agreement([True, False], [True, False])
    known = type(perfect)(2000, 0.5, perfect.accuracy, None, _known(hits), _known(rejections))
    found = corrected_pass_rate(_known(seen), known)
    assert found.value == pytest.approx(true_rate, abs=1e-6)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_a_judge_without_skill_corrects_nothing() -> None:
    observed = estimate([1.0, 0.0])
    assert observed is not None
    blind = judge_agreement([True, True, False, False], [True, False, True, False])
    found = corrected_pass_rate(observed, blind)
    assert (found.value, found.low, found.high) == (None, 0.0, 1.0)
    assert "hardly distinguishes" in found.reason
    assert corrected_pass_rate(observed, judge_agreement([True], [True])).value is None


@pytest.mark.parametrize("measure", [judge_agreement, kappa, suggest_threshold])
def test_nothing_and_unequal_lengths_are_refused(measure: object) -> None:
    assert callable(measure)
    with pytest.raises(ValueError, match="no rows"):
        measure([], [])
    with pytest.raises(ValueError, match="cannot be compared"):
        measure([True], [True, False])


def _known(share: float) -> Estimate:
    return Estimate(share, share, share, 1000)
