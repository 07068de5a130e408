"""Where in the user's files a turn failed."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import FrameType, TracebackType

from proctor.agents.trial_context import TrialContext, current_trial
from proctor.base.errors import AgentFailed, is_user_file
from proctor.base.threads import POOL

MAX_FRAMES = 20


def user_locations(error: BaseException | None, trial: TrialContext | None = None) -> list[str]:
    """Lines in the user's files, outermost first: where `error` was raised, else where the trial's threads are now."""
    locations = list(error.places) if isinstance(error, AgentFailed) else []
    locations = locations or _raised_at(error)
    if not locations and trial is not None:
        frames = sys._current_frames()
        for thread, context in POOL.busy_threads().items():
            if context.get(current_trial) is trial and thread in frames:
                locations += _running_at(frames[thread])
    return locations[-MAX_FRAMES:]


def _raised_at(error: BaseException | None, depth: int = 0) -> list[str]:
    if error is None or depth > MAX_FRAMES:
        return []
    if isinstance(error, BaseExceptionGroup):
        inner = next((locations for one in error.exceptions if (locations := _raised_at(one, depth + 1))), [])
        if inner:
            return inner
    locations, trace = [], error.__traceback__
    while isinstance(trace, TracebackType):
        code = trace.tb_frame.f_code
        if is_user_file(code.co_filename):
            locations.append(_location(code.co_filename, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    return locations or _raised_at(error.__cause__ or error.__context__, depth + 1)


def _running_at(frame: FrameType | None) -> list[str]:
    locations: list[str] = []
    while frame is not None:
        code = frame.f_code
        if is_user_file(code.co_filename):
            locations.insert(0, _location(code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return locations


def _location(file: str, line: int, name: str) -> str:
    source = linecache.getline(file, line).strip()
    return f"{Path(file).name}:{line} in {name}{f': {source}' if source else ''}"
