"""The limit for the size of a reply, and readers that stop there."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import Any

from proctor.agents.reply import Reply
from proctor.agents.trial_context import current_turn, max_reply_bytes
from proctor.base.errors import AgentFailed, UnreadableReply

HEAD_BYTES = 10_000
"""The size of the beginning of a too large answer that is stored, so that people can see what it was."""


class ReplyTooLarge(AgentFailed):
    """The agent answered more than `max_reply_bytes`; `head` is the beginning of the answer."""

    def __init__(self, what: str, head: str = "", limit: int | None = None) -> None:
        self.head = head[:HEAD_BYTES]
        amount = size_text(max_reply_bytes() if limit is None else limit)
        super().__init__(f"{what} is larger than {amount}, the limit for a reply (max_reply_bytes)")


def size_text(size: int) -> str:
    """A number of bytes as people read it: `10 MB`, `2,048 bytes`."""
    return f"{size / 2**20:.3g} MB" if size >= 100_000 else f"{size:,} bytes"


async def read_limited(chunks: AsyncIterable[bytes], what: str, received: bytearray) -> bytes:
    """Read a whole stream; raises `ReplyTooLarge` as soon as it exceeds the limit.

    `what` names the stream in the message. `received` is filled while the chunks arrive.
    """
    limit = max_reply_bytes()
    async for chunk in chunks:
        received += chunk
        if len(received) > limit:
            raise ReplyTooLarge(what, bytes(received[:HEAD_BYTES]).decode("utf-8", "replace"))
    return bytes(received)


class StreamedText:
    """The text of an answer that arrives in chunks; raises `ReplyTooLarge` at the limit."""

    def __init__(self) -> None:
        self._chunks: list[str] = []
        self._size = 0
        self._limit = max_reply_bytes()
        self._turn = current_turn()

    def add(self, chunk: Any) -> None:
        if not isinstance(chunk, str):
            raise UnreadableReply(f"the agent streamed a {type(chunk).__name__}; a stream must consist of text")
        self._chunks.append(chunk)
        if self._turn is not None:
            self._turn.append_text(chunk)
        self._size += len(chunk) or 1  # a stream of empty chunks has to end too
        if self._size > self._limit:
            raise ReplyTooLarge("the agent's stream", self.text()[:HEAD_BYTES])

    def text(self) -> str:
        return "".join(self._chunks)


def check_size(reply: Reply, limit: int | None = None) -> None:
    """Raise `ReplyTooLarge` if a reply exceeds the limit in text, data, tool calls and state together.

    `limit` is in bytes; by default it is that of the current trial.
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
    """Whether texts and values have more than `limit` bytes; stops counting as soon as they do."""
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
