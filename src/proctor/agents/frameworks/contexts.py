"""The object in which a framework carries an application's own things, made from a case's state and told as one."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, is_typeddict

from proctor.plain import Json, plain
from proctor.references import describe

UNKNOWN = (None, type(None), object, Any)
"""Kinds that say nothing: the state itself will do, if there is any."""


def context_from(kind: Any, state: Mapping[str, Json]) -> Any:
    """An object of `kind` with what the case's state says; `None` where there is nothing to say, or no way to say it.

    Raises `ValueError` when the state does not fit a kind that is made of fields.
    """
    if kind in UNKNOWN:
        return copy.deepcopy(dict(state)) or None
    if is_typeddict(kind) or _is(kind, Mapping):
        return copy.deepcopy(dict(state))
    if not dataclasses.is_dataclass(kind) and not hasattr(kind, "model_fields"):
        return None
    from pydantic import PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(kind).validate_python(copy.deepcopy(dict(state)))
    except PydanticUserError:
        return None
    except ValueError as error:
        if not state:
            return None
        raise ValueError(
            f"the state of the case does not fit {getattr(kind, '__name__', kind)}: {describe(error)}"
        ) from None


def state_from(context: Any) -> Mapping[str, Json] | None:
    """What such an object says in the end, where it is made of fields."""
    told = plain(context) if _has_fields(context) else None
    return told if isinstance(told, Mapping) else None


def _is(kind: Any, parent: type) -> bool:
    plainly = getattr(kind, "__origin__", kind)
    return isinstance(plainly, type) and issubclass(plainly, parent)


def _has_fields(value: Any) -> bool:
    return isinstance(value, Mapping) or dataclasses.is_dataclass(value) or hasattr(value, "model_dump")
