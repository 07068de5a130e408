"""How a chat model with tools is written down in a suite or on the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from proctor.agents.chat import MAX_TURNS, ChatAgent, ChatCharacter
from proctor.agents.chat_model import HttpChatModel
from proctor.agents.chat_tools import read_tools
from proctor.agents.http_options import HttpOptions, read_http_options
from proctor.agents.options import Options, expand, variables
from proctor.cases.fields import kind
from proctor.plain import Json

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
    character = ChatCharacter(instructions, read_tools(tools, base), max_turns, "response_format" in settings)
    return ChatAgent(HttpChatModel(model, service, settings), character)


def _service(options: Options) -> HttpOptions:
    """Where the model is, and the key; the usual key goes to its own service and to nobody else."""
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
    for variable in variables(given):
        if not os.environ.get(variable):
            raise options.wrong("base_url", f"names the environment variable {variable}, which is not set")
    try:
        parts = urlsplit(expand(given))
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
