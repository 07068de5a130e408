"""Similarity of texts of any length."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.cases.suite import NamedData
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.text import comparison
from proctor.evaluators.text.comparison import common_words, edit_similarity
from proctor.evaluators.text.matching import LevenshteinMatch


def _random_text(length: int, seed: int) -> str:
    letters = bytes(b"abcdefghij "[byte % 11] for byte in range(256))
    return random.Random(seed).randbytes(length).translate(letters).decode()


def _distance(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
    return row[-1]


@given(st.text(alphabet="abñ\ud800😀", max_size=12), st.text(alphabet="abñ\ud800😀", max_size=12))
def test_the_score_is_one_minus_the_distance_over_the_longer_length(left: str, right: str) -> None:
    longest = max(len(left), len(right), 1)
    assert edit_similarity(left, right).score == pytest.approx(1 - _distance(left, right) / longest)


def test_ten_megabytes_with_a_few_edits_are_compared_exactly() -> None:
    text = _random_text(10_000_000, 1)
    edited = f"{text[:5_000_000]}XYZ{text[5_000_100:]}"
    result = edit_similarity(text, edited)
    assert result.exact
    assert result.score == pytest.approx(1 - 100 / 10_000_000)


def test_ten_megabytes_that_differ_throughout_get_honest_bounds_and_say_so() -> None:
    output, expected = _random_text(10_000_000, 1), _random_text(10_000_000, 2)
    evaluation = LevenshteinMatch()(Evaluable(eval_output=(NamedData("output", output),), expectation=expected))
    assert 0.2 < evaluation.score < 0.3
    assert evaluation.details["method"] == "blocks"
    assert evaluation.details["score_at_most"] >= evaluation.score
    assert "between" in evaluation.reasoning


@given(st.text(alphabet="abc", max_size=60), st.text(alphabet="abc", max_size=60))
def test_the_bounds_of_blocks_enclose_the_true_score(left: str, right: str) -> None:
    true = edit_similarity(left, right).score
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "MAX_EXACT_CELLS", 20)
        patch.setattr(comparison, "BLOCK_LENGTH", 4)
        result = edit_similarity(left, right)
    assert result.score - 1e-9 <= true <= result.at_most + 1e-9
    assert not result.exact or result.score == pytest.approx(true)


@given(st.lists(st.sampled_from(["a", "bb", "ccc"]), max_size=30), st.lists(st.sampled_from(["a", "bb"]), max_size=30))
def test_common_words_in_blocks_are_never_more_than_there_are(left: list[str], right: list[str]) -> None:
    true, exact = common_words(left, right)
    assert exact
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "MAX_EXACT_CELLS", 20)
        patch.setattr(comparison, "BLOCK_LENGTH", 4)
        blockwise, _ = common_words(left, right)
    assert blockwise <= true <= min(len(left), len(right))
