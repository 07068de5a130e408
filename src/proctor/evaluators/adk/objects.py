"""A conversation as the objects that ADK's metric functions take: ADK's own where it is loaded, else look-alikes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from proctor.agents.model import ToolCall
from proctor.cases.matchers import Equals
from proctor.cases.model import UNSET, ExpectedCall, Turn
from proctor.evaluators.judged import as_text
from proctor.evaluators.model import Evaluable, Exchange
from proctor.plain import Json, plain

OPAQUE = frozenset({"args", "response"})
"""What stays data: arguments and results of tools."""


def invocations(evaluable: Evaluable) -> tuple[list[Any], list[Any]]:
    """What was said turn by turn, and what was expected."""
    actual = [_actual(exchange, number) for number, exchange in enumerate(evaluable.turns, 1)]
    expected = [_expected(exchange.turn, number) for number, exchange in enumerate(evaluable.turns, 1)]
    return _as_objects("eval_case", "Invocation", actual), _as_objects("eval_case", "Invocation", expected)


def metric_object(name: str, function: str, criterion: Mapping[str, Json]) -> Any:
    """The metric as a function is told of it; its threshold is not the function's business."""
    told = {"metric_name": name, "threshold": None, "custom_function_path": function}
    given = {"threshold": 0.0, **criterion}
    if not _adk_is_loaded():
        return SimpleNamespace(**told, criterion=SimpleNamespace(**given))
    import importlib

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
    """Whoever has loaded ADK expects its objects; for anybody else, loading it would take a second."""
    return "google.adk" in sys.modules


def _as_objects(module: str, name: str, data: Sequence[Mapping[str, Json]]) -> list[Any]:
    if not _adk_is_loaded():
        return [_look_alike(item) for item in data]
    import importlib

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
    calls = None if wanted.tool_calls is None else [_wanted(call) for call in wanted.tool_calls]
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
    return {"id": call.id, "name": call.name, "args": plain(call.arguments)}


def _response(call: ToolCall) -> dict[str, Json]:
    result = plain(call.result)
    return {"id": call.id, "name": call.name, "response": result if isinstance(result, dict) else {"result": result}}


def _wanted(call: ExpectedCall) -> dict[str, Json]:
    literal = {name: m.value if isinstance(m, Equals) else m.to_json() for name, m in (call.arguments or {}).items()}
    return {"id": None, "name": call.name, "args": plain(literal)}
