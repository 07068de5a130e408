"""The mocks of a case: results that replace calls of tools, so that a case runs without side effects."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from proctor.agents.trial_context import current_trial
from proctor.base.documents import did_you_mean
from proctor.base.json_data import Json, to_json, to_text
from proctor.cases.matchers import may_be_absent
from proctor.cases.suite import ToolMock


class ToolFailed(Exception):
    """The error of a mock that is declared to fail."""


class NoMatchingMock(LookupError):
    """A mocked tool was called with arguments for which the case has no mock."""


class ToolMocks:
    """The mocks of one trial, and how often each was used. Threads of the trial may share it."""

    def __init__(self, mocks: Mapping[str, tuple[ToolMock, ...]]) -> None:
        self._mocks = mocks
        self._uses: Counter[tuple[str, int]] = Counter()
        self._called: set[str] = set()
        self._lock = threading.Lock()

    def __contains__(self, tool: str) -> bool:
        return tool in self._mocks

    def take(self, tool: str, arguments: Mapping[str, Json]) -> ToolMock:
        """The first mock that matches the arguments and is not used up; it counts as used."""
        with self._lock:
            self._called.add(tool)
            for index, mock in enumerate(self._mocks[tool]):
                is_used_up = mock.times is not None and self._uses[tool, index] >= mock.times
                if not is_used_up and _matches(mock, arguments):
                    self._uses[tool, index] += 1
                    return mock
        raise NoMatchingMock(f"no mock of {tool} matches the arguments {to_text(to_json(arguments), 200)}")

    def result(self, tool: str, arguments: Mapping[str, Any]) -> Json:
        """The result of the matching mock, after its delay; raises `ToolFailed` if the mock fails."""
        mock = self.take(tool, to_json(arguments))
        if mock.delay:
            time.sleep(mock.delay)
        return _outcome(mock)

    async def result_async(self, tool: str, arguments: Mapping[str, Any]) -> Json:
        """Like `result`, without blocking the event loop during the delay."""
        mock = self.take(tool, to_json(arguments))
        if mock.delay:
            await asyncio.sleep(mock.delay)
        return _outcome(mock)

    def unused(self, called: Iterable[str]) -> list[str]:
        """A warning for each mock that was never used: it is misspelled, or the agent's tools cannot be mocked.

        `called` has the names of the tools that the agent called.
        """
        names = set(called)
        return [
            f"{tool!r} was really called: the tools of this agent cannot be mocked"
            if tool in names
            else f"the mock of {tool!r} was never used{did_you_mean(tool, names)}"
            for tool in self._mocks
            if tool not in self._called
        ]


def _outcome(mock: ToolMock) -> Json:
    if mock.error is not None:
        raise ToolFailed(mock.error)
    return to_json(mock.result)  # a copy, since the agent may change it


def _matches(mock: ToolMock, arguments: Mapping[str, Json]) -> bool:
    return all(
        matcher.mismatch(arguments[name]) is None if name in arguments else may_be_absent(matcher)
        for name, matcher in (mock.args or {}).items()
    )


def current_mocks() -> ToolMocks | None:
    """The mocks of the current trial."""
    trial = current_trial.get()
    return None if trial is None else trial.mocks


def is_mocked(tool: str) -> bool:
    """Whether the case of the current trial mocks this tool."""
    mocks = current_mocks()
    return mocks is not None and tool in mocks


async def mock_result_async(tool: str, arguments: Mapping[str, Any]) -> Json:
    """The result of a tool's mock in the current trial."""
    mocks = current_mocks()
    if mocks is None or tool not in mocks:
        raise NoMatchingMock(f"the case has no mock of {tool}")
    return await mocks.result_async(tool, arguments)


def ignore_mocks() -> None:
    """Do not report the mocks of the current trial as unused: its agent reports calls without calling any tool."""
    trial = current_trial.get()
    if trial is not None:
        trial.mocks = None
