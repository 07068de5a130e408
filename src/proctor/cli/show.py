"""`proctor show RUN`: one run again, in any form."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from proctor.cases.fields import nearest
from proctor.cli.common import report_options, report_targets, say, store_option
from proctor.cli.configuration import read_configuration
from proctor.errors import UsageError
from proctor.results.model import Outcome, Run, TrialResult
from proctor.results.reading import read_run
from proctor.results.store import Store
from proctor.results.verdict import RunVerdict, judge


@click.command("show")
@click.argument("run_id", metavar="[RUN]", default="last")
@click.option("--case", "case_id", metavar="ID", help="Only this case.")
@click.option("--failed", is_flag=True, help="Only what did not pass.")
@report_options
@store_option
def command(**given: Any) -> int:
    """Show a run: its id, the beginning of one, or `last`. Exits 0 whatever the verdict was."""
    from proctor.reporting.writing import write_reports

    kept = Store(read_configuration().store(given["store"]), create=False)
    run = read_run(kept, given["run_id"])
    verdict = judge(run)
    targets = report_targets(given)
    for path in write_reports(run, verdict, targets, {}):
        say(f"report: {path}", err=True)
    if not targets:
        _tell(run, verdict, given)
    return 0


def _tell(run: Run, verdict: RunVerdict, given: Mapping[str, Any]) -> None:
    from proctor.reporting.terminal import PlainTerminal

    case_id, failed = given["case_id"], given["failed"]
    trials = list(_chosen(run, case_id, failed)) if case_id is not None else _chosen(run, None, failed)
    terminal = PlainTerminal(sys.stdout, quiet=given["quiet"], verbose=given["verbose"])
    terminal.started(run, sum(suite.planned for suite in run.suites), 0)
    for trial in trials:
        terminal.trial_done(trial)
    terminal.finished(run, verdict)


def _chosen(run: Run, case_id: str | None, failed: bool) -> Iterator[TrialResult]:
    known = {summary.case_id for summary in run.summaries}
    if case_id is not None and case_id not in known:
        raise UsageError(f"run {run.id} has no case {case_id!r}{nearest(case_id, known)}")
    good = (Outcome.PASSED, Outcome.SKIPPED)
    for trial in run.trials:
        if (case_id is None or trial.case.id == case_id) and not (failed and trial.outcome in good):
            yield trial
