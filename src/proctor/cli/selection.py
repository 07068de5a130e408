"""The options and arguments that select cases and runs, in one place.

@click.command("rescore")
@run_argument
@case_selection()
def command(run_id: str, selection: CaseSelection): ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from proctor.base.errors import UsageError
from proctor.cases.suite import Case, Suite
from proctor.cli import suggestions
from proctor.cli.help_pages import SELECT_CASES, option
from proctor.cli.output import say
from proctor.results.run import Run
from proctor.results.store.run_files import open_run
from proctor.results.store.store import Store
from proctor.running.selection import (
    CaseFilter,
    check_names,
    last_failed,
    parse_expression,
    parse_tags,
    split_locations,
)

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class CaseSelection:
    """The cases that the command line selects."""

    ids: tuple[str, ...] = ()
    """The values of `--case`: id, suite/id or file::id."""
    words: str | None = None
    """The expression of `-k`."""
    tags: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    """The values of `--suite`: names of suites."""
    last_failed: bool = False
    limit: int | None = None
    """The value of `--limit`: only the first of the cases that everything else selects."""
    places: tuple[str, ...] = ()
    """Paths that name one case: `suite.yaml::case-id`."""

    @property
    def text(self) -> str:
        """The selection as options of a command."""
        parts = [f"--case {name}" for name in self.ids] + [f"--tag {name}" for name in self.tags]
        parts += [f"--suite {name}" for name in self.suites]
        return " ".join([*parts, *([] if self.words is None else [f"-k {self.words!r}"])])

    def with_paths(self, paths: Sequence[str]) -> tuple[list[str], CaseSelection]:
        """The files in the paths, and the selection with the cases that the paths name."""
        files, places = split_locations(paths)
        return files, replace(self, places=places)

    def case_filter(self, suites: Iterable[Suite] | None = None, store: Path | None = None) -> CaseFilter | None:
        """A filter of the selected cases, or None if every case is selected.

        Raises `UsageError` for a case that none of the `suites` has. `store` is the folder with the latest run.
        """
        if self == CaseSelection():
            return None
        if suites is not None:
            check_names((*self.ids, *self.places), ((s.name, s.path, case.id) for s in suites for case in s.cases))
        words = None if self.words is None else parse_expression(self.words)
        addresses = _last_failed(store, suites or ()) if self.last_failed and store is not None else None
        fits = CaseFilter(words, parse_tags(self.tags), addresses, self.ids, self.places, frozenset(self.suites))
        if self.limit is None or suites is None:
            return fits
        selected = ((suite.name, case.id) for suite in suites for case in suite.cases if fits(suite, case))
        return replace(fits, addresses=frozenset(islice(selected, self.limit)))

    def in_run(self, run: Run) -> Callable[[str, Case], bool] | None:
        """The same for a stored run: a filter by the name of the suite and the case. Raises `UsageError` as well."""
        paths = {info.name: info.path for info in run.suites}
        known = {(item.suite, paths.get(item.suite), item.case_id) for item in run.summaries}
        try:
            check_names(self.ids, sorted(known, key=str))
        except UsageError as error:
            raise UsageError(f"run {run.id}: {error}") from None
        fits = self.case_filter()
        if fits is None:
            return None
        suites = {name: Suite(name, (), path=None if path is None else Path(path)) for name, path in paths.items()}
        return lambda suite, case: fits(suites.get(suite) or Suite(suite, ()), case)


def case_selection(
    *,
    ids: bool = True,
    words: bool = True,
    tags: bool = True,
    suites: bool = False,
    last_failed: bool = False,
    limit: bool = False,
    verb: str = "Use",
) -> Callable[[F], F]:
    """The options that select cases; the command gets `selection`, a `CaseSelection`.

    `verb` says in the help what the command does with the cases.
    """
    enabled = {"ids": ids, "words": words, "tags": tags, "suites": suites, "last_failed": last_failed, "limit": limit}
    options = {name: item for name, item in _options(verb).items() if enabled[name]}

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def collected(*args: Any, **params: Any) -> Any:
            values = {name: params.pop(f"selected_{name}") for name in options}
            return command(*args, selection=CaseSelection(**values), **params)

        decorated: Any = collected
        for item in reversed(options.values()):
            decorated = item(decorated)
        return cast(F, decorated)

    return decorate


def _options(verb: str) -> dict[str, Callable[[Any], Any]]:
    """The options, by the field of `CaseSelection` that each sets."""
    return {
        "ids": option(
            "--case",
            "selected_ids",
            group=SELECT_CASES,
            multiple=True,
            metavar="ID",
            shell_complete=suggestions.cases,
            help=f"{verb} only this case: its id, suite/id or file::id; * is any text. Repeatable.",
        ),
        "words": option(
            "-k",
            "selected_words",
            group=SELECT_CASES,
            metavar="EXPR",
            help=f'{verb} only cases whose id, description or tags match, for example "refund and not slow".',
        ),
        "tags": option(
            "--tag",
            "selected_tags",
            group=SELECT_CASES,
            multiple=True,
            metavar="TAG",
            shell_complete=suggestions.tags,
            help=f"{verb} only cases with this tag. Repeatable.",
        ),
        "suites": option(
            "--suite",
            "selected_suites",
            group=SELECT_CASES,
            multiple=True,
            metavar="NAME",
            shell_complete=suggestions.suite_names,
            help=f"{verb} only cases of this suite. Repeatable.",
        ),
        "last_failed": option(
            "--lf",
            "--last-failed",
            "selected_last_failed",
            group=SELECT_CASES,
            is_flag=True,
            help=f"{verb} only cases that did not pass in the latest run, or did not run because it was stopped.",
        ),
        "limit": option(
            "--limit",
            "selected_limit",
            group=SELECT_CASES,
            type=click.IntRange(min=1),
            metavar="N",
            help=f"{verb} only the first N of these cases.",
        ),
    }


def paths_argument(name: str = "PATHS") -> Callable[[F], F]:
    """The argument for suites: files, folders, and single cases as suite.yaml::case-id."""
    return click.argument("paths", nargs=-1, metavar=f"[{name}]...", shell_complete=suggestions.paths)


def run_argument(command: F) -> F:
    """The argument for a run: an id, the beginning of one, a name, `last` (the default), `last~1`, or a file."""
    return click.argument("run_id", metavar="[RUN]", default="last", shell_complete=suggestions.runs)(command)


def suite_files_of(folder: Path, run_id: str) -> Iterator[str]:
    """The files that rescoring a run reads: those of its suites, and the run itself if it is an exported file."""
    yield run_id
    store, run = open_run(folder, run_id)
    paths = [info.path for info in run.suites if info.path]
    store.close()
    yield from paths


def _last_failed(folder: Path, suites: Iterable[Suite]) -> frozenset[tuple[str, str]] | None:
    store = Store(folder, create=False)
    addresses = last_failed(store, [(suite.name, case.id) for suite in suites for case in suite.cases]) or None
    store.close()
    if addresses is None:
        say("note: no case failed in the latest run; running all cases", err=True)
    return addresses
