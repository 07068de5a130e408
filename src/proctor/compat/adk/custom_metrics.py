"""ADK's `custom_metrics`: call a metric function with ADK's objects (or look-alikes) and read ADK's result."""

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
from proctor.base.errors import UsageError
from proctor.base.fingerprints import source_fingerprint
from proctor.base.json_data import UNSET, Json, to_json
from proctor.base.references import resolve
from proctor.base.threads import run_in_thread
from proctor.cases.matchers import Equals
from proctor.cases.suite import ExpectedCall, Turn
from proctor.compat.adk.keys import EXTRA_KEY
from proctor.evaluators.declaration import ScoreSettings, evaluator
from proctor.evaluators.evaluable import Evaluable, Exchange
from proctor.evaluators.evaluation import Evaluation, InvalidScore, NothingToCompare
from proctor.evaluators.tools.calls import outer_calls
from proctor.evaluators.values import as_text

USER_DATA_KEYS = frozenset({"args", "response"})
"""Keys whose values stay plain data: the arguments and results of tools."""


def invocations(evaluable: Evaluable) -> tuple[list[Any], list[Any]]:
    """The actual and the expected invocations, turn by turn, as ADK's objects."""
    actual = [_actual(exchange, number) for number, exchange in enumerate(evaluable.turns, 1)]
    expected = [_expected(exchange.turn, number) for number, exchange in enumerate(evaluable.turns, 1)]
    return _as_objects("eval_case", "Invocation", actual), _as_objects("eval_case", "Invocation", expected)


def metric_object(name: str, function: str, criterion: Mapping[str, Json]) -> Any:
    """The metric as the function receives it. The threshold is 0 because Proctor applies it, not the function."""
    fields = {"metric_name": name, "threshold": None, "custom_function_path": function}
    options = {"threshold": 0.0, **criterion}
    if not _adk_is_loaded():
        return SimpleNamespace(**fields, criterion=SimpleNamespace(**options))
    metrics = importlib.import_module("google.adk.evaluation.eval_metrics")
    return metrics.EvalMetric(**fields, criterion=metrics.BaseCriterion.model_validate(options))


def scenario_object(scenario: Mapping[str, Json]) -> Any:
    """The scenario of a simulated conversation as ADK's object."""
    persona = scenario.get("user_persona")
    persona_data = None if persona is None else {"id": "persona", "description": as_text(persona), "behaviors": []}
    (result,) = _as_objects(
        "conversation_scenarios",
        "ConversationScenario",
        [
            {
                "starting_prompt": scenario.get("starting_prompt", ""),
                "conversation_plan": scenario.get("conversation_plan", ""),
                "user_persona": persona_data,
            }
        ],
    )
    return result


def _adk_is_loaded() -> bool:
    """Whether the program has imported ADK, so that its metric functions expect ADK's classes.

    ADK is not imported only for this, because that takes a second.
    """
    return "google.adk" in sys.modules


def _as_objects(module: str, name: str, data: Sequence[Mapping[str, Json]]) -> list[Any]:
    """Data as objects of an ADK class, or as look-alikes if ADK is not loaded."""
    if not _adk_is_loaded():
        return [_as_namespace(item) for item in data]
    kind = getattr(importlib.import_module(f"google.adk.evaluation.{module}"), name)
    return [kind.model_validate(item) for item in data]


def _as_namespace(data: Any) -> Any:
    if isinstance(data, Mapping):
        return SimpleNamespace(
            **{key: value if key in USER_DATA_KEYS else _as_namespace(value) for key, value in data.items()}
        )
    return [_as_namespace(item) for item in data] if isinstance(data, list) else data


def _actual(exchange: Exchange, number: int) -> dict[str, Json]:
    reply = exchange.reply
    answer = reply.text if reply.text or reply.structured is None else as_text(reply.structured)
    calls = [reply.tool_calls[index] for index in outer_calls(reply.tool_calls)]
    intermediate = {
        "tool_uses": [_tool_use(call) for call in calls],
        "tool_responses": [_tool_response(call) for call in calls if call.result is not None],
        "intermediate_responses": [],
    }
    return _invocation(exchange.turn, number) | {
        "final_response": _content("model", answer),
        "intermediate_data": intermediate,
    }


def _expected(turn: Turn, number: int) -> dict[str, Json]:
    expected = turn.expected
    calls = None if expected.tools is None else [_expected_tool_use(call) for call in expected.tools]
    return _invocation(turn, number) | {
        "final_response": None if expected.output is UNSET else _content("model", as_text(expected.output)),
        "intermediate_data": None
        if calls is None
        else {"tool_uses": calls, "tool_responses": [], "intermediate_responses": []},
    }


def _invocation(turn: Turn, number: int) -> dict[str, Json]:
    extra = turn.extra.get(EXTRA_KEY)
    name = extra.get("invocationId") if isinstance(extra, Mapping) else None
    return {
        "invocation_id": str(name or f"turn-{number}"),
        "user_content": _content("user", as_text(turn.input)),
        "creation_timestamp": 0.0,
        "rubrics": None,
        "app_details": None,
    }


def _content(role: str, text: str) -> dict[str, Json]:
    return {"role": role, "parts": [{"text": text}]}


def _tool_use(call: ToolCall) -> dict[str, Json]:
    return {"id": call.id, "name": call.name, "args": to_json(call.arguments)}


def _tool_response(call: ToolCall) -> dict[str, Json]:
    result = to_json(call.result)
    return {"id": call.id, "name": call.name, "response": result if isinstance(result, dict) else {"result": result}}


def _expected_tool_use(call: ExpectedCall) -> dict[str, Json]:
    literal = {name: m.value if isinstance(m, Equals) else m.to_json() for name, m in (call.args or {}).items()}
    return {"id": None, "name": call.name, "args": to_json(literal)}


@evaluator(family="code", scope="case", example={"function": "checks.brevity"})
@dataclass(frozen=True, kw_only=True)
class AdkMetric(ScoreSettings):
    """The score that a metric function of yours gives a conversation: ADK's `custom_metrics`.

    The score of a function listed under `custom_metrics` in `test_config.json`, converted from
    its `interval` to 0 to 1. Skipped if it returns no score.
    """

    function: str
    """`package.module.function`, called with (eval_metric, actual_invocations, expected_invocations, scenario)."""
    metric: str = ""
    """The metric's name, as passed to the function."""
    criterion: Mapping[str, Json] = field(default_factory=dict)
    """The other options of the criterion, as passed to the function."""
    interval: Sequence[float] = (0.0, 1.0)
    """The range of the function's scores: minimum, maximum."""
    base: Path | None = None

    def __post_init__(self) -> None:
        minimum, maximum = self._range
        if not minimum < maximum:
            raise ValueError(f"interval must be [minimum, maximum], not {self.interval!r}")
        if not callable(self._metric_function):
            raise ValueError(f"{self.function} is not a function")

    @property
    def version(self) -> str:
        return source_fingerprint(self._metric_function)

    @staticmethod
    def reference_in(arguments: Mapping[str, Any]) -> str:
        """The reference to the function that these arguments name; validation uses it without loading code."""
        module, _, name = str(arguments.get("function", "")).rpartition(".")
        return f"{module}:{name}"

    @property
    def _metric_function(self) -> Any:
        reference = self.reference_in({"function": self.function})
        try:
            return resolve(reference, self.base)
        except UsageError as error:  # in the words of the file
            raise UsageError(str(error).replace(repr(reference), repr(self.function))) from error

    @property
    def _range(self) -> tuple[float, float]:
        minimum, maximum = self.interval
        return float(minimum), float(maximum)

    async def __call__(self, evaluable: Evaluable) -> Evaluation:
        scenario = (evaluable.eval_metadata or {}).get("conversation_scenario")
        actual, expected = invocations(evaluable)
        arguments = (
            metric_object(self.metric or self.function.rpartition(".")[2], self.function, self.criterion),
            actual,
            None if scenario is not None else expected,
            scenario_object(scenario) if isinstance(scenario, Mapping) else None,
        )
        result = await _call(self._metric_function, arguments)
        return self._read(result)

    def _read(self, result: Any) -> Evaluation:
        per_turn = [_number(_get(turn, "score")) for turn in _get(result, "per_invocation_results") or ()]
        overall = _number(result) if isinstance(result, (int, float)) else _number(_get(result, "overall_score"))
        scores = [score for score in per_turn if score is not None]
        if overall is None and not scores:
            raise NothingToCompare(f"{self.function} returned no score")
        value = math.fsum(scores) / len(scores) if overall is None else overall
        minimum, maximum = self._range
        details: dict[str, Json] = {"overall_score": value}
        if per_turn:
            details["turns"] = per_turn
        return Evaluation((value - minimum) / (maximum - minimum), _reason(value, per_turn, result), details)


async def _call(function: Any, arguments: tuple[Any, ...]) -> Any:
    """Call the function; a sync function runs in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    result = await run_in_thread(function, *arguments)
    return await result if inspect.isawaitable(result) else result


def _get(thing: Any, name: str) -> Any:
    """A field of an object or a mapping, or None."""
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _number(value: Any) -> float | None:
    """A score as a number; raises if it is not one."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InvalidScore(f"the metric function returned the score {value!r}; a score must be a number")
    return float(value)


def _reason(value: float, per_turn: Sequence[float | None], result: Any) -> str:
    parts = [f"the function returned {value:g}"]
    if len(per_turn) > 1:
        parts.append("by turn " + ", ".join("none" if score is None else f"{score:g}" for score in per_turn))
    parts += [str(to_json(_get(rubric, "rationale"))) for rubric in _rubrics(result) if _get(rubric, "rationale")]
    return "; ".join(parts)


def _rubrics(result: Any) -> list[Any]:
    scores = list(_get(result, "overall_rubric_scores") or ())
    for turn in _get(result, "per_invocation_results") or ():
        scores += _get(turn, "rubric_scores") or ()
    return scores
