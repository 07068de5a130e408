"""The answers that a test session can have without asking: its own, other processes' of it, and earlier sessions'.

When an agent's own files last changed: prompts and settings make it another agent as much as code does.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from proctor.base.errors import StoreError
from proctor.base.json_data import fingerprint
from proctor.base.records import record
from proctor.results.masking import mask_trial
from proctor.results.run import TrialResult
from proctor.results.store import Store
from proctor.running.engine.execute import broke_down

ENDINGS = frozenset(
    ".py .md .txt .j2 .jinja .jinja2 .prompt .mustache .tmpl .toml .ini .cfg .yaml .yml .json .env .xml".split()
)
NOT_THE_AGENTS = ("test_", "conftest.", "pytest.", "tox.", "setup.cfg")
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "build", "dist", "tests", "test"})
MOST_FILES = 5_000
"""No more are looked at: beyond that a folder is more than an agent."""


def last_change(agent: Any) -> float:
    """The latest moment at which a file of the agent's folder was written; 0 where it has no folder of its own.

    Tests and suites do not count: they say what is asked, not who answers.
    """
    folder = _home_of(agent)
    return 0.0 if folder is None else max(map(_written_at, _files(folder)), default=0.0)


def _home_of(agent: Any) -> Path | None:
    for name in ("function", "kind", "target"):
        target = getattr(agent, name, None)
        owner = target if hasattr(target, "__module__") else type(target)
        file = getattr(sys.modules.get(getattr(owner, "__module__", None) or ""), "__file__", None)
        if target is not None and file and "site-packages" not in Path(file).parts:
            return Path(file).parent
    return None


def _files(folder: Path) -> Iterator[Path]:
    left = MOST_FILES
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith(".")]
        for name in names:
            if _may_be_the_agents(name):
                left -= 1
                if left < 0:
                    return
                yield Path(place, name)


def _may_be_the_agents(name: str) -> bool:
    if name.startswith(NOT_THE_AGENTS) or name.endswith((".test.json", ".evalset.json", "_test.py")):
        return False
    return ".proctor." not in name and (os.path.splitext(name)[1] in ENDINGS or name.startswith(".env"))  # noqa: PTH122


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


FOLDER = "answers"
"""Inside the store's folder: what single tests asked. They scored it themselves, so that it is no part of any run."""
POLL_SECONDS = 0.02

Key = tuple[str, str, int]
"""Question, fingerprint of the agent, repetition."""


@record
class Sharing:
    """What all processes of one test session agree on."""

    run_id: str
    started_at: float
    several: bool = False
    """Whether there are other processes."""


class SessionAnswers:
    """Finds an answer of the same agent to the same question, and remembers every new one."""

    def __init__(self, folder: Path, sharing: Sharing, *, fresh: bool, keep_secrets: bool = False) -> None:
        self._folder = folder
        self._sharing = sharing
        self._fresh = fresh
        self._keep_secrets = keep_secrets
        self._heard: dict[Key, TrialResult] = {}
        self.reused: set[tuple[str, str]] = set()
        """The answers of earlier sessions that were taken: what was asked, and by which suite, if by one."""
        self._changed: dict[str, float] = {}

    def find(self, question: str, agent: Any, number: int, suite: str = "") -> TrialResult | None:
        """The latest answer, unless it is an earlier session's and the agent may have changed since.

        What `suite` asks is its own: an answer that another suite got in this session is not taken for it.
        """
        key = (question, mark_of(agent), number)
        askers = (suite, agent.name) if suite else ()
        found = self._heard.get(key) or (self._from_others(key, askers) if self._sharing.several else None)
        if found is not None and askers and found.suite not in askers and self._is_of_now(found):
            return None
        if found is None and not self._fresh and not is_out_of_sight(agent):
            found = self._from_earlier(key, agent)
        if found is not None:
            self._heard[key] = found
            if not self._is_of_now(found):
                self.reused.add((turn_key(*key), suite))
        return found

    def _is_of_now(self, trial: TrialResult) -> bool:
        return trial.started_at >= self._sharing.started_at

    def hear(self, question: str, trial: TrialResult) -> None:
        """Remember what a suite was answered, for as long as the session lasts, and let other processes know."""
        if self._sharing.several and not trial.reused:
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
        if not self._sharing.several:
            yield
            return
        with self.lock_file(key) as handle:
            while not locked(handle, exclusive=True, wait=False):
                await asyncio.sleep(POLL_SECONDS)
            yield

    @contextlib.contextmanager
    def lock_file(self, key: str) -> Iterator[IO[str]]:
        """A file to lock, which the lock goes with when it is closed."""
        folder = lock_folder(self._folder, self._sharing.run_id)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = (folder / fingerprint(key)).open("w")
        except OSError as error:
            raise StoreError(f"{folder} cannot be written: {error}") from error
        with handle:
            yield handle

    def close(self) -> None:
        if "_book" in self.__dict__:
            self._book[0].close()

    @functools.cached_property
    def _book(self) -> tuple[Store, int]:
        store = Store(self._folder / FOLDER)
        return store, row_of(store, self._sharing.run_id)

    @functools.cached_property
    def _earlier(self) -> list[tuple[Store, dict[Key, int]]]:
        stores = [Store(self._folder)] if (self._folder / "results.db").is_file() else []
        if (self._folder / FOLDER / "results.db").is_file():
            stores.append(Store(self._folder / FOLDER))
        return [(store, store.answers()) for store in stores]

    def _from_earlier(self, key: Key, agent: Any) -> TrialResult | None:
        found = [store.trial(known[key]) for store, known in self._earlier if key in known]
        changed = self._changed.setdefault(key[1], last_change(agent) if found else 0.0)
        whole = [trial for trial in found if not broke_down(trial) and trial.started_at > changed]
        return max(whole, key=lambda trial: trial.started_at, default=None)

    def _from_others(self, key: Key, askers: Sequence[str]) -> TrialResult | None:
        """What another process of the session was answered; by `askers` only, unless there are none."""
        store, no = self._book
        for (asker, question, number), kept in store.trial_keys(no).items():
            if (question, kept.agent, number) == key and (not askers or asker in askers):
                return store.trial(kept.no)
        return None


def turn_key(question: str, mark: str, number: int = 1) -> str:
    """What is to be asked only once, whoever asks."""
    return f"{question}-{mark}-{number}"


def mark_of(agent: Any) -> str:
    return str(getattr(agent, "fingerprint", None) or fingerprint(agent.name))


def is_out_of_sight(agent: Any) -> bool:
    """Whether an agent could change without its fingerprint changing: a service, or an object that has none."""
    return not getattr(agent, "fingerprint", None) or type(agent).__module__ == "proctor.agents.http"


def row_of(store: Store, run_id: str) -> int:
    """The run of the session, opened by whichever process comes first."""
    for _ in range(2):
        with contextlib.suppress(StoreError):
            return store.find_run(run_id).no
        with contextlib.suppress(StoreError):  # another process was quicker
            return store.add_run(run_id, f"tests {run_id}", {"suites": []})
    return store.find_run(run_id).no


def lock_folder(folder: Path, run_id: str) -> Path:
    return folder / f"{run_id}.locks"


def locked(handle: IO[str], *, exclusive: bool, wait: bool) -> bool:
    """Whether this process has the file now; platforms without such locks trust their users."""
    try:
        import fcntl
    except ImportError:
        return True
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        fcntl.flock(handle, kind | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
