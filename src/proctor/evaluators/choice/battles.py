"""Head to head: the answer against the expected one, asked in both orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from proctor.evaluators.choice.choosing import ChoosesTwice, Option
from proctor.evaluators.judged import answer_text, expected_text, question_text
from proctor.evaluators.model import Evaluable
from proctor.judging.model import Texts


@dataclass(frozen=True)
class Battle(ChoosesTwice):
    """Whether the answer is the better one of the two: 1 it is, 0 the expected one is, 0.5 a tie."""

    kind: ClassVar[str] = "battle"
    instructions: ClassVar[str] = (
        "Two answers were given to the same instructions. Decide whether the one called 'second' is better than the "
        "one called 'first': follows the instructions more fully, is more correct and more useful. Length alone is no "
        "merit."
    )
    options: ClassVar[Mapping[str, Option]] = {
        "Yes": Option(1.0, "the second one is better"),
        "No": Option(0.0, "the first one is better, or they are equally good"),
    }
    first: ClassVar[str] = "first"
    second: ClassVar[str] = "second"

    def material(self, evaluable: Evaluable) -> Mapping[str, Texts]:
        expected = expected_text(evaluable, "an answer to compare with")
        return {"instructions": question_text(evaluable), "first": expected, "second": answer_text(evaluable)}


@dataclass(frozen=True)
class Summary(ChoosesTwice):
    """Whether the answer sums up the text better than the expected summary: 1 it does, 0 the other does, 0.5 a tie."""

    kind: ClassVar[str] = "summary"
    instructions: ClassVar[str] = (
        "Two summaries of the same text are given. Decide which one describes the text better: says what matters, "
        "says nothing that is not there, and wastes no words."
    )
    options: ClassVar[Mapping[str, Option]] = {
        "A": Option(0.0, "the summary called 'a' is better"),
        "B": Option(1.0, "the summary called 'b' is better"),
    }
    first: ClassVar[str] = "a"
    second: ClassVar[str] = "b"

    def material(self, evaluable: Evaluable) -> Mapping[str, Texts]:
        expected = expected_text(evaluable, "a summary to compare with")
        return {"text": question_text(evaluable), "a": expected, "b": answer_text(evaluable)}
