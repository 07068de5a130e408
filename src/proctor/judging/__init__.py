"""The judges behind some evaluators, and the questions they are asked: for users who write evaluators with a judge.

Every name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.base.lazy_exports import late_names

if TYPE_CHECKING:
    from proctor.judging.judge import Judge, NeedsModel, Question
    from proctor.judging.panel import Panel
    from proctor.judging.questions import (
        agreements,
        attributions,
        choose,
        claims,
        comparison,
        entities,
        relevant_sentences,
        statements,
        useful_passages,
    )

_HOMES = {
    "judge": "Judge NeedsModel Question",
    "panel": "Panel",
    "questions": "agreements attributions choose claims comparison entities relevant_sentences statements "
    "useful_passages",
}

__all__ = [
    "Judge",
    "NeedsModel",
    "Panel",
    "Question",
    "agreements",
    "attributions",
    "choose",
    "claims",
    "comparison",
    "entities",
    "relevant_sentences",
    "statements",
    "useful_passages",
]

__getattr__, __dir__ = late_names(globals(), _HOMES, within="proctor.judging")
