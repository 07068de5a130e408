"""Asks for the embedding of each text once: what a run has paid for is kept in its store, like a judge's answers."""

from __future__ import annotations

import asyncio
import base64
import time
from array import array
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from proctor.agents.model import Usage
from proctor.judging.budget import Budget
from proctor.judging.current import engine_sitting
from proctor.judging.docket import note_call
from proctor.judging.embeddings import Vector
from proctor.judging.model import JudgeCall
from proctor.judging.recall import Entry, Recall
from proctor.plain import Json, fingerprint, plain

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
