"""`proctor runs`: list stored runs, export and import a run as one file, and delete runs."""

from __future__ import annotations

import sys
import time
from itertools import islice

import click

from proctor.base.documents import did_you_mean
from proctor.base.errors import UsageError
from proctor.base.json_data import to_json
from proctor.cli import suggestions
from proctor.cli.grade import is_interactive
from proctor.cli.help_pages import DocumentedGroup, option
from proctor.cli.options import json_option, store_option
from proctor.cli.output import say, say_json
from proctor.cli.selection import run_argument
from proctor.config import read_configuration
from proctor.reporting.output import refuse_foreign_file, write_document
from proctor.reporting.plots import sparkline
from proctor.reporting.terminal.screen import supports_unicode
from proctor.reporting.wording import plural
from proctor.results.history import SuiteHistoryEntry, suite_history, suite_names
from proctor.results.run import Run, RunStatus
from proctor.results.store.run_files import export_run, import_file, open_run
from proctor.results.store.store import Store
from proctor.results.suite_info import SuiteInfo, quarantine_to_json
from proctor.results.verdict import verdict_word

UNFINISHED = ("interrupted", "died", "running")


@click.group(
    "runs",
    cls=DocumentedGroup,
    invoke_without_command=True,
    examples=("proctor runs -n 5", "proctor runs --suite shop --json", "proctor runs --size"),
)
@option(
    "-n",
    "--limit",
    group="",
    metavar="N",
    type=click.IntRange(min=1),
    default=20,
    help="Show at most N runs (default: 20).",
)
@click.option(
    "--suite",
    metavar="NAME",
    shell_complete=suggestions.suite_names,
    help="Show only runs of this suite, with its pass rate and mean scores.",
)
@click.option("--size", "with_size", is_flag=True, help="Show how many runs are stored and the space they take.")
@json_option
@store_option
@click.pass_context
def command(
    context: click.Context, /, limit: int, suite: str | None, with_size: bool, as_json: bool, store: str | None
) -> int | None:
    """List stored runs, the latest first; export, import or delete them."""
    if context.invoked_subcommand is not None:
        return None
    stored = Store(read_configuration().store(store), create=False)
    if with_size:
        return _print_size(stored, as_json)
    if suite is not None:
        return _print_suite(stored, suite, limit, as_json)
    rows = stored.runs(limit)
    if as_json:
        say_json("run-row", [as_json_row(row) for row in rows])
        return 0
    if not rows:
        say(f"no runs in {stored.folder}")
    states = [_state(row) for row in rows]
    counts = [_counts(row, state) for row, state in zip(rows, states, strict=True)]
    width = max(map(len, counts), default=0)
    for row, state, count in zip(rows, states, counts, strict=True):
        say(_line(row, state, f"{count:<{width}}"))
    return 0


def _print_size(stored: Store, as_json: bool) -> int:
    if as_json:
        raise UsageError("--size cannot be combined with --json")
    say(f"{stored.folder}: {plural(len(stored.runs()), 'run')}, {file_size(stored.size())}")
    return 0


def file_size(count: int) -> str:
    """`4.2 MB`: a number of bytes in a readable unit."""
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _print_suite(stored: Store, suite: str, limit: int, as_json: bool) -> int:
    """Print the history of one suite, with its trend."""
    history = list(islice(suite_history(stored, suite), limit))
    if not history:
        known = suite_names(stored)
        raise UsageError(f"no run of a suite {suite!r} in {stored.folder}{did_you_mean(suite, known)}")
    states = [_state(run.run) for run in history]
    if as_json:
        say_json("suite-run-row", [_history_as_json(run) for run in history])
        return 0
    rates = [_rate(run, state) for run, state in zip(history, states, strict=True)]
    width, widest = max(map(len, rates)), max(8, *map(len, states))
    for run, state, rate in zip(history, states, rates, strict=True):
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.run.started_at))
        scores = "  ".join(f"{name} {mean:.3f}" for name, mean in run.scores.items())
        agent = f"{run.agent} {run.agent_fingerprint[:8]}"
        outcome = state if state in UNFINISHED else verdict_word(run.outcome)
        say(f"{run.run.id}  {when}  {outcome:<{widest}}  {rate:<{width}}  {scores}  {agent}")
    _print_trend(history)
    return 0


def _rate(run: SuiteHistoryEntry, state: str) -> str:
    """The pass rate; for an unfinished run, how far it got."""
    if state in UNFINISHED:
        passed = f", {run.passed:,} of {run.cases:,} passed" if run.cases else ""
        return f"{run.trials:,} of {run.planned:,} trials{passed}; {state}"
    return "no result" if run.pass_rate is None else f"{run.passed:,} of {run.cases:,} passed ({run.pass_rate:.0%})"


def _print_trend(history: list[SuiteHistoryEntry]) -> None:
    """Print the pass rates as a sparkline, if there are at least three."""
    pass_rates = [run.pass_rate for run in reversed(history) if run.pass_rate is not None]
    if len(pass_rates) > 2:
        picture = sparkline(pass_rates, 0.0, 1.0, unicode=supports_unicode(sys.stdout))
        say(f"pass rate  {picture}  {pass_rates[0]:.0%} to {pass_rates[-1]:.0%}, oldest to latest")


def _history_as_json(run: SuiteHistoryEntry) -> dict[str, object]:
    return {
        "id": run.run.id,
        "started_at": run.run.started_at,
        "finished_at": run.run.finished_at,
        "status": run.run.status,
        "outcome": verdict_word(run.outcome),
        "trials": run.trials,
        "planned": run.planned,
        "cases": run.cases,
        "passed": run.passed,
        "pass_rate": run.pass_rate,
        "scores": run.scores,
        "agent": run.agent,
        "agent_fingerprint": run.agent_fingerprint,
    }


def _state(row: Run) -> str:
    """The verdict, or the status of an unfinished run."""
    return row.status if row.interrupted or row.stored_verdict is None else row.stored_verdict.word


def _counts(row: Run, state: str) -> str:
    """The number of trials by outcome; for an unfinished run, how far it got."""
    known = row.counts
    if known and state not in ("interrupted", "died"):
        return ", ".join(f"{count:,} {name}" for name, count in known.items() if count)
    planned = sum(suite.planned for suite in row.suites)
    return f"{len(row.summaries):,} of {planned:,} trials"


def _line(row: Run, state: str, counts: str) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.started_at))
    suites = ", ".join(suite.name for suite in row.suites)
    origin = f" (rescored {row.rescored})" if row.rescored else ""
    name = f" [{row.name}]" if row.name else ""
    return f"{row.id}  {when}  {state:<12}  {counts}  {suites}{origin}{name}"


def as_json_row(row: Run) -> dict[str, object]:
    """A run as JSON, without reading its trials."""
    names = ("counts", "planned", "rescored", "git")
    verdict = row.stored_verdict
    return {
        "id": row.id,
        "name": row.name,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "status": row.status,
        "verdict": None if verdict is None else {**to_json(verdict), "outcome": verdict.word},
        **{name: to_json(getattr(row, name)) for name in names},
        "suites": [_suite_as_json(info) for info in row.suites],
    }


def _suite_as_json(info: SuiteInfo) -> dict[str, object]:
    return {**to_json(info), "quarantined": [quarantine_to_json(item) for item in info.quarantined]}


@command.command("export", short_help="Write a run to one file.", examples=("proctor runs export last -o run.jsonl",))
@run_argument
@click.option("-o", "--output", metavar="FILE", default="-", help="Write to this file instead of standard output.")
@store_option
def export_command(run_id: str, output: str, store: str | None) -> int:
    """Write RUN as JSON Lines: its cases, answers, tool calls, scores and traces.

    RUN is an id, the beginning of one, a name, last or last~1. Commands accept the file wherever they accept a run, and
    `proctor runs import` adds it to another store.
    """
    if not output.strip():
        raise UsageError("-o must name a file, or - for standard output")
    refuse_foreign_file(f"-o {output}", output)
    _, run = open_run(read_configuration().store(store), run_id)
    write_document(output, lambda out: export_run(run, out))
    if output != "-":
        say(f"exported run {run.id} to {output}", err=True)
    return 0


@command.command("import", short_help="Add exported runs to the store.", examples=("proctor runs import run.jsonl",))
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@json_option
@store_option
def import_command(files: tuple[str, ...], as_json: bool, store: str | None) -> int:
    """Add runs that `proctor runs export` wrote to the store; - is standard input.

    Results of a tool whose files Proctor reads can be added too, to show them and to compare with them. A run that is
    already in the store is not changed.
    """
    configuration = read_configuration()
    stored = Store(configuration.store(store))
    keep_secrets = configuration.values.get("keep_secrets", False)
    rows = []
    for name in files:
        row, is_new = import_file(stored, name, keep_secrets=keep_secrets)
        rows.append({"run": row.id, "name": row.name, "imported": is_new})
        if not as_json:
            say(f"imported run {row.id}" if is_new else f"run {row.id} is already stored")
    if as_json:
        say_json("import-row", rows)
    return 0


@command.command("delete", examples=("proctor runs delete last~3 --yes",))
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True, shell_complete=suggestions.runs)
@click.option("-y", "--yes", is_flag=True, help="Delete without asking.")
@store_option
def delete_command(run_ids: tuple[str, ...], yes: bool, store: str | None) -> int:
    """Delete stored runs with their trials and traces. Baselines and exported files are not changed."""
    stored = Store(read_configuration().store(store), create=False)
    runs = {run.id: run for run in map(stored.find_run, run_ids)}
    for run in runs.values():
        if run.status is RunStatus.RUNNING:
            raise UsageError(f"run {run.id} is still in progress; stop it first")
    if not yes:
        if not is_interactive():
            raise UsageError("deleting cannot be undone; add --yes to confirm")
        for run in runs.values():
            state = _state(run)
            say(_line(run, state, _counts(run, state)))
        click.confirm(f"Delete {plural(len(runs), 'run')}?", abort=True)
    stored.delete_runs(list(runs.values()))
    for run in runs.values():
        say(f"deleted run {run.id}")
    return 0
