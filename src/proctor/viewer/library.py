"""What the viewer shows: stores, exported runs and baselines, and the runs in them by id."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.base.errors import StoreError, UsageError
from proctor.cases.formats.loading import BASELINES
from proctor.gate.baseline import Baseline, read_baseline
from proctor.results.run import Run
from proctor.results.store.run_files import is_file_name, open_run
from proctor.results.store.store import FILE, RUN_COLUMNS, Store
from proctor.viewer.run_index import RunIndex, SuiteTotals

if TYPE_CHECKING:
    from collections.abc import Callable


class NotFound(Exception):
    """There is no such page."""


class Source:
    """One store that is looked at, with the index of its runs."""

    def __init__(self, label: str, store: Store, *, only: str | None = None, is_file: bool = False) -> None:
        self.label = label
        self.store = store
        self.only = only
        """The one run that was asked for, which the first page is about."""
        self.is_file = is_file
        """Whether it holds an exported run, which cannot be graded here."""
        self.lock = threading.RLock()
        self.index = RunIndex(store.database_path)

    @property
    def folder(self) -> Path:
        return self.store.folder

    def close(self) -> None:
        with self.lock:
            self.index.close()
            self.store.close()

    def page(self, before: int | None, most: int) -> list[Run]:
        """Runs, the latest first, from the one before `before` on."""
        found = self.index.rows(
            f"SELECT {RUN_COLUMNS} FROM store.runs WHERE no < ? ORDER BY no DESC LIMIT ?",  # noqa: S608  constants
            (2**62 if before is None else before, most),
        )
        rows = []
        for columns in found:
            with suppress(StoreError):  # a damaged run must not hide the others
                rows.append(self.store.run_from_row(columns))
        return rows

    def find(self, run_id: str) -> Run | None:
        found = self.index.rows(f"SELECT {RUN_COLUMNS} FROM store.runs WHERE id = ?", (run_id,))  # noqa: S608  constants
        return self.store.run_from_row(found[0]) if found else None

    def count_runs(self) -> int:
        return int(self.index.rows("SELECT count(*) FROM store.runs")[0][0])

    def ensure(self, row: Run) -> None:
        with self.lock:
            self.index.ensure(row, self.store)

    def ensure_clusters(self, row: Run) -> None:
        with self.lock:
            self.index.ensure_clusters(row, self.store)

    def totals(self, row: Run) -> dict[str, SuiteTotals]:
        self.ensure(row)
        return self.index.totals(row.no)

    @contextmanager
    def opened(self, row: Run) -> Iterator[Run]:
        """The whole run, on a connection of its own, so that other pages do not wait; for what needs all scores."""
        if self.is_file:
            with self.lock:
                yield self.store.find_run(row.id)
            return
        with closing(Store(self.folder, create=False)) as store:
            yield store.find_run(row.id)

    def earlier(self, row: Run, most: int = 1) -> list[Run]:
        """The latest runs before this one that have a suite in common with it."""
        own = {name for info in row.suites for name in (info.name, info.source) if name}
        found: list[Run] = []
        before: int | None = row.no
        while len(found) < most and (rows := self.page(before, 50)):
            before = rows[-1].no
            found += [item for item in rows if any(info.name in own for info in item.suites)]
        return found[:most]


@dataclass(frozen=True, slots=True)
class NamedBaseline:
    """A baseline file that is looked at."""

    path: Path
    baseline: Baseline


class Library:
    """All sources of one viewer."""

    def __init__(self, sources: Sequence[Source], baselines: Sequence[NamedBaseline] = ()) -> None:
        self.sources = tuple(sources)
        self.baselines = tuple(baselines)
        self.ending = False
        """Set when the server ends, so that streams of events do."""

    def find(self, run_id: str) -> tuple[Source, Run]:
        for source in self.sources:
            if (row := source.find(run_id)) is not None:
                return source, row
        raise NotFound(f"No run {run_id!r} is kept here.")

    def first_page(self) -> str:
        """The address at which the browser opens: that of the one run that was asked for, or all runs."""
        asked = [source.only for source in self.sources if source.only is not None]
        if len(asked) == 1 and len(self.sources) == 1:
            return f"/runs/{asked[0]}"
        return "/baselines" if self.baselines and not self.sources else "/"

    def close(self) -> None:
        for source in self.sources:
            source.close()


def open_library(named: Sequence[str], folder: Path) -> Library:
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
    return Library(list(sources.values()), baselines)


def _open(name: str, folder: Path, sources: dict[Path | str, Source], baselines: list[NamedBaseline]) -> None:
    path = Path(name) if name else folder
    if name.endswith(BASELINES) and path.is_file():
        baselines.append(NamedBaseline(path, read_baseline(path)))
    elif not name or path.is_dir() or path.name == FILE:
        place = path.parent if path.name == FILE else path
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


def all_runs(library: Library, most: int) -> Iterator[tuple[Source, Run]]:
    """The latest runs of every source."""
    for source in library.sources:
        for row in source.page(None, most):
            yield source, row
