"""Calls functions of users, sync or async, plain or generator, and waits for the whole answer.

Synchronous functions run in a thread, so that one that blocks does not stop the event loop. The chunks of a streamed
answer are joined, and are recorded in the turn as they arrive.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from proctor.agents.reply_limits import StreamedText
from proctor.base.guard import restore_essential_builtins
from proctor.base.threads import is_async, run_in_thread


async def call_user_function(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function, sync or async, and return its whole answer."""
    return await call_user_function_as(is_async(function), function, args, kwargs)


async def call_user_function_as(
    asynchronous: bool, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Like `call_user_function`, for callers that know whether the function is asynchronous."""
    try:
        return await _whole_answer(asynchronous, function, args, kwargs)
    finally:
        restore_essential_builtins()


async def _whole_answer(
    asynchronous: bool, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    if asynchronous:
        result = function(*args, **kwargs)
    else:
        result = await run_in_thread(_call_and_drain, function, *args, **kwargs)
    if inspect.isawaitable(result):
        result = await result
    if inspect.isasyncgen(result):
        streamed = StreamedText()
        async for chunk in result:
            streamed.add(chunk)
        return streamed.text()
    if inspect.isgenerator(result):
        return await run_in_thread(join_chunks, result)
    return result


def _call_and_drain(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function and drain its generator, if it returns one, in the same thread: that is where its work runs."""
    result = function(*args, **kwargs)
    return join_chunks(result) if inspect.isgenerator(result) else result


def join_chunks(chunks: Iterable[Any]) -> str:
    """The whole text of a streamed answer."""
    streamed = StreamedText()
    for chunk in chunks:
        streamed.add(chunk)
    return streamed.text()
