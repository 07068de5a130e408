"""Reads attributes that libraries set more or less as agreed: numbers that may be text, and lists spread over keys."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any


def first(attributes: Mapping[str, Any], *keys: str) -> Any:
    """The value of the first key that has one."""
    return next((attributes[key] for key in keys if attributes.get(key) is not None), None)


def text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def whole(value: Any) -> int | None:
    found = number(value)
    return None if found is None else int(found)


def texts(value: Any) -> tuple[str, ...]:
    """One text or several."""
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(str(item) for item in value if item is not None) if isinstance(value, (list, tuple)) else ()


def known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Only what was said; an empty list says nothing."""
    return {name: value for name, value in fields.items() if value is not None and value != ()}


def spread(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """The items of a list written as `prefix.0.key`, `prefix.1.key`, each with its keys; a bare value is under ""."""
    start = f"{prefix}."
    items: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if not key.startswith(start):
            continue
        index, _, rest = key[len(start) :].partition(".")
        if index.isascii() and index.isdigit() and len(index) < 10:
            items.setdefault(int(index), {})[rest] = value
    return [items[index] for index in sorted(items)]


def without_prefix(items: Iterable[Mapping[str, Any]], prefix: str) -> list[dict[str, Any]]:
    """OpenInference repeats the kind of an item in each of its keys: `message.role` of a message."""
    return [{key.removeprefix(prefix): value for key, value in item.items()} for item in items]
