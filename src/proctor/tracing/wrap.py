"""`wrap`: a call in an application that lets a test supply its inputs and see its outputs and states.

Outside a trial it returns its argument and costs next to nothing. In a trial, a wrapped input is replaced by the value
that the case has for its name, and wrapped outputs and states are recorded by name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

from proctor.agents.streams import follow_async_stream, follow_stream, join_stream
from proctor.agents.trial_context import current_turn
from proctor.agents.turn_recorder import TurnRecorder
from proctor.base.documents import did_you_mean
from proctor.base.errors import ProctorError
from proctor.base.json_data import Json, to_json
from proctor.base.threads import is_async
from proctor.tracing.observe import Observation

T = TypeVar("T")
Purpose = Literal["input", "output", "state"]
PURPOSES = ("input", "output", "state")


class MissingInput(ProctorError):
    """The application uses an input that the case does not have: the case is incomplete, the agent is not at fault."""

    def __init__(self, name: str, available: list[str]) -> None:
        self.name = name
        has = f"it has {', '.join(available)}" if available else "it has none"
        super().__init__(
            f"the application asks for the input {name!r}, which the case lacks; {has}{did_you_mean(name, available)}"
        )


def wrap(data: T, *, purpose: Purpose, name: str, description: str | None = None) -> T:
    """Return `data`, or in a trial the value of the case for an input of this name.

    Functions are wrapped and not called: an input function then returns the case's value whatever its arguments are,
    and each result of an output or state function is recorded. Generators are recorded while they are drained.
    `description` is for readers of the code.
    """
    turn = current_turn()
    if turn is None:
        return data if not callable(data) or isinstance(data, type) else cast(T, _wrap_callable(data, purpose, name))
    if purpose not in PURPOSES:
        raise ValueError(f"wrap({name!r}): purpose must be one of {', '.join(PURPOSES)}, not {purpose!r}")
    if callable(data) and not isinstance(data, type):
        return cast(T, _wrap_callable(data, purpose, name))
    return cast(T, _apply(turn, purpose, name, data))


def _apply(turn: TurnRecorder, purpose: str, name: str, value: Any) -> Any:
    """Replace the value if it is an input, record it otherwise."""
    if purpose == "input" and turn.inputs is not None:
        return _input(turn, name)
    if purpose == "input":
        _trace_value(turn, "input", name, value)
        return value

    def finish(chunks: list[Any], error: BaseException | None) -> None:
        _record(turn, purpose, name, join_stream(chunks) if chunks else "")

    if inspect.isgenerator(value):
        return follow_stream(value, finish)
    if inspect.isasyncgen(value):
        return follow_async_stream(value, finish)
    _record(turn, purpose, name, to_json(value))
    return value


def _record(turn: TurnRecorder, purpose: str, name: str, value: Json) -> None:
    turn.add_output(name, value)
    _trace_value(turn, purpose, name, value)


def _trace_value(turn: TurnRecorder, purpose: str, name: str, value: Any) -> None:
    """Add a span without duration to the trace, at the place of the call of `wrap`."""
    if not turn.trace_wraps:
        return
    observation = Observation(name, value if purpose == "input" else None, kind="wrap")
    observation.begin()
    observation.set_metadata("purpose", purpose)
    if purpose != "input":
        observation.set_output(value)
    observation.end()


def _input(turn: TurnRecorder, name: str) -> Json:
    try:
        return turn.use_input(name)
    except KeyError:
        raise MissingInput(name, sorted(turn.inputs or ())) from None


def _wrap_callable(target: Any, purpose: Purpose, name: str) -> Any:
    """A function or callable object whose calls go through `wrap`; an object keeps its other methods."""
    if not inspect.isroutine(target) and not isinstance(target, functools.partial):
        return _WrappedObject(target, purpose, name)
    return _wrap_function(target, purpose, name)


def _wrap_function(function: Callable[..., Any], purpose: Purpose, name: str) -> Callable[..., Any]:
    if is_async(function) and not inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def asynchronous(*args: Any, **kwargs: Any) -> Any:
            turn = current_turn()
            if turn is None:
                return await function(*args, **kwargs)
            if purpose == "input" and turn.inputs is not None:
                return _input(turn, name)
            return _apply(turn, purpose, name, await function(*args, **kwargs))

        return asynchronous

    @functools.wraps(function)
    def synchronous(*args: Any, **kwargs: Any) -> Any:
        turn = current_turn()
        if turn is None:
            return function(*args, **kwargs)
        if purpose == "input" and turn.inputs is not None:
            return _input(turn, name)
        result = function(*args, **kwargs)
        return (
            _apply_awaited(turn, purpose, name, result)
            if inspect.isawaitable(result)
            else _apply(turn, purpose, name, result)
        )

    return synchronous


async def _apply_awaited(turn: TurnRecorder, purpose: str, name: str, result: Any) -> Any:
    return _apply(turn, purpose, name, await result)


class _WrappedObject:
    """A callable object whose calls go through `wrap`; all other attributes are those of the original."""

    def __init__(self, target: Any, purpose: Purpose, name: str) -> None:
        self.__wrapped__ = target
        self._call = _wrap_function(target, purpose, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.__wrapped__, attribute)
