"""Shell completion of option values: cases, tags, runs, suites, evaluators and files.

    option("--case", shell_complete=suggestions.cases)

Nothing is run or written: suites are read as data, and the store is opened for reading only.
"""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from proctor.base.errors import InvalidSuite
from proctor.base.source import ending
from proctor.cases.formats.loading import load_file
from proctor.cases.suite import Suite
from proctor.config import read_configuration
from proctor.evaluators import shipped_evaluators
from proctor.results.store.store import DATABASE_FILE as STORE_FILE

MAX_FILES, MAX_BYTES = 30, 1_000_000
"""How many files of a folder are read for their cases, and how large they may be."""
MAX_RUNS = 30
ANY_FILE = CompletionItem("", type="file")
"""The shell completes file names."""

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completion(find: Callable[[click.Context, str], Iterable[str | CompletionItem]]) -> Completion:
    """A completion function for click: the values of `find` that start with what is typed, each once."""

    @functools.wraps(find)
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        values = list(dict.fromkeys(find(ctx, incomplete)))
        if ANY_FILE in values:
            return [ANY_FILE]
        return [CompletionItem(value) for value in values if isinstance(value, str) and value.startswith(incomplete)]

    return complete


@_completion
def cases(ctx: click.Context, incomplete: str) -> Iterator[str]:
    for suite in _suites(ctx):
        yield from (case.id for case in suite.cases)


@_completion
def tags(ctx: click.Context, incomplete: str) -> Iterator[str]:
    for suite in _suites(ctx):
        yield from (tag for case in suite.cases for tag in case.tags)


@_completion
def paths(ctx: click.Context, incomplete: str) -> Iterator[str | CompletionItem]:
    """Files; after `::`, the cases of the file."""
    file, sign, _ = incomplete.partition("::")
    if not sign:
        yield ANY_FILE
        return
    for suite in _read(Path(file)):
        yield from (f"{file}::{case.id}" for case in suite.cases)


@_completion
def runs(ctx: click.Context, incomplete: str) -> Iterator[str]:
    yield "last"
    for run_id, name, _ in _run_rows(ctx):
        yield from (name, run_id) if name else (run_id,)


@_completion
def suite_names(ctx: click.Context, incomplete: str) -> Iterator[str]:
    for _, _, suites in _run_rows(ctx):
        yield from (str(suite["name"]) for suite in suites)


@_completion
def evaluators(ctx: click.Context, incomplete: str) -> Iterator[str]:
    yield from shipped_evaluators()


def _suites(ctx: click.Context) -> Iterator[Suite]:
    """The suites on the command line; if there are none, those of the working folder and of the latest runs."""
    names = [text for name in ("paths", "source") for text in _as_list(ctx.params.get(name))]
    if names:
        files = [Path(text.partition("::")[0]) for text in names]
    else:
        stored = [suite.get("path") for _, _, suites in _run_rows(ctx) for suite in suites]
        files = [*_suite_files(Path()), *(Path(path) for path in stored if path)]
    for path in dict.fromkeys(path.resolve() for path in files):
        yield from _read(path)


def _as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [item for item in value or () if isinstance(item, str)]


def _suite_files(folder: Path) -> list[Path]:
    suffixes = (".yaml", ".yml", ".json", ".jsonl", ".csv")
    return sorted(path for path in folder.iterdir() if ending(path) in suffixes and path.is_file())[:MAX_FILES]


def _read(path: Path) -> list[Suite]:
    """The suites of a file or folder, even if some have problems. Python files are not run."""
    if path.is_dir():
        return [suite for file in _suite_files(path) for suite in _read(file)]
    if ending(path) == ".py" or not path.is_file() or path.stat().st_size > MAX_BYTES:
        return []
    try:
        return load_file(path)
    except InvalidSuite as error:
        return list(error.partial_suites)


def _run_rows(ctx: click.Context) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Id, name and suites of the latest runs; a store of another version is not migrated for this."""
    path = read_configuration().store(ctx.params.get("store")) / STORE_FILE
    if not path.is_file():
        return []
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=0.2)
    try:
        rows = connection.execute("SELECT id, name, info FROM runs ORDER BY no DESC LIMIT ?", (MAX_RUNS,)).fetchall()
    except sqlite3.Error:
        return []
    finally:
        connection.close()
    return [(run_id, name, json.loads(info).get("suites", [])) for run_id, name, info in rows]
