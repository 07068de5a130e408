"""HoloDeck's four standard judged metrics: a mark from 1 to 5 for one property of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from proctor.evaluators.declaration import evaluator
from proctor.evaluators.marks import COHERENCE, MarkEvaluator


@evaluator(family="passages", needs="passages", judge="model", variant_of="Faithfulness")
@dataclass(frozen=True, kw_only=True)
class Groundedness(MarkEvaluator):
    """The answer says nothing but what the passages bear out.

    Whether all that is said follows from the passages.
    """

    kind: ClassVar[str] = "groundedness"
    material_names: ClassVar[tuple[str, ...]] = ("question", "passage")
    instructions: ClassVar[str] = (
        "Assess how well the answer is grounded in the numbered passages: whether everything it states follows from "
        "them. What they contradict weighs most; what they do not mention counts against it too, however true it may "
        "be. What the answer leaves out does not matter here."
    )


@evaluator(family="rubric", judge="model", variant_of="GEval")
@dataclass(frozen=True, kw_only=True)
class Relevance(MarkEvaluator):
    """The answer addresses what was asked.

    Whether what was asked is answered, all of it and nothing else.
    """

    kind: ClassVar[str] = "relevance"
    instructions: ClassVar[str] = (
        "Assess how well the answer addresses the question: whether it answers what was asked, all of it, and stays "
        "with it. Evasion, parts of the question that are passed over, and matter nobody asked for count against it."
    )


@evaluator(family="rubric", judge="model", variant_of="GEval")
@dataclass(frozen=True, kw_only=True)
class Coherence(MarkEvaluator):
    """The parts of the answer are consistent and connected.

    Whether the answer hangs together.
    """

    kind: ClassVar[str] = "coherence"
    instructions: ClassVar[str] = COHERENCE


@evaluator(family="rubric", judge="model", variant_of="GEval")
@dataclass(frozen=True, kw_only=True)
class Fluency(MarkEvaluator):
    """The answer is well written.

    Whether it is well written.
    """

    kind: ClassVar[str] = "fluency"
    instructions: ClassVar[str] = (
        "Assess how well the answer is written: grammar, spelling, choice of words, sentences that read naturally in "
        "the language they are in. Neither what it says nor whether that is true matters here."
    )
