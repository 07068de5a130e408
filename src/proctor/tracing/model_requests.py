"""Notices the requests that an agent sends to language models, also through clients that nothing observes.

A function that calls a model and runs the tools that the model asks for looks, without instrumentation, exactly like a
function that calls no tools. `hidden_calls.py` tells them apart by the requests that left the process during a turn.

Requests are noticed where every client sends them: in httpx (and httpx2, its successor), aiohttp and http.client, which
requests, urllib3 and botocore use. The obvious place, the methods of the clients, is private, different in each of them
and changes. What makes a request one to a model is its path, because the same client also talks to local servers; the
client is known by its headers. Nothing of a request is kept but its time, address and the names of its tools.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import time
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from proctor.agents.trial_context import current_trial, current_turn, turns_in_progress
from proctor.agents.turn_recorder import ModelRequest, TurnRecorder
from proctor.tracing.function_calling import MODULE as FUNCTION_CALLING
from proctor.tracing.function_calling import record_functions
from proctor.tracing.imports import after_import
from proctor.tracing.patching import call_before, patch
from proctor.tracing.scope import SCOPE

_PATCH_MARK = "__proctor_notices_requests__"

_MODEL_PATH = re.compile(
    r"/chat/completions$"
    r"|/v\d[^/]*/(completions|responses|messages|conversations|agents/completions|fim/completions)$"
    r"|:(generateContent|streamGenerateContent|rawPredict|streamRawPredict)$"
    r"|/api/(chat|generate)$"
    r"|/v[12]/chat(-stream)?$"
    r"|/model/[^/]+/(converse|invoke)(-stream|-with-response-stream)?$"
)
"""Paths of the APIs of OpenAI and those who copy it, Anthropic, Mistral, Google, Ollama, Cohere and Bedrock."""
_SDK_PATH = re.compile(r"/(responses|messages|completions)$")
"""Paths that only count if the request comes from the client of a model: other services have messages too."""
_CLIENTS = {
    "openai": re.compile(r"\b(async)?(azure)?openai/"),
    "anthropic": re.compile(r"\b(async)?anthropic(bedrock|vertex)?/"),
    "groq": re.compile(r"\b(async)?groq/"),
    "google.genai": re.compile(r"\bgoogle-genai-sdk/"),
    "litellm": re.compile(r"\blitellm/"),
    "mistralai": re.compile(r"\bmistral-client-python|\bmistralai\b"),
    "cohere": re.compile(r"\bcohere\b"),
    "ollama": re.compile(r"\bollama-python/"),
    "boto3": re.compile(r"\bboto(3|core)/"),
}
"""By the module of a client: how it names itself in the headers of a request."""
CLIENT_MODULES = tuple(_CLIENTS)
"""The modules of the clients that are recognized."""
_CLIENT_HEADERS = ("user-agent", "x-goog-api-client", "x-fern-sdk-name")
_MAX_BODY_BYTES = 4_000_000
"""The names of tools are not looked for in larger requests."""


def watch_model_requests() -> None:
    """Notice requests to models from now on, also those of libraries that are imported later.

    Called for every turn: another library may have removed our patches together with its own.
    """
    patch(http.client.HTTPConnection, "putrequest", call_before(_notice_http_client), _PATCH_MARK)
    for name in ("httpx", "httpx2"):
        after_import(name, _watch_httpx)
    after_import("aiohttp", _watch_aiohttp)
    after_import(FUNCTION_CALLING, record_functions)


def _watch_httpx(module: ModuleType) -> None:
    for client in (module.Client, module.AsyncClient):
        patch(client, "send", call_before(_notice_httpx), _PATCH_MARK)


def _watch_aiohttp(module: ModuleType) -> None:
    patch(module.ClientSession, "_request", call_before(_notice_aiohttp), _PATCH_MARK)


def _notice_httpx(client: Any, request: Any, *args: Any, **kwargs: Any) -> None:
    with contextlib.suppress(Exception):  # whatever happens here must not break the request of the application
        turns = _turns()
        url = request.url
        client_name = _client(request.headers)
        if turns and request.method == "POST" and _is_model_path(url.path, client_name):
            _record(turns, client_name, url.host, url.path, getattr(request, "_content", None))


def _notice_aiohttp(session: Any, method: str, url: Any, *args: Any, **kwargs: Any) -> None:
    with contextlib.suppress(Exception):
        turns = _turns()
        parts = urlsplit(str(url))
        client_name = _client(kwargs.get("headers") or {})
        if turns and method.upper() == "POST" and _is_model_path(parts.path, client_name):
            _record(turns, client_name, parts.hostname or "", parts.path, kwargs.get("data") or kwargs.get("json"))


def _notice_http_client(connection: Any, method: str, url: str, *args: Any, **kwargs: Any) -> None:
    with contextlib.suppress(Exception):
        turns = _turns()
        path = urlsplit(url).path
        if turns and method == "POST" and _MODEL_PATH.search(path):
            _record(turns, "boto3" if path.startswith("/model/") else "", connection.host, path, None)


def _turns() -> list[TurnRecorder]:
    """The turns that a request from here may belong to: the current one or, in a foreign thread, any in progress."""
    scope = SCOPE.get()
    if scope is not None and scope.silent and not scope.captures:  # a judge
        return []
    if _is_stray():
        return turns_in_progress()
    turn = current_turn()
    return [] if turn is None else [turn]


def _is_stray() -> bool:
    return current_trial.get() is None


def _client(headers: Mapping[str, str]) -> str:
    text = " ".join(str(headers.get(name) or headers.get(name.title()) or "") for name in _CLIENT_HEADERS).lower()
    return next((name for name, pattern in _CLIENTS.items() if pattern.search(text)), "")


def _is_model_path(path: str, client_name: str) -> bool:
    return bool(_MODEL_PATH.search(path) or (client_name and _SDK_PATH.search(path)))


def _record(turns: list[TurnRecorder], client_name: str, host: str, path: str, body: Any) -> None:
    request = ModelRequest(time.time(), client_name, f"{host}{path}", _offered_tools(body), _is_stray())
    for turn in turns:
        turn.add_model_request(request)


def _offered_tools(body: Any) -> tuple[str, ...] | None:
    """The names of the tools in the body of a request; `None` if they are unknown."""
    try:
        if isinstance(body, (bytes, str)):
            body = json.loads(body) if len(body) <= _MAX_BODY_BYTES else None
        if not isinstance(body, Mapping):
            return None
        listings = [body.get("tools"), body.get("functions"), (body.get("toolConfig") or {}).get("tools")]
        return tuple(name for listing in listings for item in listing or () for name in _tool_names(item))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _tool_names(item: Any) -> Iterator[str]:
    """The names in an entry of `tools`, in the form of each provider."""
    declarations = item.get("functionDeclarations") or item.get("function_declarations")
    if declarations:
        yield from (declaration["name"] for declaration in declarations)
        return
    inner = item.get("function") or item.get("toolSpec") or item
    # What the provider runs itself, such as a web search, often has no name.
    yield str(inner.get("name") or inner.get("type") or next(iter(inner), ""))
