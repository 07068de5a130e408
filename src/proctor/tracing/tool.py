"""`tool`: mark a function as one of the agent's tools."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, ParamSpec, TypeVar, cast, overload

from proctor.agents.tools import TOOL_ATTRIBUTE, Tool, register_tool
from proctor.agents.trial_context import check_stray_call, current_trial
from proctor.agents.turn_recorder import TurnRecorder
from proctor.base.json_data import Json, to_json
from proctor.tracing.observe import Observation, named_arguments, observe_call
from proctor.tracing.scope import SCOPE, is_captured

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(*, side_effects: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, *, side_effects: bool = False) -> Callable[..., Any]:
    """Mark a function as one of the agent's tools: in a trial, each call is recorded with its arguments and result.

    If a trace is captured, the call is a span of it. Outside a trial and a capture the function runs as if it were not
    marked. A tool with `side_effects` is never re-run by evaluators.

    A call from a thread outside the trial cannot be recorded. If a running case mocks the tool, such a call raises an
    error instead of calling the real tool.
    """
    if function is None:
        return lambda target: _mark(target, side_effects)
    return _mark(function, side_effects)


def _mark(function: Callable[P, R], side_effects: bool) -> Callable[P, R]:
    name = getattr(function, "__name__", type(function).__name__)
    wrapper = recording_wrapper(function, name)
    mark = Tool(name, function, side_effects)
    setattr(wrapper, TOOL_ATTRIBUTE, mark)
    register_tool(mark)
    return wrapper


def recording_wrapper(function: Callable[P, R], name: str) -> Callable[P, R]:
    """The function, with each call recorded in its trial and in the trace that is captured."""
    signature = inspect.signature(function)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def recorded_async(*args: P.args, **kwargs: P.kwargs) -> Any:
            turn = _turn_of_call(name)
            if turn is None and not is_captured(SCOPE.get()):
                return await function(*args, **kwargs)
            arguments = to_json(named_arguments(signature, args, kwargs, defaults=False))
            run = functools.partial(function, *args, **kwargs)
            if turn is None:
                return await observe_call(Observation(name, arguments, kind="tool"), run)
            call = functools.partial(turn.call_tool, name, arguments, run, marked=True)
            return await (observe_call(Observation(name, arguments, kind="tool"), call) if _is_traced(turn) else call())

        return cast(Callable[P, R], recorded_async)

    @functools.wraps(function)
    def recorded(*args: P.args, **kwargs: P.kwargs) -> Any:
        turn = _turn_of_call(name)
        if turn is None and not is_captured(SCOPE.get()):
            return function(*args, **kwargs)
        arguments = to_json(named_arguments(signature, args, kwargs, defaults=False))
        run = functools.partial(function, *args, **kwargs)
        if turn is None:
            return observe_call(Observation(name, arguments, kind="tool"), run)
        call = functools.partial(_call_in_turn, turn, name, arguments, run)
        return observe_call(Observation(name, arguments, kind="tool"), call) if _is_traced(turn) else call()

    return cast(Callable[P, R], recorded)


def _turn_of_call(name: str) -> TurnRecorder | None:
    """The turn that a call belongs to; raises if a mock would be bypassed."""
    trial = current_trial.get()
    if trial is None:
        check_stray_call(name)
        return None
    return trial.turn


def _is_traced(turn: TurnRecorder) -> bool:
    """Whether a call in this turn becomes a span; a call by a thread after the end of the turn does not."""
    return not turn.closed and is_captured(SCOPE.get())


def _call_in_turn(turn: TurnRecorder, name: str, arguments: dict[str, Json], run: functools.partial[Any]) -> Any:
    """Call a tool that is not a coroutine function. The result of a mocked generator is a generator too."""
    result = turn.call_tool_sync(name, arguments, run, marked=True)
    if inspect.isgeneratorfunction(run.func) and not inspect.isgenerator(result):
        return _stream(result)
    if inspect.isasyncgenfunction(run.func) and not inspect.isasyncgen(result):
        return _stream_async(result)
    return result


def _stream(result: Json) -> Iterator[Json]:
    yield from result if isinstance(result, list) else [result]


async def _stream_async(result: Json) -> AsyncIterator[Json]:
    for chunk in _stream(result):
        yield chunk
