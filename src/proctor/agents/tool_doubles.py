"""Answers in place of an agent's tools where a case says what they answer: nothing outside is touched."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any

from proctor.base.fields import nearest
from proctor.base.json_data import Json, plain, show
from proctor.cases.matchers import may_be_absent
from proctor.cases.suite import Double


class ToolFailed(Exception):
    """What a double fails with, where a case says that the tool fails."""


class NoDouble(LookupError):
    """A tool that is doubled was called in a way for which the case has no answer."""


class Doubles:
    """The doubles of one trial, and how often each has answered."""

    def __init__(self, doubles: Mapping[str, tuple[Double, ...]]) -> None:
        self._doubles = doubles
        self._answered: Counter[tuple[str, int]] = Counter()
        self._asked: set[str] = set()
        self._lock = threading.Lock()

    def __contains__(self, tool: str) -> bool:
        return tool in self._doubles

    def take(self, tool: str, arguments: Mapping[str, Json]) -> Double:
        """The one that answers this call; it counts as used."""
        with self._lock:
            self._asked.add(tool)
            for index, double in enumerate(self._doubles[tool]):
                used_up = double.times is not None and self._answered[tool, index] >= double.times
                if not used_up and _fits(double, arguments):
                    self._answered[tool, index] += 1
                    return double
        raise NoDouble(f"no double of {tool} answers the arguments {show(plain(arguments), 200)}")

    def unasked(self, called: Iterable[str]) -> list[str]:
        """What to say of tools that no double was asked for: misspelt, or real because the agent does not show them."""
        names = set(called)
        waiting = [tool for tool in self._doubles if tool not in self._asked]
        return [
            f"{tool!r} was called for real: this agent's tools cannot be answered for"
            if tool in names
            else f"the double of {tool!r} was never asked{nearest(tool, names)}"
            for tool in waiting
        ]


DOUBLES: ContextVar[Doubles | None] = ContextVar("proctor_doubles", default=None)


def is_doubled(tool: str) -> bool:
    """Whether the case that runs here answers for this tool."""
    doubles = DOUBLES.get()
    return doubles is not None and tool in doubles


def needs_no_doubles() -> None:
    """For agents that only report tool calls: their doubles are not counted as unused."""
    DOUBLES.set(None)


def answer(tool: str, arguments: Mapping[str, Any]) -> Json:
    """What the double of a tool answers; raises what it fails with."""
    double = _take(tool, arguments)
    if double.delay:
        time.sleep(double.delay)
    return _said(double)


async def answer_async(tool: str, arguments: Mapping[str, Any]) -> Json:
    double = _take(tool, arguments)
    if double.delay:
        await asyncio.sleep(double.delay)
    return _said(double)


def _take(tool: str, arguments: Mapping[str, Any]) -> Double:
    doubles = DOUBLES.get()
    if doubles is None:
        raise NoDouble(f"{tool} has no double here")
    return doubles.take(tool, plain(arguments))


def _said(double: Double) -> Json:
    if double.error is not None:
        raise ToolFailed(double.error)
    return plain(double.result)


def _fits(double: Double, arguments: Mapping[str, Json]) -> bool:
    wanted = double.arguments or {}
    return all(
        matcher.mismatch(arguments[name]) is None if name in arguments else may_be_absent(matcher)
        for name, matcher in wanted.items()
    )
