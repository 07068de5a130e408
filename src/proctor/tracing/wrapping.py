"""`wrap()`: one line in an application that lets a test hand it inputs and see its outputs and states.

Outside a trial it gives back what it was given and costs next to nothing. In a trial, a wrapped input is replaced by
the value that the case has under its name, and wrapped outputs and states are recorded under theirs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, Literal, TypeVar, cast

from proctor.base.errors import ProctorError
from proctor.base.fields import nearest
from proctor.base.json_data import Json, plain
from proctor.cases.suite import NamedData
from proctor.tracing.capture import joined
from proctor.tracing.observing import Observation
from proctor.tracing.trial_recording import Recording, current

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
