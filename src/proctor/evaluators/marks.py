"""The base of evaluators whose judge gives a mark on a scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation
from proctor.evaluators.judge_questions import mark_question
from proctor.evaluators.judged_evaluator import JudgedEvaluator
from proctor.evaluators.material import answer_text, expected_text, passages, question_text
from proctor.evaluators.templates import names_in, point_to_material
from proctor.evaluators.values import require_int
from proctor.judging.judge import Judge, Texts

MARK_PROMPT = (
    "Give a mark from 1 to {scale}: {scale} if nothing is missing, 1 if nearly everything is. Use the marks in between "
    "for partly good answers. Do not reward length."
)


COHERENCE = (
    "Assess how coherent the answer is: whether its ideas follow from each other, fit together and lead to a point, so "
    "that a reader can follow it from beginning to end as an answer to the question. Contradicting itself, jumping "
    "between ideas and leaving loose ends lower the mark. Whether the answer is true does not matter here."
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
class MarkEvaluator(JudgedEvaluator):
    """The base of evaluators whose judge gives a mark from 1 to `scale`; the score is its share of the top mark."""

    scale: int = 5
    custom_prompt: str | None = None
    """What the judge is to look for instead of what this evaluator usually asks for."""

    kind: ClassVar[str]
    instructions: ClassVar[str]
    material_names: ClassVar[tuple[str, ...]] = ("question",)

    def __post_init__(self) -> None:
        require_int("scale", self.scale, least=2)
        if self.custom_prompt is not None and not str(self.custom_prompt).strip():
            raise ValueError("custom_prompt is blank; leave it out, or say what the judge is to look for")

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        material = self._material(evaluable)
        if not answer_text(evaluable).strip():
            return Evaluation(0.0, "the answer is empty")
        prompt = (
            self.instructions
            if self.custom_prompt is None
            else point_to_material(self.custom_prompt, _material_reference, PLACEHOLDERS)
        )
        instructions = f"{prompt}\n\n{MARK_PROMPT.format(scale=self.scale)}"
        reply = await judge.ask(mark_question(self.kind, instructions, material, 1, self.scale))
        return Evaluation(reply.share(0, self.scale), reply.reason, {"mark": reply.mark, "scale": self.scale})

    def _material(self, evaluable: Evaluable) -> dict[str, Texts]:
        shown = {
            *self.material_names,
            *(PLACEHOLDERS[name] for name in names_in(self.custom_prompt or "", PLACEHOLDERS)),
        }
        material: dict[str, Texts] = {}
        if "question" in shown:
            material["question"] = question_text(evaluable)
        if "passage" in shown:
            material["passage"] = passages(evaluable)
        if "reference" in shown:
            material["reference"] = expected_text(evaluable)
        return {**material, "answer": answer_text(evaluable)}


def _material_reference(name: str) -> str:
    return f"(the {PLACEHOLDERS[name]} in the material)"
