"""What several commands share: options, and parsing what people type."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, ClassVar, TextIO, TypeVar

import click

from proctor.base.documents import Document
from proctor.base.errors import Problem, StoreError, UsageError
from proctor.base.masking import mask
from proctor.cases.evaluator_specs import read_specs
from proctor.cases.suite import EvaluatorSpec
from proctor.reporting.build_findings import annotation_lines, findings
from proctor.reporting.output import write_document
from proctor.reporting.terminal.progress import choose_terminal
from proctor.reporting.terminal.screen import visible
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict
from proctor.running.cluster.options import checked
from proctor.running.settings import ClusterOptions, Listener

F = TypeVar("F", bound=Callable[..., Any])


class _Amount(click.FloatRange):
    """More than nothing, and not infinite."""

    noun: ClassVar[str]

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        amount = super().convert(value, param, ctx)
        if not math.isfinite(amount):
            self.fail(f"{value} is not {self.noun}", param, ctx)
        return amount


class Seconds(_Amount):
    """A time that has an end."""

    name = "seconds"
    noun = "a number of seconds"


class PerSecond(_Amount):
    """How often something may happen."""

    name = "per second"
    noun = "a number per second"


class Dollars(_Amount):
    """A sum that is not infinite."""

    name = "dollars"
    noun = "an amount of dollars"


class Chance(click.FloatRange):
    """More than 0 and less than 1."""

    name = "chance"

    def __init__(self) -> None:
        super().__init__(min=0, max=1, min_open=True, max_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        chance = super().convert(value, param, ctx)
        if math.isnan(chance):
            self.fail(f"{value} is not a chance", param, ctx)
        return chance


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


def by_place(problems: Iterable[Problem]) -> list[Problem]:
    """File by file as they came, and down each file: in the order in which a person mends them."""
    known = list(problems)
    files = {path: number for number, path in enumerate(dict.fromkeys(problem.path for problem in known))}
    return sorted(known, key=lambda problem: (files[problem.path], problem.line or 0))


def store_option(command: F) -> F:
    return click.option("--store", metavar="DIR", help="Where results are kept (default: .proctor).")(command)


def judge_options(command: F) -> F:
    """Who judges, and what the run may cost."""
    command = click.option("--budget", type=Dollars(), metavar="USD", help="Begin no trial once this is spent.")(
        command
    )
    return click.option("--judge", metavar="MODEL", help="Who judges: openai:gpt-5-mini, rules, ...")(command)


def case_option(command: F) -> F:
    text = "Only this case: its id, suite/id or file::id; repeatable."
    return click.option("--case", "case_ids", multiple=True, metavar="ID", help=text)(command)


def cluster_options(command: F) -> F:
    """Where a scheduler is, and how to reach it."""
    for name, text in (
        ("--tls-key", "And its key."),
        ("--tls-cert", "Our certificate for that."),
        ("--tls-ca", "Of a scheduler at tls://...: the certificate of its authority."),
    ):
        command = click.option(name, metavar="FILE", help=text)(command)
    command = click.option("--upload", is_flag=True, help="Send the files of this folder to the workers of --cluster.")(
        command
    )
    return click.option("--cluster", metavar="ADDR", help="The workers of a Dask scheduler: tcp://host:8786.")(command)


def read_cluster_options(given: Mapping[str, Any], workers: int = 0) -> ClusterOptions | None:
    """`None` where neither a cluster nor workers are asked for; raises `UsageError` where they cannot be had."""
    if not workers and given["cluster"] is None:
        useless = [name for name in ("upload", "tls_ca", "tls_cert", "tls_key") if given[name]]
        if useless:
            raise UsageError(f"--{useless[0].replace('_', '-')} is for --cluster, which was not given")
        return None
    if workers and given["cluster"] is not None:
        raise UsageError("--workers starts processes here and --cluster finds them elsewhere; give one of the two")
    ca, cert, key = (given[name] or "" for name in ("tls_ca", "tls_cert", "tls_key"))
    return checked(ClusterOptions(workers, given["cluster"] or "", ca, cert, key, upload=given["upload"]))


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def say_json(schema: str, data: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Print a document, or a list of rows, for a program; each names the schema that says what is in it.

    `schemas/NAME.schema.json` is the schema of `proctor.NAME/1`.
    """
    name = {"schema": f"proctor.{schema}/1"}
    told = {**name, **data} if isinstance(data, Mapping) else [{**name, **row} for row in data]
    say(json.dumps(told, indent=2))


REPORTS = {
    "md": "a Markdown",
    "json": "a JSON",
    "junit": "a JUnit XML",
    "html": "an HTML",
    "csv": "a CSV",
    "code-quality": "a GitLab code quality",
}


def report_options(command: F) -> F:
    """How much is told, and `--md`, `--json` and the like: each a file to write, or - for the terminal."""
    for name, kind in reversed(REPORTS.items()):
        option = click.option(f"--{name}", _target(name), metavar="FILE", help=f"Write {kind} report.")
        command = option(command)
    command = click.option("-v", "--verbose", is_flag=True, help="Every score, reason and tool call.")(command)
    return click.option("-q", "--quiet", is_flag=True, help="Only the verdict.")(command)


def _target(report: str) -> str:
    """The name of a report's parameter."""
    return f"{report.replace('-', '_')}_to"


DOCUMENTS = {"json": "JSON", "md": "Markdown", "html": "HTML"}


def document_options(what: str) -> Callable[[F], F]:
    """`--json`, `--md` and `--html` for a result that is no run: each a file to write, or else standard output."""

    def decorate(command: F) -> F:
        for name, kind in reversed(DOCUMENTS.items()):
            told = f"Write {what} as {kind} to a file; without one, to standard output."
            names = f"--{name}", _target(name)
            command = click.option(*names, is_flag=False, flag_value="-", metavar="[FILE]", help=told)(command)
        return command

    return decorate


def report_targets(given: Mapping[str, Any], kinds: Iterable[str] = REPORTS) -> dict[str, str]:
    """The documents asked for, by kind."""
    chosen = {name: given[_target(name)] for name in kinds if given[_target(name)] is not None}
    if blank := [f"--{name}" for name, path in chosen.items() if not path.strip()]:
        raise UsageError(f"{' and '.join(blank)} must name a file, or - for standard output")
    if sum(path == "-" for path in chosen.values()) > 1:
        raise UsageError("only one report can go to standard output (-)")
    return chosen


def write_documents(
    targets: Mapping[str, str], writers: Mapping[str, Callable[[TextIO], object]], what: str, told_as: str = "report"
) -> None:
    """Write one result in each of the forms that were asked for; raises `StoreError`."""
    for name, path in targets.items():
        try:
            write_document(path, writers[name])
        except OSError as error:
            raise StoreError(f"{what} could not be written to {path}: {error.strerror or error}") from None
        if path != "-":
            say(f"{told_as}: {path}", err=True)


def carry_out(work: Callable[[Listener], tuple[Run, RunVerdict]], given: Mapping[str, Any]) -> int:
    """Do what a command is for while a terminal tells of it, then write the reports that were asked for."""
    targets = report_targets(given)
    with stdout_kept_clear("-" in targets.values()) as stream:
        run, verdict = work(choose_terminal(stream, quiet=given["quiet"], verbose=given["verbose"]))
    if targets or "GITHUB_STEP_SUMMARY" in os.environ:
        # Loaded when a report is written: most runs write none, and every run waits for what is imported.
        from proctor.reporting.report_files import write_reports

        for path in write_reports(run, verdict, targets, os.environ):
            say(f"report: {path}", err=stream is sys.stderr)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in annotation_lines(findings(run, verdict, os.environ)):
            click.echo(line, file=stream)
    return verdict.exit_code


def parse_agents(texts: tuple[str, ...]) -> tuple[str | None, dict[str, str]]:
    """One agent alone, or several by name: `app.py:agent`, or `careful=app.py:agent` under a name of its own."""
    found: dict[str, str] = {}
    named = [re.match(r"([A-Za-z0-9_][\w. -]*)=(?!=)(.+)", text, re.DOTALL) for text in texts]
    if len(texts) == 1 and named[0] is None:
        return texts[0], {}
    for text, match in zip(texts, named, strict=True):
        name, reference = (match[1].strip(), match[2]) if match else (mask(text), text)
        if name in found:
            raise UsageError(f"two agents are called {name!r}; give each a name of its own: --agent other={reference}")
        if name.lstrip().startswith("{"):
            raise UsageError("give an agent that is described in JSON a name, beside others: --agent careful={...}")
        found[name] = reference
    return None, found


def parse_evaluators(texts: tuple[str, ...]) -> tuple[EvaluatorSpec, ...]:
    """`ExactMatch`, `checks.py:fn` or `ROUGE={"variant": "rouge1", "threshold": 0.6}`."""
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
