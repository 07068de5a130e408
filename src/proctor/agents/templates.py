"""JSON with placeholders, to say what a request looks like: `{"question": "{{input}}", "user": "{{state.user}}"}`.

A text that is nothing but one placeholder becomes the value itself, with its type; inside a longer text the value is
written out. What is filled in is never searched for placeholders again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from proctor.agents.selectors import Selector, parse_selector
from proctor.cases.fields import nearest
from proctor.cases.model import UNSET
from proctor.errors import UsageError
from proctor.plain import Json, show
from proctor.records import record

NAMES = ("input", "history", "messages", "state", "session_id", "case", "turn")
"""What a placeholder may start with; `input`, `state` and `case` can be followed by a path (`{{case.id}}`)."""

_PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_MAY_LACK = ("state", "case")


class NotInInput(Exception):
    """The template asks for a part of the input that this input does not have."""


@record
class Template:
    """A checked template."""

    data: Json
    selectors: Mapping[str, Selector]

    @classmethod
    def parse(cls, data: Json) -> Template:
        """Raises `UsageError` for a placeholder that means nothing."""
        selectors: dict[str, Selector] = {}
        for text in _texts(data):
            for name in _PLACEHOLDER.findall(text):
                selectors[name] = _selector(name)
        return cls(data, selectors)

    def fill(self, values: Mapping[str, Json]) -> Json:
        """The template with `values`, one for each of `NAMES`, put in."""
        return self._fill(self.data, values)

    def _fill(self, data: Json, values: Mapping[str, Json]) -> Json:
        if isinstance(data, str):
            whole = _PLACEHOLDER.fullmatch(data.strip())
            if whole is not None and whole.group(1) in self.selectors:
                return self._value(whole.group(1), values)
            return _PLACEHOLDER.sub(lambda match: _written(self._value(match.group(1), values)), data)
        if isinstance(data, Mapping):
            return {key: self._fill(item, values) for key, item in data.items()}
        if isinstance(data, list):
            return [self._fill(item, values) for item in data]
        return data

    def _value(self, name: str, values: Mapping[str, Json]) -> Json:
        found = self.selectors[name].find(values)
        if found is UNSET:
            if self.selectors[name].steps[0] in _MAY_LACK:
                return None
            raise NotInInput(f"the request template wants {name}, which the input lacks")
        return found


def _selector(name: str) -> Selector:
    try:
        selector = parse_selector(name)
    except UsageError:
        selector = None
    if selector is None or not selector.steps or selector.steps[0] not in NAMES:
        hint = nearest(name, NAMES)
        raise UsageError(
            f"{{{{{name}}}}} is not a placeholder{hint}; use one of {', '.join(NAMES)}, or a path into one"
        )
    return selector


def _written(value: Json) -> str:
    return "" if value is None else show(value)


def _texts(data: Json) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for item in data.values():
            yield from _texts(item)
    elif isinstance(data, list):
        for item in data:
            yield from _texts(item)
