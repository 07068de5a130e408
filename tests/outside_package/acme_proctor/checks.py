"""Acme's evaluators."""

from __future__ import annotations

from dataclasses import dataclass

from proctor import Evaluable, evaluator


@evaluator(family="text", threshold=1.0, example={"words": 20})
@dataclass(frozen=True)
class Brevity:
    """The answer has few words."""

    words: int = 20

    def __call__(self, evaluable: Evaluable) -> float:
        return float(len(str(evaluable.output).split()) <= self.words)
