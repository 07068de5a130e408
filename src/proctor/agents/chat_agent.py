"""An agent that is a chat model behind an OpenAI-compatible API, with instructions and Python functions as tools.

A turn is a loop: the model is called with the whole conversation, the tools that it requests are run (or mocked), and
their results are added, until the model answers with text or `max_turns` is reached.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field, TypeAdapter, field_validator, validate_call

from proctor.agents.agent import BaseAgent
from proctor.agents.http_agent import HttpAgent, HttpSession
from proctor.agents.http_config import AgentConfig, HttpOptions, Seconds, invalid_value, read_config, read_http_options
from proctor.agents.messages import get_field, is_list, parts_text, to_usage
from proctor.agents.reply import Reply, Usage
from proctor.agents.reply_reader import as_text, parse_json_answer
from proctor.agents.turn_recorder import TurnRecorder, recorded_turn
from proctor.agents.user_code import call_user_function_as
from proctor.base.environment import expand, variables_in
from proctor.base.errors import AgentFailed, UnreadableReply, UsageError, one_line
from proctor.base.fingerprints import source_fingerprint
from proctor.base.json_data import Json, fingerprint, to_json, to_text
from proctor.base.references import resolve
from proctor.base.threads import is_async
from proctor.cases.suite import Case, Turn

_TOOL_NAME = r"[A-Za-z0-9_-]{1,64}"
"""The tool names that chat APIs allow."""


@dataclass(frozen=True, slots=True)
class ChatTool:
    """A tool that a model may call: a Python function, or a tool of an MCP server."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    """The JSON Schema of the arguments."""
    call: Callable[[Mapping[str, Json]], Awaitable[Any]]
    fingerprint: str = ""
    function: Callable[..., Any] | None = None
    """The Python function, if it is one; evaluators may re-run it."""

    def to_openai(self) -> Json:
        """The tool as an item of `tools` in a request."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


def read_tools(references: Sequence[str], base: Path | None) -> tuple[ChatTool, ...]:
    """The tools of references, each to a function or a list of functions; raises `UsageError`."""
    tools: list[ChatTool] = []
    for reference in references:
        target = resolve(reference, base)
        functions = target if isinstance(target, (list, tuple)) else [target]
        tools += [make_tool(function, reference) for function in functions]
    names = [tool.name for tool in tools]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"more than one tool is called {', '.join(duplicates)}; every tool needs a different name")
    return tuple(tools)


def make_tool(function: Any, where: str = "") -> ChatTool:
    """A function as a tool; raises `UsageError` if a model could not call it. `where` names it in messages."""
    name = getattr(function, "__name__", type(function).__name__)
    place = where or name
    if not callable(function) or isinstance(function, type):
        raise UsageError(f"{place} cannot be a tool: it is not a function")
    if not re.fullmatch(_TOOL_NAME, name):
        raise UsageError(f"{place} cannot be a tool: rename {name!r}, with letters, digits and _ only")
    target: Any = function if inspect.isroutine(function) else function.__call__
    try:
        schema, validated = TypeAdapter(target).json_schema(), validate_call(target)
    except Exception as error:
        raise UsageError(f"{place} cannot be a tool: {one_line(error)}") from None
    if schema.get("type") != "object":
        raise UsageError(
            f"{place} cannot be a tool: models pass arguments by name, but it has parameters that are positional only"
        )
    call = functools.partial(call_user_function_as, is_async(function), validated, ())
    return ChatTool(name, inspect.getdoc(function) or "", schema, call, source_fingerprint(function), function)


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that the model requests."""

    id: str
    name: str
    arguments: Json
    """The arguments as the model wrote them: text that should be JSON, or an object."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The model's answer to the messages so far: text, or requests to call tools."""

    text: str
    requests: tuple[ToolRequest, ...] = ()
    usage: Usage | None = None

    @property
    def message(self) -> Json:
        """The answer as a message of the conversation."""
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": to_text(call.arguments)}}
            for call in self.requests
        ]
        message: dict[str, Json] = {"role": "assistant", "content": self.text}
        return message | {"tool_calls": calls} if calls else message


class ChatModel:
    """One model of one service; all conversations share its connections."""

    def __init__(self, model: str, service: HttpOptions, settings: Mapping[str, Json] = MappingProxyType({})) -> None:
        self.model = model
        self.settings = settings
        self.name = service.name or model
        self.endpoint = service.host
        self._http = HttpAgent(service)
        self.fingerprint = fingerprint(service.url, model, to_json(settings))

    async def start(self) -> None:
        await self._http.start()

    async def stop(self) -> None:
        await self._http.stop()

    def connection(self, case: Case) -> ChatConnection:
        return ChatConnection(self, self._http, case)


class ChatConnection(HttpSession):
    """Sends requests like an HTTP agent: failures are reported and secrets masked in the same way."""

    def __init__(self, model: ChatModel, http: HttpAgent, case: Case) -> None:
        super().__init__(http, case)
        self._model = model

    async def complete(self, messages: Sequence[Json], tools: Sequence[ChatTool]) -> Completion:
        """Call the model once."""
        body = {"model": self._model.model, "messages": list(messages), **self._model.settings}
        if tools:
            body["tools"] = [tool.to_openai() for tool in tools]
        try:
            response = await self._exchange(to_json(body))
            return read_completion(response.text)
        except UnreadableReply as error:
            raise UnreadableReply(self._mask_secrets(f"{self._agent.name}: {error}")) from None


def read_completion(text: str) -> Completion:
    """A chat completion in any of the forms that services use; raises `UnreadableReply` if it is not one."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableReply(f"the answer is not JSON: {to_text(text.strip(), 200)}") from None
    choices = get_field(body, "choices") if isinstance(body, Mapping) else None
    message = get_field(choices[0], "message") if is_list(choices) and choices else None
    if not isinstance(message, Mapping):
        raise UnreadableReply(f"the answer is not a chat completion: {to_text(to_json(body), 200)}")
    return Completion(_text(message), _requests(message), _usage(body))


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if content is None or content == "":
        content = message.get("refusal")
    if content is None or isinstance(content, str):
        return content or ""
    parts = parts_text(content)
    if parts is None:
        raise UnreadableReply(
            f"the content of the message must be text or a list of parts, not {type(content).__name__}"
        )
    return parts


def _requests(message: Mapping[str, Any]) -> tuple[ToolRequest, ...]:
    calls = message.get("tool_calls") or []
    if not is_list(calls):
        raise UnreadableReply(f"tool_calls of the message must be a list, not {type(calls).__name__}")
    requests = []
    for number, call in enumerate(calls, 1):
        function = get_field(call, "function")
        name = get_field(function, "name")
        if not isinstance(name, str) or not name:
            raise UnreadableReply(f"tool call {number} has no name")
        # Some services send no ids, but the model needs them to match results with calls.
        requests.append(
            ToolRequest(str(get_field(call, "id") or f"call_{number}"), name, get_field(function, "arguments") or "{}")
        )
    return tuple(requests)


def _usage(body: Mapping[str, Any]) -> Usage:
    """The usage of one call, with its tokens if the service reports them."""
    usage = to_usage(body.get("usage"))
    model = body.get("model") if isinstance(body.get("model"), str) else None
    return Usage(model_calls=1) if usage is None else dataclasses.replace(usage, model_calls=1, model=model)


MAX_TURNS = 10


@dataclass(frozen=True, slots=True)
class ChatSetup:
    """The configuration that all conversations with a model share."""

    instructions: str = ""
    tools: tuple[ChatTool, ...] = ()
    max_turns: int = MAX_TURNS
    """How often the model may be called to answer one turn."""
    answers_json: bool = False
    """Whether the request asks the model for JSON."""


class ChatAgent(BaseAgent):
    """A chat model with instructions and tools."""

    reports_all_tool_calls = True
    reads_files = False

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
    """One conversation; the model gets all of it in every request."""

    def __init__(self, agent: ChatAgent, case: Case) -> None:
        self._setup = agent.setup
        self._connection = agent.model.connection(case)
        self._tools = {tool.name: tool for tool in agent.setup.tools}
        instructions = agent.setup.instructions
        self._messages: list[Json] = [{"role": "system", "content": instructions}] if instructions else []

    async def __aenter__(self) -> ChatSession:
        await self._connection.__aenter__()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self._connection.__aexit__(*problem)

    async def send(self, turn: Turn) -> Reply:
        with recorded_turn() as recorder:
            return await self._answer(turn, recorder)

    async def _answer(self, turn: Turn, recorder: TurnRecorder) -> Reply:
        # Messages are added to the session once the turn is answered: a retry must not show the model its turn twice.
        messages = [*self._messages, {"role": "user", "content": as_text(turn)}]
        for _ in range(self._setup.max_turns):
            completion = await self._connection.complete(messages, self._setup.tools)
            recorder.add_usage(completion.usage)
            recorder.set_partial(completion.text)
            messages.append(completion.message)
            if not completion.requests:
                self._messages = messages
                data = parse_json_answer(completion.text) if self._setup.answers_json else None
                return Reply(completion.text, recorder.tool_calls, recorder.usage, structured=data)
            messages += [await self._run_tool(request, recorder) for request in completion.requests]
        names = ", ".join(sorted({call.name for call in recorder.tool_calls}))
        limit = self._setup.max_turns
        raise AgentFailed(
            f"gave no answer after {limit} model calls (max_turns), all of which requested tools: {names}"
        )

    async def _run_tool(self, request: ToolRequest, recorder: TurnRecorder) -> Json:
        """Run a tool and return its message. An error goes to the model, which may correct its next request."""
        try:
            arguments = _parse_arguments(request.arguments)
        except ValueError as error:
            recorder.record_unexecuted_call(request.name, request.arguments, one_line(error), id=request.id)
            return _tool_message(request, {"error": one_line(error)})
        try:
            call = functools.partial(self._call, request.name, arguments)
            result = to_json(await recorder.call_tool(request.name, arguments, call, id=request.id))
        except Exception as error:
            result = {"error": one_line(error)}
        return _tool_message(request, result)

    async def _call(self, name: str, arguments: Mapping[str, Json]) -> Any:
        tool = self._tools.get(name)
        if tool is None:
            names = ", ".join(self._tools) or "none"
            raise LookupError(f"there is no tool {name}; available tools: {names}")
        return await tool.call(arguments)


def _tool_message(request: ToolRequest, result: Json) -> Json:
    return {"role": "tool", "tool_call_id": request.id, "content": to_text(result)}


def _parse_arguments(arguments: Json) -> Mapping[str, Json]:
    """The arguments of a call; raises `ValueError` if they are not a JSON object."""
    try:
        data = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the arguments are not JSON: {error}") from None
    if not isinstance(data, Mapping):
        raise ValueError("the arguments are not a JSON object")
    return data


EXAMPLE = (
    '{"chat": {"base_url": "http://localhost:11434/v1", "model": "qwen3", "instructions": "You advise on loans.", '
    '"tools": ["tools.py:get_rate"]}}'
)
OPENAI_URL = "https://api.openai.com/v1"


class ChatConfig(AgentConfig):
    """The keys of an agent that is a chat model."""

    model: str = Field(min_length=1)
    base_url: str = ""
    api_key_env: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    timeout: Seconds | None = None
    name: str = ""
    request: dict[str, Any] = Field(default_factory=dict)
    temperature: float | None = None
    instructions: str = ""
    max_turns: Annotated[int, Field(ge=1)] = MAX_TURNS
    tools: list[str] = Field(default_factory=list)

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, base_url: str) -> str:
        for variable in variables_in(base_url):
            if not os.environ.get(variable):
                raise invalid_value(f"names the environment variable {variable}, which is not set")
        try:
            parts = urlsplit(expand(base_url or OPENAI_URL, "base_url"))
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise invalid_value("must be an http:// or https:// URL")
        return base_url

    @field_validator("api_key_env")
    @classmethod
    def _check_api_key_env(cls, variable: str | None) -> str | None:
        if variable and not os.environ.get(variable):
            raise invalid_value(f"names the environment variable {variable}, which is not set")
        return variable

    @field_validator("request")
    @classmethod
    def _check_request(cls, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("stream"):
            raise invalid_value("must not set stream; streaming is not supported here")
        return request


def read_chat(data: Json, base: Path | None) -> ChatAgent:
    """The agent of a mapping; raises `UsageError` with every problem."""
    config = read_config(ChatConfig, data, "chat", EXAMPLE)
    settings = dict(config.request)
    if config.temperature is not None:
        settings["temperature"] = config.temperature
    tools = read_tools(config.tools, base)
    setup = ChatSetup(config.instructions, tools, config.max_turns, "response_format" in settings)
    return ChatAgent(ChatModel(config.model, _service(config), settings), setup)


def _service(config: ChatConfig) -> HttpOptions:
    """The endpoint of the model with its key. OPENAI_API_KEY is used by default, but sent to OpenAI only."""
    variable = config.api_key_env
    if variable is None and not config.base_url:
        variable = "OPENAI_API_KEY"
        if not os.environ.get(variable):
            raise UsageError(f"chat.api_key_env names the environment variable {variable}, which is not set")
    key = {"authorization": f"Bearer ${{{variable}}}"} if variable else {}
    data: dict[str, Any] = {
        "url": _completions_url(config.base_url or OPENAI_URL),
        "headers": {**key, **config.headers},
    }
    return read_http_options(data | {"timeout": config.timeout, "name": config.name})


def _completions_url(base_url: str) -> str:
    """The URL of the completions below a base URL, which may contain environment variables."""
    parts = urlsplit(expand(base_url, "base_url"))
    path = parts.path.rstrip("/")
    path = path if path.endswith("/chat/completions") else f"{path}/chat/completions"
    return urlunsplit(parts._replace(path=path, fragment=""))
