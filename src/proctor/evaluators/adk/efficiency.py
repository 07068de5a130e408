"""What an answer took, as ADK's efficiency measures report it: numbers for people to follow, never a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from proctor.evaluators.comparands import require_choice
from proctor.evaluators.model import Evaluable, Evaluation, NothingToCompare
from proctor.plain import Json

UNITS = {"tool_calls": "tool calls", "model_calls": "model calls", "tokens": "tokens", "seconds": "s"}


@dataclass(frozen=True)
class Measured:
    """Reports how much of something an answer took; whatever is measured scores 1, so do not let it decide anything."""

    what: Literal["tool_calls", "model_calls", "tokens", "seconds"] = "tool_calls"

    def __post_init__(self) -> None:
        require_choice("what", self.what, tuple(UNITS))

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        value, details = self._measure(evaluable)
        if value is None:
            raise NothingToCompare(f"the agent does not tell its {self.what.replace('_', ' ')}")
        unit = UNITS[self.what] if value != 1 or self.what == "seconds" else UNITS[self.what].removesuffix("s")
        return Evaluation(1.0, f"{value:,} {unit}", {"value": value, **details})

    def _measure(self, evaluable: Evaluable) -> tuple[float | None, dict[str, Json]]:
        usage = evaluable.usage
        if self.what == "tool_calls":
            return len(evaluable.tool_calls), {}
        if self.what == "seconds":
            spent = evaluable.duration_ms
            return None if spent is None else round(spent / 1000, 3), {}
        if usage is None:
            return None, {}
        if self.what == "model_calls":
            return usage.model_calls, {}
        return usage.total_tokens, {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
