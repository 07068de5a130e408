"""Helpers for adapters: contexts filled from a case's state, and descriptions of tools for fingerprints."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, is_typeddict

from pydantic import PydanticUserError, TypeAdapter

from proctor.base.errors import one_line
from proctor.base.fingerprints import cell_has_value, source_fingerprint
from proctor.base.json_data import Json, to_json


def describe_tool(tool: Any) -> Json:
    """A tool for fingerprints: its name, and a hash of its code, wherever the framework keeps that."""
    candidates = (getattr(tool, attribute, None) for attribute in _CODE_ATTRIBUTES)
    code = next((candidate for candidate in candidates if hasattr(candidate, "__code__")), tool)
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__
    return [str(name), source_fingerprint(code)]


_CODE_ATTRIBUTES = ("func", "function", "real_fn", "entrypoint", "handler", "forward")


def closure_values(function: Any) -> list[Any]:
    """The values in the closure of a function, except variables that are not set yet."""
    return [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if cell_has_value(cell)]


_UNKNOWN_TYPES = (None, type(None), object, Any)
"""Types without information about fields: then the state itself is the context."""


def fill_context(kind: Any, state: Mapping[str, Json]) -> Any:
    """An object of `kind` filled from the case's state; `None` if the state is empty or `kind` has no fields.

    Raises `ValueError` if the state does not match the fields.
    """
    if kind in _UNKNOWN_TYPES:
        return copy.deepcopy(dict(state)) or None
    if is_typeddict(kind) or _is(kind, Mapping):
        return copy.deepcopy(dict(state))
    if not dataclasses.is_dataclass(kind) and not hasattr(kind, "model_fields"):
        return None
    try:
        return TypeAdapter(kind).validate_python(copy.deepcopy(dict(state)))
    except PydanticUserError:
        return None
    except ValueError as error:
        if not state:
            return None
        raise ValueError(
            f"the state of the case does not match {getattr(kind, '__name__', kind)}: {one_line(error)}"
        ) from None


def dump_context(context: Any) -> Mapping[str, Json] | None:
    """The fields of a context as JSON, for the state after a turn; `None` if it has no fields."""
    data = to_json(context) if _has_fields(context) else None
    return data if isinstance(data, Mapping) else None


def _is(kind: Any, parent: type) -> bool:
    origin = getattr(kind, "__origin__", kind)
    return isinstance(origin, type) and issubclass(origin, parent)


def _has_fields(value: Any) -> bool:
    return isinstance(value, Mapping) or dataclasses.is_dataclass(value) or hasattr(value, "model_dump")
