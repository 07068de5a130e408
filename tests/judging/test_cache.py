"""A question is answered once, however many ask, and whatever happens to the one who calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from proctor.base.errors import JudgeFailed, StoreError
from proctor.judging import cache as module
from proctor.judging.cache import JudgeCache


class Shelf:
    """A call_store in memory."""

    def __init__(self) -> None:
        self.entries: dict[str, Mapping[str, Any]] = {}

    def get(self, key: str) -> Mapping[str, Any] | None:
        return self.entries.get(key)

    def put(self, key: str, entry: Mapping[str, Any]) -> None:
        self.entries[key] = entry


class Broken:
    """A call_store whose disk is full and damaged."""

    def get(self, key: str) -> Mapping[str, Any] | None:
        raise StoreError("cannot be read")

    def put(self, key: str, entry: Mapping[str, Any]) -> None:
        raise StoreError("cannot be written")


class Model:
    """Counts how often it is called, and answers when it is let."""

    def __init__(self, failures: int = 0) -> None:
        self.calls = 0
        self.failures = failures
        self.go = asyncio.Event()

    async def __call__(self) -> Mapping[str, Any]:
        self.calls += 1
        await self.go.wait()
        if self.calls <= self.failures:
            raise JudgeFailed("no usable reply")
        return {"reply": f"answer {self.calls}"}


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_fifty_who_ask_the_same_at_once_cost_one_call() -> None:
    async def main() -> None:
        cache, model = JudgeCache(Shelf()), Model()
        asking = [asyncio.create_task(cache.get_or_ask("k", model)) for _ in range(50)]
        await _settle()
        model.go.set()
        answers = await asyncio.gather(*asking)
        assert model.calls == 1
        assert {entry["reply"] for entry, _ in answers} == {"answer 1"}
        assert sum(not cached for _, cached in answers) == 1

    asyncio.run(main())


def test_different_questions_do_not_wait_for_each_other() -> None:
    async def main() -> None:
        cache, slow, quick = JudgeCache(Shelf()), Model(), Model()
        quick.go.set()
        waiting = asyncio.create_task(cache.get_or_ask("slow", slow))
        await _settle()
        assert await cache.get_or_ask("quick", quick) == ({"reply": "answer 1"}, False)
        waiting.cancel()

    asyncio.run(main())


def test_an_answer_in_the_call_store_costs_no_call() -> None:
    async def main() -> None:
        shelf, model = Shelf(), Model()
        shelf.entries["k"] = {"reply": "kept"}
        assert await JudgeCache(shelf).get_or_ask("k", model) == ({"reply": "kept"}, True)
        assert model.calls == 0

    asyncio.run(main())


@pytest.mark.parametrize("call_store", [None, "shelf"])
def test_an_answer_is_found_again_also_without_a_call_store(call_store: str | None) -> None:
    async def main() -> None:
        cache, model = JudgeCache(Shelf() if call_store else None), Model()
        model.go.set()
        await cache.get_or_ask("k", model)
        assert await cache.get_or_ask("k", model) == ({"reply": "answer 1"}, True)
        assert model.calls == 1

    asyncio.run(main())


def test_a_failure_reaches_those_who_waited_and_is_not_kept() -> None:
    async def main() -> None:
        shelf, model = Shelf(), Model(failures=1)
        cache = JudgeCache(shelf)
        asking = [asyncio.create_task(cache.get_or_ask("k", model)) for _ in range(10)]
        await _settle()
        model.go.set()
        results = await asyncio.gather(*asking, return_exceptions=True)
        assert all(isinstance(result, JudgeFailed) for result in results)
        assert (model.calls, shelf.entries) == (1, {})
        assert await cache.get_or_ask("k", model) == ({"reply": "answer 2"}, False)

    asyncio.run(main())


def test_when_the_one_who_calls_is_cancelled_one_of_the_others_takes_over() -> None:
    async def main() -> None:
        cache, model = JudgeCache(Shelf()), Model()
        asking = [asyncio.create_task(cache.get_or_ask("k", model)) for _ in range(10)]
        await _settle()
        asking[0].cancel()
        await _settle()
        assert model.calls == 2
        asking[1].cancel()
        await _settle()
        assert model.calls == 3
        model.go.set()
        results = await asyncio.gather(*asking, return_exceptions=True)
        assert [isinstance(result, asyncio.CancelledError) for result in results] == [True] * 2 + [False] * 8
        assert model.calls == 3

    asyncio.run(main())


def test_one_who_waits_can_give_up_without_harm_to_the_others() -> None:
    async def main() -> None:
        cache, model = JudgeCache(Shelf()), Model()
        asking = [asyncio.create_task(cache.get_or_ask("k", model)) for _ in range(3)]
        await _settle()
        asking[1].cancel()
        model.go.set()
        results = await asyncio.gather(*asking, return_exceptions=True)
        assert [isinstance(result, asyncio.CancelledError) for result in results] == [False, True, False]
        assert model.calls == 1

    asyncio.run(main())


def test_a_call_store_that_fails_costs_a_call_and_no_verdict() -> None:
    async def main() -> None:
        cache, model = JudgeCache(Broken()), Model()
        model.go.set()
        assert await cache.get_or_ask("k", model) == ({"reply": "answer 1"}, False)

    asyncio.run(main())


def test_one_cache_serves_one_event_loop_after_another() -> None:
    cache = JudgeCache(None)

    async def main(number: int) -> bool:
        model = Model()
        model.go.set()
        _, cached = await cache.get_or_ask("k", model)
        return cached

    assert [asyncio.run(main(number)) for number in range(3)] == [False, True, True]


def test_memory_holds_only_the_latest_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_IN_MEMORY", 2)
    memory = module.MemoryCallStore()
    for number in range(5):
        memory.put(str(number), {})
    assert [memory.get(str(number)) is not None for number in range(5)] == [False] * 3 + [True] * 2
