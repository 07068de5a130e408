"""ADK's efficiency metrics: how many calls, tokens or seconds an answer took. They are only reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from proctor.base.json_data import Json
from proctor.evaluators.declaration import ScoreSettings, evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.observation import require_observed
from proctor.evaluators.tools.calls import outer_calls
from proctor.evaluators.values import require_choice

UNITS = {"tool_calls": "tool calls", "model_calls": "model calls", "tokens": "tokens", "seconds": "s"}


@evaluator(family="limits", variant_of="Limits")
@dataclass(frozen=True, slots=True)
class Measured(ScoreSettings):
    """Reports how many calls, tokens or seconds an answer took (ADK's efficiency metrics); always scores 1.

    1, with the number of `tool_calls`, `model_calls`, `tokens` or `seconds` as the reason; for `report_only: true`.
    Skipped if the agent does not report it.
    """

    what: Literal["tool_calls", "model_calls", "tokens", "seconds"] = "tool_calls"
    """What to report."""

    def __post_init__(self) -> None:
        require_choice("what", self.what, tuple(UNITS))

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        value, details = self._measure(evaluable)
        if value is None:
            raise NothingToCompare(f"the agent does not report its {self.what.replace('_', ' ')}")
        unit = UNITS[self.what] if value != 1 or self.what == "seconds" else UNITS[self.what].removesuffix("s")
        return Evaluation(1.0, f"{value:,} {unit}", {"value": value, **details})

    def _measure(self, evaluable: Evaluable) -> tuple[float | None, dict[str, Json]]:
        usage = evaluable.usage
        if self.what == "tool_calls":
            require_observed(evaluable)
            return len(outer_calls(evaluable.tool_calls)), {}
        if self.what == "seconds":
            duration_ms = evaluable.duration_ms
            return None if duration_ms is None else round(duration_ms / 1000, 3), {}
        if usage is None:
            return None, {}
        if self.what == "model_calls":
            return usage.model_calls, {}
        return usage.total_tokens, {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
