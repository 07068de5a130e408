"""`proctor rescore RUN`: score stored answers again."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from proctor.cases.suite import Settings
from proctor.cli import suggestions
from proctor.cli.help_pages import AGENT_AND_JUDGE, EXECUTION, DocumentedCommand, option
from proctor.cli.options import (
    Seconds,
    command_configuration,
    fast_option,
    judge_budget_option,
    judge_option,
    parse_evaluators,
    report_options,
    store_option,
    verbosity_options,
)
from proctor.cli.output import run_and_report
from proctor.cli.selection import CaseSelection, case_selection, run_argument, suite_files_of
from proctor.reporting.reporters import refuse_overwriting
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict
from proctor.running.rescore import rescore
from proctor.running.settings import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoreOptions:
    """The options of the command, by name."""

    run_id: str
    selection: CaseSelection
    suites: tuple[str, ...]
    evaluators: tuple[str, ...]
    judge: str | None
    fast: bool
    budget: float | None
    evaluator_timeout: float | None
    store: str | None
    quiet: bool
    verbose: bool
    reports: Mapping[str, str]


@click.command(
    "rescore",
    cls=DocumentedCommand,
    examples=(
        "proctor rescore last",
        """proctor rescore last --case refund -e 'Regex={"pattern": "five days"}'""",
    ),
)
@run_argument
@case_selection(verb="Score")
@option(
    "-e",
    "--evaluator",
    "evaluators",
    group=AGENT_AND_JUDGE,
    multiple=True,
    metavar="NAME",
    shell_complete=suggestions.evaluators,
    help="Score with this evaluator only, instead of the suite's. Repeatable.",
)
@option(
    "--suite",
    "suites",
    group=AGENT_AND_JUDGE,
    multiple=True,
    metavar="PATH",
    help="Read the suite from this file instead of the one the run used. Repeatable.",
)
@judge_option
@fast_option
@judge_budget_option
@option(
    "--evaluator-timeout",
    group=EXECUTION,
    type=Seconds(),
    metavar="SECONDS",
    help="Time limit for one evaluator (default: 60; 300 with a judge).",
)
@store_option
@verbosity_options("Print only the verdict.", "Print every score, reason and tool call.")
@report_options
def command(**values: Any) -> int:
    """Score the answers of RUN again, with the current suites and without calling the agent.

    RUN is an id, the beginning of one, a name, last, last~1 or an exported file. The result is stored as a new run.
    """
    options = RescoreOptions(**values)
    configuration = command_configuration()
    folder = configuration.store(options.store)
    refuse_overwriting(options.reports, itertools.chain(options.suites, suite_files_of(folder, options.run_id)))
    settings = Settings(evaluator_timeout=options.evaluator_timeout)

    def work(terminal: Listener) -> tuple[Run, RunVerdict]:
        return rescore(
            folder,
            options.run_id,
            options=configuration.run_options(settings, judge=options.judge, budget=options.budget, fast=options.fast),
            evaluators=parse_evaluators(options.evaluators),
            suites=options.suites,
            select=options.selection.case_filter(),
            listener=terminal,
        )

    return run_and_report(work, options.reports, quiet=options.quiet, verbose=options.verbose)
