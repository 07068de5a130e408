"""`proctor rescore RUN`: new scores for old answers."""

from __future__ import annotations

import os
import sys

import click

from proctor.cases.model import Settings
from proctor.cli.common import (
    Seconds,
    parse_evaluators,
    report_options,
    report_targets,
    say,
    stdout_kept_clear,
    store_option,
)
from proctor.cli.configuration import read_configuration
from proctor.running.options import RunOptions
from proctor.running.verbs import rescore


@click.command("rescore")
@click.argument("run_id", metavar="[RUN]", default="last")
@click.option(
    "-e", "--evaluator", "evaluators", multiple=True, metavar="NAME", help="Score by these alone; repeatable."
)
@click.option("--suite", "suites", multiple=True, metavar="PATH", help="Expectations from this file instead.")
@click.option("--evaluator-timeout", type=Seconds(), metavar="S", help="Seconds for each.")
@click.option("--fast", is_flag=True, help="Leave out whatever needs a language model.")
@click.option("-q", "--quiet", is_flag=True, help="Only the verdict.")
@click.option("-v", "--verbose", is_flag=True, help="Every score, reason and tool call.")
@report_options
@store_option
def command(
    run_id: str,
    evaluators: tuple[str, ...],
    suites: tuple[str, ...],
    evaluator_timeout: float | None,
    fast: bool,
    quiet: bool,
    verbose: bool,
    md_to: str | None,
    json_to: str | None,
    junit_to: str | None,
    store: str | None,
) -> int:
    """Score what the agent answered in RUN by what the suites say now; the result is a run of its own."""
    from proctor.reporting.terminal import choose_terminal
    from proctor.reporting.writing import write_reports

    configuration = read_configuration()
    targets = report_targets(md_to, json_to, junit_to)
    with stdout_kept_clear("-" in targets.values()) as stream:
        run, verdict = rescore(
            configuration.store(store),
            run_id,
            options=RunOptions(Settings(evaluator_timeout=evaluator_timeout), configuration.settings, fast=fast),
            evaluators=parse_evaluators(evaluators),
            suites=suites,
            listener=choose_terminal(stream, quiet=quiet, verbose=verbose),
        )
    for path in write_reports(run, verdict, targets, os.environ):
        say(f"report: {path}", err=stream is sys.stderr)
    return verdict.exit_code
