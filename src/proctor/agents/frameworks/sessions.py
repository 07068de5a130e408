"""What adapters share: a conversation with an id and a state of its own, and calls noted while a turn runs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from proctor.agents.model import Reply, ToolCall, Usage
from proctor.cases.model import Case, Turn
from proctor.plain import Json, plain, show
from proctor.references import describe, source_fingerprint


class FrameworkAgent:
    """An agent of a framework: `name`, a fingerprint, and a session per trial."""

    takes_files = False

    def __init__(self, target: Any, name: str, fingerprint: str) -> None:
        self.target = target
        self.name = name
        self.fingerprint = fingerprint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def session(self, case: Case) -> FrameworkSession:
        raise NotImplementedError


class FrameworkSession:
    """One conversation; what must be opened and closed with it goes into `open` and `close`."""

    def __init__(self, case: Case) -> None:
        self.case = case

    async def __aenter__(self) -> FrameworkSession:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        return

    async def close(self) -> None:
        return

    async def send(self, turn: Turn) -> Reply:
        raise NotImplementedError


class CallLog:
    """The tool calls of one turn while they happen, calls within calls included, in the order they began."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        self._clocks: dict[str, float] = {}
        self.usage: Usage | None = None

    def begin(self, identity: str | None, name: str, arguments: Any) -> str:
        """A call begins, inside the one that is under way here if there is one."""
        key = identity or f"{name}-{len(self._calls) + 1}"
        call = ToolCall.parse(name, plain(arguments), id=key, started_at=time.time(), parent=_INSIDE.get())
        self._calls[key] = call
        self._clocks[key] = time.perf_counter()
        _INSIDE.set(key)
        return key

    def end(self, key: str, result: Any = None, error: BaseException | str | None = None) -> None:
        """A call ends; what begins here from now on is again inside the one around it."""
        call = self._calls.get(key)
        if call is None:
            return
        _INSIDE.set(call.parent)
        told = None if error is None else error if isinstance(error, str) else describe(error)
        self._calls[key] = ToolCall(
            call.name,
            call.arguments,
            plain(result),
            told,
            call.id,
            call.started_at,
            (time.perf_counter() - self._clocks[key]) * 1000,
            call.raw_arguments,
            call.parent,
        )

    def spend(self, usage: Usage | None) -> None:
        """Add what one model call cost."""
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(self._calls.values())


_INSIDE: ContextVar[str | None] = ContextVar("proctor_inside_call", default=None)


def text_of(turn: Turn) -> str:
    """A turn's input as the text that a chat interface takes."""
    return turn.input if isinstance(turn.input, str) else show(turn.input)


def described_tool(tool: Any) -> Json:
    """What makes two tools alike, for fingerprints: the name, and the code wherever a framework keeps it."""
    kept = (getattr(tool, part, None) for part in _CODE)
    code = next((found for found in kept if hasattr(found, "__code__")), tool)
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__
    return [str(name), source_fingerprint(code)]


_CODE = ("func", "function", "real_fn", "entrypoint", "handler", "forward")


def state_of(value: Any) -> Mapping[str, Json] | None:
    return plain(value) if isinstance(value, Mapping) else None
