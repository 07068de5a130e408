"""ADK's `custom_metrics`: calls a metric function with ADK's objects (or look-alikes) and reads ADK's result."""

from __future__ import annotations

import importlib
import inspect
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.base.fingerprints import source_fingerprint
from proctor.base.json_data import UNSET, Json, to_json
from proctor.base.references import resolve
from proctor.base.threads import run_in_thread
from proctor.cases.matchers import Equals
from proctor.cases.suite import ExpectedCall, Turn
from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable, Exchange
from proctor.evaluators.evaluation import Evaluation, InvalidScore, NothingToCompare
from proctor.evaluators.values import as_text

OPAQUE = frozenset({"args", "response"})
"""What stays data: arguments and results of tools."""


def invocations(evaluable: Evaluable) -> tuple[list[Any], list[Any]]:
    """What was said turn by turn, and what was expected."""
    actual = [_actual(exchange, number) for number, exchange in enumerate(evaluable.turns, 1)]
    expected = [_expected(exchange.turn, number) for number, exchange in enumerate(evaluable.turns, 1)]
    return _as_objects("eval_case", "Invocation", actual), _as_objects("eval_case", "Invocation", expected)


def metric_object(name: str, function: str, criterion: Mapping[str, Json]) -> Any:
    """The metric as the function gets it; Proctor applies the threshold, not the function."""
    told = {"metric_name": name, "threshold": None, "custom_function_path": function}
    given = {"threshold": 0.0, **criterion}
    if not _adk_is_loaded():
        return SimpleNamespace(**told, criterion=SimpleNamespace(**given))
    metrics = importlib.import_module("google.adk.evaluation.eval_metrics")
    return metrics.EvalMetric(**told, criterion=metrics.BaseCriterion.model_validate(given))


def scenario_object(scenario: Mapping[str, Json]) -> Any:
    """The scenario of a simulated conversation."""
    persona = scenario.get("user_persona")
    described = None if persona is None else {"id": "persona", "description": as_text(persona), "behaviors": []}
    (made,) = _as_objects(
        "conversation_scenarios",
        "ConversationScenario",
        [
            {
                "starting_prompt": scenario.get("starting_prompt", ""),
                "conversation_plan": scenario.get("conversation_plan", ""),
                "user_persona": described,
            }
        ],
    )
    return made


def _adk_is_loaded() -> bool:
    """Metric functions of a program that has loaded ADK expect its objects; loading it only for this takes a second."""
    return "google.adk" in sys.modules


def _as_objects(module: str, name: str, data: Sequence[Mapping[str, Json]]) -> list[Any]:
    if not _adk_is_loaded():
        return [_look_alike(item) for item in data]
    kind = getattr(importlib.import_module(f"google.adk.evaluation.{module}"), name)
    return [kind.model_validate(item) for item in data]


def _look_alike(data: Any) -> Any:
    if isinstance(data, Mapping):
        return SimpleNamespace(**{key: value if key in OPAQUE else _look_alike(value) for key, value in data.items()})
    return [_look_alike(item) for item in data] if isinstance(data, list) else data


def _actual(exchange: Exchange, number: int) -> dict[str, Json]:
    reply = exchange.reply
    answer = reply.text if reply.text or reply.structured is None else as_text(reply.structured)
    used = {
        "tool_uses": [_use(call) for call in reply.tool_calls],
        "tool_responses": [_response(call) for call in reply.tool_calls if call.result is not None],
        "intermediate_responses": [],
    }
    return _invocation(exchange.turn, number) | {"final_response": _content("model", answer), "intermediate_data": used}


def _expected(turn: Turn, number: int) -> dict[str, Json]:
    wanted = turn.expected
    calls = None if wanted.tools is None else [_wanted(call) for call in wanted.tools]
    return _invocation(turn, number) | {
        "final_response": None if wanted.output is UNSET else _content("model", as_text(wanted.output)),
        "intermediate_data": None
        if calls is None
        else {"tool_uses": calls, "tool_responses": [], "intermediate_responses": []},
    }


def _invocation(turn: Turn, number: int) -> dict[str, Json]:
    kept = turn.extra.get("x-adk")
    name = kept.get("invocationId") if isinstance(kept, Mapping) else None
    return {
        "invocation_id": str(name or f"turn-{number}"),
        "user_content": _content("user", as_text(turn.input)),
        "creation_timestamp": 0.0,
        "rubrics": None,
        "app_details": None,
    }


def _content(role: str, text: str) -> dict[str, Json]:
    return {"role": role, "parts": [{"text": text}]}


def _use(call: ToolCall) -> dict[str, Json]:
    return {"id": call.id, "name": call.name, "args": to_json(call.arguments)}


def _response(call: ToolCall) -> dict[str, Json]:
    result = to_json(call.result)
    return {"id": call.id, "name": call.name, "response": result if isinstance(result, dict) else {"result": result}}


def _wanted(call: ExpectedCall) -> dict[str, Json]:
    literal = {name: m.value if isinstance(m, Equals) else m.to_json() for name, m in (call.args or {}).items()}
    return {"id": None, "name": call.name, "args": to_json(literal)}


@evaluator(family="code", scope="case", example={"function": "checks.brevity"})
@dataclass(frozen=True, kw_only=True)
class AdkMetric:
    """The score that a metric function of the user gives a conversation: ADK's `custom_metrics`.

    What a function of your own says, as `custom_metrics` names it ([docs/adk.md](adk.md#metrics-of-your-own)),
    brought from its `interval` to 0 to 1. Skipped if it gives no score.
    """

    function: str
    """`package.module.function`, called with (eval_metric, actual_invocations, expected_invocations, scenario)."""
    metric: str = ""
    """The name of the metric, as the function is told."""
    criterion: Mapping[str, Json] = field(default_factory=dict)
    """What the function is told beside that."""
    interval: Sequence[float] = (0.0, 1.0)
    """The scale on which the function measures."""
    base: Path | None = None

    def __post_init__(self) -> None:
        least, most = self._scale
        if not least < most:
            raise ValueError(f"interval must be two numbers, the smaller first, not {self.interval!r}")
        if not callable(self._called):
            raise ValueError(f"{self.function} is no function")

    @property
    def version(self) -> str:
        return source_fingerprint(self._called)

    @staticmethod
    def reference_in(arguments: Mapping[str, Any]) -> str:
        """The code that an evaluator with these arguments calls, for validation, which loads none."""
        module, _, name = str(arguments.get("function", "")).rpartition(".")
        return f"{module}:{name}"

    @property
    def _called(self) -> Any:
        return resolve(self.reference_in({"function": self.function}), self.base)

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
    """What the function returns; a sync function runs in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    result = await run_in_thread(function, *arguments)
    return await result if inspect.isawaitable(result) else result


def _part(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InvalidScore(f"the metric function gave the score {value!r}; a score is a number")
    return float(value)


def _reason(value: float, per_turn: Sequence[float | None], result: Any) -> str:
    said = [f"the function gives {value:g}"]
    if len(per_turn) > 1:
        said.append("by turn " + ", ".join("none" if score is None else f"{score:g}" for score in per_turn))
    said += [str(to_json(_part(rubric, "rationale"))) for rubric in _rubrics(result) if _part(rubric, "rationale")]
    return "; ".join(said)


def _rubrics(result: Any) -> list[Any]:
    found = list(_part(result, "overall_rubric_scores") or ())
    for turn in _part(result, "per_invocation_results") or ():
        found += _part(turn, "rubric_scores") or ()
    return found
