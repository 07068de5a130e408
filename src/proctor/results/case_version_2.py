"""Reads a case as version 2 of the store kept it: as the native format wrote it.

It is for migrations, and for a case that an older program added to a database that is open here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.base.json_data import UNSET, Json
from proctor.cases.matchers import Equals, Matcher, parse
from proctor.cases.scenario import Scenario
from proctor.cases.suite import (
    NO_EXPECTATION,
    Attachment,
    Case,
    Double,
    EvaluatorSpec,
    Expected,
    ExpectedCall,
    Keywords,
    NamedData,
    Turn,
)

_OF_A_CASE = frozenset(
    (
        "id description tags skip inputs metadata state final_state scenario turns input expected retrieval_context"
        " files evaluators repeat timeout doubles"
    ).split()
)
_OF_A_TURN = frozenset(("input", "expected", "retrieval_context", "files", "evaluators", "metadata"))
_ATTACHMENT_KEYS = ("path", "url", "type", "description")
_SCENARIO_DEFAULTS = {"max_turns": 20, "stop": "</finished>"}
_SPEC_KEYS = {
    "threshold": "threshold",
    "name": "label",
    "gate": "gates",
    "scope": "scope",
    "output": "output",
    "timeout": "timeout",
    "output_path": "path",
    "retries": "retries",
    "optional": "optional",
}


def case_of_version_2(data: Mapping[str, Json]) -> Case:
    """A case out of the native format as the store of versions 1 and 2 wrote it."""
    scenario = Scenario(**{**_SCENARIO_DEFAULTS, **data["scenario"]}) if "scenario" in data else None
    final_state = data.get("final_state")
    return Case(
        id=data["id"],
        turns=_turns(data, scenario),
        description=data.get("description", ""),
        tags=tuple(data.get("tags", ())),
        evaluators=_specs(data.get("evaluators")),
        inputs=tuple(NamedData(name, value) for name, value in data.get("inputs", {}).items()),
        metadata=data.get("metadata") or {},
        state=data.get("state") or {},
        final_state=final_state,
        repeat=data.get("repeat"),
        timeout=data.get("timeout"),
        skip=data.get("skip"),
        doubles={tool: _doubles(given) for tool, given in data.get("doubles", {}).items()},
        scenario=scenario,
        extra={name: value for name, value in data.items() if name not in _OF_A_CASE},
    )


def _turns(data: Mapping[str, Json], scenario: Scenario | None) -> tuple[Turn, ...]:
    if "turns" in data:
        return tuple(_turn(turn) for turn in data["turns"])
    if scenario is not None:
        return (Turn(scenario.start),)
    own = {name: data[name] for name in ("input", "expected", "retrieval_context", "files") if name in data}
    return (_turn(own),)


def _turn(data: Mapping[str, Json]) -> Turn:
    context = data.get("retrieval_context")
    return Turn(
        input=data["input"],
        expected=_expected(data["expected"]) if "expected" in data else NO_EXPECTATION,
        evaluators=_specs(data.get("evaluators")),
        retrieval_context=None if context is None else tuple(context),
        attachments=tuple(_attachment(item) for item in data.get("files", ())),
        metadata=data.get("metadata") or {},
        extra={name: value for name, value in data.items() if name not in _OF_A_TURN},
    )


def _expected(data: Json) -> Expected:
    if not isinstance(data, Mapping):
        return Expected(output=data)
    words, tools, context = data.get("contains"), data.get("tools"), data.get("context")
    return Expected(
        output=data.get("output", UNSET),
        keywords=None if words is None else Keywords(tuple(words.get("any", ())), tuple(words.get("all", ()))),
        tool_calls=None if tools is None else tuple(_call(tool) for tool in tools),
        context=None if context is None else tuple(context),
    )


def _call(data: Json) -> ExpectedCall:
    if isinstance(data, str):
        return ExpectedCall(data)
    return ExpectedCall(
        name=data["name"],
        arguments=_arguments(data.get("args")),
        count=data.get("count", 1),
        substring=data.get("substring", False),
        extra_arguments=data.get("extra_args", False),
        result=data.get("result", UNSET),
    )


def _arguments(data: Mapping[str, Json] | None) -> dict[str, Matcher] | None:
    return None if data is None else {name: _matcher(value) for name, value in data.items()}


def _matcher(value: Json) -> Matcher:
    if not isinstance(value, Mapping) or not any(isinstance(key, str) and key.startswith("$") for key in value):
        return Equals(value)  # below the first level, those versions knew no matchers
    try:
        return parse(value)
    except ValueError:  # a form that is no longer one
        return Equals(value)


def _attachment(data: Mapping[str, Json]) -> Attachment:
    path, url, kind, description = (data.get(name) for name in _ATTACHMENT_KEYS)
    options = {name: value for name, value in data.items() if name not in _ATTACHMENT_KEYS}
    return Attachment(path, url, kind, description, options or {})


def _doubles(data: Json) -> tuple[Double, ...]:
    items = data if isinstance(data, list) else [data]
    return tuple(
        Double(
            _arguments(item.get("args")),
            item.get("result"),
            item.get("error"),
            item.get("delay", 0.0),
            item.get("times"),
        )
        for item in items
    )


def _specs(data: list[Json] | None) -> tuple[EvaluatorSpec, ...] | None:
    """`["..."]` was written for a case that inherits its evaluators."""
    return None if data is None or data == ["..."] else tuple(_spec(item) for item in data)


def _spec(data: Json) -> EvaluatorSpec:
    if isinstance(data, str):
        return EvaluatorSpec(data)
    [(name, options)] = data.items()
    known: dict[str, Any] = {_SPEC_KEYS[key]: value for key, value in options.items() if key in _SPEC_KEYS}
    return EvaluatorSpec(name, {k: v for k, v in options.items() if k not in _SPEC_KEYS}, **known)
