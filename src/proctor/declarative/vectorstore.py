"""Searches files by meaning: passages and questions become vectors, and the nearest passages are found."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

from proctor.agents.threads import call_in_thread
from proctor.declarative.passages import Passage, passages_of
from proctor.declarative.spec import StoreSpec
from proctor.errors import AgentFailed
from proctor.judging.embeddings import Vector, embeddings_of
from proctor.plain import Json

AT_ONCE = 64
"""How many passages are embedded with one request."""


class VectorStore:
    """The passages of one tool, embedded when they are first searched and held in memory."""

    def __init__(self, spec: StoreSpec) -> None:
        self._spec = spec
        self._lock = asyncio.Lock()
        self._passages: Sequence[Passage] | None = None
        self._vectors: list[Vector] = []

    async def search(self, query: str) -> list[dict[str, Json]]:
        """The passages nearest to a query, the nearest first."""
        await self._prepare()
        [wanted] = await self._embed([query])
        scored = [(cosine(wanted, vector), index) for index, vector in enumerate(self._vectors)]
        scored.sort(key=lambda pair: (-pair[0], pair[1]))
        least = self._spec.least_score
        near = [pair for pair in scored if least is None or pair[0] >= least]
        return [self._told(score, index) for score, index in near[: self._spec.top_k]]

    async def _prepare(self) -> None:
        async with self._lock:
            if self._passages is not None:
                return
            spec = self._spec
            passages = await call_in_thread(passages_of, spec.source, spec.chunk_size, spec.chunk_overlap, spec.records)
            texts = [passage.text for passage in passages]
            vectors: list[Vector] = []
            for start in range(0, len(texts), AT_ONCE):
                vectors += await self._embed(texts[start : start + AT_ONCE])
            self._passages, self._vectors = passages, vectors

    async def _embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors = await embeddings_of(self._spec.embeddings).embed(texts)
        size = self._spec.dimensions
        if size is None:
            return list(vectors)
        if any(len(vector) < size for vector in vectors):
            raise AgentFailed(f"{self._spec.name} wants {size} dimensions, and the embeddings have {len(vectors[0])}")
        return [vector[:size] for vector in vectors]

    def _told(self, score: float, index: int) -> dict[str, Json]:
        passage = (self._passages or ())[index]
        known: dict[str, Any] = {"text": passage.text, "source": passage.source, "score": round(score, 4)}
        if passage.id:
            known["id"] = passage.id
        return {**known, **passage.meta}


def cosine(left: Vector, right: Vector) -> float:
    """From -1 to 1; 0 where a vector has no direction."""
    lengths = math.hypot(*left) * math.hypot(*right)
    if not lengths or not math.isfinite(lengths):
        return 0.0
    return max(-1.0, min(1.0, sum(a * b for a, b in zip(left, right, strict=True)) / lengths))
