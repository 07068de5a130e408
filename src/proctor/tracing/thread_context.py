"""Carries the context of a trial into thread pools: the one patch that Proctor makes to the standard library.

`@tool`, `wrap`, `observe` and mocks find their trial through context variables. Tasks, `asyncio.to_thread` and
Proctor's own threads carry these along. `ThreadPoolExecutor.submit` does not, and hand-written agents often run their
tools in pools, so `submit` is replaced by one that runs the job in a copy of the caller's context.

Logfire, OpenTelemetry, ddtrace and Sentry patch the same function. So ours looks `submit` up with `getattr`, which
binds the descriptors of others (a wrapt object taken from `__dict__` would be called without its instance). Outside a
trial and a capture it only calls the original. It is never removed: restoring the original would also remove the patch
that another library has added since.

`Thread.start` is not patched. A thread of the application often serves many trials, and would belong to the wrong one.
Code that starts threads for one trial uses `contextvars.copy_context().run`.
"""

from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from proctor.agents.trial_context import current_trial
from proctor.tracing.scope import SCOPE

_LOCK = threading.Lock()
_PATCH_MARK = "__proctor_carries_context__"


def carry_context_into_pools() -> None:
    """Run jobs of thread pools in the trial or capture in which they are submitted, from now on."""
    with _LOCK:
        submit = getattr(ThreadPoolExecutor, "submit")  # noqa: B009  it may be a descriptor of another library
        if not _is_patched(submit):
            ThreadPoolExecutor.submit = _submit_with_context(submit)  # type: ignore[method-assign]


def _is_patched(function: Any) -> bool:
    """Whether our patch is in place, also under wrappers that other libraries have added."""
    while function is not None:
        if getattr(function, "__dict__", {}).get(_PATCH_MARK):
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def _submit_with_context(original: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
    @functools.wraps(original)
    def submit(executor: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if current_trial.get() is None and SCOPE.get() is None:
            return original(executor, function, *args, **kwargs)
        return original(executor, contextvars.copy_context().run, function, *args, **kwargs)

    setattr(submit, _PATCH_MARK, True)
    return submit
