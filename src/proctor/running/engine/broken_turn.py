"""What is kept of a turn that broke off: tool calls, outputs, tokens, part of the answer, where and why it broke."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from proctor.agents.agent import NOT_BACK, Reply, ToolCall, Usage
from proctor.base.errors import AgentFailed
from proctor.base.records import record
from proctor.base.references import describe, is_users_file, place_of
from proctor.base.reply_size import HEAD_BYTES, ReplyTooLarge, Underway, check_size
from proctor.tracing.trial_recording import Recording

TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


TRANSIENT_KINDS = frozenset(
    """ConnectionError APIConnectionError APITimeoutError NetworkError ConnectError ReadError WriteError
    RemoteProtocolError Timeout TimeoutException ConnectTimeout ReadTimeout WriteTimeout PoolTimeout""".split()
)
"""What libraries that are not imported here call a network that failed."""


LONGEST_PAUSE_SECONDS = 120.0
"""A service may ask to be left alone for this long; a run does not wait for longer."""


FRAMES_KEPT = 20


@record
class OpenTurn:
    """A turn that was sent and not answered: what was known of it when it broke off."""

    session: Any
    recording: Recording
    seen: Underway
    error: BaseException | None
    """What came out of the session instead of a reply."""
    duration_ms: float
    traced_calls: tuple[ToolCall, ...] = ()
    traced_usage: Usage | None = None

    def reply(self, reason: str) -> Reply | None:
        """What there was of an answer, with the reason why there is no more; `None` where there was nothing at all."""
        self.recording.over = True
        part, log = self._part() or Reply(), self.seen.logs[-1] if self.seen.logs else None
        noted = () if log is None else tuple(_as_left(call) for call in log.calls)
        recorded = (*self.recording.tool_calls, *self._open_calls())
        streamed = "".join(stream.text() for stream in self.seen.streams)
        where = "".join(f"\n  at {place}" for place in self._places()) or _told_places(part)
        whole = replace(
            part,
            text=part.text or streamed or (log.said if log is not None else ""),
            tool_calls=tuple(part.tool_calls or noted or recorded or self.traced_calls),
            usage=part.usage or (log.usage if log is not None else None) or self.traced_usage,
            outputs=tuple(part.outputs or self.recording.outputs),
            duration_ms=self.duration_ms,
            raw=None,
            error=reason + where,
        )
        found = (whole.text, whole.tool_calls, whole.usage, whole.outputs, whole.structured, where)
        return _limited(whole) if any(found) else None

    def _part(self) -> Reply | None:
        """What the session itself saw of the answer; one of the user's own may break or give anything."""
        so_far = getattr(self.session, "so_far", None)
        try:
            part = so_far() if callable(so_far) else None
        except Exception:
            return None
        return part if isinstance(part, Reply) else None

    def _open_calls(self) -> Iterator[ToolCall]:
        for call in list(self.recording.open_calls.values()):
            yield replace(call, error=NOT_BACK)

    def _places(self) -> list[str]:
        """Where in the user's files it broke, the outermost first; of a thread that still runs, where it is."""
        places = _raised_at(self.error)
        if not places:
            frames = sys._current_frames()
            for thread in list(self.seen.threads):
                places += [] if thread not in frames else _running_at(frames[thread])
        return places[-FRAMES_KEPT:]


def _as_left(call: ToolCall) -> ToolCall:
    """A call that an adapter noted; one that has no end yet says so."""
    is_open = call.duration_ms is None and call.result is None and call.error is None
    return replace(call, error=NOT_BACK) if is_open else call


def _told_places(part: Reply) -> str:
    """Where it broke, as the session tells it that saw it break in another process."""
    at = (part.error or "").find("\n  at ")
    return "" if part.error is None or at < 0 else part.error[at:]


def _raised_at(error: BaseException | None, depth: int = 0) -> list[str]:
    if error is None or depth > FRAMES_KEPT:
        return []
    if isinstance(error, BaseExceptionGroup):
        inner = next((found for one in error.exceptions if (found := _raised_at(one, depth + 1))), [])
        if inner:
            return inner
    found, trace = [], error.__traceback__
    while isinstance(trace, TracebackType):
        code = trace.tb_frame.f_code
        if is_users_file(code.co_filename):
            found.append(_place(code.co_filename, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    return found or _raised_at(error.__cause__ or error.__context__, depth + 1)


def _running_at(frame: FrameType | None) -> list[str]:
    found: list[str] = []
    while frame is not None:
        code = frame.f_code
        if is_users_file(code.co_filename):
            found.insert(0, _place(code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return found


def _place(file: str, line: int, name: str) -> str:
    source = linecache.getline(file, line).strip()
    return f"{Path(file).name}:{line} in {name}{f': {source}' if source else ''}"


def _limited(reply: Reply) -> Reply:
    """A part of an answer that is larger than an answer may be is kept as far as people read."""
    try:
        check_size(reply)
    except ReplyTooLarge:
        calls = tuple(ToolCall(call.name, error="left out: too large") for call in reply.tool_calls[:100])
        return Reply(reply.text[:HEAD_BYTES], calls, reply.usage, duration_ms=reply.duration_ms, error=reply.error)
    return reply


def told(error: BaseException) -> str:
    """What went wrong, as a sentence about the agent."""
    if not isinstance(error, AgentFailed):
        return f"the agent raised {describe(error)}{place_of(error)}"
    return f"the agent {error}" if str(error).startswith("raised ") else str(error)


def pause_before(backoff: float, attempt: int) -> float:
    """Longer each time, and never the same for two trials that met the same obstacle."""
    import random

    factor: float = 2.0 ** (attempt - 1) * random.uniform(0.8, 1.2)  # noqa: S311
    return min(30.0, backoff * factor)


def wish_of(error: BaseException) -> float:
    """How many seconds the service asked to be left alone, where that can be understood; 0 is no wish."""
    wish = getattr(error, "retry_after", None)
    return min(float(wish), LONGEST_PAUSE_SECONDS) if isinstance(wish, (int, float)) and wish > 0 else 0.0


def is_transient(error: BaseException) -> bool:
    """Whether the fault lies with the network or an overloaded service, and asking again may help."""
    marked = getattr(error, "transient", None)
    if isinstance(marked, bool):
        return marked
    if isinstance(error, BaseExceptionGroup):
        return all(is_transient(inner) for inner in error.exceptions)
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    for owner, name in ((error, "status_code"), (error, "code"), (getattr(error, "response", None), "status_code")):
        status = getattr(owner, name, None)
        if isinstance(status, int) and status in TRANSIENT_STATUS:
            return True
    return any(kind.__name__ in TRANSIENT_KINDS for kind in type(error).__mro__)
