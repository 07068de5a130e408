"""Paths into JSON data, by which users say where in a response the answer is: `$.choices[0].message.content`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET, Json, Unset

_STEP = re.compile(
    r"""(?P<dot>\.)?(?P<name>[^\s.\[\]'"*?$]+)
      | \[\s*(?P<index>-?\d{1,9})\s*\]
      | (?P<every>\[\s*\*\s*\])
      | \[\s*(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*\]""",
    re.VERBOSE,
)


class _Every:
    def __repr__(self) -> str:
        return "*"


EVERY = _Every()


@dataclass(frozen=True, slots=True)
class Selector:
    """A parsed path into data, such as `$.choices[0].message.content`.

    A subset of JSONPath: keys (`a.b`, `['a b']`), indices (`[0]`, `[-1]`) and `[*]` for every item, which makes the
    result a list. A `?` at the end makes it optional.
    """

    text: str
    steps: tuple[Any, ...]
    optional: bool = False

    def find(self, data: Json) -> Json | Unset:
        """The value there, `UNSET` if there is none, or a list of the values if the path has `[*]`. It never raises."""
        return _walk(data, self.steps)


def parse_selector(text: str) -> Selector:
    """Read a path. Raises `UsageError` with the part that cannot be read."""
    path = text.strip()
    optional = path.endswith("?")
    path = path[:-1] if optional else path
    position = 1 if path.startswith("$") else 0
    steps: list[Any] = []
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None or (step["name"] and bool(step["dot"]) != bool(position)):
            raise UsageError(
                f"{text!r} is not a selector: cannot read {path[position:]!r}; write for example "
                "$.choices[0].message.content, steps[*].name or ['a key'].b"
            )
        steps.append(_step(step))
        position = step.end()
    if not path:
        raise UsageError("the selector is blank; write $ for the whole answer")
    return Selector(text, tuple(steps), optional)


def _step(step: re.Match[str]) -> Any:
    if step["name"]:
        return step["name"]
    if step["index"]:
        return int(step["index"])
    if step["every"]:
        return EVERY
    return re.sub(r"\\(.)", r"\1", step["quoted"][1:-1], flags=re.DOTALL)


def _walk(data: Json, steps: tuple[Any, ...]) -> Json | Unset:
    for index, step in enumerate(steps):
        if step is EVERY:
            if not isinstance(data, (list, Mapping)):
                return UNSET
            items = data.values() if isinstance(data, Mapping) else data
            values = [_walk(item, steps[index + 1 :]) for item in items]
            return [value for value in values if value is not UNSET]
        if isinstance(step, int):
            if not isinstance(data, list) or not -len(data) <= step < len(data):
                return UNSET
        elif not isinstance(data, Mapping) or step not in data:
            return UNSET
        data = data[step]
    return data
