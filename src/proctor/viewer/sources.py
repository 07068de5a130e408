"""What the viewer shows: stores, exported runs and baselines.

A `Source` is one store, with a cache of what was read from it: the cases of the last few runs, and the totals of many
more. `Sources` are all of one viewer; they find a run by its id.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from proctor.base.errors import StoreError, UsageError
from proctor.cases.formats.folders import BASELINE_SUFFIX
from proctor.gate.baseline import Baseline, read_baseline
from proctor.results.run import Run
from proctor.results.store.run_files import is_file_name, open_run
from proctor.results.store.store import DATABASE_FILE, Store
from proctor.results.verdict import verdict
from proctor.viewer.cases import RunCases, RunTotals

T = TypeVar("T")

MAX_CASES_CACHED = 4
"""Runs whose cases stay in memory: those that people are looking at."""
MAX_TOTALS_CACHED = 200


class NotFound(Exception):
    """The page, or the run or case that it is about, does not exist."""


class Source:
    """One store, and what was read from it."""

    def __init__(self, label: str, store: Store, *, only: str | None = None, is_file: bool = False) -> None:
        self.label = label
        self.store = store
        self.only = only
        """The run that the command line names, if it names one."""
        self.is_file = is_file
        """Whether this is an exported run, which cannot be graded here."""
        self.lock = threading.RLock()
        """Held while the store is read, since it has one connection."""
        self._cases: dict[int, tuple[object, RunCases]] = {}
        self._totals: dict[int, tuple[object, RunTotals]] = {}

    @property
    def folder(self) -> Path:
        return self.store.folder

    def close(self) -> None:
        with self.lock:
            self.store.close()

    def page(self, before: int | None, limit: int) -> list[Run]:
        """At most `limit` runs, the latest first, from the one before `before` on; damaged runs are left out."""
        with self.lock:
            return self.store.runs_before(before, limit)

    def find(self, run_id: str) -> Run | None:
        with self.lock:
            return self.store.run_with_id(run_id)

    def count_runs(self) -> int:
        with self.lock:
            return self.store.count_runs()

    def count_trials(self, row: Run) -> int:
        with self.lock:
            return self.store.count_trials(row.no)

    def version(self) -> int:
        """A number that changes whenever the store is written to."""
        with self.lock:
            return self.store.data_version()

    def cases(self, row: Run) -> RunCases:
        """The run with its cases, read again if the store has changed."""
        with self.lock:
            version = self.store.data_version()
            cached = self._cases.pop(row.no, None)
            if cached is None or cached[0] != version:
                cached = version, RunCases(row, verdict(row), self.store.case_tags(row.no))
            _cache(self._cases, row.no, cached, MAX_CASES_CACHED)
            return cached[1]

    def totals(self, row: Run) -> RunTotals:
        """The totals of the run, read again if this run has changed, but not if another one has."""
        with self.lock:
            state = self._state(row)
            cached = self._totals.pop(row.no, None)
            if cached is None or cached[0] != state:
                cached = state, self.cases(row).totals
            _cache(self._totals, row.no, cached, MAX_TOTALS_CACHED)
            return cached[1]

    def has_totals(self, row: Run) -> bool:
        """Whether the totals are in the cache and up to date."""
        with self.lock:
            cached = self._totals.get(row.no)
            return cached is not None and cached[0] == self._state(row)

    def _state(self, row: Run) -> object:
        """A value that changes when outcomes of the run do."""
        return row.status, row.finished_at, row.stored_verdict, row.counts, self.store.count_trials(row.no)

    def discard(self, row: Run) -> None:
        """Remove a run from the cache, because its scores were changed."""
        with self.lock:
            self._cases.pop(row.no, None)
            self._totals.pop(row.no, None)

    @contextmanager
    def open_run(self, row: Run) -> Iterator[Run]:
        """The whole run on another connection, so that other pages do not wait while all scores are read."""
        if self.is_file:
            with self.lock:
                yield row
            return
        with closing(Store(self.folder, create=False)) as store:
            yield store.find_run(row.id)

    def earlier_runs(self, row: Run, limit: int = 1) -> list[Run]:
        """The latest runs before this one that have a suite in common with it."""
        own = {name for info in row.suites for name in (info.name, info.source) if name}
        earlier: list[Run] = []
        before: int | None = row.no
        while len(earlier) < limit and (rows := self.page(before, 50)):
            before = rows[-1].no
            earlier += [item for item in rows if any(info.name in own for info in item.suites)]
        return earlier[:limit]


def _cache(cache: dict[int, tuple[object, T]], run: int, value: tuple[object, T], limit: int) -> None:
    """Add a value to a cache, and remove the least recently used ones beyond `limit`."""
    cache[run] = value
    while len(cache) > limit:
        del cache[next(iter(cache))]


@dataclass(frozen=True, slots=True)
class NamedBaseline:
    """A baseline file with its path."""

    path: Path
    baseline: Baseline


class Sources:
    """All stores, exported runs and baselines of one viewer."""

    def __init__(self, sources: Sequence[Source], baselines: Sequence[NamedBaseline] = ()) -> None:
        self.all = tuple(sources)
        self.baselines = tuple(baselines)
        self.is_closing = False
        """Set when the server stops, so that the streams of events end."""

    def find(self, run_id: str) -> tuple[Source, Run]:
        for source in self.all:
            if (row := source.find(run_id)) is not None:
                return source, row
        raise NotFound(f"There is no run {run_id!r} here.")

    def first_page(self) -> str:
        """The address that the browser opens: the run that the command line names, or the list of runs."""
        runs = [source.only for source in self.all if source.only is not None]
        if len(runs) == 1 and len(self.all) == 1:
            return f"/runs/{runs[0]}"
        return "/baselines" if self.baselines and not self.all else "/"

    def close(self) -> None:
        for source in self.all:
            source.close()


def open_sources(names: Sequence[str], folder: Path) -> Sources:
    """Open what the command line names: runs of the store in `folder`, other stores, exported runs, baselines.

    Without names, open the store in `folder`.
    """
    sources: dict[Path | str, Source] = {}
    baselines: list[NamedBaseline] = []
    try:
        for name in names or [""]:
            _open(name, folder, sources, baselines)
    except BaseException:
        for source in sources.values():
            source.close()
        raise
    return Sources(list(sources.values()), baselines)


def _open(name: str, folder: Path, sources: dict[Path | str, Source], baselines: list[NamedBaseline]) -> None:
    path = Path(name) if name else folder
    if name.endswith(BASELINE_SUFFIX) and path.is_file():
        baselines.append(NamedBaseline(path, read_baseline(path)))
    elif not name or path.is_dir() or path.name == DATABASE_FILE:
        store_folder = path.parent if path.name == DATABASE_FILE else path
        _add(sources, store_folder.resolve(), lambda: Source(str(store_folder), Store(store_folder, create=False)))
    elif is_file_name(name) or path.is_file():
        store, row = open_run(folder, name)
        _add(sources, name, lambda: Source(name, store, only=row.id, is_file=True))
    else:
        try:
            store = Store(folder, create=False)
            row = store.find_run(name)
        except StoreError as error:
            raise UsageError(f"{name!r} is not a run, a store or a file: {error}") from None
        _add(sources, folder.resolve(), lambda: Source(str(folder), store, only=row.id))


def _add(sources: dict[Path | str, Source], key: Path | str, open_source: Callable[[], Source]) -> None:
    if key in sources:
        sources[key].only = None  # two runs of one store: show all of its runs
    else:
        sources[key] = open_source()


def latest_runs(sources: Sources, limit: int) -> Iterator[tuple[Source, Run]]:
    """The latest runs of every source."""
    for source in sources.all:
        for row in source.page(None, limit):
            yield source, row
