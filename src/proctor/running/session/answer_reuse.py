"""The answers that a test session has already: its own, and with `--proctor-reuse` those of earlier sessions."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from proctor.agents.agent import BaseAgent
from proctor.base.errors import StoreError
from proctor.base.json_data import fingerprint
from proctor.base.processes import FileLock
from proctor.base.records import record
from proctor.results.encoding import mask_trial
from proctor.results.run import TrialResult
from proctor.results.run_info import RunInfo, git_state
from proctor.results.store import Store
from proctor.running.engine.earlier_answers import broke_down

FOLDER = "answers"
"""Inside the store's folder: what single tests asked. They score it themselves, so it is no part of any run."""
POLL_SECONDS = 0.02

Key = tuple[str, str, int]
"""Question, fingerprint of the agent, repetition."""


@record
class SessionId:
    """What all processes of one test session agree on."""

    run_id: str
    started_at: float
    several: bool = False
    """Whether there are other processes."""


class SessionAnswers:
    """Finds an answer of the same agent to the same question, and remembers every new one."""

    def __init__(self, folder: Path, session: SessionId, *, reuse: bool, keep_secrets: bool = False) -> None:
        self._folder = folder
        self._session = session
        self._reuse = reuse
        self._keep_secrets = keep_secrets
        self._heard: dict[Key, TrialResult] = {}
        self.reused: set[tuple[str, str]] = set()
        """The answers of earlier sessions that were taken: what was asked, and by which suite, if by one."""
        self.not_before = 0.0
        """Older answers are not taken: the moment at which a test was begun again, which is to ask again."""

    def find(self, question: str, agent: BaseAgent, number: int, suite: str = "") -> TrialResult | None:
        """The answer of this session, or, where that is asked for, the latest of earlier ones.

        A suite does not take the answer that another suite got in this session.
        """
        key = (question, agent_key(agent), number)
        askers = (suite, agent.name) if suite else ()
        found = self._heard.get(key) or (self._from_others(key, askers) if self._session.several else None)
        if found is not None and askers and found.suite not in askers and self._is_of_now(found):
            return None
        if found is None and self._reuse and not self.not_before:
            found = self._from_earlier(key)
        if found is not None and found.started_at < self.not_before:
            return None
        if found is not None:
            self._heard[key] = found
            if not self._is_of_now(found):
                self.reused.add((question_lock(*key), suite))
        return found

    def _is_of_now(self, trial: TrialResult) -> bool:
        return trial.started_at >= self._session.started_at

    def hear(self, question: str, trial: TrialResult) -> None:
        """Remember what a suite was answered, for as long as the session lasts, and let other processes know."""
        if self._session.several and not trial.reused:
            self.keep(question, trial)
        else:
            self._heard[question, trial.agent, trial.number] = trial

    def keep(self, question: str, trial: TrialResult) -> None:
        """Remember it, and write it down for other processes and later sessions."""
        self._heard[question, trial.agent, trial.number] = trial
        if trial.replies:
            store, no = self._book
            kept = replace(trial, case=replace(trial.case, id=question))
            store.add_trials(no, [kept if self._keep_secrets else mask_trial(kept)])

    @contextlib.asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """While one process asks a question, others wait for its answer; other questions do not wait."""
        if not self._session.several:
            yield
            return
        lock = self.lock(key)
        while not lock.acquire(wait=False):
            await asyncio.sleep(POLL_SECONDS)
        try:
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def locked(self, keys: Sequence[str]) -> Iterator[None]:
        """The same for many questions at once, in one order, so that no two processes wait for each other."""
        with contextlib.ExitStack() as held:
            for key in sorted(set(keys)) if self._session.several else ():
                lock = self.lock(key)
                lock.acquire(wait=True)
                held.callback(lock.release)
            yield

    def lock(self, key: str) -> FileLock:
        folder = lock_folder(self._folder, self._session.run_id)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder} cannot be written: {error}") from error
        return FileLock(folder / fingerprint(key))

    def close(self) -> None:
        if "_book" in self.__dict__:
            self._book[0].close()

    @functools.cached_property
    def _book(self) -> tuple[Store, int]:
        store = Store(self._folder / FOLDER)
        return store, row_of(store, self._session.run_id)

    @functools.cached_property
    def _earlier(self) -> list[tuple[Store, dict[Key, int]]]:
        stores = [Store(self._folder)] if (self._folder / "results.db").is_file() else []
        if (self._folder / FOLDER / "results.db").is_file():
            stores.append(Store(self._folder / FOLDER))
        return [(store, store.answers()) for store in stores]

    def _from_earlier(self, key: Key) -> TrialResult | None:
        found = [store.trial(known[key]) for store, known in self._earlier if key in known]
        whole = [trial for trial in found if not broke_down(trial)]
        return max(whole, key=lambda trial: trial.started_at, default=None)

    def _from_others(self, key: Key, askers: Sequence[str]) -> TrialResult | None:
        """What another process of the session was answered; by `askers` only, unless there are none."""
        store, no = self._book
        for (asker, question, number), kept in store.trial_keys(no).items():
            if (question, kept.agent, number) == key and (not askers or asker in askers):
                return store.trial(kept.no)
        return None


def question_lock(question: str, agent: str, number: int = 1) -> str:
    """The name of the lock under which one question is put to one agent."""
    return f"{question}-{agent}-{number}"


def agent_key(agent: BaseAgent) -> str:
    return agent.identity


def row_of(store: Store, run_id: str) -> int:
    """The row of the session's run; the first process that comes adds it."""
    for _ in range(2):
        with contextlib.suppress(StoreError):
            return store.find_run(run_id).no
        with contextlib.suppress(StoreError):  # another process was quicker
            return store.add_run(run_id, f"tests {run_id}", RunInfo(git=git_state(Path.cwd())))
    return store.find_run(run_id).no


def lock_folder(folder: Path, run_id: str) -> Path:
    return folder / f"{run_id}.locks"
