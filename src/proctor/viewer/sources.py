"""What the viewer shows: stores, exported runs and baselines, and the runs in them by id."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from proctor.base.errors import StoreError, UsageError
from proctor.cases.formats.loading import BASELINE_SUFFIX
from proctor.gate.baseline import Baseline, read_baseline
from proctor.results.run import Run
from proctor.results.store.run_files import is_file_name, open_run
from proctor.results.store.store import DATABASE_FILE, Store
from proctor.results.verdict import verdict
from proctor.viewer.cases import RunCases, RunTotals

T = TypeVar("T")

MAX_CASES_CACHED = 4
"""Runs whose cases are kept in memory: those that people look at."""
MAX_TOTALS_CACHED = 200


class NotFound(Exception):
    """There is no such page."""


class Source:
    """One store that is looked at, and what was read of it."""

    def __init__(self, label: str, store: Store, *, only: str | None = None, is_file: bool = False) -> None:
        self.label = label
        self.store = store
        self.only = only
        """The one run that was asked for, which the first page is about."""
        self.is_file = is_file
        """Whether it holds an exported run, which cannot be graded here."""
        self.lock = threading.RLock()
        """Held while the store is read: it has one connection."""
        self._cases: dict[int, tuple[object, RunCases]] = {}
        self._totals: dict[int, tuple[object, RunTotals]] = {}

    @property
    def folder(self) -> Path:
        return self.store.folder

    def close(self) -> None:
        with self.lock:
            self.store.close()

    def page(self, before: int | None, limit: int) -> list[Run]:
        """Runs, the latest first, from the one before `before` on; a damaged run does not hide the others."""
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
        """Changes when the store was written to."""
        with self.lock:
            return self.store.data_version()

    def cases(self, row: Run) -> RunCases:
        """The run with its cases: read again when the store has changed."""
        with self.lock:
            version = self.store.data_version()
            known = self._cases.pop(row.no, None)
            if known is None or known[0] != version:
                known = version, RunCases(row, verdict(row), self.store.case_tags(row.no))
            _cache(self._cases, row.no, known, MAX_CASES_CACHED)
            return known[1]

    def totals(self, row: Run) -> RunTotals:
        """What the run adds up to: read again when the run has changed, not when another one has."""
        with self.lock:
            state = self._state(row)
            known = self._totals.pop(row.no, None)
            if known is None or known[0] != state:
                known = state, self.cases(row).totals
            _cache(self._totals, row.no, known, MAX_TOTALS_CACHED)
            return known[1]

    def has_totals(self, row: Run) -> bool:
        """Whether `totals` reads nothing but what it has read before."""
        with self.lock:
            known = self._totals.get(row.no)
            return known is not None and known[0] == self._state(row)

    def _state(self, row: Run) -> object:
        """Something that differs when outcomes of the run do."""
        return row.status, row.finished_at, row.stored_verdict, row.counts, self.store.count_trials(row.no)

    def discard(self, row: Run) -> None:
        """Read a run again when it is next looked at: its scores were changed."""
        with self.lock:
            self._cases.pop(row.no, None)
            self._totals.pop(row.no, None)

    @contextmanager
    def open_run(self, row: Run) -> Iterator[Run]:
        """The whole run, on a connection of its own, so that other pages do not wait; for what needs all scores."""
        if self.is_file:
            with self.lock:
                yield row
            return
        with closing(Store(self.folder, create=False)) as store:
            yield store.find_run(row.id)

    def earlier_runs(self, row: Run, limit: int = 1) -> list[Run]:
        """The latest runs before this one that have a suite in common with it."""
        own = {name for info in row.suites for name in (info.name, info.source) if name}
        found: list[Run] = []
        before: int | None = row.no
        while len(found) < limit and (rows := self.page(before, 50)):
            before = rows[-1].no
            found += [item for item in rows if any(info.name in own for info in item.suites)]
        return found[:limit]


def _cache(known: dict[int, tuple[object, T]], run: int, value: tuple[object, T], limit: int) -> None:
    """Keep what is known of a run; what was not looked at for the longest time goes."""
    known[run] = value
    while len(known) > limit:
        del known[next(iter(known))]


@dataclass(frozen=True, slots=True)
class NamedBaseline:
    """A baseline file that is looked at."""

    path: Path
    baseline: Baseline


class Sources:
    """All sources of one viewer."""

    def __init__(self, sources: Sequence[Source], baselines: Sequence[NamedBaseline] = ()) -> None:
        self.all = tuple(sources)
        self.baselines = tuple(baselines)
        self.is_closing = False
        """Set when the server ends, so that streams of events do."""

    def find(self, run_id: str) -> tuple[Source, Run]:
        for source in self.all:
            if (row := source.find(run_id)) is not None:
                return source, row
        raise NotFound(f"No run {run_id!r} is kept here.")

    def first_page(self) -> str:
        """The address at which the browser opens: that of the one run that was asked for, or all runs."""
        asked = [source.only for source in self.all if source.only is not None]
        if len(asked) == 1 and len(self.all) == 1:
            return f"/runs/{asked[0]}"
        return "/baselines" if self.baselines and not self.all else "/"

    def close(self) -> None:
        for source in self.all:
            source.close()


def open_sources(named: Sequence[str], folder: Path) -> Sources:
    """What the command line names: runs of the store in `folder`, other stores, exported runs, baselines.

    Without names, the store in `folder`.
    """
    sources: dict[Path | str, Source] = {}
    baselines: list[NamedBaseline] = []
    try:
        for name in named or [""]:
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
        place = path.parent if path.name == DATABASE_FILE else path
        _add(sources, place.resolve(), lambda: Source(str(place), Store(place, create=False)))
    elif is_file_name(name) or path.is_file():
        store, row = open_run(folder, name)
        _add(sources, name, lambda: Source(name, store, only=row.id, is_file=True))
    else:
        try:
            store = Store(folder, create=False)
            row = store.find_run(name)
        except StoreError as error:
            raise UsageError(f"{name!r} is neither a run, nor a store, nor a file: {error}") from None
        _add(sources, folder.resolve(), lambda: Source(str(folder), store, only=row.id))


def _add(sources: dict[Path | str, Source], key: Path | str, opened: Callable[[], Source]) -> None:
    if key in sources:
        sources[key].only = None  # two runs of one store: all of them are shown
    else:
        sources[key] = opened()


def latest_runs(sources: Sources, limit: int) -> Iterator[tuple[Source, Run]]:
    """The latest runs of every source."""
    for source in sources.all:
        for row in source.page(None, limit):
            yield source, row
