"""`proctor runs`, `proctor export` and `proctor import`: the runs that are kept here, and a whole run as one file."""

from __future__ import annotations

import sys
import time
from itertools import islice

import click

from proctor.base.documents import nearest
from proctor.base.errors import UsageError
from proctor.base.json_data import plain
from proctor.cli.configuration import read_configuration
from proctor.cli.options_and_output import json_option, say, say_json, store_option
from proctor.reporting.output import write_document
from proctor.reporting.plots import sparkline
from proctor.reporting.terminal.screen import is_unicode
from proctor.results.history import SuiteRun, runs_of, suites_in
from proctor.results.run import Run
from proctor.results.store.run_files import export_run, import_run, open_lines, open_run, place_of
from proctor.results.store.store import Store

UNFINISHED = ("interrupted", "died", "running")


@click.command("runs")
@click.option(
    "-n", "--limit", metavar="N", type=click.IntRange(min=1), default=20, show_default=True, help="At most this many."
)
@click.option("--suite", metavar="NAME", help="Only runs of this suite, with its pass rate and mean scores.")
@json_option
@store_option
def command(limit: int, suite: str | None, as_json: bool, store: str | None) -> int:
    """List runs, the latest first."""
    kept = Store(read_configuration().store(store), create=False)
    if suite is not None:
        return _tell_suite(kept, suite, limit, as_json)
    rows = kept.runs(limit)
    if as_json:
        say_json("run-row", [as_json_row(row) for row in rows])
        return 0
    if not rows:
        say(f"no runs in {kept.folder}")
    states = [_state(row) for row in rows]
    counts = [_counts(row, state) for row, state in zip(rows, states, strict=True)]
    width = max(map(len, counts), default=0)
    for row, state, count in zip(rows, states, counts, strict=True):
        say(_line(row, state, f"{count:<{width}}"))
    return 0


def _tell_suite(kept: Store, suite: str, limit: int, as_json: bool) -> int:
    """The runs of one suite, so that one can see where it is going."""
    found = list(islice(runs_of(kept, suite), limit))
    if not found:
        known = suites_in(kept)
        raise UsageError(f"no run of a suite called {suite!r} is kept in {kept.folder}{nearest(suite, known)}")
    states = [_state(run.row) for run in found]
    if as_json:
        say_json("suite-run-row", [_suite_as_json(run) for run in found])
        return 0
    rates = [_rate(run, state) for run, state in zip(found, states, strict=True)]
    width, widest = max(map(len, rates)), max(8, *map(len, states))
    for run, state, rate in zip(found, states, rates, strict=True):
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.row.started_at))
        scores = "  ".join(f"{name} {mean:.3f}" for name, mean in run.scores.items())
        agent = f"{run.agent} {run.agent_fingerprint[:8]}"
        outcome = state if state in UNFINISHED else run.outcome
        say(f"{run.row.id}  {when}  {outcome:<{widest}}  {rate:<{width}}  {scores}  {agent}")
    _tell_trend(found)
    return 0


def _rate(run: SuiteRun, state: str) -> str:
    """The pass rate; of a run that was not finished, how much of it there is."""
    if state in UNFINISHED:
        passed = f", {run.passed:,} of {run.cases:,} passed" if run.cases else ""
        return f"{run.trials:,} of {run.planned:,} trials{passed}; {state}"
    return "no verdict" if run.pass_rate is None else f"{run.passed:,} of {run.cases:,} passed ({run.pass_rate:.0%})"


def _tell_trend(found: list[SuiteRun]) -> None:
    """The pass rate from run to run as a picture, where there are enough runs to see something."""
    known = [run.pass_rate for run in reversed(found) if run.pass_rate is not None]
    if len(known) > 2:
        picture = sparkline(known, 0.0, 1.0, unicode=is_unicode(sys.stdout))
        say(f"pass rate  {picture}  {known[0]:.0%} to {known[-1]:.0%}, the latest last")


def _suite_as_json(run: SuiteRun) -> dict[str, object]:
    return {
        "id": run.row.id,
        "started_at": run.row.started_at,
        "finished_at": run.row.finished_at,
        "status": run.row.status,
        "outcome": run.outcome,
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
    """The verdict; of a run that goes on, was interrupted or died, that it did."""
    return row.status if row.interrupted or row.stored_verdict is None else row.stored_verdict.outcome


def _counts(row: Run, state: str) -> str:
    """Trials by outcome, or how far a run came that has not ended."""
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
    return f"{row.id}  {when}  {state:<11}  {counts}  {suites}{origin}{name}"


def as_json_row(row: Run) -> dict[str, object]:
    """What is known of a run without reading a trial."""
    told = ("counts", "planned", "suites", "rescored", "git")
    return {
        "id": row.id,
        "name": row.name,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "status": row.status,
        "verdict": plain(row.stored_verdict),
        **{name: plain(getattr(row, name)) for name in told},
    }


@click.command("export")
@click.argument("run_id", metavar="[RUN]", default="last")
@click.option("-o", "--output", metavar="FILE", default="-", help="Write to this file instead of standard output.")
@store_option
def export_command(run_id: str, output: str, store: str | None) -> int:
    """Write a run as JSON Lines: its cases, answers, tool calls, scores and traces, and where it was made.

    The file can be named wherever a run can, and `proctor import` keeps it in another store.
    """
    if not output.strip():
        raise UsageError("-o must name a file, or - for standard output")
    _, run = open_run(read_configuration().store(store), run_id)
    write_document(output, lambda out: export_run(run, out))
    if output != "-":
        say(f"exported run {run.id} to {output}", err=True)
    return 0


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@json_option
@store_option
def import_command(files: tuple[str, ...], as_json: bool, store: str | None) -> int:
    """Keep runs that `proctor export` wrote; - is standard input. A run that is here already is left as it is."""
    configuration = read_configuration()
    kept = Store(configuration.store(store))
    keep_secrets = configuration.values.get("keep_secrets", False)
    told = []
    for name in files:
        with open_lines(name) as lines:
            row, is_new = import_run(kept, lines, place_of(name), keep_secrets=keep_secrets)
        told.append({"run": row.id, "name": row.name, "imported": is_new})
        if not as_json:
            say(f"imported run {row.id}" if is_new else f"run {row.id} is here already")
    if as_json:
        say_json("import-row", told)
    return 0
