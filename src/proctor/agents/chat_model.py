"""A model behind an OpenAI-compatible chat interface, and Python functions as its tools."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

from proctor.agents.agent import Usage
from proctor.agents.chat_messages import field, is_list, text_of_parts, to_usage
from proctor.agents.http import HttpAgent, HttpSession
from proctor.agents.options import HttpOptions
from proctor.base.errors import UnreadableReply, UsageError
from proctor.base.json_data import Json, fingerprint, plain, show
from proctor.base.records import record
from proctor.base.references import describe, is_stand_in, resolve, source_fingerprint
from proctor.base.threads import invoke_as, is_async
from proctor.cases.suite import NOTHING, Case

_NAME = r"[A-Za-z0-9_-]{1,64}"
"""What chat interfaces allow."""


@record
class ChatTool:
    """A tool that a model may call: a Python function, or a tool of a server."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    """A JSON Schema of an object."""
    call: Callable[[Mapping[str, Json]], Awaitable[Any]]
    fingerprint: str = ""
    function: Callable[..., Any] | None = None
    """The code behind it, where there is some here: evaluators call it again."""

    @property
    def offer(self) -> Json:
        """How it is put to the model."""
        told = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": told}


def read_tools(references: Sequence[str], base: Path | None) -> tuple[ChatTool, ...]:
    """The tools that references name: a function each, or a list of functions."""
    tools: list[ChatTool] = []
    for reference in references:
        target = resolve(reference, base)
        functions = [] if is_stand_in(target) else target if isinstance(target, (list, tuple)) else [target]
        tools += [tool_of(function, reference) for function in functions]
    names = [tool.name for tool in tools]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"two tools are called {', '.join(twice)}; a model tells tools apart by their names")
    return tuple(tools)


def tool_of(function: Any, where: str = "") -> ChatTool:
    """Raises `UsageError` where a model could not call it."""
    name = getattr(function, "__name__", type(function).__name__)
    place = where or name
    if not callable(function) or isinstance(function, type):
        raise UsageError(f"{place} is no function that could be a tool")
    if not re.fullmatch(_NAME, name):
        raise UsageError(f"{place}: {name!r} is no name for a tool; define it with letters, digits and _")
    called: Any = function if inspect.isroutine(function) else function.__call__
    try:
        from pydantic import TypeAdapter, validate_call

        schema, checked = TypeAdapter(called).json_schema(), validate_call(called)
    except Exception as error:
        raise UsageError(f"{place} cannot be a tool: {describe(error)}") from None
    if schema.get("type") != "object":
        raise UsageError(
            f"{place} cannot be a tool: a model gives arguments by name, and it takes some by position only"
        )
    call = functools.partial(_call, checked, is_async(function))
    return ChatTool(name, inspect.getdoc(function) or "", schema, call, source_fingerprint(function), function)


async def _call(function: Callable[..., Any], asynchronous: bool, arguments: Mapping[str, Json]) -> Any:
    return await invoke_as(asynchronous, function, (), arguments)


@record
class Request:
    """A tool that the model wants called."""

    id: str
    name: str
    arguments: Json
    """As the model wrote them: text that should be JSON, or an object."""


@record
class Answer:
    """What a model said to the messages so far."""

    text: str
    requests: tuple[Request, ...] = ()
    usage: Usage | None = None

    @property
    def message(self) -> Json:
        """What is added to the conversation."""
        calls = [
            {"id": asked.id, "type": "function", "function": {"name": asked.name, "arguments": show(asked.arguments)}}
            for asked in self.requests
        ]
        said: dict[str, Json] = {"role": "assistant", "content": self.text}
        return said | {"tool_calls": calls} if calls else said


class ChatConnection(Protocol):
    """A model as one conversation has it."""

    async def complete(self, messages: Sequence[Json], tools: Sequence[ChatTool]) -> Answer: ...


class ChatModel(Protocol):
    """A model that may be in many conversations at once."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def connection(self, case: Case) -> AbstractAsyncContextManager[ChatConnection]: ...


class HttpChatModel:
    """One model of one service; conversations share its connections."""

    def __init__(self, model: str, service: HttpOptions, settings: Mapping[str, Json] = NOTHING) -> None:
        self.model = model
        self.settings = settings
        self.name = service.name or model
        self.endpoint = service.host
        self._http = HttpAgent(service)
        self.fingerprint = fingerprint(service.url, model, plain(settings))

    async def start(self) -> None:
        await self._http.start()

    async def stop(self) -> None:
        await self._http.stop()

    def connection(self, case: Case) -> HttpChatConnection:
        return HttpChatConnection(self, self._http, case)


class HttpChatConnection(HttpSession):
    """Puts requests as any agent behind HTTP is asked: the same failures, the same secrets kept."""

    def __init__(self, model: HttpChatModel, http: HttpAgent, case: Case) -> None:
        super().__init__(http, case)
        self._model = model

    async def complete(self, messages: Sequence[Json], tools: Sequence[ChatTool]) -> Answer:
        body = {"model": self._model.model, "messages": list(messages), **self._model.settings}
        if tools:
            body["tools"] = [tool.offer for tool in tools]
        try:
            response = await self._exchange(plain(body))
            return read_completion(response.text)
        except UnreadableReply as error:
            raise UnreadableReply(self._hide(f"{self._agent.name}: {error}")) from None


def read_completion(text: str) -> Answer:
    """A chat completion as the many services write it; raises `UnreadableReply` when it is none."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableReply(f"the answer is not JSON: {show(text.strip(), 200)}") from None
    choices = field(body, "choices") if isinstance(body, Mapping) else None
    message = field(choices[0], "message") if is_list(choices) and choices else None
    if not isinstance(message, Mapping):
        raise UnreadableReply(f"the answer is no chat completion: {show(plain(body), 200)}")
    return Answer(_text(message), _requests(message), _usage(body))


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if content is None or content == "":
        content = message.get("refusal")
    if content is None or isinstance(content, str):
        return content or ""
    parts = text_of_parts(content)
    if parts is None:
        raise UnreadableReply(f"the content of the message is {type(content).__name__}")
    return parts


def _requests(message: Mapping[str, Any]) -> tuple[Request, ...]:
    given = message.get("tool_calls") or []
    if not is_list(given):
        raise UnreadableReply("the tool calls of the message are no list")
    requests = []
    for number, call in enumerate(given, 1):
        function = field(call, "function")
        name = field(function, "name")
        if not isinstance(name, str) or not name:
            raise UnreadableReply(f"tool call {number} has no name")
        # Services that number nothing get numbers here: results are told apart by them.
        requests.append(Request(str(field(call, "id") or f"call_{number}"), name, field(function, "arguments") or "{}"))
    return tuple(requests)


def _usage(body: Mapping[str, Any]) -> Usage:
    """One call, and the tokens where the service counts them."""
    spent = to_usage(body.get("usage"))
    named = body.get("model")
    model = named if isinstance(named, str) else None
    return Usage(model_calls=1) if spent is None else dataclasses.replace(spent, model_calls=1, model=model)
