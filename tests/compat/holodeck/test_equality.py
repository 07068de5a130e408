"""Equality, as loose as a file asks for."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET
from proctor.cases.suite import EvaluatorSpec, Keywords, NamedData
from proctor.compat.holodeck.equality import Equality
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.registry import resolve_evaluator


def make_evaluable(output: Any, expectation: Any = UNSET, keywords: Keywords | None = None) -> Evaluable:
    return Evaluable(eval_output=(NamedData("output", output),), expectation=expectation, keywords=keywords)


def test_without_an_expectation_there_is_neither_a_pass_nor_a_zero() -> None:
    with pytest.raises(NothingToCompare, match="expected output"):
        Equality()(make_evaluable("None"))


def test_equality_is_as_loose_as_asked_and_no_looser() -> None:
    assert Equality()(make_evaluable("Yes.", "yes")).score == 0.0
    assert Equality(case_insensitive=True)(make_evaluable("STRASSE", "straße")).score == 1.0
    assert Equality(strip_whitespace=True)(make_evaluable(" a\n b ", "a b")).score == 1.0
    assert Equality(strip_punctuation=True)(make_evaluable("Yes, sir!", "Yes sir")).score == 1.0
    assert Equality(strip_punctuation=True)(make_evaluable("“Yes”。", "Yes")).score == 1.0
    assert Equality(case_insensitive=True, strip_whitespace=True)(make_evaluable(" YES. ", "yes")).score == 0.0


def test_equality_does_not_take_different_punctuation_for_equal_because_nothing_is_left_of_it() -> None:
    assert Equality(strip_punctuation=True)(make_evaluable("???", "!")).score == 0.0
    assert Equality(strip_punctuation=True)(make_evaluable("?", "?")).score == 1.0
    assert Equality(strip_punctuation=True)(make_evaluable("", "!")).score == 0.0


def test_options_that_make_no_sense_are_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match="case_insensitive must be true or false"):
        resolve_evaluator(EvaluatorSpec("Equality", {"case_insensitive": 1}))
