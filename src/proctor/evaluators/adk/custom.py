"""Metric functions as ADK has them: what was said and expected in ADK's objects in, ADK's result out."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from proctor.agents.threads import call_in_thread
from proctor.cases.model import NOTHING
from proctor.evaluators.adk.objects import invocations, metric_object, scenario_object
from proctor.evaluators.calling import BadVerdict
from proctor.evaluators.model import Evaluable, Evaluation, NothingToCompare
from proctor.plain import Json, plain
from proctor.references import resolve, source_fingerprint


@dataclass(frozen=True, kw_only=True)
class AdkMetric:
    """What a function of one's own says of a conversation: ADK's `custom_metrics`."""

    function: str
    """`package.module.function`, called with (eval_metric, actual_invocations, expected_invocations, scenario)."""
    metric: str = ""
    """The name of the metric, as the function is told."""
    criterion: Mapping[str, Json] = NOTHING
    """What the function is told beside that."""
    interval: Sequence[float] = (0.0, 1.0)
    """The scale on which the function measures."""
    base: Path | None = None

    scope: ClassVar[Literal["turn", "case"]] = "case"

    def __post_init__(self) -> None:
        least, most = self._scale
        if not least < most:
            raise ValueError(f"interval must be two numbers, the smaller first, not {self.interval!r}")
        if not callable(self._called):
            raise ValueError(f"{self.function} is no function")

    @property
    def version(self) -> str:
        return source_fingerprint(self._called)

    @property
    def _called(self) -> Any:
        module, _, name = self.function.rpartition(".")
        return resolve(f"{module}:{name}", self.base)

    @property
    def _scale(self) -> tuple[float, float]:
        least, most = self.interval
        return float(least), float(most)

    async def __call__(self, evaluable: Evaluable) -> Evaluation:
        scenario = (evaluable.eval_metadata or {}).get("conversation_scenario")
        actual, expected = invocations(evaluable)
        arguments = (
            metric_object(self.metric or self.function.rpartition(".")[2], self.function, self.criterion),
            actual,
            None if scenario is not None else expected,
            scenario_object(scenario) if isinstance(scenario, Mapping) else None,
        )
        result = await _called(self._called, arguments)
        return self._read(result)

    def _read(self, result: Any) -> Evaluation:
        per_turn = [_number(_part(found, "score")) for found in _part(result, "per_invocation_results") or ()]
        overall = _number(result) if isinstance(result, (int, float)) else _number(_part(result, "overall_score"))
        known = [score for score in per_turn if score is not None]
        if overall is None and not known:
            raise NothingToCompare(f"{self.function} gave no score")
        value = math.fsum(known) / len(known) if overall is None else overall
        least, most = self._scale
        details: dict[str, Json] = {"overall_score": value}
        if per_turn:
            details["turns"] = per_turn
        return Evaluation((value - least) / (most - least), _reason(value, per_turn, result), details)


async def _called(function: Any, arguments: tuple[Any, ...]) -> Any:
    """What the function returns; one that does not wait itself is waited for apart."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    result = await call_in_thread(function, *arguments)
    return await result if inspect.isawaitable(result) else result


def _part(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadVerdict(f"the metric function gave the score {value!r}; a score is a number")
    return float(value)


def _reason(value: float, per_turn: Sequence[float | None], result: Any) -> str:
    said = [f"the function gives {value:g}"]
    if len(per_turn) > 1:
        said.append("by turn " + ", ".join("none" if score is None else f"{score:g}" for score in per_turn))
    said += [str(plain(_part(rubric, "rationale"))) for rubric in _rubrics(result) if _part(rubric, "rationale")]
    return "; ".join(said)


def _rubrics(result: Any) -> list[Any]:
    found = list(_part(result, "overall_rubric_scores") or ())
    for turn in _part(result, "per_invocation_results") or ():
        found += _part(turn, "rubric_scores") or ()
    return found
