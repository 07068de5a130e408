"""Answers each question once: from the call store, or by one call that all concurrent callers share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from proctor.base.errors import StoreError
from proctor.base.json_data import Json, fingerprint
from proctor.judging.call_log import waiting
from proctor.judging.judge import JudgeCallStore

Entry = Mapping[str, Json]

MAX_IN_MEMORY = 4096
"""The most answers in memory if there is no store."""


_TRIAL: ContextVar[str] = ContextVar("proctor_judged_trial", default="")


@contextmanager
def judged_afresh(trial: str) -> Iterator[None]:
    """Share no answers between trials inside, also in tasks started there. `trial` identifies one beyond the process.

    The same question about the same answer is asked again for every trial, because a judge that is asked twice may give
    two verdicts, and only independent verdicts tell how often an agent passes.
    """
    token = _TRIAL.set(trial)
    try:
        yield
    finally:
        _TRIAL.reset(token)


def cache_key(question: str) -> str:
    """The key of an answer, from the fingerprint of its question."""
    trial = _TRIAL.get()
    return fingerprint(question, trial) if trial else question


class MemoryCallStore:
    """The latest answers, in memory; used if there is no store."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def put(self, key: str, entry: Entry) -> None:
        self._entries[key] = entry
        if len(self._entries) > MAX_IN_MEMORY:
            del self._entries[next(iter(self._entries))]


class _PendingCall:
    """A running call, and its result for the callers that wait for it."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.entry: Entry | None = None
        self.failure: Exception | None = None


class JudgeCache:
    """Finds answers by the fingerprint of their question."""

    def __init__(self, call_store: JudgeCallStore | None = None) -> None:
        self._call_store: JudgeCallStore = MemoryCallStore() if call_store is None else call_store
        self._pending: dict[tuple[asyncio.AbstractEventLoop, str], _PendingCall] = {}

    async def get_or_ask(self, key: str, ask: Callable[[], Awaitable[Entry]]) -> tuple[Entry, bool]:
        """The entry of `key`, and whether this caller made no call for it.

        A failure of `ask` reaches all callers that waited for it and is not stored, so a later caller tries again.
        If the calling task is cancelled, one of the waiting callers makes the call.
        """
        pending_key = (asyncio.get_running_loop(), key)
        while True:
            stored = self._load(key)
            if stored is not None:
                return stored, True
            pending = self._pending.get(pending_key)
            if pending is None:
                return await self._call(pending_key, ask), False
            with waiting():
                await pending.over.wait()
            if pending.failure is not None:
                raise pending.failure
            if pending.entry is not None:
                return pending.entry, True

    async def _call(
        self, pending_key: tuple[asyncio.AbstractEventLoop, str], ask: Callable[[], Awaitable[Entry]]
    ) -> Entry:
        pending = self._pending[pending_key] = _PendingCall()
        try:
            pending.entry = entry = await ask()
            self._save(pending_key[1], entry)
        except Exception as failure:
            pending.failure = failure
            raise
        finally:
            del self._pending[pending_key]
            pending.over.set()
        return entry

    def _load(self, key: str) -> Entry | None:
        try:
            return self._call_store.get(key)
        except StoreError:
            return None  # the judge is asked instead

    def _save(self, key: str, entry: Entry) -> None:
        try:
            self._call_store.put(key, entry)
        except StoreError:
            return  # the reply is still good; the broken store is reported when the trial is stored
