"""`proctor runs`: what is kept here."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click

from proctor.base.errors import UsageError
from proctor.base.fields import nearest
from proctor.base.json_data import plain
from proctor.cli.configuration import read_configuration
from proctor.cli.options_and_output import json_option, say, store_option
from proctor.results.run_info import RunRow
from proctor.results.store import Store
from proctor.results.verdict import INTERRUPTED
from proctor.running.engine.store_writer import status_of

if TYPE_CHECKING:
    from proctor.results.suite_history import SuiteRun


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
        say(json.dumps([_as_json(row, status_of(kept, row)) for row in rows], indent=2))
        return 0
    if not rows:
        say(f"no runs in {kept.folder}")
    states = [_state(kept, row) for row in rows]
    counts = [_counts(kept, row, state) for row, state in zip(rows, states, strict=True)]
    width = max(map(len, counts), default=0)
    for row, state, count in zip(rows, states, counts, strict=True):
        say(_line(row, state, f"{count:<{width}}"))
    return 0


def _tell_suite(kept: Store, suite: str, limit: int, as_json: bool) -> int:
    """The runs of one suite, so that one can see where it is going."""
    from itertools import islice

    from proctor.results.suite_history import runs_of, suites_in

    found = list(islice(runs_of(kept, suite), limit))
    if not found:
        known = suites_in(kept)
        raise UsageError(f"no run of a suite called {suite!r} is kept in {kept.folder}{nearest(suite, known)}")
    if as_json:
        say(json.dumps([_suite_as_json(run) for run in found], indent=2))
        return 0
    rates = [
        "no verdict" if run.pass_rate is None else f"{run.passed:,} of {run.cases:,} passed ({run.pass_rate:.0%})"
        for run in found
    ]
    width = max(map(len, rates))
    for run, rate in zip(found, rates, strict=True):
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.row.started_at))
        scores = "  ".join(f"{name} {mean:.3f}" for name, mean in run.scores.items())
        agent = f"{run.agent} {run.agent_fingerprint[:8]}"
        say(f"{run.row.id}  {when}  {run.outcome:<8}  {rate:<{width}}  {scores}  {agent}")
    _tell_trend(found)
    return 0


def _tell_trend(found: list[SuiteRun]) -> None:
    """The pass rate from run to run as a picture, where there are enough runs to see something."""
    import sys

    from proctor.reporting.distributions import sparkline
    from proctor.reporting.terminal.screen import is_unicode

    known = [run.pass_rate for run in reversed(found) if run.pass_rate is not None]
    if len(known) > 2:
        picture = sparkline(known, 0.0, 1.0, unicode=is_unicode(sys.stdout))
        say(f"pass rate  {picture}  {known[0]:.0%} to {known[-1]:.0%}, the latest last")


def _suite_as_json(run: SuiteRun) -> dict[str, object]:
    return {
        "id": run.row.id,
        "started_at": run.row.started_at,
        "finished_at": run.row.finished_at,
        "outcome": run.outcome,
        "trials": run.trials,
        "cases": run.cases,
        "passed": run.passed,
        "pass_rate": run.pass_rate,
        "scores": run.scores,
        "agent": run.agent,
        "agent_fingerprint": run.agent_fingerprint,
    }


def _state(kept: Store, row: RunRow) -> str:
    """The verdict; of a run that was interrupted or died, that it did."""
    verdict = row.info.verdict
    if verdict is None:
        return status_of(kept, row)
    return "interrupted" if verdict.exit_code == INTERRUPTED else verdict.outcome


def _counts(kept: Store, row: RunRow, state: str) -> str:
    """Trials by outcome, or how far a run came that has not ended."""
    known = row.info.counts
    if known and state not in ("interrupted", "died"):
        return ", ".join(f"{count:,} {name}" for name, count in known.items() if count)
    planned = sum(suite.planned for suite in row.info.suites)
    return f"{len(kept.trial_keys(row.no)):,} of {planned:,} trials"


def _line(row: RunRow, state: str, counts: str) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.started_at))
    suites = ", ".join(suite.name for suite in row.info.suites)
    origin = f" (rescored {row.info.rescored})" if row.info.rescored else ""
    name = f" [{row.name}]" if row.name else ""
    return f"{row.id}  {when}  {state:<11}  {counts}  {suites}{origin}{name}"


def _as_json(row: RunRow, status: str) -> dict[str, object]:
    told = ("verdict", "counts", "planned", "suites", "rescored", "git")
    return {
        "id": row.id,
        "name": row.name,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "status": status,
        **{name: plain(getattr(row.info, name)) for name in told},
    }
