"""Answers a question once: from what was kept, or by one call, however many ask the same at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from proctor.base.errors import StoreError
from proctor.base.json_data import Json
from proctor.judging.context import waiting
from proctor.judging.judge import JudgeCallStore

Entry = Mapping[str, Json]

REMEMBERED = 4096
"""How many answers are held in memory where no store is given."""


class Memory:
    """The latest answers, for as long as the process lives; used where no store is given."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def find(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def keep(self, key: str, entry: Entry) -> None:
        self._entries[key] = entry
        if len(self._entries) > REMEMBERED:
            del self._entries[next(iter(self._entries))]


class _Flight:
    """One call that is under way, and what came of it for those who wait."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.entry: Entry | None = None
        self.failure: Exception | None = None


class JudgeCache:
    """Finds answers again by their content."""

    def __init__(self, call_store: JudgeCallStore | None = None) -> None:
        self._call_store: JudgeCallStore = Memory() if call_store is None else call_store
        self._flights: dict[tuple[asyncio.AbstractEventLoop, str], _Flight] = {}

    async def get_or_ask(self, key: str, produce: Callable[[], Awaitable[Entry]]) -> tuple[Entry, bool]:
        """The entry of `key`, and whether it cost no call of this caller's own.

        What `produce` raises reaches everybody who waited for it and is not kept: whoever asks later tries anew. If the
        one who called is cancelled, one of those who wait calls in its place.
        """
        place = (asyncio.get_running_loop(), key)
        while True:
            kept = self._kept(key)
            if kept is not None:
                return kept, True
            flight = self._flights.get(place)
            if flight is None:
                return await self._call(place, produce), False
            with waiting():
                await flight.over.wait()
            if flight.failure is not None:
                raise flight.failure
            if flight.entry is not None:
                return flight.entry, True

    async def _call(
        self, place: tuple[asyncio.AbstractEventLoop, str], produce: Callable[[], Awaitable[Entry]]
    ) -> Entry:
        flight = self._flights[place] = _Flight()
        try:
            flight.entry = entry = await produce()
            self._keep(place[1], entry)
        except Exception as failure:
            flight.failure = failure
            raise
        finally:
            del self._flights[place]
            flight.over.set()
        return entry

    def _kept(self, key: str) -> Entry | None:
        try:
            return self._call_store.find(key)
        except StoreError:
            return None  # an unreadable store is no reason to give no verdict: the judge is asked

    def _keep(self, key: str, entry: Entry) -> None:
        try:
            self._call_store.keep(key, entry)
        except StoreError:
            return  # the verdict was paid for and stands; that the store fails is said where the trial is kept
