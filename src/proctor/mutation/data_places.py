"""The places of JSON data that mutants change: values, objects and lists, each with the path that leads to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from proctor.base.json_data import Json

Path = tuple[Any, ...]
"""Keys and indices from the whole to a part."""


def nodes(data: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """The data itself and everything in it."""
    yield path, data
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from nodes(value, (*path, key))
    elif isinstance(data, (list, tuple)):
        for index, value in enumerate(data):
            yield from nodes(value, (*path, index))


def leaves(data: Json, *, flags: bool = False) -> Iterator[tuple[Path, Json]]:
    """The texts and numbers; with `flags`, also `true` and `false`."""
    for path, value in nodes(data):
        is_value = value is not None and not isinstance(value, (Mapping, list, tuple))
        if is_value and (flags or not isinstance(value, bool)):
            yield path, value


def mappings(data: Json) -> Iterator[tuple[Path, Mapping[str, Json]]]:
    """The objects that have fields."""
    return ((path, value) for path, value in nodes(data) if isinstance(value, Mapping) and value)


def lists(data: Json) -> Iterator[tuple[Path, list[Json]]]:
    return ((path, list(value)) for path, value in nodes(data) if isinstance(value, (list, tuple)))


def replace_at(data: Json, path: Path, new: Json) -> Json:
    """The data with another value at a path."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(data, Mapping):
        return {key: replace_at(value, rest, new) if key == first else value for key, value in data.items()}
    return [replace_at(value, rest, new) if index == first else value for index, value in enumerate(data)]


def parse_number(text: str, like: Json) -> Json:
    """The number in a text, with the type of `like`; the text itself if it is not a number any more."""
    try:
        return float(text) if isinstance(like, float) else int(text)
    except ValueError:
        return text
