"""What an application reports about itself during one turn, kept apart from other trials by context."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import field
from typing import Any, ParamSpec, TypeVar, cast, overload

from proctor.agents.agent import ToolCall
from proctor.agents.tool_doubles import answer, answer_async, is_doubled
from proctor.agents.toolbox import MARK, Tool, register
from proctor.base.json_data import Json, plain
from proctor.base.records import mutable_record
from proctor.base.references import describe
from proctor.cases.suite import NamedData
from proctor.tracing.capture import SCOPE, wanted
from proctor.tracing.observing import Observation, named_arguments

P = ParamSpec("P")
R = TypeVar("R")


@mutable_record
class Recording:
    """What one turn brings to light, in the order it happened, and the inputs that wait to be asked for."""

    inputs: Mapping[str, Json] | None = None
    """The case's values by name; `None` lets the application use its own."""
    used: set[str] = field(default_factory=set)
    """The inputs that the application asked for."""
    tool_calls: list[ToolCall] = field(default_factory=list)
    outputs: list[NamedData] = field(default_factory=list)
    open_calls: dict[int, ToolCall] = field(default_factory=dict)
    """Calls that have not come back yet, by the identity of what waits for them."""
    over: bool = False
    """The turn is answered: what a thread that outlives it does later is not recorded."""
    wraps_are_spans: bool = False
    """Whether the trace shows each `wrap` as well, inputs included."""

    def begin_call(self, key: int, call: ToolCall) -> None:
        """Remember a call that may never come back."""
        self.open_calls[key] = call

    def end_call(self, key: int, call: ToolCall) -> None:
        self.open_calls.pop(key, None)
        self.tool_calls.append(call)

    def unused(self) -> list[str]:
        """Inputs that the application did not ask for, if it asked for others: one that asks for none uses none."""
        return [name for name in self.inputs or () if name not in self.used] if self.used else []


CURRENT: ContextVar[Recording | None] = ContextVar("proctor_recording", default=None)


def current() -> Recording | None:
    """The recording of the turn that is being answered here, if one is."""
    recording = CURRENT.get()
    return None if recording is None or recording.over else recording


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(*, side_effects: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, *, side_effects: bool = False) -> Callable[..., Any]:
    """Mark a function as one of the agent's tools: in a trial, each call is recorded with its arguments and result.

    Wherever a trace is captured, the call is a span of it. Outside a trial and a capture the function runs as if it
    were not marked. A tool with `side_effects` is never called again to see whether it still answers the same.
    """
    if function is None:
        return lambda given: _marked(given, side_effects)
    return _marked(function, side_effects)


def _marked(function: Callable[P, R], side_effects: bool) -> Callable[P, R]:
    name = getattr(function, "__name__", type(function).__name__)
    recorded = _recorded(function, name)
    mark = Tool(name, function, side_effects)
    setattr(recorded, MARK, mark)
    register(mark)
    return recorded


def _recorded(function: Callable[P, R], name: str) -> Callable[P, R]:
    signature = inspect.signature(function)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def traced_async(*args: P.args, **kwargs: P.kwargs) -> Any:
            recording = CURRENT.get()
            if not _is_looked_at(recording):
                return await function(*args, **kwargs)
            with _Call(recording, name, signature, args, kwargs) as call:
                if is_doubled(name):
                    call.result = await answer_async(name, call.arguments)
                else:
                    call.result = await function(*args, **kwargs)
            return call.result

        return cast(Callable[P, R], traced_async)

    @functools.wraps(function)
    def traced(*args: P.args, **kwargs: P.kwargs) -> R:
        recording = CURRENT.get()
        if not _is_looked_at(recording):
            return function(*args, **kwargs)
        with _Call(recording, name, signature, args, kwargs) as call:
            call.result = answer(name, call.arguments) if is_doubled(name) else function(*args, **kwargs)
        return cast(R, call.result)

    return traced


def _is_looked_at(recording: Recording | None) -> bool:
    return wanted(SCOPE.get()) if recording is None else not recording.over


class _Call:
    """One tool call while it lasts: recorded for its trial, and a span where a trace is captured."""

    def __init__(
        self, recording: Recording | None, name: str, signature: inspect.Signature, args: Any, kwargs: Any
    ) -> None:
        self._recording = recording
        self._name = name
        self.arguments: dict[str, Json] = plain(named_arguments(signature, args, kwargs, defaults=False))
        self._step: Any = None
        self.result: Any = None

    def __enter__(self) -> _Call:
        self._started_at = time.time()
        self._clock = time.perf_counter()
        if wanted(SCOPE.get()):
            self._step = Observation(self._name, self.arguments, kind="tool")
            self._step.begin()
            self._active = self._step.active()
            self._active.__enter__()
        if self._recording is not None:
            self._recording.begin_call(id(self), ToolCall(self._name, self.arguments, started_at=self._started_at))
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        result = plain(self.result)
        if self._step is not None:
            self._active.__exit__(None, None, None)
            self._step.set_output(result)
            self._step.end(error)
        if self._recording is None:
            return
        self._recording.end_call(
            id(self),
            ToolCall(
                self._name,
                self.arguments,
                result,
                None if error is None else describe(error),
                started_at=self._started_at,
                duration_ms=(time.perf_counter() - self._clock) * 1000,
            ),
        )
