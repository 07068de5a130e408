"""What counts as a score: a real number, and nothing that only looks like one."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from proctor.evaluators.evaluation import Evaluation, InvalidScore, to_evaluation


class AlmostNumber:
    def __float__(self) -> float:
        return 1.0


FAKES = [MagicMock(), MagicMock(spec=1.0), AlmostNumber(), "1.0", b"1", [1.0], {"score": 1.0}, 1 + 0j]


@pytest.mark.parametrize("fake", FAKES, ids=lambda value: type(value).__name__)
def test_only_a_real_number_is_a_score(fake: Any) -> None:
    for result in (fake, Evaluation(fake, "a reason"), SimpleNamespace(score=fake, reasoning="a reason")):
        with pytest.raises(InvalidScore):
            to_evaluation(result)


@pytest.mark.parametrize("mock", [MagicMock(score=1.0), MagicMock(spec=Evaluation)], ids=["score", "class"])
def test_a_mock_is_not_an_evaluation(mock: Any) -> None:
    with pytest.raises(InvalidScore):
        to_evaluation(mock)


@pytest.mark.parametrize("details", [MagicMock(), "text", ["a"], 3], ids=lambda value: type(value).__name__)
def test_details_that_are_no_object_are_an_error(details: Any) -> None:
    for result in (Evaluation(1.0, "a reason", details), SimpleNamespace(score=1.0, reasoning="", details=details)):
        with pytest.raises(InvalidScore, match="details"):
            to_evaluation(result)
    assert to_evaluation(Evaluation(1.0, details=None)) == Evaluation(1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [True, 1, 0.5, Decimal("0.5"), Fraction(1, 2)], ids=repr)
def test_numbers_of_every_kind_are_scores(number: Any) -> None:
    for result in (number, Evaluation(number), SimpleNamespace(score=number, reasoning=None)):
        evaluation = to_evaluation(result)
        assert evaluation is not None
        assert evaluation.score == float(number)
        assert type(evaluation.score) is float


def test_scalars_of_numpy_are_scores() -> None:
    numpy = pytest.importorskip("numpy")
    for number in (numpy.float64(0.5), numpy.float32(0.5), numpy.int64(1), numpy.bool_(True)):
        evaluation = to_evaluation(number)
        assert evaluation is not None
        assert evaluation.score == float(number)
