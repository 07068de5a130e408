"""Carries the context of a trial into thread pools.

`@tool`, `wrap`, `observe` and mocks find their trial through context variables. Tasks, `asyncio.to_thread` and
Proctor's own threads carry these along. `ThreadPoolExecutor.submit` does not, and hand-written agents often run their
tools in pools, so `submit` is replaced by one that runs the job in a copy of the caller's context. Outside a trial and
a capture it only calls the original. `patching.py` says how this works together with the patches of other libraries.

A plain thread does not get the context. It often serves many trials, and would belong to the wrong one. Code that
starts threads for one trial uses `contextvars.copy_context().run`. Only what a thread prints belongs to the trial that
started it, as long as that runs.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from proctor.agents.trial_context import current_trial
from proctor.base.output_capture import note_thread_starter
from proctor.tracing.patching import call_before, patch
from proctor.tracing.scope import SCOPE

_PATCH_MARK = "__proctor_carries_context__"


def carry_context_into_pools() -> None:
    """Run jobs of thread pools in the trial or capture in which they are submitted, from now on."""
    patch(ThreadPoolExecutor, "submit", _submit_with_context, _PATCH_MARK)
    patch(threading.Thread, "start", call_before(note_thread_starter), _PATCH_MARK)


def _submit_with_context(original: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
    def submit(executor: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if current_trial.get() is None and SCOPE.get() is None:
            return original(executor, function, *args, **kwargs)
        return original(executor, contextvars.copy_context().run, function, *args, **kwargs)

    return submit
