"""Takes the keys of a mapping that describes an agent, and says what to write where one is missing or wrong.

Not `Fields`: such a mapping also comes from a program or the command line, so there is no file and no line to report.
The first mistake is raised, with an example of what to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.fields import kind, nearest
from proctor.base.json_data import Json


class Options:
    """The keys of one mapping; `done` refuses the ones that were not taken."""

    def __init__(self, data: Json, where: str, example: str) -> None:
        self._where = where
        self._example = example
        if not isinstance(data, Mapping):
            raise self.wrong("", f"must be an object, not {kind(data)}")
        self._data = dict(data)
        self._known: list[str] = []

    def take(self, name: str, types: type | tuple[type, ...], noun: str, default: Any = None) -> Any:
        """The value under `name`, of one of `types`; a value of another type is a mistake."""
        self._known.append(name)
        value = self._data.get(name)
        if value is None:
            return default
        allowed = types if isinstance(types, tuple) else (types,)
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise self.wrong(name, f"must be {noun}, not {kind(value)}")
        return value

    def text(self, name: str, default: Any = None) -> Any:
        return self.take(name, str, "text", default)

    def required(self, name: str, types: type | tuple[type, ...], noun: str) -> Any:
        value = self.take(name, types, noun)
        if value is None or value == "" or value == []:
            raise self.wrong("", f"needs {name!r} ({noun})")
        return value

    def texts_by_name(self, name: str) -> dict[str, str]:
        """An object of text values, such as headers or environment variables."""
        given = self.take(name, dict, "an object of texts", {})
        for key, value in given.items():
            if not isinstance(value, str):
                raise self.wrong(f"{name}.{key}", f"must be text, not {kind(value)}")
        return dict(given)

    def wrong(self, name: str, message: str) -> UsageError:
        place = f"{self._where}.{name}" if name else self._where
        return UsageError(f"{place} {message}; write for example {self._example}")

    def done(self) -> None:
        for key in self._data:
            if key not in self._known:
                hint = nearest(str(key), self._known)
                raise UsageError(
                    f"{self._where} has no key {str(key)!r}{hint}; its keys are {', '.join(sorted(self._known))}"
                )
