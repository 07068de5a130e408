"""Who answers: the protocols every agent adapter fulfils, and the reply it brings back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, runtime_checkable

from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.cases.suite import NOTHING, Case, NamedData, Turn


@record
class Usage:
    """What an answer cost: tokens and, where known, money. `None` is not known, which differs from zero."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    model_calls: int | None = None

    @property
    def total_tokens(self) -> int | None:
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.cost_usd, other.cost_usd),
            _sum(self.model_calls, other.model_calls),
        )


def _sum(left: Any, right: Any) -> Any:
    return left if right is None else right if left is None else left + right


@record
class ToolCall:
    """One use of a tool by the agent."""

    name: str
    arguments: Mapping[str, Json] = NOTHING
    result: Json = None
    error: str | None = None
    id: str | None = None
    started_at: float | None = None
    """Seconds since the epoch."""
    duration_ms: float | None = None
    raw_arguments: str | None = None
    """The argument text as the model wrote it, kept when it is not a JSON object."""
    parent: str | None = None
    """The id of the call inside which it was made, where an agent is used as a tool."""

    @classmethod
    def parse(cls, name: str, arguments: Json, **rest: Any) -> ToolCall:
        """A call whose arguments may be an object, JSON text, or text that was meant to be JSON."""
        if isinstance(arguments, Mapping):
            return cls(name, dict(arguments), **rest)
        if arguments is None or arguments == "":
            return cls(name, **rest)
        if isinstance(arguments, (str, bytes)):
            text = arguments if isinstance(arguments, str) else arguments.decode("utf-8", "replace")
            try:
                parsed = json.loads(text)
            except (ValueError, RecursionError):
                return cls(name, raw_arguments=text, **rest)
            if isinstance(parsed, Mapping):
                return cls(name, dict(parsed), **rest)
            return cls(name, raw_arguments=text, **rest)
        return cls(name, raw_arguments=repr(arguments), **rest)


@record
class Reply:
    """What came back for one turn."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    outputs: tuple[NamedData, ...] = ()
    """Values the application named; where there are any, they are what evaluators see."""
    structured: Json = None
    """The answer as data, where the agent answers with data."""
    state: Mapping[str, Json] | None = None
    """What the session knows after this turn, where the agent tells."""
    retrieval_context: tuple[str, ...] | None = None
    duration_ms: float | None = None
    raw: Any = None
    """The framework's own object; never stored."""


@runtime_checkable
class Session(Protocol):
    """One conversation; turns are sent strictly one after another."""

    async def send(self, turn: Turn) -> Reply: ...


@runtime_checkable
class Agent(Protocol):
    """One per suite; may hold many sessions at once.

    An agent may also have `async def start()` and `async def stop()`, called once around all of its sessions, a
    `fingerprint` that changes when the agent changes, `check(case)` that says why a case cannot be put to it, and
    `takes_files = False` if it does not see the files of a turn.
    """

    @property
    def name(self) -> str: ...

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]: ...
