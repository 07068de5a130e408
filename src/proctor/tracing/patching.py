"""Replaces methods of other people's classes, so that other libraries may do the same.

OpenTelemetry, Sentry, ddtrace and Logfire patch the same methods as Proctor. To work with them in any order, a method
is looked up with `getattr`, which binds the descriptors of others (a wrapt object taken from `__dict__` would be called
without its instance). A patch is never removed: restoring the original would also remove the patch that another library
has added since. When another library removes its own patch and takes ours with it, the next call of `patch` puts ours
back.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

_LOCK = threading.Lock()


def patch(
    owner: type | ModuleType, method: str, make: Callable[[Callable[..., Any]], Callable[..., Any]], mark: str
) -> None:
    """Replace a method, or a function of a module, by what `make` returns for it, unless that has already happened.

    `mark` is the name of the attribute by which the patch is recognized.
    """
    if _is_patched(getattr(owner, method), mark):
        return
    with _LOCK:
        original = getattr(owner, method)
        if not _is_patched(original, mark):
            replacement = functools.wraps(original)(make(original))
            setattr(replacement, mark, True)
            setattr(owner, method, replacement)


def call_before(notice: Callable[..., None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For `patch`: call `notice` with the arguments of the method, then the method itself, sync or async."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(original):

            async def call_async(*args: Any, **kwargs: Any) -> Any:
                notice(*args, **kwargs)
                return await original(*args, **kwargs)

            return call_async

        def call(*args: Any, **kwargs: Any) -> Any:
            notice(*args, **kwargs)
            return original(*args, **kwargs)

        return call

    return make


def _is_patched(function: Any, mark: str) -> bool:
    """Whether our patch is in place, also under wrappers that other libraries have added."""
    while function is not None:
        if getattr(function, "__dict__", {}).get(mark):
            return True
        function = getattr(function, "__wrapped__", None)
    return False
