"""`observe` and `start_observation`: mark a step of an application, so that a trace shows its input and output.

If no trace is captured, an observed function is called as if it were not marked.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar, overload

from proctor.agents.streams import follow_async_stream, follow_stream, join_stream
from proctor.base.errors import one_line
from proctor.base.json_data import Json, to_json
from proctor.tracing.instrumentation import begin_otel_span
from proctor.tracing.scope import SCOPE, TraceScope, deliver, is_captured
from proctor.tracing.spans import ObserveSpan

F = TypeVar("F", bound=Callable[..., Any])

_PARENT_SPAN: ContextVar[tuple[str, str] | None] = ContextVar("proctor_inside_observation", default=None)
"""The trace id and span id of the parent of a new observation, if OpenTelemetry does not provide them."""


class Observation:
    """One step while it runs."""

    def __init__(self, name: str, value: Any, kind: str | None = None) -> None:
        """`value` is the input of the step. `kind` is as in `ObserveSpan`."""
        self._name = name
        self._kind = kind
        self._input = to_json(value)
        self._output: Json = None
        self._metadata: dict[str, Json] = {}
        self._scope: TraceScope | None = SCOPE.get()
        self._outer = _PARENT_SPAN.get()
        self._otel_span: Any = None
        self._started_at: float | None = None

    def set_output(self, value: Any) -> None:
        """Record the output as it is now; later changes to the value do not count."""
        self._output = to_json(value)

    def set_metadata(self, key: str, value: Any) -> None:
        self._metadata[str(key)] = to_json(value)

    def begin(self) -> None:
        self._started_at = time.time()
        self._clock = time.perf_counter()
        self._otel_span = begin_otel_span(self._name, self._kind, self._input)
        if self._otel_span is not None:
            self._trace_id, self._span_id, self._parent_id = self._otel_span.ids
            return
        self._trace_id, self._parent_id = self._outer or (os.urandom(16).hex(), None)
        self._span_id = os.urandom(8).hex()

    @contextlib.contextmanager
    def as_current(self) -> Iterator[None]:
        """Make this step the parent of those that begin in the block, in whatever context the block runs."""
        scope, parent = SCOPE.set(self._scope), _PARENT_SPAN.set((self._trace_id, self._span_id))
        try:
            with contextlib.nullcontext() if self._otel_span is None else self._otel_span.as_current():
                yield
        finally:
            with contextlib.suppress(ValueError):  # an abandoned generator may be closed in another context
                _PARENT_SPAN.reset(parent)
                SCOPE.reset(scope)

    def end(self, error: BaseException | None = None) -> None:
        if self._started_at is None:
            return
        duration = time.perf_counter() - self._clock
        message = None if error is None else _error_text(error)
        if self._otel_span is not None:
            self._otel_span.end(self._output, self._metadata, error, message)
        span = ObserveSpan(
            self._span_id,
            self._trace_id,
            self._parent_id,
            self._started_at,
            self._started_at + duration,
            duration * 1000,
            self._name,
            self._input,
            self._output,
            self._metadata,
            message,
            self._kind,
        )
        deliver(self._scope, span)

    @contextlib.contextmanager
    def span(self) -> Iterator[None]:
        """Begin the step here and end it with the block, also if the block raises."""
        self.begin()
        try:
            with self.as_current():
                yield
        except BaseException as error:
            self.end(error)
            raise
        self.end()


def _error_text(error: BaseException) -> str:
    """The message of an exception, or the name of its type if it cannot be formatted."""
    try:
        return one_line(error)
    except Exception:
        return type(error).__name__


class ObservationHandle(Protocol):
    """The value of `start_observation`, for the output and metadata of the block."""

    def set_output(self, value: Any) -> None: ...

    def set_metadata(self, key: str, value: Any) -> None: ...


class _NullObservation:
    """An observation that records nothing, for when no trace is captured."""

    def set_output(self, value: Any) -> None: ...

    def set_metadata(self, key: str, value: Any) -> None: ...


_NULL_OBSERVATION = _NullObservation()


@contextlib.contextmanager
def start_observation(*, input: Any, name: str | None = None) -> Iterator[ObservationHandle]:  # noqa: A002
    """Mark a block of code as one step; an exception is recorded and raised."""
    if not is_captured(SCOPE.get()):
        yield _NULL_OBSERVATION
        return
    observation = Observation(name or "(unnamed)", input)
    with observation.span():
        yield observation


@overload
def observe(name: F) -> F: ...
@overload
def observe(name: str | None = None) -> Callable[[F], F]: ...
def observe(name: Any = None) -> Any:
    """Mark a function as one step: the input is its arguments by name, the output is what it returns or yields.

    Use `@observe`, `@observe()` or `@observe("title")`, on sync, async and generator functions.
    """
    if callable(name):
        return _observe_function(name, None)
    return functools.partial(_observe_function, title=name)


def _observe_function(function: Callable[..., Any], title: str | None) -> Callable[..., Any]:
    name = title or getattr(function, "__name__", None) or type(function).__name__
    signature = _signature(function)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def asynchronous(*args: Any, **kwargs: Any) -> Any:
            if not is_captured(SCOPE.get()):
                return await function(*args, **kwargs)
            observation = Observation(name, named_arguments(signature, args, kwargs, defaults=True))
            with observation.span():
                result = await function(*args, **kwargs)
                observation.set_output(result)
            return result

        return asynchronous

    @functools.wraps(function)
    def synchronous(*args: Any, **kwargs: Any) -> Any:
        if not is_captured(SCOPE.get()):
            return function(*args, **kwargs)
        observation = Observation(name, named_arguments(signature, args, kwargs, defaults=True))
        return observe_call(observation, functools.partial(function, *args, **kwargs))

    return synchronous


def observe_call(observation: Observation, call: Callable[[], Any]) -> Any:
    """Call and return the result. A coroutine or generator is wrapped, and the observation ends with it."""
    observation.begin()
    try:
        with observation.as_current():
            result = call()
    except BaseException as error:
        observation.end(error)
        raise

    def finish(chunks: list[Any], error: BaseException | None) -> None:
        observation.set_output(join_stream(chunks))
        observation.end(error)

    if inspect.isgenerator(result):
        return follow_stream(result, finish, observation.as_current)
    if inspect.isasyncgen(result):
        return follow_async_stream(result, finish, observation.as_current)
    if inspect.iscoroutine(result):
        return _observe_awaitable(observation, result)
    observation.set_output(result)
    observation.end()
    return result


async def _observe_awaitable(observation: Observation, result: Any) -> Any:
    try:
        with observation.as_current():
            value = await result
        observation.set_output(value)
    except BaseException as error:
        observation.end(error)
        raise
    observation.end()
    return value


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return None


def named_arguments(
    signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any], *, defaults: bool
) -> dict[str, Any]:
    """The arguments of a call by name, without `self`; with `defaults`, also those that were not passed."""
    try:
        if signature is None:
            raise TypeError("no signature")
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return {str(index): value for index, value in enumerate(args)} | kwargs
    if defaults:
        bound.apply_defaults()
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        elif name not in ("self", "cls"):
            named[name] = value
    return named
