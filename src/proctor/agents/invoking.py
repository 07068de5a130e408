"""Calls a person's code however it is written: sync code in a thread, async code directly, streams joined."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from proctor.agents.threads import call_in_thread
from proctor.errors import UnreadableReply


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it runs nothing yet: coroutine and async generator functions, partials and `__call__` included.

    Wrappers are not looked through: one that runs its coroutine itself must not be called on the event loop.
    """
    while isinstance(function, functools.partial):
        function = function.func
    method = getattr(type(function), "__call__", function)  # noqa: B004  the method itself is wanted
    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in (function, method))


async def invoke(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call any function and wait for its whole answer."""
    return await invoke_as(is_async(function), function, args, kwargs)


async def invoke_as(
    asynchronous: bool, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """What the function answers in the end: awaited if it must be, and joined if it comes in chunks."""
    if asynchronous:
        result = function(*args, **kwargs)
    else:
        result = await call_in_thread(_call_and_drain, function, *args, **kwargs)
    if inspect.isawaitable(result):
        result = await result
    if inspect.isasyncgen(result):
        return join_chunks([chunk async for chunk in result])
    if inspect.isgenerator(result):
        return await call_in_thread(join_chunks, result)
    return result


def _call_and_drain(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """A generator does its work while it is drained, so that has to happen in the same thread."""
    result = function(*args, **kwargs)
    return join_chunks(result) if inspect.isgenerator(result) else result


def join_chunks(chunks: Iterable[Any]) -> str:
    """The whole text of an answer that came in pieces."""
    texts: list[str] = []
    for chunk in chunks:
        if not isinstance(chunk, str):
            raise UnreadableReply(f"the agent streamed a {type(chunk).__name__}; a stream is read as chunks of text")
        texts.append(chunk)
    return "".join(texts)
