"""The answers of a test session, and with `--proctor-reuse` those of earlier sessions.

Suites and single tests send the same inputs, and pytest-xdist runs them in several processes. An answer is found by
question (a hash of the case's inputs), agent and trial number, wherever it was requested. The answers to single tests
are stored apart from runs: the tests score them themselves, and they must not be part of the verdict of a run.
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
from proctor.agents.opened_files import has_changed
from proctor.base.errors import StoreError
from proctor.base.git import git_state
from proctor.base.json_data import fingerprint
from proctor.base.locks import FileLock
from proctor.cases.files.digests import FileDigests
from proctor.cases.identity import question_key
from proctor.cases.suite import Case
from proctor.results.masking import mask_trial, masked_parts
from proctor.results.run import Run
from proctor.results.score import NO_SCORES, Outcome
from proctor.results.store.store import Store
from proctor.results.trial import Trial
from proctor.running.assertions.agent_runner import AgentRunner

FOLDER = "answers"
"""Inside the store's folder: the store of the answers to single tests."""
POLL_SECONDS = 0.02

Key = tuple[str, str, int]
"""Question, fingerprint of the agent, trial number."""


@dataclass(frozen=True, slots=True)
class SessionId:
    """The identity of a test session, which all its processes share."""

    run_id: str
    started_at: float
    has_other_processes: bool = False


class SessionAnswers:
    """Finds the answers of an agent to a question, and stores new ones."""

    def __init__(self, folder: Path, session: SessionId, *, reuse: bool, keep_secrets: bool = False) -> None:
        self._folder = folder
        self._session = session
        self._reuse = reuse
        self._keep_secrets = keep_secrets
        self._answers: dict[Key, Trial] = {}
        self.reused: set[tuple[str, str]] = set()
        """The answers of earlier sessions that were used: the lock key, and the suite that used it, if it was one."""
        self.min_started_at = 0.0
        """Answers to trials that started before are not used: the time at which pytest began to re-run a test."""

    def find(self, question: str, agent: BaseAgent, number: int, suite: str = "") -> Trial | None:
        """The answer from this session or, with `reuse`, the latest one from earlier sessions.

        A suite does not use an answer that another suite got in this session.
        """
        key = (question, agent.identity, number)
        sources = (suite, agent.name) if suite else ()
        answer = self._answers.get(key) or (
            self._find_in_other_processes(key, sources) if self._session.has_other_processes else None
        )
        if answer is not None and sources and answer.suite not in sources and self._is_from_this_session(answer):
            return None
        if answer is None and self._reuse and not self.min_started_at:
            answer = self._find_in_earlier_sessions(key)
            if answer is not None and has_changed(answer.files_read) is not None:
                return None
        if answer is not None and masked_parts(answer) and not (suite and answer.scores):
            return None  # nobody has scored the original, and the masked one cannot be scored: the agent answers again
        if answer is not None and answer.started_at < self.min_started_at:
            return None
        if answer is not None:
            self._answers[key] = answer
            if not self._is_from_this_session(answer):
                self.reused.add((lock_key(*key), suite))
        return answer

    def _is_from_this_session(self, trial: Trial) -> bool:
        return trial.started_at >= self._session.started_at

    def remember(self, question: str, trial: Trial) -> None:
        """Keep the answer to a suite until the session ends, and share it with other processes."""
        if self._session.has_other_processes and not trial.reused:
            self.save(question, trial)
        else:
            self._answers[question, trial.agent, trial.number] = trial

    def save(self, question: str, trial: Trial) -> None:
        """Keep an answer, and store it for other processes and later sessions."""
        self._answers[question, trial.agent, trial.number] = trial
        if trial.replies:
            store, no = self._own_store
            stored = replace(trial, case=replace(trial.case, id=question))
            store.add_trials(no, [stored if self._keep_secrets else mask_trial(stored)])

    async def answer(self, case: Case, runner: AgentRunner, ask: Callable[[], Awaitable[Trial]]) -> Trial:
        """The trial of a case that a test sends to an agent: a stored one, or else a new one from `ask`."""
        question = question_key(FileDigests(runner.base).with_digests(case))
        async with self.lock_question(lock_key(question, runner.fingerprint)):
            stored = self.find(question, runner.agent, 1)
            if stored is not None:
                return _without_scores(stored, case)
            trial = await ask()
            self.save(question, trial)
        return trial

    @contextlib.asynccontextmanager
    async def lock_question(self, key: str) -> AsyncIterator[None]:
        """Hold the lock of a question, so that other processes wait for its answer instead of asking too."""
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
        """Hold the locks of many questions, acquired in sorted order, so that no two processes wait for each other."""
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
        if "_own_store" in self.__dict__:
            self._own_store[0].close()

    @functools.cached_property
    def _own_store(self) -> tuple[Store, int]:
        store = Store(self._folder / FOLDER)
        return store, session_row(store, self._session.run_id)

    @functools.cached_property
    def _earlier(self) -> list[tuple[Store, dict[Key, dict[str, int]]]]:
        stores = [Store(self._folder)] if (self._folder / "results.db").is_file() else []
        if (self._folder / FOLDER / "results.db").is_file():
            stores.append(Store(self._folder / FOLDER))
        return [(store, store.latest_answers()) for store in stores]

    def _find_in_earlier_sessions(self, key: Key) -> Trial | None:
        latest = ((store, next(reversed(answers[key].values()))) for store, answers in self._earlier if key in answers)
        trials = [store.trial(number) for store, number in latest]
        complete = [trial for trial in trials if not trial.ended_early]
        return max(complete, key=lambda trial: trial.started_at, default=None)

    def _find_in_other_processes(self, key: Key, sources: Sequence[str]) -> Trial | None:
        """The answer that another process of the session got; only for a suite in `sources`, if there are any."""
        store, no = self._own_store
        for (source, question, number), stored in store.stored_trials(no).items():
            if (question, stored.agent, number) == key and (not sources or source in sources):
                return store.trial(stored.no)
        return None


def _without_scores(stored: Trial, case: Case) -> Trial:
    """A stored trial as one of the current case, without the scores that it got elsewhere."""
    if not stored.is_answered or len(stored.replies) < len(case.turns):
        return replace(stored, case=case)
    return replace(stored, case=case, outcome=Outcome.SKIPPED, end_reason="", scores=NO_SCORES, reused=True)


def lock_key(question: str, agent: str, number: int = 1) -> str:
    """The name of the lock for sending one question to one agent."""
    return f"{question}-{agent}-{number}"


def session_row(store: Store, run_id: str) -> int:
    """The row of the session's run in the store; the first process adds it."""
    for _ in range(2):
        with contextlib.suppress(StoreError):
            return store.find_run(run_id).no
        with contextlib.suppress(StoreError):  # another process was faster
            return store.add_run(Run(run_id, time.time(), plan=f"tests {run_id}", git=git_state(Path.cwd())))
    return store.find_run(run_id).no


def lock_folder(folder: Path, run_id: str) -> Path:
    return folder / f"{run_id}.locks"
