"""How near the answer is to the expected one in meaning, by the angle between their embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from proctor.base.errors import UsageError
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.evaluators.judged_evaluator import JUDGE, call_account, spent_on
from proctor.evaluators.judged_texts import answer_text, expected_text
from proctor.judging.call_log import call_log
from proctor.judging.client import ClientEmbeddings
from proctor.judging.embeddings import Embeddings, NoEmbeddings, cosine, embeddings_of
from proctor.judging.judge import JudgeCall

SIMILAR_FROM = 0.7
"""Texts that have nothing in common still have embeddings at an acute angle: scores begin here."""


@dataclass(frozen=True)
class EmbeddingSimilarity:
    """How near answer and expected output are in meaning: 0 up to the cosine `expected_min`, 1 at the cosine 1."""

    prefix: str = ""
    """Text put before both, for models that want to be told what they embed."""
    model: Any = None
    """Which embeddings: `openai:text-embedding-3-small`, `embedded`, or an object with `embed`."""
    expected_min: float = SIMILAR_FROM
    client: Any = field(default=None, repr=False, compare=False)
    """From Python: the client that asks `model`, such as an `openai.OpenAI`."""

    needs_judge: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.expected_min, (int, float)) or not -1 <= self.expected_min < 1:
            raise UsageError(
                f"{type(self).__name__}: expected_min is at least -1 and less than 1, and is {self.expected_min!r}"
            )
        require_embeddings(self.model if self.client is None else None)

    async def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected, answer = expected_text(evaluable), answer_text(evaluable)
        if not answer.strip():
            return Evaluation(0.0, "the answer is empty")
        source = embeddings_of(self.model) if self.client is None else ClientEmbeddings(self.client, self.model)
        with call_log() as calls:
            likeness = await similarity(source, self.prefix + answer, self.prefix + expected)
        said = f"cosine {likeness:.3f}, scored from {self.expected_min:g} on"
        return Evaluation(
            scaled(likeness, self.expected_min), said, {"cosine": likeness, JUDGE: _account(source, calls)}
        )


@dataclass(frozen=True)
class AnswerSimilarity(EmbeddingSimilarity):
    """The same under the name that evaluations of retrieval give it."""


def require_embeddings(named: Any) -> None:
    """Refuse an unknown name before anything is asked; embeddings that are only not installed are skipped later."""
    if named is not None:
        with suppress(NoEmbeddings):
            embeddings_of(named)


async def similarity(source: Embeddings, one: str, other: str) -> float:
    """The cosine of the angle between two texts' embeddings."""
    if one == other:
        return 1.0
    left, right = await source.embed([one, other])
    return cosine(left, right)


def scaled(likeness: float, least: float) -> float:
    """The part of the way from `least` to 1."""
    return min(1.0, max(0.0, (likeness - least) / (1.0 - least)))


def _account(source: Embeddings, calls: Sequence[JudgeCall]) -> dict[str, Any]:
    return {"model": source.name, "calls": [call_account(call) for call in calls], "usage": spent_on(calls)}
