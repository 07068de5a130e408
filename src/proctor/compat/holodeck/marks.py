"""HoloDeck's four standard judged metrics: a mark from 1 to 5 for one property of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from proctor.evaluators.declaration import evaluator
from proctor.evaluators.marks import COHERENCE, MarkEvaluator


@evaluator(family="passages", needs="passages", judge="model", variant_of="Faithfulness")
@dataclass(frozen=True, kw_only=True)
class Groundedness(MarkEvaluator):
    """The answer says only what the passages support.

    Whether everything in the answer follows from the passages.
    """

    kind: ClassVar[str] = "groundedness"
    material_names: ClassVar[tuple[str, ...]] = ("question", "passage")
    instructions: ClassVar[str] = (
        "Assess how well the answer is grounded in the numbered passages: whether everything it states follows from "
        "them. A statement that they contradict weighs most; one that they do not mention counts against the answer "
        "too, even if it is true. What the answer leaves out does not matter here."
    )


@evaluator(family="rubric", judge="model", variant_of="GEval")
@dataclass(frozen=True, kw_only=True)
class Relevance(MarkEvaluator):
    """The answer addresses the question.

    Whether the answer addresses the whole question and nothing else.
    """

    kind: ClassVar[str] = "relevance"
    instructions: ClassVar[str] = (
        "Assess how well the answer addresses the question: whether it answers the whole question and stays on "
        "topic. Evasion, skipped parts of the question and unrelated content count against it."
    )


@evaluator(family="rubric", judge="model", variant_of="GEval")
@dataclass(frozen=True, kw_only=True)
class Coherence(MarkEvaluator):
    """The parts of the answer are consistent and connected.

    Whether the answer is coherent.
    """

    kind: ClassVar[str] = "coherence"
    instructions: ClassVar[str] = COHERENCE


@evaluator(family="rubric", judge="model", variant_of="GEval")
@dataclass(frozen=True, kw_only=True)
class Fluency(MarkEvaluator):
    """The answer is well written.

    Whether the answer is well written.
    """

    kind: ClassVar[str] = "fluency"
    instructions: ClassVar[str] = (
        "Assess how well the answer is written: grammar, spelling, choice of words, sentences that read naturally in "
        "their language. Neither the content nor whether it is true matters here."
    )
