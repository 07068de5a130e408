"""Evaluators that ask a judge to choose one of several options, each worth a score."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from proctor.base.errors import UsageError
from proctor.base.json_data import fingerprint, to_json
from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.judged_evaluator import JudgedEvaluator
from proctor.evaluators.material import answer_text, expected_text, question_text
from proctor.evaluators.templates import names_in, point_to_material
from proctor.evaluators.values import as_text
from proctor.judging.judge import Judge, Texts
from proctor.judging.questions import Choice, choose

TIE = 0.5


@dataclass(frozen=True, slots=True)
class Option:
    """What one choice is worth, and what it means to the judge."""

    score: float
    meaning: str = ""


def evaluation_of(reply: Choice, options: Mapping[str, Option]) -> Evaluation:
    """The score of what was chosen."""
    score = options[reply.choice].score
    return Evaluation(score, reply.reason.strip() or f"chose {reply.choice}", {"choice": reply.choice})


@dataclass(frozen=True)
class ChoiceEvaluator(JudgedEvaluator):
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
        return await judge.ask(choose(self.kind, self.instructions, meanings, material))


@dataclass(frozen=True)
class PairwiseChoice(ChoiceEvaluator):
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


@evaluator(
    family="rubric",
    judge="model",
    example={"prompt_template": "Is {{output}} an apology? Choose yes or no.", "choice_scores": {"yes": 1, "no": 0}},
)
@dataclass(frozen=True)
class LLMClassifier(JudgedEvaluator):
    """A judge classifies the answer by your own prompt.

    The score of the choice that the judge makes. Skipped if the case lacks something that the prompt mentions.
    """

    name: str = "LLMClassifier"
    """In a file, `name` is what reports call the evaluator."""
    prompt_template: str = ""
    """The prompt. It may contain `{{input}}`, `{{output}}`, `{{expected}}` and keys of the case's metadata."""
    choice_scores: Mapping[str, float] = field(default_factory=dict)
    """The choices and the score of each, from 0 to 1."""

    def __post_init__(self) -> None:
        if not isinstance(self.prompt_template, str) or not self.prompt_template.strip():
            raise UsageError(f"LLMClassifier {self.name!r}: prompt_template is empty")
        _check_variables(self.name, self.prompt_template)
        _check_scores(self.name, self.choice_scores)

    @property
    def version(self) -> str:
        """Changes with the prompt and the scores of the choices."""
        return fingerprint(self.name, self.prompt_template, to_json(self.choice_scores))

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        options = {name: Option(float(score)) for name, score in self.choice_scores.items()}
        material = {name: _value(name, evaluable) for name in names_in(self.prompt_template)}
        prompt = _with_material_names(self.prompt_template, material)
        reply = await judge.ask(choose("classifier", prompt, dict.fromkeys(options, ""), material))
        return evaluation_of(reply, options)


def _with_material_names(template: str, material: Mapping[str, str]) -> str:
    """The prompt, which names the material in brackets and says what that means."""
    prompt = point_to_material(template, lambda name: f"[{name}]")
    if not material:
        return prompt
    names = ", ".join(f"[{name}]" for name in material)
    return f"{prompt}\n\n{names}: the text of that name in the material."


def _value(name: str, evaluable: Evaluable) -> str:
    if name == "input":
        return question_text(evaluable)
    if name == "output":
        return answer_text(evaluable)
    metadata = evaluable.eval_metadata or {}
    if name == "expected" and name not in metadata:
        return expected_text(evaluable)
    if name not in metadata:
        raise NothingToCompare(f"the prompt mentions {{{{{name}}}}}, and the case's metadata has no {name!r}")
    return as_text(metadata[name])


def _check_variables(name: str, template: str) -> None:
    left = re.search(r"\{\{.{0,40}", point_to_material(template, lambda name: ""), re.DOTALL)
    if left:
        raise UsageError(
            f"LLMClassifier {name!r}: {left[0]!r} is not valid; only {{{{input}}}}, {{{{output}}}}, "
            "{{expected}} and {{keys of the metadata}} are allowed in prompt_template"
        )


def _check_scores(name: str, scores: Mapping[str, float]) -> None:
    if not isinstance(scores, Mapping) or not scores:
        raise UsageError(f"LLMClassifier {name!r}: choice_scores must map choices to scores, such as Y: 1, N: 0")
    for choice, score in scores.items():
        if not isinstance(choice, str) or not choice.strip():
            raise UsageError(f"LLMClassifier {name!r}: the choice {choice!r} is not a string; write it in quotes")
        number = score if isinstance(score, (int, float)) else math.nan
        if not 0 <= number <= 1:
            raise UsageError(f"LLMClassifier {name!r}: the score of {choice!r} must be between 0 and 1, not {score!r}")
