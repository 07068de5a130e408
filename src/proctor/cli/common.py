"""What several commands share: options, and parsing what people type."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO, TypeVar

import click

from proctor.cases.model import EvaluatorSpec
from proctor.errors import UsageError
from proctor.reporting.screen import visible

F = TypeVar("F", bound=Callable[..., Any])


class Seconds(click.FloatRange):
    """A time that has an end: more than nothing, and not infinite."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value} is not a number of seconds", param, ctx)
        return seconds


@contextmanager
def stdout_kept_clear(wanted: bool) -> Iterator[TextIO]:
    """The stream to tell a person about progress on.

    If standard output is wanted for a document, whatever else is printed, by us or by the code that suites name, goes
    to standard error, so that a program can read the document.
    """
    if not wanted:
        yield sys.stdout
        return
    with redirect_stdout(sys.stderr):
        yield sys.stderr


def say(text: str, *, err: bool = False) -> None:
    """Print a line, without what a file could do to a terminal.

    Left to itself, click would write UTF-8 to a terminal that says it is ASCII.
    """
    click.echo(visible(text), file=sys.stderr if err else sys.stdout)


def store_option(command: F) -> F:
    return click.option("--store", metavar="DIR", help="Where results are kept (default: .proctor).")(command)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def report_options(command: F) -> F:
    """`--md`, `--json` and `--junit`, each a file to write, or - for the terminal."""
    for name, kind in (("junit", "JUnit XML"), ("json", "JSON"), ("md", "Markdown")):
        command = click.option(f"--{name}", f"{name}_to", metavar="FILE", help=f"Write a {kind} report.")(command)
    return command


def report_targets(md_to: str | None, json_to: str | None, junit_to: str | None) -> dict[str, str]:
    targets = {"md": md_to, "json": json_to, "junit": junit_to}
    chosen = {name: path for name, path in targets.items() if path is not None}
    if blank := [f"--{name}" for name, path in chosen.items() if not path.strip()]:
        raise UsageError(f"{' and '.join(blank)} must name a file, or - for the terminal")
    if sum(path == "-" for path in chosen.values()) > 1:
        raise UsageError("only one report can go to the terminal (-)")
    return chosen


def parse_evaluators(texts: tuple[str, ...]) -> tuple[EvaluatorSpec, ...]:
    """`ExactMatch`, `checks.py:fn` or `ROUGE={"variant": "rouge1", "threshold": 0.6}`."""
    from pathlib import Path

    from proctor.cases.evaluator_specs import read_specs
    from proctor.cases.fields import Document

    entries: list[Any] = []
    for text in texts:
        name, sign, options = text.partition("=")
        try:
            entries.append({name.strip(): json.loads(options)} if sign else name.strip())
        except ValueError:
            raise UsageError(f"--evaluator {text!r}: what follows = must be a JSON object") from None
    document = Document(Path("--evaluator"), "", entries or [])
    specs = read_specs(document, entries, (), defaults=None)
    if document.problems:
        raise UsageError("; ".join(f"--evaluator {p.where} {p.message}" for p in document.problems))
    return specs
