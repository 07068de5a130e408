"""Printing and writing for commands: lines, JSON documents and reports."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

import click

from proctor.base.errors import Problem, StoreError
from proctor.reporting.build_findings import annotation_lines, findings, secret_lines
from proctor.reporting.output import write_document
from proctor.reporting.reporters import write_reports
from proctor.reporting.terminal.progress import choose_terminal
from proctor.reporting.terminal.screen import escape_control
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict
from proctor.running.settings import Listener


def say(text: str, *, err: bool = False) -> None:
    """Print a line with control characters escaped, to standard output or, with `err`, to standard error.

    The stream is passed explicitly: otherwise click writes UTF-8 even to a terminal whose encoding is ASCII.
    """
    click.echo(escape_control(text), file=sys.stderr if err else sys.stdout)


def say_json(schema: str, data: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Print a JSON document, or a list of rows, with the name of its schema."""
    say(json_text(schema, data))


def json_text(schema: str, data: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    """A document, or a list of rows, as JSON; each has the name of its schema.

    `schemas/NAME.schema.json` is the schema of `proctor.NAME/1`.
    """
    name = {"schema": f"proctor.{schema}/1"}
    document = {**name, **data} if isinstance(data, Mapping) else [{**name, **row} for row in data]
    return json.dumps(document, indent=2)


@contextmanager
def reserve_stdout(reserve: bool) -> Iterator[TextIO]:
    """Return the stream for progress messages.

    If standard output is reserved for a document, everything else that Proctor or code under test prints goes to
    standard error, so that a program can read the document.
    """
    if not reserve:
        yield sys.stdout
        return
    with redirect_stdout(sys.stderr):
        yield sys.stderr


def in_file_order(problems: Iterable[Problem]) -> list[Problem]:
    """The problems sorted by line, file by file: the order in which a person fixes them."""
    known = list(problems)
    files = {path: number for number, path in enumerate(dict.fromkeys(problem.path for problem in known))}
    return sorted(known, key=lambda problem: (files[problem.path], problem.line or 0))


def write_documents(
    targets: Mapping[str, str], writers: Mapping[str, Callable[[TextIO], object]], what: str, label: str = "report"
) -> None:
    """Write a result to each of the files, by kind of document; raises `StoreError`."""
    for name, path in targets.items():
        try:
            write_document(path, writers[name])
        except OSError as error:
            raise StoreError(f"cannot write {what} to {path}: {error.strerror or error}") from None
        if path != "-":
            say(f"{label}: {path}", err=True)


def run_and_report(
    work: Callable[[Listener], tuple[Run, RunVerdict]],
    reports: Mapping[str, str],
    *,
    quiet: bool,
    verbose: bool,
    plain: bool = False,
) -> int:
    """Do the work of a command with progress on the terminal, then write the reports; returns the exit code.

    `plain` prints lines instead of a bar, which would overwrite what others print.
    """
    with reserve_stdout("-" in reports.values()) as stream:
        run, verdict = work(choose_terminal(stream, quiet=quiet, verbose=verbose, plain=plain))
    if reports or "GITHUB_STEP_SUMMARY" in os.environ:
        for path in write_reports(run, verdict, reports, os.environ):
            say(f"report: {path}", err=stream is sys.stderr)
    on_github = os.environ.get("GITHUB_ACTIONS") == "true"
    if on_github or os.environ.get("GITLAB_CI") == "true":
        problems = findings(run, verdict, os.environ)
        for line in (*(annotation_lines(problems) if on_github else ()), *secret_lines(problems, os.environ)):
            click.echo(line, file=stream)
    return verdict.exit_code
