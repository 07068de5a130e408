"""A chat model with instructions and tools as an agent, and how it is described in a suite."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from proctor.agents.agent import BaseAgent, Reply
from proctor.agents.chat_model import ChatConnection, ChatModel, ChatTool, HttpChatModel, Request, read_tools
from proctor.agents.options import HttpOptions, Options, read_http_options
from proctor.agents.sessions import CallLog, read_data, text_of
from proctor.agents.toolbox import answer_async, is_doubled
from proctor.base.environment import expand, variables_in
from proctor.base.errors import AgentFailed
from proctor.base.fields import kind
from proctor.base.json_data import Json, fingerprint, plain, show
from proctor.base.records import record
from proctor.base.references import describe
from proctor.cases.suite import Case, Turn

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
        self.endpoint = getattr(model, "endpoint", "")
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
        self._opening = agent.model.connection(case)
        self._tools = {tool.name: tool for tool in agent.setup.tools}
        told = agent.setup.instructions
        self._messages: list[Json] = [{"role": "system", "content": told}] if told else []

    async def __aenter__(self) -> ChatSession:
        self._connection: ChatConnection = await self._opening.__aenter__()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self._opening.__aexit__(*problem)  # type: ignore[arg-type]

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
            raise LookupError(f"there is no tool {request.name}; there is {_names(self._setup.tools)}")
        return await tool.call(arguments)


def _names(tools: Sequence[ChatTool]) -> str:
    return ", ".join(tool.name for tool in tools) or "none at all"


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
    return ChatAgent(HttpChatModel(model, service, settings), setup)


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
