"""`proctor show RUN`: one run again, in any form."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from proctor.cases.fields import nearest
from proctor.cli.common import report_options, report_targets, say, store_option
from proctor.cli.configuration import read_configuration
from proctor.errors import UsageError
from proctor.results.model import Outcome, Run, TrialResult
from proctor.results.reading import read_run
from proctor.results.store import Store
from proctor.results.verdict import judge


@click.command("show")
@click.argument("run_id", metavar="[RUN]", default="last")
@click.option("--case", "case_id", metavar="ID", help="Only this case.")
@click.option("--failed", is_flag=True, help="Only what did not pass.")
@click.option("-q", "--quiet", is_flag=True, help="Only the verdict.")
@click.option("-v", "--verbose", is_flag=True, help="Every score, reason and tool call.")
@report_options
@store_option
def command(
    run_id: str,
    case_id: str | None,
    failed: bool,
    quiet: bool,
    verbose: bool,
    md_to: str | None,
    json_to: str | None,
    junit_to: str | None,
    store: str | None,
) -> int:
    """Show a run: its id, the beginning of one, or `last`. Exits 0 whatever the verdict was."""
    from proctor.reporting.terminal import PlainTerminal
    from proctor.reporting.writing import write_reports

    kept = Store(read_configuration().store(store), create=False)
    run = read_run(kept, run_id)
    verdict = judge(run)
    targets = report_targets(md_to, json_to, junit_to)
    if targets:
        for path in write_reports(run, verdict, targets, {}):
            say(f"report: {path}", err=True)
        return 0
    terminal = PlainTerminal(sys.stdout, quiet=quiet, verbose=verbose)
    trials = list(_chosen(run, case_id, failed)) if case_id is not None else _chosen(run, None, failed)
    terminal.started(run, sum(suite.planned for suite in run.suites), 0)
    for trial in trials:
        terminal.trial_done(trial)
    terminal.finished(run, verdict)
    return 0


def _chosen(run: Run, case_id: str | None, failed: bool) -> Iterator[TrialResult]:
    known = {summary.case_id for summary in run.summaries}
    if case_id is not None and case_id not in known:
        raise UsageError(f"run {run.id} has no case {case_id!r}{nearest(case_id, known)}")
    good = (Outcome.PASSED, Outcome.SKIPPED)
    for trial in run.trials:
        if (case_id is None or trial.case.id == case_id) and not (failed and trial.outcome in good):
            yield trial
