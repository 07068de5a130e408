"""What evaluators share that ask a judge to choose: each choice is worth a score."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from proctor.evaluators.judged import Judged
from proctor.evaluators.model import Evaluable, Evaluation
from proctor.judging.choices import Choice, choose
from proctor.judging.model import Judge, Texts
from proctor.records import record

TIE = 0.5


@record
class Option:
    """What one choice is worth, and what it means to the judge."""

    score: float
    meaning: str = ""


def evaluation_of(reply: Choice, options: Mapping[str, Option]) -> Evaluation:
    """The score of what was chosen, or the degree where the judge measured one."""
    score = options[reply.choice].score if reply.degree is None else reply.degree
    return Evaluation(score, reply.reason.strip() or f"chose {reply.choice}", {"choice": reply.choice})


@dataclass(frozen=True)
class Chooses(Judged):
    """The base of evaluators that ask one question with a few possible answers."""

    kind: ClassVar[str]
    instructions: ClassVar[str]
    options: ClassVar[Mapping[str, Option]]

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        return evaluation_of(await self._ask(judge, self.material(evaluable)), self.options)

    def material(self, evaluable: Evaluable) -> Mapping[str, Texts]:
        """What the choice is about."""
        raise NotImplementedError

    async def _ask(self, judge: Judge, material: Mapping[str, Texts]) -> Choice:
        meanings = {name: option.meaning for name, option in self.options.items()}
        worth = {name: option.score for name, option in self.options.items()}
        return await judge.ask(choose(self.kind, self.instructions, meanings, material, worth=worth))


@dataclass(frozen=True)
class ChoosesTwice(Chooses):
    """The base of evaluators that compare two texts: asked in both orders, since judges tend to favour a position."""

    first: ClassVar[str]
    second: ClassVar[str]
    """The names of the two texts; the answer is the second one when it is asked for the first time."""

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        one_way = self.material(evaluable)
        other_way = {**one_way, self.first: one_way[self.second], self.second: one_way[self.first]}
        replies = await asyncio.gather(self._ask(judge, one_way), self._ask(judge, other_way))
        scores = (self.options[replies[0].choice].score, 1.0 - self.options[replies[1].choice].score)
        details = {"choices": [reply.choice for reply in replies]}
        if scores[0] == scores[1]:
            return Evaluation(scores[0], replies[0].reason.strip(), details)
        reasons = " / ".join(reply.reason.strip() for reply in replies)
        return Evaluation(TIE, f"a tie: the judge decides differently when the two change places. {reasons}", details)
