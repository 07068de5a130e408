"""Wraps generators so that their chunks can be recorded while the caller drains them (for `observe`, `tool`, `wrap`).

A generator does its work while it is drained, not when it is called. Recording its result when it is called would
record `<generator object ...>`, and would end the step before its work begins. So the stream is replaced by one that
yields the same chunks, collects them, and calls `finish` once at the end. Between two chunks the caller's own code
runs, which is not part of the step: `step` is entered for each chunk and left before the chunk is passed on. `send` and
`throw` reach the original generator, and leaving early closes it.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from proctor.base.json_data import Json, to_json

Step = Callable[[], AbstractContextManager[Any]]
"""Makes the context manager that is entered while the generator produces a chunk."""
Finish = Callable[[list[Any], BaseException | None], None]
"""Called once, with the chunks and the exception that the generator raised, if any."""


def follow_stream(
    stream: Generator[Any, Any, Any], finish: Finish, step: Step = nullcontext
) -> Generator[Any, Any, Any]:
    """The same stream; `finish` is called when it ends, raises or is abandoned."""
    chunks: list[Any] = []
    error: BaseException | None = None
    advance: Callable[[], Any] = functools.partial(next, stream)
    try:
        while True:
            try:
                with step():
                    chunk = advance()
            except StopIteration as done:
                return done.value
            chunks.append(chunk)
            try:
                advance = functools.partial(stream.send, (yield chunk))
            except GeneratorExit:
                with step():
                    stream.close()
                raise
            except BaseException as thrown:
                advance = functools.partial(stream.throw, thrown)
    except GeneratorExit:
        raise
    except BaseException as raised:
        error = raised
        raise
    finally:
        finish(chunks, error)


async def follow_async_stream(
    stream: AsyncGenerator[Any, Any], finish: Finish, step: Step = nullcontext
) -> AsyncGenerator[Any, Any]:
    """Like `follow_stream`, for an async generator."""
    chunks: list[Any] = []
    error: BaseException | None = None
    advance: Callable[[], Any] = stream.__anext__
    try:
        while True:
            try:
                with step():
                    chunk = await advance()
            except StopAsyncIteration:
                return
            chunks.append(chunk)
            try:
                advance = functools.partial(stream.asend, (yield chunk))
            except GeneratorExit:
                with step():
                    await stream.aclose()
                raise
            except BaseException as thrown:
                advance = functools.partial(stream.athrow, thrown)
    except GeneratorExit:
        raise
    except BaseException as raised:
        error = raised
        raise
    finally:
        finish(chunks, error)


def join_stream(chunks: list[Any]) -> Json:
    """The chunks of a finished stream as one value: strings are joined, anything else becomes a list."""
    return "".join(chunks) if chunks and all(isinstance(chunk, str) for chunk in chunks) else to_json(chunks)
