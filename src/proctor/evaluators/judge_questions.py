"""The shapes in which judges are asked for an opinion: a mark on a scale, a yes or no, a yes or no for each item.

The reason always comes before the verdict, so that a model thinks before it decides.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, create_model

from proctor.judging.judge import Question, Texts
from proctor.judging.questions import EachOnce, Graded, YesNo


class Mark(Graded):
    reason: str = Field(description="what speaks for and against, in one or two sentences")
    mark: float

    def share(self, lowest: float, highest: float) -> float:
        """Where the mark lies between two others, from 0 to 1; measured partial credit is finer than a mark."""
        if self.partial_credit is not None:
            return self.partial_credit
        return min(1.0, max(0.0, (self.mark - lowest) / (highest - lowest)))


class Ruling(BaseModel):
    reason: str = Field(description="what decides it, in one or two sentences")
    verdict: YesNo


class NumberedRuling(BaseModel):
    number: int
    reason: str = Field(description="what decides it, in one sentence")
    verdict: YesNo


class Rulings(BaseModel):
    verdicts: list[NumberedRuling]


class Steps(BaseModel):
    steps: list[str] = Field(description="three or four steps, each one sentence")


class Finding(BaseModel):
    output: str


def mark(
    kind: str, instructions: str, material: Mapping[str, Texts], lowest: float, highest: float, slack: float = 0.0
) -> Question[Mark]:
    """A mark on a scale whose ends are given. One beyond them is no mark, unless it is by no more than `slack`."""

    def check(reply: Mark) -> str | None:
        # A comparison with NaN is false, so that it is beyond them too.
        fits = lowest - slack <= reply.mark <= highest + slack
        return None if fits else f"mark must be between {lowest:g} and {highest:g}"

    return Question(kind, 1, instructions, material, _mark_of(lowest, highest), check)


@functools.cache
def _mark_of(lowest: float, highest: float) -> type[Mark]:
    """A mark with the score of each whole one: a model whose probabilities are known writes one of these words."""
    whole = range(math.ceil(lowest), math.floor(highest) + 1)
    scores = {str(mark): (mark - lowest) / (highest - lowest) for mark in whole}
    number = BeforeValidator(lambda value: float(value) if isinstance(value, str) and value in scores else value)
    field: Any = (Annotated[float, number], ...)
    made = create_model("Mark", __base__=Mark, mark=field)
    made.choice_scores = scores
    return made


def ruling(kind: str, instructions: str, material: Mapping[str, Texts]) -> Question[Ruling]:
    """One yes or no."""
    return Question(kind, 1, instructions, material, Ruling)


def rulings(kind: str, instructions: str, material: Mapping[str, Texts], count: int) -> Question[Rulings]:
    """A yes or no for each of `count` items that the instructions or the material number from 1."""
    return Question(kind, 1, instructions, material, Rulings, EachOnce(count))


def steps(kind: str, instructions: str) -> Question[Steps]:
    """How to go about an assessment: the same for every case, since nothing of a case is shown."""

    def check(reply: Steps) -> str | None:
        return None if any(step.strip() for step in reply.steps) else "steps must have at least one step"

    return Question(kind, 1, instructions, {}, Steps, check)


def finding(kind: str, instructions: str, material: Mapping[str, Texts]) -> Question[Finding]:
    """A text made from the material, for a later question to rest on."""
    return Question(kind, 1, instructions, material, Finding)


def in_order(reply: Rulings) -> list[tuple[bool, str]]:
    """Whether it is a yes, and why, by the number of the item."""
    ordered = sorted(reply.verdicts, key=lambda item: item.number)
    return [(item.verdict == "yes", item.reason) for item in ordered]
