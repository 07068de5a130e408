"""`proctor mutate [RUN]`: finds wrong outputs that a suite would pass."""

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
    help="Seed for the choice of mutants; the same seed gives the same mutants (default: 0).",
)
@option(
    "--mutants",
    group=MUTANTS,
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum mutants per trial (default: 500; fewer if the run has more than 40 trials, 24 with --budget). If "
    "there are more places to change, they are sampled evenly, and the report says how many were left out.",
)
@option(
    "--min-kill",
    group=MUTANTS,
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Exit with 1 if a suite kills less than this share of its mutants, for example 0.9.",
)
@option("--anyway", group=MUTANTS, is_flag=True, help="Continue even if a control agent gives the wrong result.")
@option(
    "--suite",
    "suites",
    group=AGENT_AND_JUDGE,
    multiple=True,
    metavar="PATH",
    help="Take cases and expectations from this file instead of the run's suite. Repeatable.",
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
@verbosity_options("Print only the result.", "Print every survivor and every suggestion.")
@document_options
def command(**options: Any) -> int:
    """Mutation-test suites: change the passing outputs of RUN in many small ways and list the changes that still pass.

    The agent is not called, and your files are not changed. Language models are called only with --budget.

    Exit codes: 0; 1 if a suite is broken or kills less than --min-kill; 3 if there was nothing to mutate.
    """
    configuration, targets = command_configuration(), options["reports"]
    settings = Settings(evaluator_timeout=options["evaluator_timeout"])
    run_options = configuration.run_options(settings, judge=options["judge"], budget=options["budget"])
    folder = configuration.store(options["store"])
    refuse_overwriting(targets, itertools.chain(options["suites"], suite_files_of(folder, options["run_id"])))
    request = MutationRequest(
        folder,
        options["run_id"],
        run_options,
        suites=options["suites"],
        seed=options["seed"],
        max_per_trial=options["mutants"],
        ignore_controls=options["anyway"],
        min_kill=options["min_kill"],
    )
    with reserve_stdout("-" in targets.values()):
        report = mutate(request)
    stored = _store(report, folder)
    _print(report, options, targets, stored)
    return report.exit_code


def _store(report: MutationReport, folder: Path) -> str:
    """Write all mutants to a file in the store, and return its path; "" if there are none."""
    if not report.rate.total:
        return ""
    path = folder / MUTANTS_FOLDER / f"{report.run}-seed-{report.seed}.jsonl"
    write_document(str(path), lambda out: write_mutants(report, out))
    return str(path)


def _print(report: MutationReport, options: Mapping[str, Any], targets: Mapping[str, str], stored: str) -> None:
    write_documents(targets, {name: partial(write, report) for name, write in WRITERS.items()}, "the report")
    if "-" in targets.values():
        return
    print_mutation(report, screen_for(sys.stdout), stored=stored, verbose=options["verbose"], quiet=options["quiet"])
