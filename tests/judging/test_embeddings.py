"""Embeddings that several evaluators want at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from proctor.agents.reply import Usage
from proctor.judging.embeddings import CachedEmbeddings


class SlowModel:
    """Embeds a text as its length, once it is let."""

    name, address, costs = "slow", "", True

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.is_free = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> tuple[list[list[float]], Usage]:
        self.requests.append(list(texts))
        await self.is_free.wait()
        return [[float(len(text))] for text in texts], Usage(input_tokens=len(texts), model_calls=1)


def test_a_text_that_another_evaluator_was_cancelled_on_is_embedded_all_the_same() -> None:
    """Defect: the evaluator that waited for the text got a KeyError."""

    async def scenario() -> tuple[list[float], list[list[str]]]:
        model = SlowModel()
        source = CachedEmbeddings(model)
        first = asyncio.create_task(source.embed(["shared", "of the first"]))
        await asyncio.sleep(0.01)
        second = asyncio.create_task(source.embed(["own", "shared"]))
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.sleep(0.01)
        model.is_free.set()
        return [vector[0] for vector in await second], model.requests

    vectors, requests = asyncio.run(scenario())
    assert vectors == [3.0, 6.0]
    assert requests == [["shared", "of the first"], ["own"], ["shared"]]


def test_texts_that_are_wanted_at_one_moment_go_in_one_request() -> None:
    async def scenario() -> list[list[str]]:
        model = SlowModel()
        model.is_free.set()
        source = CachedEmbeddings(model)
        await source.embed(["a", "bb", "a"])
        await source.embed(["bb", "ccc"])
        return model.requests

    assert asyncio.run(scenario()) == [["a", "bb"], ["ccc"]]
