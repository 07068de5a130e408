"""The user's own client as an endpoint: an `openai.OpenAI`, or anything with its methods.

Of OpenAI's own client only the address and the key are used, so that its judge is the same as one that is named with
them. Any other client is called. Either way, cache, rate limit and budget apply as to any other judge.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from proctor.agents.reply import Usage
from proctor.base.errors import UsageError
from proctor.base.fingerprints import code_fingerprint
from proctor.base.functions import title_of
from proctor.base.infrastructure import diagnose
from proctor.base.json_data import Json
from proctor.base.threads import is_async, run_in_thread
from proctor.judging.judge import Completion, EndpointFailed, Prompt
from proctor.judging.providers import ModelSpec

DEFAULT_MODEL = "gpt-5-mini"
DEFAULT_EMBEDDINGS = "text-embedding-ada-002"
"""The model that autoevals uses for a client without a model."""


def model_of_client(client: Any, model: Any = None) -> ModelSpec | ClientEndpoint:
    """The model behind `client`; raises `UsageError` for a client without the methods of OpenAI's client."""
    if model is not None and not isinstance(model, str):
        raise UsageError("with client=, model= must be the name of a model as a string")
    name = (model or "").strip().removeprefix("openai:") or DEFAULT_MODEL
    address, key = getattr(client, "base_url", None), getattr(client, "api_key", None)
    is_plain = type(client).__name__ in ("OpenAI", "AsyncOpenAI")
    if is_plain and str(address or "").startswith(("http://", "https://")) and isinstance(key, str) and key:
        return ModelSpec("openai", name, str(address).rstrip("/"), key)
    if not callable(_method(client, "chat", "completions", "create")):
        raise UsageError(
            "client must be an openai.OpenAI or AsyncOpenAI, or have chat.completions.create, "
            f"not {type(client).__name__}"
        )
    return ClientEndpoint(client, name)


class ClientEndpoint:
    """Sends prompts with the user's client. Two are equal if they ask the same client for the same model."""

    def __init__(self, client: Any, model: str) -> None:
        self.name = f"openai:{model}"
        self.address = f"client {id(client)}"
        self.parameters: Mapping[str, Json] = _description(client)
        self._client = client
        self._model = model

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientEndpoint) and (self._client is other._client and self.name == other.name)

    def __hash__(self) -> int:
        return hash((id(self._client), self.name))

    async def complete(self, prompt: Prompt, schema: Mapping[str, Json], *, timeout: float) -> Completion:
        create = _method(self._client, "chat", "completions", "create")
        shape = f"Reply with one JSON object that fits this JSON Schema:\n{json.dumps(schema)}"
        messages = [
            {"role": "system", "content": f"{prompt.system}\n\n{shape}"},
            {"role": "user", "content": prompt.user},
        ]
        for reply, complaint in prompt.corrections:
            messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": complaint}]
        try:
            response = await _call_client(create, model=self._model, messages=messages)
            text = response.choices[0].message.content
        except Exception as error:
            raise EndpointFailed(f"{self.name} {type(error).__name__}: {error}", diagnosis=diagnose(error)) from None
        return Completion(_as_json(text if isinstance(text, str) else "", schema), _usage(response), self._model)


class FunctionEndpoint(ClientEndpoint):
    """Asks a function of the user's: a prompt in, a reply out. Its code is part of the key of cached replies."""

    def __init__(self, function: Any) -> None:
        super().__init__(function, "function")
        self.name = title_of(function)
        self.parameters = {"function": code_fingerprint(function)}

    async def complete(self, prompt: Prompt, schema: Mapping[str, Json], *, timeout: float) -> Completion:
        shape = f"Reply with one JSON object that fits this JSON Schema:\n{json.dumps(schema)}"
        parts = [prompt.system, shape, prompt.user, *(text for pair in prompt.corrections for text in pair)]
        question = "\n\n".join(parts)
        try:
            text = self._client(question) if is_async(self._client) else await run_in_thread(self._client, question)
            text = await text if inspect.isawaitable(text) else text
        except Exception as error:
            raise EndpointFailed(f"{self.name} raised {type(error).__name__}: {error}") from None
        if not isinstance(text, str):
            raise EndpointFailed(f"{self.name} returned {type(text).__name__}; a judge returns the reply as text")
        return Completion(_as_json(text, schema), Usage(model_calls=1), self.name)


def _description(client: Any) -> dict[str, Json]:
    """What identifies a client in a cache that outlives the process: its class, and its address if known."""
    description: dict[str, Json] = {"client": f"{type(client).__module__}.{type(client).__qualname__}"}
    address = str(getattr(client, "base_url", None))
    return description | ({"base_url": address} if address.startswith(("http://", "https://")) else {})


class ClientEmbeddings:
    """Embeddings from the user's client."""

    def __init__(self, client: Any, model: Any = None) -> None:
        self.name = f"openai:{model or DEFAULT_EMBEDDINGS}"
        self._create = _method(client, "embeddings", "create")
        if not callable(self._create):
            raise ValueError(f"client must have embeddings.create, as openai.OpenAI does, not {type(client).__name__}")

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        response = await _call_client(self._create, model=self.name.removeprefix("openai:"), input=list(texts))
        return [list(item.embedding) for item in response.data]


async def _call_client(function: Any, **arguments: Any) -> Any:
    response = function(**arguments) if is_async(function) else await run_in_thread(function, **arguments)
    return await response if inspect.isawaitable(response) else response


def _method(client: Any, *path: str) -> Any:
    for name in path:
        client = getattr(client, name, None)
    return client


def _usage(response: Any) -> Usage:
    used = getattr(response, "usage", None)
    counts = [getattr(used, name, None) for name in ("prompt_tokens", "completion_tokens")]
    prompt, completion = (count if isinstance(count, int) else None for count in counts)
    return Usage(prompt, completion, model_calls=1)


def _as_json(text: str, schema: Mapping[str, Json]) -> str:
    """The reply as JSON; pixie's prompts ask for `Score: 0.8` and reasons instead."""
    properties = schema.get("properties")
    found = re.match(r"\s*\**score\**\s*[:=]\s*([01](?:\.\d+)?|\.\d+)\b", text, re.IGNORECASE)
    if found is None or not isinstance(properties, Mapping) or set(properties) != {"score", "reasoning"}:
        return text
    return json.dumps({"reasoning": text[found.end() :].strip(" \n:-*") or text, "score": float(found[1])})
