"""How large a reply may be, and readers that stop at that limit."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import Any

from proctor.agents.reply import Reply
from proctor.agents.trial_context import current_turn, max_reply_bytes
from proctor.base.errors import AgentFailed, UnreadableReply

HEAD_BYTES = 10_000
"""How much of an answer that is too large is kept, so that people see what it was."""


class ReplyTooLarge(AgentFailed):
    """The agent answered more than `max_reply_bytes`; `head` is the beginning of the answer."""

    def __init__(self, what: str, head: str = "", limit: int | None = None) -> None:
        self.head = head[:HEAD_BYTES]
        amount = _size_text(max_reply_bytes() if limit is None else limit)
        super().__init__(f"{what} is larger than {amount}, the most that a reply may have (max_reply_bytes)")


def _size_text(size: int) -> str:
    return f"{size / 2**20:.3g} MB" if size >= 100_000 else f"{size:,} bytes"


async def read_limited(chunks: AsyncIterable[bytes], what: str, found: bytearray) -> bytes:
    """All of a stream, or `ReplyTooLarge` as soon as it is more than allowed; `found` has what came so far."""
    limit = max_reply_bytes()
    async for chunk in chunks:
        found += chunk
        if len(found) > limit:
            raise ReplyTooLarge(what, bytes(found[:HEAD_BYTES]).decode("utf-8", "replace"))
    return bytes(found)


class StreamedText:
    """The text of an answer that arrives in chunks; an endless stream is read no further than the limit."""

    def __init__(self) -> None:
        self._chunks: list[str] = []
        self._size = 0
        self._limit = max_reply_bytes()
        self._turn = current_turn()

    def add(self, chunk: Any) -> None:
        if not isinstance(chunk, str):
            raise UnreadableReply(f"the agent streamed a {type(chunk).__name__}; a stream is read as chunks of text")
        self._chunks.append(chunk)
        if self._turn is not None:
            self._turn.append_text(chunk)
        self._size += len(chunk) or 1  # a stream of empty chunks has to come to an end too
        if self._size > self._limit:
            raise ReplyTooLarge("the agent's stream", self.text()[:HEAD_BYTES])

    def text(self) -> str:
        return "".join(self._chunks)


def check_size(reply: Reply, limit: int | None = None) -> None:
    """Raise `ReplyTooLarge` for a reply with too much in it, whether in text, data, tool calls or state.

    The limit is that of the trial that runs here unless it is passed.
    """
    limit = max_reply_bytes() if limit is None else limit
    parts: list[Any] = [reply.text]
    if reply.structured is not None or reply.tool_calls or reply.outputs or reply.state or reply.retrieval_context:
        parts += [reply.structured, reply.state, reply.retrieval_context]
        parts += [item.value for item in reply.outputs]
        for call in reply.tool_calls:
            parts += [call.arguments, call.result, call.error, call.raw_arguments]
    if _is_larger(parts, limit):
        raise ReplyTooLarge("the agent's answer", reply.text, limit)


def _is_larger(parts: Iterable[Any], limit: int) -> bool:
    """Whether texts and values come to more than `limit` bytes; looks no further than needed to know."""
    size, waiting = 0, list(parts)
    while waiting and size <= limit:
        value = waiting.pop()
        if isinstance(value, str):
            size += len(value) if len(value) * 4 <= limit - size or value.isascii() else _size_of(value, limit)
        elif isinstance(value, dict):
            waiting += value.keys()
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            waiting += value
        elif value is not None:
            size += 8
    return size > limit


def _size_of(text: str, limit: int) -> int:
    return len(text) if len(text) > limit else len(text.encode("utf-8", "replace"))
