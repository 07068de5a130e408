"""A model on the loopback interface that uses tools: it speaks OpenAI chat completions and Anthropic messages.

with model_server(lambda talk: calls("lookup", city=talk.user) if not talk.results else says(talk.results[-1])):
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from judge_server import ModelRequest, NoResponse, RawResponse, judge_server


@dataclass(frozen=True)
class Conversation:
    """A request, as the script of a test looks at it."""

    asked: ModelRequest

    @property
    def tools(self) -> dict[str, Any]:
        """The schema of each tool on offer."""
        listed = self.asked.body.get("tools") or []
        found = [tool.get("function", tool) for tool in listed]
        return {tool["name"]: tool.get("parameters", tool.get("input_schema")) for tool in found}

    @property
    def since_user(self) -> list[dict[str, Any]]:
        """What came after the last thing the user said."""
        messages = self.asked.messages
        last = max(index for index, said in enumerate(messages) if said["role"] == "user" and not _results(said))
        return messages[last:]

    @property
    def user(self) -> str:
        return _text(self.since_user[0]["content"])

    @property
    def turn(self) -> int:
        """How often the user has spoken."""
        return sum(said["role"] == "user" and not _results(said) for said in self.asked.messages)

    @property
    def results(self) -> list[str]:
        """What tools answered in this turn."""
        found = [_text(said["content"]) for said in self.since_user if said["role"] == "tool"]
        return found + [_text(part["content"]) for said in self.since_user for part in _results(said)]


@dataclass(frozen=True)
class TextReply:
    text: str


@dataclass(frozen=True)
class ToolCallReply:
    name: str
    arguments: Any


def says(text: str) -> TextReply:
    return TextReply(text)


def calls(name: str, **arguments: Any) -> ToolCallReply:
    return ToolCallReply(name, arguments)


Script = Callable[[Conversation], TextReply | ToolCallReply | RawResponse | NoResponse]


@contextmanager
def model_server(script: Script) -> Any:
    """A server whose script sees the conversation and answers with words or a call."""

    def answer(asked: ModelRequest) -> RawResponse | NoResponse:
        if asked.path.endswith("/embeddings"):
            return RawResponse(200, json.dumps(_embeddings(asked.body["input"])).encode())
        said = script(Conversation(asked))
        if isinstance(said, (RawResponse, NoResponse)):
            return said
        shape = _anthropic if asked.path.endswith("/messages") else _openai
        return RawResponse(200, json.dumps(shape(said, asked)).encode())

    with judge_server(answer) as server:
        yield server


def _openai(said: TextReply | ToolCallReply, asked: ModelRequest) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    if isinstance(said, TextReply):
        message["content"] = said.text
    else:
        function = {"name": said.name, "arguments": json.dumps(said.arguments)}
        message["tool_calls"] = [{"id": f"call_{asked.number}", "type": "function", "function": function}]
    reason = "stop" if isinstance(said, TextReply) else "tool_calls"
    return {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": asked.body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def _anthropic(said: TextReply | ToolCallReply, asked: ModelRequest) -> dict[str, Any]:
    if isinstance(said, TextReply):
        content: dict[str, Any] = {"type": "text", "text": said.text}
    else:
        content = {"type": "tool_use", "id": f"toolu_{asked.number}", "name": said.name, "input": said.arguments}
    return {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": [content],
        "stop_reason": "end_turn" if isinstance(said, TextReply) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


WORDS = ("refund", "shipping", "warranty", "price")


def _embeddings(texts: list[str]) -> dict[str, Any]:
    """Near is what speaks of the same things."""
    vectors = [[float(text.lower().count(word)) for word in WORDS] + [0.1] for text in texts]
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return {"object": "list", "data": data, "model": "e", "usage": {"prompt_tokens": 3, "total_tokens": 3}}


def _results(said: dict[str, Any]) -> list[dict[str, Any]]:
    content = said["content"]
    return [part for part in content if part.get("type") == "tool_result"] if isinstance(content, list) else []


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])
