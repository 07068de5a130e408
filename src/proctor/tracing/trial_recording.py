"""What an application reports about itself during one turn, kept apart from other trials by context: `tool` and `wrap`.

`wrap()` is one line in an application that lets a test hand it inputs and see its outputs and states. Outside a trial
it gives back what it was given and costs next to nothing. In a trial, a wrapped input is replaced by the value that the
case has under its name, and wrapped outputs and states are recorded under theirs.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextvars import ContextVar
from dataclasses import field
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

from proctor.agents.agent import ToolCall
from proctor.agents.toolbox import MARK, Tool, answer, answer_async, is_doubled, register
from proctor.base.errors import ProctorError
from proctor.base.fields import nearest
from proctor.base.json_data import Json, plain
from proctor.base.records import mutable_record
from proctor.base.references import describe
from proctor.cases.suite import NamedData
from proctor.tracing.capture import SCOPE, joined, wanted
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


T = TypeVar("T")
Purpose = Literal["input", "output", "state"]
PURPOSES = ("input", "output", "state")


class MissingInput(ProctorError):
    """The application asks for an input that the case does not have: the case is incomplete, the agent not at fault."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name = name
        has = f"it has {', '.join(known)}" if known else "it has none"
        super().__init__(
            f"the application asks for the input {name!r}, which the case lacks; {has}{nearest(name, known)}"
        )


def wrap(data: T, *, purpose: Purpose, name: str, description: str | None = None) -> T:
    """`data` itself, or what a trial puts in its place.

    Functions are wrapped and not called: an input function then returns the case's value whatever its arguments, and
    each result of an output or state function is recorded. Generators are recorded as they are drained, never before.
    `description` is for the reader of the application.
    """
    recording = current()
    if recording is None:
        return data if not callable(data) or isinstance(data, type) else cast(T, _watched(data, purpose, name))
    if purpose not in PURPOSES:
        raise ValueError(f"wrap({name!r}): purpose must be one of {', '.join(PURPOSES)}, not {purpose!r}")
    if callable(data) and not isinstance(data, type):
        return cast(T, _watched(data, purpose, name))
    return cast(T, _passed(recording, purpose, name, data))


def _passed(recording: Recording, purpose: str, name: str, value: Any) -> Any:
    """A value on its way through `wrap`: replaced if it is an input, recorded otherwise."""
    if purpose == "input" and recording.inputs is not None:
        return _input(recording, name)
    if purpose == "input":
        _show(recording, "input", name, value)
        return value
    if inspect.isgenerator(value):
        return _drained(recording, purpose, name, value)
    if inspect.isasyncgen(value):
        return _drained_async(recording, purpose, name, value)
    _record(recording, purpose, name, plain(value))
    return value


def _record(recording: Recording, purpose: str, name: str, value: Json) -> None:
    recording.outputs.append(NamedData(name, value))
    _show(recording, purpose, name, value)


def _show(recording: Recording, purpose: str, name: str, value: Any) -> None:
    """A span of no length, at the place in the trace where the value passed."""
    if not recording.wraps_are_spans:
        return
    passed = Observation(name, value if purpose == "input" else None, kind="wrap")
    passed.begin()
    passed.set_metadata("purpose", purpose)
    if purpose != "input":
        passed.set_output(value)
    passed.end()


def _input(recording: Recording, name: str) -> Json:
    inputs = recording.inputs or {}
    if name not in inputs:
        raise MissingInput(name, sorted(inputs))
    recording.used.add(name)
    return inputs[name]


def _drained(
    recording: Recording, purpose: str, name: str, chunks: Generator[Any, Any, Any]
) -> Generator[Any, Any, Any]:
    seen: list[Any] = []
    try:
        for chunk in chunks:
            seen.append(chunk)
            yield chunk
    finally:
        _record(recording, purpose, name, joined(seen))


async def _drained_async(
    recording: Recording, purpose: str, name: str, chunks: AsyncGenerator[Any, Any]
) -> AsyncGenerator[Any, Any]:
    seen: list[Any] = []
    try:
        async for chunk in chunks:
            seen.append(chunk)
            yield chunk
    finally:
        _record(recording, purpose, name, joined(seen))


def _watched(target: Any, purpose: Purpose, name: str) -> Any:
    """The same function, looked at when it is called; an object that can be called keeps its other methods."""
    if not inspect.isroutine(target) and not isinstance(target, functools.partial):
        return _WatchedObject(target, purpose, name)
    return _watched_function(target, purpose, name)


def _watched_function(function: Callable[..., Any], purpose: Purpose, name: str) -> Callable[..., Any]:
    from proctor.base.threads import is_async

    if is_async(function) and not inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def asynchronous(*args: Any, **kwargs: Any) -> Any:
            recording = current()
            if recording is None:
                return await function(*args, **kwargs)
            if purpose == "input" and recording.inputs is not None:
                return _input(recording, name)
            return _passed(recording, purpose, name, await function(*args, **kwargs))

        return asynchronous

    @functools.wraps(function)
    def synchronous(*args: Any, **kwargs: Any) -> Any:
        recording = current()
        if recording is None:
            return function(*args, **kwargs)
        if purpose == "input" and recording.inputs is not None:
            return _input(recording, name)
        result = function(*args, **kwargs)
        return (
            _awaited(recording, purpose, name, result)
            if inspect.isawaitable(result)
            else _passed(recording, purpose, name, result)
        )

    return synchronous


async def _awaited(recording: Recording, purpose: str, name: str, result: Any) -> Any:
    return _passed(recording, purpose, name, await result)


class _WatchedObject:
    """Stands for an object that can be called: calls are looked at, everything else is the object's own."""

    def __init__(self, target: Any, purpose: Purpose, name: str) -> None:
        self.__wrapped__ = target
        self._call = _watched_function(target, purpose, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.__wrapped__, attribute)
