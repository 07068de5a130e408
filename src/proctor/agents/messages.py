"""Reads chat messages as vendors and frameworks write them: roles, content in parts, calls and their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.agents.model import ToolCall
from proctor.agents.tool_calls import field, is_list, to_tool_calls
from proctor.records import record

_ANSWERS = ("assistant", "ai", "model")
_PEOPLE = ("user", "human")
_TEXT_PARTS = ("text", "output_text", "input_text")
_CALL_PARTS = ("tool_use", "tool_call")
_OTHER_PARTS = (
    "refusal thinking redacted_thinking reasoning image image_url input_image audio input_audio file tool_result"
).split()
_PARTS = frozenset((*_TEXT_PARTS, *_CALL_PARTS, *_OTHER_PARTS))


@record
class Message:
    """One message of a conversation, whoever's object it is."""

    role: str
    content: Any
    calls: Any = None
    answers: str | None = None
    """The id of the tool call whose result this message is."""

    @classmethod
    def of(cls, value: Any) -> Message | None:
        """The message that `value` is, or `None` when it is something else."""
        role = field(value, "role", "type")
        calls = field(value, "tool_calls")
        if not isinstance(role, str) or not (_holds(value, "content") or _holds(value, "tool_calls")):
            return None
        if calls is None and (only := field(value, "function_call")) is not None:
            calls = [only]  # how OpenAI's first tool calls were written
        answers = field(value, "tool_call_id") if role == "tool" else None
        return cls(role, field(value, "content"), calls, None if answers is None else str(answers))

    @property
    def is_answer(self) -> bool:
        return self.role in _ANSWERS

    def tool_calls(self) -> tuple[ToolCall, ...]:
        calls = to_tool_calls(self.calls)
        if calls or not _is_parts(self.content):
            return calls
        return to_tool_calls([part for part in self.content if field(part, "type") in _CALL_PARTS])


def completion_message(value: Any) -> list[Message]:
    """The assistant's message in a chat completion, or one that stands under `message`; in a list, as it may miss."""
    choices = field(value, "choices")
    inner = field(choices[0], "message") if is_list(choices) and len(choices) else field(value, "message")
    if isinstance(inner, Mapping) and "role" not in inner:
        inner = {"role": "assistant", **inner}
    message = Message.of(inner)
    return [] if message is None else [message]


def latest_messages(value: Any) -> list[Message]:
    """The messages since the person last spoke, where the answer comes as a whole conversation."""
    given = value if is_list(value) else field(value, "messages")
    if not is_list(given):
        return []
    messages = [Message.of(item) for item in given]
    latest: list[Message] = []
    for message in messages:
        if message is None:
            return []
        if message.role in _PEOPLE:
            latest.clear()
        else:
            latest.append(message)
    return latest


def text_of_parts(value: Any) -> str | None:
    """The text in a message's content given in parts; `None` when it is no such content."""
    if not _is_parts(value):
        return None
    texts = [field(part, "text") for part in value if field(part, "type") in _TEXT_PARTS]
    return "".join(text for text in texts if isinstance(text, str))


def _is_parts(value: Any) -> bool:
    if not is_list(value) or not len(value):
        return False
    kinds = [field(part, "type") for part in value]
    return all(isinstance(kind, str) and kind in _PARTS for kind in kinds)


def _holds(value: Any, name: str) -> bool:
    return name in value if isinstance(value, Mapping) else hasattr(value, name)
