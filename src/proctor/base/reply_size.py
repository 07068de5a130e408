"""How much an agent may answer: the limit of the trial that runs, and readers that stop at it."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from contextvars import ContextVar
from typing import Any

from proctor.base.errors import AgentFailed, UnreadableReply

DEFAULT_BYTES = 10 * 1024 * 1024
HEAD_BYTES = 10_000
"""How much is kept of an answer that is too large, for people to see what it was."""

LIMIT: ContextVar[int] = ContextVar("max_reply_bytes", default=DEFAULT_BYTES)


class Underway:
    """What can be seen from outside of a turn that is being answered, for when it breaks off."""

    __slots__ = ("logs", "streams", "threads")

    def __init__(self) -> None:
        self.streams: list[Pieces] = []
        self.logs: list[Any] = []
        """What adapters noted: each has `calls`, `usage`, and `said`, what there is of the answer."""
        self.threads: list[int] = []
        """The threads that work on it."""


UNDERWAY: ContextVar[Underway | None] = ContextVar("turn_underway", default=None)


class ReplyTooLarge(AgentFailed):
    """The agent answered more than `max_reply_bytes`; `head` is how the answer began."""

    def __init__(self, what: str, head: str = "") -> None:
        self.head = head[:HEAD_BYTES]
        limit = LIMIT.get()
        super().__init__(f"{what} is larger than {_amount(limit)}, the most that a reply may have (max_reply_bytes)")


def _amount(size: int) -> str:
    return f"{size / 2**20:.3g} MB" if size >= 100_000 else f"{size:,} bytes"


async def read_limited(chunks: AsyncIterable[bytes], what: str, found: bytearray) -> bytes:
    """All of a stream, or `ReplyTooLarge` as soon as it is more than allowed; `found` has what came so far."""
    limit = LIMIT.get()
    async for chunk in chunks:
        found += chunk
        if len(found) > limit:
            raise ReplyTooLarge(what, bytes(found[:HEAD_BYTES]).decode("utf-8", "replace"))
    return bytes(found)


class Pieces:
    """The chunks of a stream while it comes; one that never ends is read no further than the limit."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._size = 0
        self._limit = LIMIT.get()
        if (turn := UNDERWAY.get()) is not None:
            turn.streams.append(self)

    def add(self, chunk: Any) -> None:
        if not isinstance(chunk, str):
            raise UnreadableReply(f"the agent streamed a {type(chunk).__name__}; a stream is read as chunks of text")
        self._texts.append(chunk)
        self._size += len(chunk) or 1  # a stream of empty chunks has to come to an end too
        if self._size > self._limit:
            raise ReplyTooLarge("the agent's stream", self.text()[:HEAD_BYTES])

    def text(self) -> str:
        return "".join(self._texts)


def check_size(reply: Any) -> None:
    """Raises `ReplyTooLarge` for a reply with too much in it, wherever it stands: text, data, tool calls or state."""
    limit = LIMIT.get()
    parts: list[Any] = [reply.text]
    if reply.structured is not None or reply.tool_calls or reply.outputs or reply.state or reply.retrieval_context:
        parts += [reply.structured, reply.state, reply.retrieval_context]
        parts += [item.value for item in reply.outputs]
        for call in reply.tool_calls:
            parts += [call.arguments, call.result, call.error, call.raw_arguments]
    if _is_larger(parts, limit):
        raise ReplyTooLarge("the agent's answer", reply.text)


def _is_larger(parts: Iterable[Any], limit: int) -> bool:
    """Whether texts and values come to more than `limit` bytes; looks no further than needed to know."""
    size, waiting = 0, list(parts)
    while waiting and size <= limit:
        value = waiting.pop()
        if isinstance(value, str):
            size += len(value) if len(value) * 4 <= limit - size or value.isascii() else _bytes_of(value, limit)
        elif isinstance(value, dict):
            waiting += value.keys()
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            waiting += value
        elif value is not None:
            size += 8
    return size > limit


def _bytes_of(text: str, limit: int) -> int:
    return len(text) if len(text) > limit else len(text.encode("utf-8", "replace"))
