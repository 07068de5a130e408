"""The base of evaluators whose judge gives a mark on a scale."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation
from proctor.evaluators.judge_questions import mark_question
from proctor.evaluators.judged_evaluator import Judged
from proctor.evaluators.material import answer_text, expected_text, passages, question_text
from proctor.evaluators.values import require_int
from proctor.judging.judge import Judge, Texts

SHARE = (
    "Give a mark from 1 to {scale}: {scale} if nothing is wanting, 1 if nearly everything is. Use the marks between "
    "for what is between, and do not take length for quality."
)


COHERENCE = (
    "Assess how coherent the answer is: whether its thoughts follow from each other, hang together and lead somewhere, "
    "so that a reader can follow it from beginning to end as an answer to the question. Contradictions with itself, "
    "leaps and loose ends count against it. Whether it is true does not matter here."
)


PLACEHOLDERS = {
    "query": "question",
    "input": "question",
    "question": "question",
    "response": "answer",
    "answer": "answer",
    "output": "answer",
    "actual_output": "answer",
    "context": "passage",
    "retrieval_context": "passage",
    "ground_truth": "reference",
    "reference": "reference",
    "expected_output": "reference",
}
"""What prompts written for other tools call the material, and what it is called here."""


@dataclass(frozen=True, kw_only=True)
class MarkEvaluator(Judged):
    """The base of evaluators whose judge gives a mark from 1 to `scale`; the score is its share of the top mark."""

    scale: int = 5
    custom_prompt: str | None = None
    """What the judge is to look for instead of what this evaluator usually asks for."""

    kind: ClassVar[str]
    usual: ClassVar[str]
    shows: ClassVar[tuple[str, ...]] = ("question",)

    def __post_init__(self) -> None:
        require_int("scale", self.scale, least=2)
        if self.custom_prompt is not None and not str(self.custom_prompt).strip():
            raise ValueError("custom_prompt is blank; leave it out, or say what the judge is to look for")

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        material = self._material(evaluable)
        if not answer_text(evaluable).strip():
            return Evaluation(0.0, "the answer is empty")
        asked = self.usual if self.custom_prompt is None else with_references(self.custom_prompt)
        instructions = f"{asked}\n\n{SHARE.format(scale=self.scale)}"
        reply = await judge.ask(mark_question(self.kind, instructions, material, 1, self.scale))
        return Evaluation(reply.share(0, self.scale), reply.reason, {"mark": reply.mark, "scale": self.scale})

    def _material(self, evaluable: Evaluable) -> dict[str, Texts]:
        shown = {*self.shows, *placeholders_in(self.custom_prompt or "")}
        material: dict[str, Texts] = {}
        if "question" in shown:
            material["question"] = question_text(evaluable)
        if "passage" in shown:
            material["passage"] = passages(evaluable)
        if "reference" in shown:
            material["reference"] = expected_text(evaluable)
        return {**material, "answer": answer_text(evaluable)}


def with_references(prompt: str) -> str:
    """A prompt whose placeholders point to the material instead: values never become part of the instructions."""
    return _placeholder().sub(lambda found: f"(the {PLACEHOLDERS[found[1]]} in the material)", prompt)


def placeholders_in(prompt: str) -> set[str]:
    """The material that a prompt has placeholders for."""
    return {PLACEHOLDERS[name] for name in _placeholder().findall(prompt)}


@cache
def _placeholder() -> re.Pattern[str]:
    return re.compile(r"\{{1,2}\s{0,8}(" + "|".join(PLACEHOLDERS) + r")\s{0,8}\}{1,2}")
