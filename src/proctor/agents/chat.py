"""A chat model behind an OpenAI-compatible interface, with instructions and Python functions as tools, as an agent."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from proctor.agents.agent import BaseAgent, Reply, Usage
from proctor.agents.chat_messages import field, is_list, text_of_parts, to_usage
from proctor.agents.http import HttpAgent, HttpSession
from proctor.agents.options import HttpOptions, Options, read_http_options
from proctor.agents.sessions import CallLog, read_data, text_of
from proctor.agents.toolbox import answer_async, is_doubled
from proctor.base.environment import expand, variables_in
from proctor.base.errors import AgentFailed, UnreadableReply, UsageError
from proctor.base.fields import kind
from proctor.base.json_data import Json, fingerprint, plain, show
from proctor.base.records import record
from proctor.base.references import describe, is_stand_in, resolve, source_fingerprint
from proctor.base.threads import invoke_as, is_async
from proctor.cases.suite import NOTHING, Case, Turn

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
    call = functools.partial(invoke_as, is_async(function), checked, ())
    return ChatTool(name, inspect.getdoc(function) or "", schema, call, source_fingerprint(function), function)


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


class ChatModel:
    """One model of one service; many conversations share its connections."""

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

    def connection(self, case: Case) -> ChatConnection:
        return ChatConnection(self, self._http, case)


class ChatConnection(HttpSession):
    """Puts requests as any agent behind HTTP is asked: the same failures, the same secrets kept."""

    def __init__(self, model: ChatModel, http: HttpAgent, case: Case) -> None:
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


MAX_TURNS = 10


@record
class ChatSetup:
    """What a model is told and given, the same in every conversation."""

    instructions: str = ""
    tools: tuple[ChatTool, ...] = ()
    max_turns: int = MAX_TURNS
    """How often the model may be asked before it has answered one turn."""
    answers_data: bool = False
    """Whether the model was asked to answer in JSON."""


class ChatAgent(BaseAgent):
    """A chat model with instructions and tools."""

    takes_files = False

    def __init__(self, model: ChatModel, setup: ChatSetup, name: str = "") -> None:
        self.model = model
        self.setup = setup
        self.tools = setup.tools
        self.name = name or model.name
        self.endpoint = model.endpoint
        tools = [[tool.name, tool.description, tool.parameters, tool.fingerprint] for tool in setup.tools]
        self.fingerprint = fingerprint(model.fingerprint, setup.instructions, tools, setup.max_turns)

    def __repr__(self) -> str:
        return f"ChatAgent({self.name})"

    async def start(self) -> None:
        await self.model.start()

    async def stop(self) -> None:
        await self.model.stop()

    def session(self, case: Case) -> ChatSession:
        return ChatSession(self, case)


class ChatSession:
    """One conversation, of which the model is told everything each time."""

    def __init__(self, agent: ChatAgent, case: Case) -> None:
        self._setup = agent.setup
        self._connection = agent.model.connection(case)
        self._tools = {tool.name: tool for tool in agent.setup.tools}
        told = agent.setup.instructions
        self._messages: list[Json] = [{"role": "system", "content": told}] if told else []

    async def __aenter__(self) -> ChatSession:
        await self._connection.__aenter__()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self._connection.__aexit__(*problem)

    async def send(self, turn: Turn) -> Reply:
        log = CallLog()
        self._messages.append({"role": "user", "content": text_of(turn)})
        for _ in range(self._setup.max_turns):
            answer = await self._connection.complete(self._messages, self._setup.tools)
            log.add_usage(answer.usage)
            log.said = answer.text
            self._messages.append(answer.message)
            if not answer.requests:
                data = read_data(answer.text) if self._setup.answers_data else None
                return Reply(answer.text, log.calls, log.usage, structured=data)
            self._messages += [await self._serve(request, log) for request in answer.requests]
        names = ", ".join(sorted({call.name for call in log.calls}))
        limit = self._setup.max_turns
        raise AgentFailed(
            f"gave no answer after {limit} model calls (max_turns), all of which asked for tools: {names}"
        )

    async def _serve(self, request: Request, log: CallLog) -> Json:
        """Call a tool; what goes wrong is told to the model, which may know better next time."""
        taken = any(call.id == request.id for call in log.calls)  # some services begin to count anew each time
        key = log.begin(None if taken else request.id, request.name, request.arguments)
        try:
            result = plain(await self._call(request))
        except Exception as error:
            log.end(key, error=error)
            result = {"error": describe(error)}
        else:
            log.end(key, result)
        return {"role": "tool", "tool_call_id": request.id, "content": show(result)}

    async def _call(self, request: Request) -> Json:
        arguments = _object(request.arguments)
        if is_doubled(request.name):
            return await answer_async(request.name, arguments)
        tool = self._tools.get(request.name)
        if tool is None:
            names = ", ".join(self._tools) or "none at all"
            raise LookupError(f"there is no tool {request.name}; there is {names}")
        return await tool.call(arguments)


def _object(written: Json) -> Mapping[str, Json]:
    try:
        arguments = json.loads(written) if isinstance(written, str) else written
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the arguments are not JSON: {error}") from None
    if not isinstance(arguments, Mapping):
        raise ValueError("the arguments are not a JSON object")
    return arguments


EXAMPLE = (
    '{"chat": {"base_url": "http://localhost:11434/v1", "model": "qwen3", "instructions": "You advise on loans.", '
    '"tools": ["tools.py:get_rate"]}}'
)
OPENAI = "https://api.openai.com/v1"


def read_chat(data: Json, base: Path | None) -> ChatAgent:
    """Raises `UsageError` that says what to write."""
    options = Options(data, "chat", EXAMPLE)
    model = options.required("model", str, "the model's name, as the service knows it")
    service = _service(options)
    settings = dict(options.take("request", dict, "an object of further fields of a request", {}))
    if settings.get("stream"):
        raise options.wrong("request", "asks for a stream; answers are taken whole here")
    temperature = options.take("temperature", (int, float), "a number")
    if temperature is not None:
        settings["temperature"] = temperature
    instructions = options.text("instructions", "")
    max_turns = options.take("max_turns", int, "a number", MAX_TURNS)
    if max_turns < 1:
        raise options.wrong("max_turns", "must be at least 1")
    tools = _texts(options, "tools")
    options.done()
    setup = ChatSetup(instructions, read_tools(tools, base), max_turns, "response_format" in settings)
    return ChatAgent(ChatModel(model, service, settings), setup)


def _service(options: Options) -> HttpOptions:
    """Where the model is, and the key; the usual key goes to its own service only."""
    given = options.text("base_url", "")
    headers = options.texts_by_name("headers")
    variable = options.text("api_key_env", "" if given else "OPENAI_API_KEY")
    if variable and not os.environ.get(variable):
        raise options.wrong("api_key_env", f"names the environment variable {variable}, which is not set")
    if variable:
        headers = {"authorization": f"Bearer ${{{variable}}}", **headers}
    known: dict[str, Any] = {
        "url": _address(options, given or OPENAI),
        "headers": headers,
        "timeout": options.take("timeout", (int, float), "a number of seconds"),
        "name": options.text("name"),
    }
    return read_http_options({name: value for name, value in known.items() if value is not None})


def _address(options: Options, given: str) -> str:
    for variable in variables_in(given):
        if not os.environ.get(variable):
            raise options.wrong("base_url", f"names the environment variable {variable}, which is not set")
    try:
        parts = urlsplit(expand(given, "base_url"))
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise options.wrong("base_url", "is not an http:// or https:// address")
    path = parts.path.rstrip("/")
    path = path if path.endswith("/chat/completions") else f"{path}/chat/completions"
    return urlunsplit(parts._replace(path=path, fragment=""))


def _texts(options: Options, name: str) -> list[str]:
    given = options.take(name, list, "a list of references such as tools.py:get_rate", [])
    for item in given:
        if not isinstance(item, str):
            raise options.wrong(name, f"must be a list of references such as tools.py:get_rate, not of {kind(item)}")
    return list(given)
