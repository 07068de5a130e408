"""JSON Schemas of a declared agent: of what its tools take, and of what it answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from proctor.cases.fields import Fields, kind
from proctor.plain import Json
from proctor.references import describe


def schema_problem(schema: Json) -> str | None:
    """Why a schema is none; nothing is fetched to find out."""
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(schema, retriever=_never)
    except (jsonschema_rs.ValidationError, ValueError, TypeError, LookupError) as error:
        return str(error).splitlines()[0]
    return None


def misfit(schema: Mapping[str, Json], value: Json) -> str | None:
    """Why a value does not fit a schema."""
    import jsonschema_rs

    error = next(iter(jsonschema_rs.validator_for(dict(schema), retriever=_never).iter_errors(value)), None)
    if error is None:
        return None
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    return f"{place.lstrip('.')}: {error.message}" if place else str(error.message)


def _never(address: str) -> Any:
    raise LookupError(f"{address} is elsewhere, and schemas are not fetched")


def schema_of(function: Callable[..., Any]) -> dict[str, Json] | str:
    """What a function takes, or why that cannot be said."""
    from pydantic import TypeAdapter

    target: Any = function
    try:
        found = TypeAdapter(target).json_schema()
    except Exception as error:
        return describe(error).partition("For further information")[0].strip()
    return found


def read_parameters(fields: Fields, function: Callable[..., Any] | None) -> dict[str, Json] | None:
    """`parameters` as a schema: a whole one, or a description of each parameter by its name."""
    given = fields.mapping("parameters")
    if given is None:
        return None
    if given.get("type") == "object" and isinstance(given.get("properties"), dict):
        schema = dict(given)
    else:
        schema = _by_name(fields, given, _without_default(function))
    reason = schema_problem(schema)
    if reason is not None:
        fields.problem("parameters", f"is not a JSON Schema: {reason}")
        return None
    return schema


def _by_name(fields: Fields, given: Mapping[str, Json], needed: frozenset[str] | None) -> dict[str, Json]:
    properties: dict[str, Json] = {}
    required: list[str] = []
    for name, item in given.items():
        if not isinstance(item, dict):
            fields.document.problem((*fields.at("parameters"), name), f"must be an object, not {kind(item)}")
            continue
        properties[name] = {key: value for key, value in item.items() if not (key == "required" and value in (0, 1))}
        usually = "default" not in item if needed is None else name in needed
        if item.get("required", usually) is True:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _without_default(function: Callable[..., Any] | None) -> frozenset[str] | None:
    """The parameters a function cannot do without; `None` where it does not say."""
    if function is None:
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters if p.default is p.empty)
