"""Whether the answer says what the expected one says: statements they share, and how near they are in meaning."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from proctor.errors import UsageError
from proctor.evaluators.findings import Finding, as_details
from proctor.evaluators.judged import Judged, answer_text, expected_text, question_text
from proctor.evaluators.model import Evaluable, Evaluation, NothingToCompare
from proctor.evaluators.semantic import SIMILAR_FROM, require_embeddings, scaled, similarity
from proctor.judging.embeddings import NoEmbeddings, embeddings_of
from proctor.judging.model import Judge
from proctor.judging.questions import Comparison, comparison
from proctor.plain import show


@dataclass(frozen=True)
class AnswerCorrectness(Judged):
    """The F1 of statements shared with the expected answer, weighed with the similarity of the two texts."""

    factuality_weight: float = 0.75
    answer_similarity_weight: float = 0.25
    embeddings: Any = None
    """Who measures similarity; `None` takes what is there, and does without if there is nothing."""

    def __post_init__(self) -> None:
        weights = [self.factuality_weight, self.answer_similarity_weight]
        numbers = all(isinstance(weight, (int, float)) and 0 <= weight < math.inf for weight in weights)
        if not numbers or not any(weights):
            raise UsageError(f"AnswerCorrectness: weights are at least 0 and not both 0; they are {weights}")
        require_embeddings(self.embeddings)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        expected, answer = expected_text(evaluable), answer_text(evaluable)
        if not answer.strip():
            return Evaluation(0.0, "the answer is empty")
        near, remark = await self._similarity(answer, expected)
        if not self.factuality_weight and near is not None:
            return Evaluation(near, f"Similarity {near:.2f}", {"similarity": near})
        reply = await judge.ask(comparison(question_text(evaluable), expected, answer))
        agreement = f1_of(reply)
        details: dict[str, Any] = {"factuality": agreement, "findings": as_details(_findings(reply))}
        if near is None:
            return Evaluation(agreement, _reason(reply) + remark, details)
        weight = self.factuality_weight + self.answer_similarity_weight
        score = (self.factuality_weight * agreement + self.answer_similarity_weight * near) / weight
        return Evaluation(min(1.0, score), f"{_reason(reply)}. Similarity {near:.2f}", {**details, "similarity": near})

    async def _similarity(self, answer: str, expected: str) -> tuple[float | None, str]:
        """How near the texts are; or `None`, and what to say about it."""
        if not self.answer_similarity_weight:
            return None, ""
        try:
            source = embeddings_of(self.embeddings)
        except NoEmbeddings as error:
            if not self.factuality_weight:
                raise NothingToCompare(str(error)) from error
            return None, ". Scored by statements alone, since there are no embeddings"
        return scaled(await similarity(source, answer, expected), SIMILAR_FROM), ""


def f1_of(reply: Comparison) -> float:
    """Shared statements against those that only one of the texts makes; 0 if there are none at all."""
    if reply.degree is not None:
        return reply.degree
    shared = len(reply.shared)
    whole = shared + 0.5 * (len(reply.only_answer) + len(reply.only_reference))
    return shared / whole if whole else 0.0


def _findings(reply: Comparison) -> list[Finding]:
    shared = [Finding(text, "shared", True) for text in reply.shared]
    added = [Finding(text, "only in the answer", False) for text in reply.only_answer]
    missing = [Finding(text, "only in the expected answer", False) for text in reply.only_reference]
    return shared + added + missing


def _reason(reply: Comparison) -> str:
    parts = [f"{len(reply.shared)} statements shared, {len(reply.only_answer)} only in the answer"]
    parts[0] += f", {len(reply.only_reference)} only in the expected answer"
    if reply.contradictions:
        parts.append("contradicted: " + "; ".join(show(text, 200) for text in reply.contradictions[:5]))
    if reply.only_reference:
        parts.append("missing: " + "; ".join(show(text, 200) for text in reply.only_reference[:5]))
    return ". ".join(parts)
