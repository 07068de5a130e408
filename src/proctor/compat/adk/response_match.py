"""ADK's `response_match_score` with thoughts: adk-python compares every text part, also what the model only thought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from proctor.base.json_data import Json
from proctor.cases.suite import NamedData, Turn
from proctor.compat.adk.keys import EXTRA_KEY
from proctor.evaluators.declaration import ScoreSettings, evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation
from proctor.evaluators.text.overlap import ROUGE
from proctor.evaluators.values import as_text


@evaluator(family="text", needs="reference", variant_of="ROUGE")
@dataclass(frozen=True, slots=True)
class RougeWithThoughts(ScoreSettings):
    """Like `ROUGE`, but the thoughts of the model count on both sides (`"thoughts": true` in a `test_config.json`).

    The score of `ROUGE` for the answer after the thoughts that the framework reports, and for the expected response
    with its thoughts.
    """

    variant: str = "rouge1"
    stem: bool | None = None
    tokenizer: str = "unicode"

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        rouge = ROUGE(self.variant, stem=self.stem, tokenizer=self.tokenizer)
        if not evaluable.turns:
            return rouge(evaluable)
        exchange = evaluable.turns[-1]
        if exchange.reply.thoughts:
            answer = f"{exchange.reply.thoughts}\n{as_text(evaluable.output)}"
            evaluable = replace(evaluable, eval_output=(NamedData("output", answer),))
        if (expected := expected_with_thoughts(exchange.turn)) is not None:
            evaluable = replace(evaluable, expectation=expected)
        return rouge(evaluable)


def expected_with_thoughts(turn: Turn) -> str | None:
    """All texts of the expected response; None if it has no more than the expected output."""
    notes: Any = turn.extra.get(EXTRA_KEY)
    content: Any = notes.get("finalResponse") if isinstance(notes, Mapping) else None
    parts: Json = content.get("parts") if isinstance(content, Mapping) else None
    if not isinstance(parts, list):
        return None
    texts = [part["text"] for part in parts if isinstance(part, Mapping) and part.get("text")]
    return "\n".join(texts) if texts else None
