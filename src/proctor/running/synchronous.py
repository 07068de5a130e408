"""The synchronous twin of a coroutine function, with the same parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from proctor.running.loop import run_sync

P = ParamSpec("P")
R = TypeVar("R")


def without_loop(verb: Callable[P, Coroutine[Any, Any, R]], home: str) -> Callable[P, R]:
    """`verb`, run to its end; where an event loop is running already, `RuntimeError` says to await `verb` instead.

    A twin, and not one function that does both: what `asyncio.run(verb(...))` is given is made before its loop runs.
    `home` is the module that the twin lives in.
    """

    @functools.wraps(verb)
    def synchronous(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        try:
            return run_sync(verb(*args, **kwargs))
        except AssertionError as failed:
            raise failed.with_traceback(None) from None  # ends in the caller's own line, not in the event loop

    synchronous.__name__ = synchronous.__qualname__ = f"{verb.__name__}_sync"
    synchronous.__module__ = home
    synchronous.__doc__ = f"`{verb.__name__}`, for code without an event loop."
    return synchronous
