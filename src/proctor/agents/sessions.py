"""What adapters share: the memory of a conversation, the tool calls of a turn, and state as a framework's object."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import os
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, is_typeddict

from proctor.agents.agent import BaseAgent, BaseSession, Reply, ToolCall, Usage
from proctor.base.json_data import Json, plain, show
from proctor.base.references import describe, source_fingerprint
from proctor.base.reply_size import UNDERWAY
from proctor.cases.suite import Case, Turn

TRIAL: ContextVar[int] = ContextVar("proctor_trial", default=1)
"""The number of the trial of its case that is under way here, from 1."""

_PROCESS = os.urandom(6).hex()
_NUMBERS = itertools.count(1)


class Conversation:
    """One session's memory; `state` is the agent's to change, starting from a copy of the case's."""

    __slots__ = ("case", "history", "id", "state")

    def __init__(self, case: Case) -> None:
        self.id = f"{_PROCESS}-{next(_NUMBERS)}"
        self.case = case
        self.state: dict[str, Any] = copy.deepcopy(dict(case.state))
        self.history: list[tuple[Json, str]] = []

    def record(self, turn: Turn, reply: Reply) -> Reply:
        """Remember an answered turn, and what the agent says it knows now."""
        self.history.append((turn.input, reply.text))
        if reply.state is not None and reply.state is not self.state:
            self.state = copy.deepcopy(dict(reply.state))
        return reply

    def messages(self) -> list[Json]:
        """What was said so far, in the shape in which chat interfaces take it."""
        said: list[Json] = []
        for question, answer in self.history:
            said += [{"role": "user", "content": plain(question)}, {"role": "assistant", "content": answer}]
        return said


class FrameworkAgent(BaseAgent):
    """An agent of a framework: `name`, a fingerprint, and a session per trial."""

    sees_calls = True

    takes_files = False

    def __init__(self, target: Any, name: str, fingerprint: str) -> None:
        self.target = target
        self.name = name
        self.fingerprint = fingerprint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def session(self, case: Case) -> BaseSession:
        raise NotImplementedError


class CallLog:
    """The tool calls of one turn while they happen, calls within calls included, in the order they began."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        self._clocks: dict[str, float] = {}
        self.usage: Usage | None = None
        self.said = ""
        """What there is of the answer, as far as events tell before its end."""
        if (turn := UNDERWAY.get()) is not None:
            turn.logs.append(self)

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

    def add_usage(self, usage: Usage | None) -> None:
        """Add the usage of one model call."""
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


def read_data(text: str) -> Json:
    """An answer that should be JSON, as data; `None` if it is not."""
    try:
        return plain(json.loads(text))
    except (ValueError, RecursionError):
        return None


def closure_values(function: Any) -> list[Any]:
    """What the closure of a function holds, apart from variables that are not set yet."""
    return [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if _is_filled(cell)]


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def state_of(value: Any) -> Mapping[str, Json] | None:
    """A state as plain data; `None` for what is no mapping."""
    return plain(value) if isinstance(value, Mapping) else None


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
