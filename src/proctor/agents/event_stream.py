"""Reads an answer that a service sends as a stream of events (`text/event-stream`).

An event is a few lines up to a blank one: `data:` lines, which belong together, and perhaps an `event:` line with a
name. What the data means depends on the service, so it is read by shape:

- with a configured path, the text is what the path finds in each event, put together;
- chunks of OpenAI's chat completions, events of its responses, of Anthropic's messages and of Gemini, with tool calls;
- any other JSON object: the text under a common name (`delta`, `token`, `text`, …), and the parts of a reply;
- everything else is text. Tokens of a text may look like JSON (`42`, `true`), so only objects count as JSON, and
  strings in quotes if all of the data are.

A connection that is closed early looks like the end of the answer. A service that marks the end of its streams
(`[DONE]`, `finish_reason`, `message_stop`, …) has to send the mark; without it the answer is cut off, which is an
infrastructure error.
"""

from __future__ import annotations

import codecs
import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from proctor.agents.messages import to_usage
from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.agents.reply_reader import read_envelope, text_and_data
from proctor.agents.wire_format import breaks_off, check_error
from proctor.base.diagnosis import Diagnosis, FailureKind
from proctor.base.errors import AgentFailed, UnreadableReply
from proctor.base.json_data import Json, Unset, to_json, to_text
from proctor.base.selectors import Selector

END_OF_STREAM = "[DONE]"
_SILENT_EVENTS = frozenset("ping heartbeat keepalive keep-alive start end done close complete metadata".split())
"""Names of events whose data does not belong to the answer, unless it is a JSON object with text."""
_CHUNK_KEYS = ("delta", "token", "chunk")
_OTHER_TYPES = ("reason", "think", "thought", "tool", "arg")
"""Words in the `type` of an event whose text is not the answer: thoughts, or the arguments of a tool."""


class StreamCutOff(AgentFailed):
    """The stream ended before the answer was complete."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the stream was cut off: {what}",
            diagnosis=Diagnosis(FailureKind.TRANSIENT, "the stream was cut off", decided=True),
        )


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream."""

    data: str
    name: str = ""


class EventParser:
    """Splits a stream into events, however it arrives in pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._data: list[str] = []
        self._name = ""
        self._is_first = True

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that are complete with this chunk."""
        text = self._rest + self._decoder.decode(chunk)
        if self._is_first and text:
            text, self._is_first = text.removeprefix("\ufeff"), False
        held = "\r" if text.endswith("\r") else ""  # half of a line break, perhaps
        lines = text.removesuffix(held).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = lines.pop() + held
        return [event for line in lines if (event := self._line(line)) is not None]

    def end(self) -> list[Event]:
        """The last event of a stream that does not end in a blank line."""
        rest, self._rest = self._rest.rstrip("\r"), ""
        events = [self._line(rest) if rest else None, self._line("")]
        return [event for event in events if event is not None]

    def _line(self, line: str) -> Event | None:
        if line:
            name, _, value = line.partition(":")  # a comment has an empty name
            value = value.removeprefix(" ")
            if name == "data":
                self._data.append(value)
            elif name == "event":
                self._name = value.strip()
            return None
        data, name = self._data, self._name
        self._data, self._name = [], ""
        return Event("\n".join(data), name) if data else None


@dataclass(slots=True)
class _OpenCall:
    """A tool call whose arguments arrive in pieces."""

    name: str = ""
    id: str | None = None
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class StreamSelectors:
    """The configured paths, each of which is applied to every event."""

    text: Selector | None = None
    tool_calls: Callable[[Json], tuple[ToolCall, ...]] | None = None
    usage: Callable[[Json], Usage | None] | None = None
    state: Selector | None = None


@dataclass(slots=True)
class StreamedReply:
    """The reply in a stream, put together from its events."""

    selectors: StreamSelectors = field(default_factory=StreamSelectors)
    is_finished: bool = False
    """Whether the service has marked the end, so that nothing more needs to be read."""
    _parser: EventParser = field(default_factory=EventParser)
    _texts: list[str] = field(default_factory=list)
    _raw: list[tuple[int, str]] = field(default_factory=list)
    """Data that is not an object: its place in `_texts`, and what it is."""
    _calls: dict[Any, _OpenCall] = field(default_factory=dict)
    _whole_calls: list[ToolCall] = field(default_factory=list)
    _usage: Usage | None = None
    _state: Mapping[str, Json] | None = None
    _context: tuple[str, ...] | None = None
    _events: int = 0
    _ends_with: str = ""
    """The mark that this kind of stream ends with, if it has one."""
    _is_complete: bool = False
    """Whether the answer is complete, although more may follow, such as the usage."""
    _has_answer: bool = False

    def feed(self, chunk: bytes) -> None:
        """Read more of the stream; raises `AgentFailed` if it reports an error."""
        for event in self._parser.feed(chunk):
            self._add(event)

    def reply(self) -> Reply:
        """The reply, at the end of the stream; raises `StreamCutOff` or `UnreadableReply`."""
        for event in self._parser.end():
            if breaks_off(event.data.strip()):
                raise StreamCutOff(f"its last event is {to_text(event.data, 200)}")
            self._add(event)
        if not self._events:
            raise StreamCutOff("it ended before any data arrived")
        if self._ends_with and not self.is_finished and not self._is_complete:
            raise StreamCutOff(f"it ended without {self._ends_with}")
        if not self._has_answer:
            wanted = self.selectors.text
            if wanted is not None and not wanted.optional:
                raise UnreadableReply(
                    f"no text at {wanted.text} in any of the {self._events:,} events of the stream; the path is "
                    "applied to each event, as in choices[0].delta.content"
                )
            raise UnreadableReply(
                f"no text found in the {self._events:,} events of the stream; set 'text' to its path in each event"
            )
        return self.partial()

    def partial(self) -> Reply:
        """The reply as far as it has arrived."""
        texts = list(self._texts)
        quoted = [_json(data) for _, data in self._raw]
        if quoted and all(isinstance(item, str) for item in quoted):
            for (place, _), text in zip(self._raw, quoted, strict=True):
                texts[place] = text
        calls = [ToolCall.parse(call.name, call.arguments or {}, id=call.id) for call in self._calls.values()]
        return Reply(
            "".join(texts),
            (*calls, *self._whole_calls),
            self._usage,
            state=self._state,
            retrieval_context=self._context,
        )

    def _add(self, event: Event) -> None:
        if self.is_finished:
            return
        if event.data.strip() == END_OF_STREAM:
            self._end()
            return
        self._events += 1
        data = _json(event.data)
        if event.name == "error" or (isinstance(data, Mapping) and data.get("type") == "error"):
            _raise_error(event, data)
        if isinstance(data, Mapping):
            self._add_object(data)
        elif self.selectors.text is None and event.name.lower() not in _SILENT_EVENTS:
            self._raw.append((len(self._texts), event.data))
            self._add_text(event.data)

    def _add_object(self, data: Mapping[str, Json]) -> None:
        if self.selectors.text is None or self.selectors.text.steps[:1] != ("error",):
            check_error(data)
        self._read_paths(data)
        if "choices" in data:
            self._read_chat_chunk(data)
        elif isinstance(data.get("candidates"), list):
            self._read_gemini(data)
        elif (kind := data.get("type")) and isinstance(kind, str) and self._read_typed(kind, data):
            return
        else:
            self._read_object(data)

    # The answer

    def _add_text(self, text: Json) -> None:
        if isinstance(text, str):
            self._has_answer = True
            self._texts.append(text)

    def _add_default_text(self, text: Json) -> None:
        """Text of a known shape, which a configured path replaces."""
        if self.selectors.text is None:
            self._add_text(text)

    def _read_paths(self, data: Json) -> None:
        paths = self.selectors
        if paths.text is not None and not isinstance(value := paths.text.find(data), Unset) and value is not None:
            self._add_text(text_and_data(value)[0])
        if paths.tool_calls is not None:
            self._whole_calls += paths.tool_calls(data)
        if paths.usage is not None:
            self._usage = paths.usage(data) or self._usage
        if paths.state is not None and isinstance(state := paths.state.find(data), Mapping):
            self._state = state

    def _end(self) -> None:
        """The service has marked the end, so an empty answer is an answer too."""
        self._has_answer = True
        self.is_finished = True

    def _call(self, key: Any) -> _OpenCall:
        self._has_answer = True
        return self._calls.setdefault(key, _OpenCall())

    def _set_usage(self, usage: Any) -> None:
        """Later counts replace earlier ones; Anthropic sends those of the input first and those of the output last."""
        counts = to_usage(usage)
        if self.selectors.usage is not None or counts is None:
            return
        before = self._usage or Usage()
        self._usage = dataclasses.replace(
            counts,
            input_tokens=counts.input_tokens or before.input_tokens,
            output_tokens=counts.output_tokens or before.output_tokens,
        )

    # The shapes of services

    def _read_chat_chunk(self, data: Mapping[str, Json]) -> None:
        """`{"choices": [{"delta": {"content": "Hel"}}]}`; tool calls arrive in pieces, by their index."""
        self._ends_with = f"finish_reason or {END_OF_STREAM}"
        self._set_usage(data.get("usage"))
        choices = data["choices"]
        if not isinstance(choices, list):
            return
        for choice in choices:
            if not isinstance(choice, Mapping) or choice.get("index", 0) != 0:
                continue
            delta = choice.get("delta")
            if isinstance(delta, Mapping):
                self._add_default_text(delta.get("content"))
                calls = delta.get("tool_calls")
                for item in calls if isinstance(calls, list) else ():
                    self._add_call_delta(item)
            else:
                self._add_default_text(choice.get("text"))
            if choice.get("finish_reason"):
                self._has_answer = True
                self._is_complete = True

    def _add_call_delta(self, item: Json) -> None:
        if self.selectors.tool_calls is not None or not isinstance(item, Mapping):
            return
        function = item.get("function")
        call = self._call(item.get("index", len(self._calls)))
        if isinstance(function, Mapping):
            call.name = call.name or str(function.get("name") or "")
            call.arguments += str(function.get("arguments") or "")
        call.id = call.id or item.get("id")

    def _read_gemini(self, data: Mapping[str, Json]) -> None:
        """`{"candidates": [{"content": {"parts": [{"text": "Hel"}]}, "finishReason": …}]}`."""
        self._set_usage(data.get("usageMetadata"))
        candidate = data["candidates"][0] if data["candidates"] else None
        content = candidate.get("content") if isinstance(candidate, Mapping) else None
        parts = content.get("parts") if isinstance(content, Mapping) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, Mapping) and not part.get("thought"):
                self._add_default_text(part.get("text"))
                call = part.get("functionCall")
                if isinstance(call, Mapping) and self.selectors.tool_calls is None:
                    self._has_answer = True
                    self._whole_calls.append(ToolCall.parse(str(call.get("name")), call.get("args") or {}))

    def _read_typed(self, kind: str, data: Mapping[str, Json]) -> bool:
        """Read an event of Anthropic's messages or OpenAI's responses; returns whether it is one."""
        if kind.startswith("response."):
            self._read_response_event(kind, data)
            return True
        if kind not in _MESSAGE_EVENTS:
            return False
        delta, block = data.get("delta"), data.get("content_block")
        if kind == "message_start":
            self._ends_with = "message_stop"
            message = data.get("message")
            self._set_usage(message.get("usage") if isinstance(message, Mapping) else None)
        elif kind == "content_block_start" and isinstance(block, Mapping):
            if block.get("type") == "tool_use" and self.selectors.tool_calls is None:
                call = self._call(data.get("index"))
                call.name, call.id = str(block.get("name")), block.get("id")
            elif block.get("type") == "text":
                self._add_default_text(block.get("text"))
        elif kind == "content_block_delta" and isinstance(delta, Mapping):
            if delta.get("type") == "text_delta":
                self._add_default_text(delta.get("text"))
            elif delta.get("type") == "input_json_delta" and data.get("index") in self._calls:
                self._calls[data.get("index")].arguments += str(delta.get("partial_json") or "")
        elif kind == "message_delta":
            self._set_usage(data.get("usage"))
        elif kind == "message_stop":
            self._end()
        return True

    def _read_response_event(self, kind: str, data: Mapping[str, Json]) -> None:
        self._ends_with = "response.completed"
        item, response = data.get("item"), data.get("response")
        if kind == "response.output_text.delta":
            self._add_default_text(data.get("delta"))
        elif kind == "response.output_item.done" and isinstance(item, Mapping):
            if item.get("type") == "function_call" and self.selectors.tool_calls is None:
                call = self._call(item.get("call_id"))
                call.name, call.id = str(item.get("name")), item.get("call_id")
                call.arguments = str(item.get("arguments") or "")
        elif kind == "response.failed" and isinstance(response, Mapping):
            check_error(response)
            raise AgentFailed("the service reports that the response failed")
        elif kind in ("response.completed", "response.incomplete"):
            self._set_usage(response.get("usage") if isinstance(response, Mapping) else None)
            self._end()

    def _read_object(self, data: Mapping[str, Json]) -> None:
        """An event of no known service: a piece of text under a common name, or parts of a reply."""
        kind = str(data.get("type") or "").lower()
        is_answer = not any(word in kind for word in _OTHER_TYPES)
        for key in _CHUNK_KEYS:
            value = data.get(key)
            if isinstance(value, Mapping):
                value = next((value[name] for name in ("content", "text") if isinstance(value.get(name), str)), None)
            if isinstance(value, str):
                if is_answer:
                    self._add_default_text(value)
                return
        part = read_envelope(data)
        if part is None:
            return
        if part.structured is None and is_answer:
            self._add_default_text(part.text)
        if self.selectors.tool_calls is None:
            self._whole_calls += part.tool_calls
        self._has_answer |= bool(part.tool_calls)
        self._usage = self._usage if self.selectors.usage is not None else part.usage or self._usage
        self._state = self._state if self.selectors.state is not None else part.state or self._state
        self._context = part.retrieval_context or self._context


_MESSAGE_EVENTS = frozenset(
    "message_start content_block_start content_block_delta content_block_stop message_delta message_stop ping".split()
)


def _raise_error(event: Event, data: Json) -> None:
    """Raise the error that an event reports: in `error`, or as its whole data."""
    if isinstance(data, Mapping):
        check_error(data)
        check_error({"error": {key: value for key, value in data.items() if key != "type"}})
    raise AgentFailed(event.data.strip() or "the stream reports an error")


def _json(text: str) -> Json:
    """The object or string in the data of an event; `None` if it is something else."""
    if not text.lstrip().startswith(("{", '"')):
        return None
    try:
        data = to_json(json.loads(text))
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, (dict, str)) else None
