"""Objects that Python code passed to this process, such as functions as evaluators, found again by a key.

A run that is read from the store names its evaluators by fingerprint, and scoring it again needs the functions. They
are referenced weakly: the code that passed one, or the run that used it, still has it. A strong reference would keep
every evaluator of a process alive, with all the data that it holds. Objects that cannot be referenced weakly are kept,
but only the latest few.
"""

from __future__ import annotations

import weakref
from typing import Any

MAX_KEPT = 20
"""How many objects without weak references are kept."""


class PassedObjects:
    """Objects by key, for as long as somebody else has them."""

    def __init__(self) -> None:
        self._weak: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._kept: dict[str, Any] = {}

    def add(self, key: str, value: Any) -> None:
        """Remember an object; another one with the same key is replaced."""
        try:
            self._weak[key] = value
        except TypeError:
            self._kept.pop(key, None)
            self._kept[key] = value
            if len(self._kept) > MAX_KEPT:
                del self._kept[next(iter(self._kept))]

    def get(self, key: str) -> Any:
        """The object with this key, or `None` if there is none any more."""
        value = self._weak.get(key)
        return self._kept.get(key) if value is None else value
