"""`proctor mutate [RUN]`: tests the tests, by what their evaluators notice of answers that were made wrong."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from proctor.cases.suite import Settings
from proctor.cli.configuration import command_configuration
from proctor.cli.options_and_output import (
    DOCUMENTS,
    Seconds,
    document_options,
    judge_options,
    report_targets,
    stdout_kept_clear,
    store_option,
    write_documents,
)
from proctor.mutation.examine import MutationRequest, mutate
from proctor.mutation.findings import MutationReport
from proctor.mutation.report import KEPT_IN, WRITERS, write_mutants
from proctor.mutation.screen import show_mutation
from proctor.reporting.output import write_document
from proctor.reporting.terminal.screen import screen_of

if TYPE_CHECKING:
    from pathlib import Path


@click.command("mutate")
@click.argument("run_id", metavar="[RUN]", default="last")
@click.option("--seed", type=int, default=0, show_default=True, help="Which mutants: the same seed makes the same.")
@click.option(
    "--mutants", type=click.IntRange(1, 1000), default=24, show_default=True, metavar="N", help="At most N a trial."
)
@click.option("--min-kill", type=click.FloatRange(0, 1), metavar="SHARE", help="Exit 1 if a suite kills less: 0.9.")
@click.option("--suite", "suites", multiple=True, metavar="PATH", help="Expectations from this file instead.")
@click.option("--anyway", is_flag=True, help="Go on with a suite that the oracle fails or nop passes.")
@click.option("--evaluator-timeout", type=Seconds(), metavar="S", help="Seconds for each.")
@click.option("-v", "--verbose", is_flag=True, help="Every survivor and every proposal.")
@click.option("-q", "--quiet", is_flag=True, help="Only the sentence.")
@judge_options
@document_options("it all")
@store_option
def command(**given: Any) -> int:
    """Test the tests: make the good answers of RUN wrong in many small ways, and say what the suites notice.

    The agent is not asked, and no file of yours is changed. Language models are asked only with --budget.

    \b
    Exit codes: 0; 1 if a suite is broken or kills less than --min-kill; 3 if there was nothing to mutate.
    """
    configuration, targets = command_configuration(), report_targets(given, DOCUMENTS)
    settings = Settings(evaluator_timeout=given["evaluator_timeout"])
    options = configuration.run_options(settings, judge=given["judge"], budget=given["budget"])
    folder = configuration.store(given["store"])
    request = MutationRequest(
        folder,
        given["run_id"],
        options,
        suites=given["suites"],
        seed=given["seed"],
        most=given["mutants"],
        anyway=given["anyway"],
        min_kill=given["min_kill"],
    )
    with stdout_kept_clear("-" in targets.values()):
        report = mutate(request)
    stored = _store(report, folder)
    _tell(report, given, targets, stored)
    return report.exit_code


def _store(report: MutationReport, folder: Path) -> str:
    """All mutants with their seed, beside the results of the run; empty where there is none."""
    if not report.rate.total:
        return ""
    path = folder / KEPT_IN / f"{report.run}-seed-{report.seed}.jsonl"
    write_document(str(path), lambda out: write_mutants(report, out))
    return str(path)


def _tell(report: MutationReport, given: Mapping[str, Any], targets: Mapping[str, str], stored: str) -> None:
    write_documents(targets, {name: partial(write, report) for name, write in WRITERS.items()}, "the report")
    if "-" in targets.values():
        return
    show_mutation(report, screen_of(sys.stdout), stored=stored, verbose=given["verbose"], quiet=given["quiet"])
