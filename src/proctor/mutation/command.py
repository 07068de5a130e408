"""`proctor mutate [RUN]`: tests the tests, by what their evaluators notice of answers that were made wrong."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from proctor.cases.suite import Settings
from proctor.cli.help_pages import AGENT_AND_JUDGE, DocumentedCommand, option
from proctor.cli.options import (
    Seconds,
    command_configuration,
    document_options,
    judge_options,
    store_option,
    verbosity_options,
)
from proctor.cli.output import reserve_stdout, write_documents
from proctor.cli.selection import run_argument, suite_files_of
from proctor.mutation.findings import MutationReport
from proctor.mutation.mutate import MutationRequest, mutate
from proctor.mutation.report import MUTANTS_FOLDER, WRITERS, write_mutants
from proctor.mutation.terminal import print_mutation
from proctor.reporting.output import write_document
from proctor.reporting.reporters import refuse_overwriting
from proctor.reporting.terminal.screen import screen_for

if TYPE_CHECKING:
    from pathlib import Path


MUTANTS = "Mutants"


@click.command("mutate", cls=DocumentedCommand, examples=("proctor mutate last", "proctor mutate last --min-kill 0.9"))
@run_argument
@option(
    "--seed",
    group=MUTANTS,
    type=int,
    default=0,
    metavar="N",
    help="Make other mutants; the same seed makes the same (default: 0).",
)
@option(
    "--mutants",
    group=MUTANTS,
    type=click.IntRange(1, 1000),
    default=24,
    metavar="N",
    help="Make at most N mutants of a trial (default: 24).",
)
@option(
    "--min-kill",
    group=MUTANTS,
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Exit 1 if a suite kills less than this share, for example 0.9.",
)
@option("--anyway", group=MUTANTS, is_flag=True, help="Go on with a suite that the oracle fails or nop passes.")
@option(
    "--suite",
    "suites",
    group=AGENT_AND_JUDGE,
    multiple=True,
    metavar="PATH",
    help="Take expectations from this file instead of the suite's own. Repeatable.",
)
@judge_options
@option(
    "--evaluator-timeout",
    group=AGENT_AND_JUDGE,
    type=Seconds(),
    metavar="SECONDS",
    help="Time limit for one evaluator (default: 60; 300 with a judge).",
)
@store_option
@verbosity_options("Print only the sentence.", "Print every survivor and every proposal.")
@document_options
def command(**given: Any) -> int:
    """Test the tests: make the good answers of RUN wrong in many small ways, and say what the suites notice.

    The agent is not asked, and no file of yours is changed. Language models are asked only with --budget.

    Exit codes: 0; 1 if a suite is broken or kills less than --min-kill; 3 if there was nothing to mutate.
    """
    configuration, targets = command_configuration(), given["reports"]
    settings = Settings(evaluator_timeout=given["evaluator_timeout"])
    options = configuration.run_options(settings, judge=given["judge"], budget=given["budget"])
    folder = configuration.store(given["store"])
    refuse_overwriting(targets, itertools.chain(given["suites"], suite_files_of(folder, given["run_id"])))
    request = MutationRequest(
        folder,
        given["run_id"],
        options,
        suites=given["suites"],
        seed=given["seed"],
        max_per_trial=given["mutants"],
        ignore_controls=given["anyway"],
        min_kill=given["min_kill"],
    )
    with reserve_stdout("-" in targets.values()):
        report = mutate(request)
    stored = _store(report, folder)
    _print(report, given, targets, stored)
    return report.exit_code


def _store(report: MutationReport, folder: Path) -> str:
    """All mutants with their seed, beside the results of the run; empty where there is none."""
    if not report.rate.total:
        return ""
    path = folder / MUTANTS_FOLDER / f"{report.run}-seed-{report.seed}.jsonl"
    write_document(str(path), lambda out: write_mutants(report, out))
    return str(path)


def _print(report: MutationReport, given: Mapping[str, Any], targets: Mapping[str, str], stored: str) -> None:
    write_documents(targets, {name: partial(write, report) for name, write in WRITERS.items()}, "the report")
    if "-" in targets.values():
        return
    print_mutation(report, screen_for(sys.stdout), stored=stored, verbose=given["verbose"], quiet=given["quiet"])
