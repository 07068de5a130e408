"""The answers that a test session has: its own, and with `--proctor-reuse` those of earlier sessions.

Suites and single tests ask the same questions, and pytest-xdist runs them in several processes. An answer is found by
question, agent and repetition, wherever it was asked. What single tests asked is stored apart from runs, since the
tests score it themselves and no verdict of a run may include it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proctor.agents.agent import BaseAgent
from proctor.base.errors import StoreError
from proctor.base.git import git_state
from proctor.base.json_data import fingerprint
from proctor.base.locks import FileLock
from proctor.cases.files.digests import FileDigests
from proctor.cases.identity import question_key
from proctor.cases.suite import Case
from proctor.results.masking import mask_trial
from proctor.results.run import Outcome, Run, TrialResult
from proctor.results.store.store import Store
from proctor.running.assertions.agent_runner import AgentRunner

FOLDER = "answers"
"""Inside the store's folder: the store of what single tests asked."""
POLL_SECONDS = 0.02

Key = tuple[str, str, int]
"""Question, fingerprint of the agent, repetition."""


@dataclass(frozen=True, slots=True)
class SessionId:
    """What all processes of one test session share."""

    run_id: str
    started_at: float
    has_other_processes: bool = False


class SessionAnswers:
    """Finds an answer of the same agent to the same question, and remembers every new one."""

    def __init__(self, folder: Path, session: SessionId, *, reuse: bool, keep_secrets: bool = False) -> None:
        self._folder = folder
        self._session = session
        self._reuse = reuse
        self._keep_secrets = keep_secrets
        self._answers: dict[Key, TrialResult] = {}
        self.reused: set[tuple[str, str]] = set()
        """The answers of earlier sessions that were used: the question, and the suite that used it, if it was one."""
        self.not_before = 0.0
        """Older answers are not used: the moment at which pytest began to run a test again."""

    def find(self, question: str, agent: BaseAgent, number: int, suite: str = "") -> TrialResult | None:
        """The answer of this session or, with `reuse`, the latest of earlier ones.

        A suite does not use the answer that another suite got in this session.
        """
        key = (question, agent.identity, number)
        askers = (suite, agent.name) if suite else ()
        found = self._answers.get(key) or (
            self._from_others(key, askers) if self._session.has_other_processes else None
        )
        if found is not None and askers and found.suite not in askers and self._is_of_now(found):
            return None
        if found is None and self._reuse and not self.not_before:
            found = self._from_earlier(key)
        if found is not None and found.started_at < self.not_before:
            return None
        if found is not None:
            self._answers[key] = found
            if not self._is_of_now(found):
                self.reused.add((lock_key(*key), suite))
        return found

    def _is_of_now(self, trial: TrialResult) -> bool:
        return trial.started_at >= self._session.started_at

    def remember(self, question: str, trial: TrialResult) -> None:
        """Remember the answer that a suite got until the session ends, and share it with other processes."""
        if self._session.has_other_processes and not trial.reused:
            self.save(question, trial)
        else:
            self._answers[question, trial.agent, trial.number] = trial

    def save(self, question: str, trial: TrialResult) -> None:
        """Remember an answer, and store it for other processes and later sessions."""
        self._answers[question, trial.agent, trial.number] = trial
        if trial.replies:
            store, no = self._book
            stored = replace(trial, case=replace(trial.case, id=question))
            store.add_trials(no, [stored if self._keep_secrets else mask_trial(stored)])

    async def answer(self, case: Case, runner: AgentRunner, ask: Callable[[], Awaitable[TrialResult]]) -> TrialResult:
        """The trial of a case that a test puts to an agent: one that is there already, else what `ask` returns."""
        question = question_key(FileDigests(runner.base).with_digests(case))
        async with self.locked_question(lock_key(question, runner.fingerprint)):
            past = self.find(question, runner.agent, 1)
            if past is not None:
                return _unscored(past, case)
            trial = await ask()
            self.save(question, trial)
        return trial

    @contextlib.asynccontextmanager
    async def locked_question(self, key: str) -> AsyncIterator[None]:
        """While one process asks a question, others wait for its answer; other questions do not wait."""
        if not self._session.has_other_processes:
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
        with contextlib.ExitStack() as locks:
            for key in sorted(set(keys)) if self._session.has_other_processes else ():
                lock = self.lock(key)
                lock.acquire(wait=True)
                locks.callback(lock.release)
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
        return store, session_row(store, self._session.run_id)

    @functools.cached_property
    def _earlier(self) -> list[tuple[Store, dict[Key, int]]]:
        stores = [Store(self._folder)] if (self._folder / "results.db").is_file() else []
        if (self._folder / FOLDER / "results.db").is_file():
            stores.append(Store(self._folder / FOLDER))
        return [(store, store.latest_answers()) for store in stores]

    def _from_earlier(self, key: Key) -> TrialResult | None:
        found = [store.trial(known[key]) for store, known in self._earlier if key in known]
        whole = [trial for trial in found if not trial.ended_early]
        return max(whole, key=lambda trial: trial.started_at, default=None)

    def _from_others(self, key: Key, askers: Sequence[str]) -> TrialResult | None:
        """The answer that another process of the session got; only from `askers`, if there are any."""
        store, no = self._book
        for (asker, question, number), stored in store.stored_trials(no).items():
            if (question, stored.agent, number) == key and (not askers or asker in askers):
                return store.trial(stored.no)
        return None


def _unscored(past: TrialResult, case: Case) -> TrialResult:
    """A trial that is there already, as one of the case as it is now; a test does not see what others scored it."""
    if not past.is_answered or len(past.replies) < len(case.turns):
        return replace(past, case=case)
    return replace(past, case=case, outcome=Outcome.SKIPPED, reason="", scores=(), reused=True)


def lock_key(question: str, agent: str, number: int = 1) -> str:
    """The name of the lock under which one question is put to one agent."""
    return f"{question}-{agent}-{number}"


def session_row(store: Store, run_id: str) -> int:
    """The row of the session's run; the first process that comes adds it."""
    for _ in range(2):
        with contextlib.suppress(StoreError):
            return store.find_run(run_id).no
        with contextlib.suppress(StoreError):  # another process was quicker
            return store.add_run(Run(run_id, time.time(), plan=f"tests {run_id}", git=git_state(Path.cwd())))
    return store.find_run(run_id).no


def lock_folder(folder: Path, run_id: str) -> Path:
    return folder / f"{run_id}.locks"
