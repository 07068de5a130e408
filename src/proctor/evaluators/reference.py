"""Evaluators that compare the answer with the expected one: facts, statements, and meaning by embeddings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from proctor.base.errors import UsageError
from proctor.base.json_data import to_text
from proctor.evaluators.choice import ChoiceEvaluator, Option
from proctor.evaluators.declaration import ScoreSettings, evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation
from proctor.evaluators.judged_evaluator import (
    JUDGE,
    Finding,
    JudgedEvaluator,
    call_details,
    findings_as_details,
    total_usage,
)
from proctor.evaluators.material import answer_text, expected_text, question_text
from proctor.judging.call_log import call_log
from proctor.judging.client import ClientEmbeddings
from proctor.judging.embeddings import LOCAL, Embeddings, NoEmbeddings, cosine, find_embeddings, is_local
from proctor.judging.judge import Judge, JudgeCall, Texts
from proctor.judging.questions import Comparison, comparison

MIN_COSINE = 0.7
"""The cosine at which scores start: embeddings of unrelated texts are similar up to here."""


def compared_texts(evaluable: Evaluable) -> dict[str, Texts]:
    """Question, reference and answer, as material for a judge."""
    reference = expected_text(evaluable)
    return {"question": question_text(evaluable), "reference": reference, "answer": answer_text(evaluable)}


@evaluator(family="reference", needs="reference", judge="rules or model")
@dataclass(frozen=True)
class Factuality(ChoiceEvaluator):
    """The answer agrees with the expected one on the facts. Style and wording do not matter.

    The answer states A: some of the facts (0.4), B: all facts and more (0.6), C: the same facts (1), D: something that
    conflicts (0), E: something different that does not matter (1).
    """

    kind: ClassVar[str] = "factuality"
    instructions: ClassVar[str] = (
        "Compare the facts in the answer with the facts in the reference. Assume that the reference is right. Ignore "
        "style, grammar, order and length. Only the claims count."
    )
    options: ClassVar[Mapping[str, Option]] = {
        "A": Option(0.4, "the answer states some of the facts of the reference, and nothing that conflicts with it"),
        "B": Option(0.6, "the answer states all facts of the reference and more that do not conflict with it"),
        "C": Option(1.0, "the answer states the same facts as the reference"),
        "D": Option(0.0, "the answer conflicts with the reference on a fact"),
        "E": Option(1.0, "the two differ, but not in anything that affects whether the answer is right"),
    }

    def material(self, evaluable: Evaluable) -> Mapping[str, Texts]:
        return compared_texts(evaluable)


@evaluator(family="reference", needs="reference", judge="rules or model")
@dataclass(frozen=True)
class AnswerCorrectness(JudgedEvaluator):
    """How much the answer and the expected answer agree in their statements and in meaning.

    The weighted mean of F1 and similarity. F1 compares the statements of both texts. Similarity is that of
    `EmbeddingSimilarity`. Without embeddings the score is F1 alone, and the reason says so.
    """

    factuality_weight: float = 0.75
    answer_similarity_weight: float = 0.25
    embeddings: Any = None
    """The embeddings for similarity; `None` uses the installed ones, if there are any."""

    def __post_init__(self) -> None:
        weights = [self.factuality_weight, self.answer_similarity_weight]
        numbers = all(isinstance(weight, (int, float)) and 0 <= weight < math.inf for weight in weights)
        if not numbers or not any(weights):
            raise UsageError(f"AnswerCorrectness: weights must be at least 0 and not both 0, not {weights}")
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
        details: dict[str, Any] = {"factuality": agreement, "findings": findings_as_details(_statement_findings(reply))}
        if near is None:
            return Evaluation(agreement, _reason(reply) + remark, details)
        weight = self.factuality_weight + self.answer_similarity_weight
        score = (self.factuality_weight * agreement + self.answer_similarity_weight * near) / weight
        return Evaluation(min(1.0, score), f"{_reason(reply)}. Similarity {near:.2f}", {**details, "similarity": near})

    async def _similarity(self, answer: str, expected: str) -> tuple[float | None, str]:
        """The similarity of the texts; or `None` and a remark for the reason."""
        if not self.answer_similarity_weight:
            return None, ""
        try:
            source = find_embeddings(self.embeddings)
        except NoEmbeddings:
            if not self.factuality_weight:
                raise
            return None, ". Scored by statements only, because no embeddings are installed"
        return scale_similarity(await similarity(source, answer, expected), MIN_COSINE), ""


def f1_of(reply: Comparison) -> float:
    """The F1 score: shared statements divided by shared ones plus half of the others; 0 if there are none."""
    shared = len(reply.shared)
    whole = shared + 0.5 * (len(reply.only_answer) + len(reply.only_reference))
    return shared / whole if whole else 0.0


def _statement_findings(reply: Comparison) -> list[Finding]:
    shared = [Finding(text, "shared", True) for text in reply.shared]
    added = [Finding(text, "only in the answer", False) for text in reply.only_answer]
    missing = [Finding(text, "only in the expected answer", False) for text in reply.only_reference]
    return shared + added + missing


def _reason(reply: Comparison) -> str:
    parts = [f"{len(reply.shared)} statements shared, {len(reply.only_answer)} only in the answer"]
    parts[0] += f", {len(reply.only_reference)} only in the expected answer"
    if reply.contradictions:
        parts.append("contradicted: " + "; ".join(to_text(text, 200) for text in reply.contradictions[:5]))
    if reply.only_reference:
        parts.append("missing: " + "; ".join(to_text(text, 200) for text in reply.only_reference[:5]))
    return ". ".join(parts)


@evaluator(family="reference", needs="reference", judge="embeddings", also=("AnswerSimilarity",))
@dataclass(frozen=True)
class EmbeddingSimilarity(ScoreSettings):
    """How similar answer and expected output are in meaning, by embeddings.

    The cosine of both embeddings, scaled so that `expected_min` is 0 and 1 is 1. Without embeddings the outcome is
    `pending`.
    """

    prefix: str = ""
    """Text to put before both, for models that need an instruction."""
    model: Any = None
    """The embeddings: `openai:text-embedding-3-small`, `local`, or an object with `embed`."""
    expected_min: float = MIN_COSINE
    client: Any = field(default=None, repr=False, compare=False)
    """From Python: the client that asks `model`, such as an `openai.OpenAI`."""

    needs_judge: ClassVar[bool] = True

    @property
    def needs_model(self) -> bool:
        """Whether a provider embeds the texts. A local model costs nothing and is quick, so `--fast` keeps it."""
        return self.client is not None or not is_local(self.model)

    def __post_init__(self) -> None:
        if not isinstance(self.expected_min, (int, float)) or not -1 <= self.expected_min < 1:
            raise UsageError(
                f"{type(self).__name__}: expected_min must be at least -1 and less than 1, not {self.expected_min!r}"
            )
        require_embeddings(self.model if self.client is None else None)

    async def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected, answer = expected_text(evaluable), answer_text(evaluable)
        if not answer.strip():
            return Evaluation(0.0, "the answer is empty")
        source = find_embeddings(self.model) if self.client is None else ClientEmbeddings(self.client, self.model)
        with call_log() as calls:
            likeness = await similarity(source, self.prefix + answer, self.prefix + expected)
        reason = f"cosine {likeness:.3f} (0 points at {self.expected_min:g})"
        return Evaluation(
            scale_similarity(likeness, self.expected_min),
            reason,
            {"cosine": likeness, **_embedding_details(source, calls)},
        )


def require_embeddings(named: Any) -> None:
    """Raise `UsageError` for an unknown name. Embeddings that are not installed are reported later."""
    if named is not None:
        with suppress(NoEmbeddings):
            find_embeddings(named)


async def similarity(source: Embeddings, one: str, other: str) -> float:
    """The cosine of the angle between two texts' embeddings."""
    if one == other:
        return 1.0
    left, right = await source.embed([one, other])
    return cosine(left, right)


def scale_similarity(likeness: float, least: float) -> float:
    """The part of the way from `least` to 1."""
    return min(1.0, max(0.0, (likeness - least) / (1.0 - least)))


def _embedding_details(source: Embeddings, calls: Sequence[JudgeCall]) -> dict[str, Any]:
    """The calls of a provider's model and their cost, as those of a judge; of a local model, only its name."""
    if not calls or source.name == LOCAL:
        return {"embeddings": source.name}
    account = {"model": source.name, "calls": [call_details(call) for call in calls], "usage": total_usage(calls)}
    return {"embeddings": source.name, JUDGE: account}
