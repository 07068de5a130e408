"""`proctor mutate [RUN]`: tests the tests, by what their evaluators notice of answers that were made wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from proctor.base.errors import StoreError, UsageError
from proctor.cases.suite import Settings
from proctor.cli.configuration import command_configuration
from proctor.cli.options_and_output import Seconds, judge_options, say, stdout_kept_clear, store_option

if TYPE_CHECKING:
    from pathlib import Path

    from proctor.running.mutation.findings import MutationReport

REPORTS = {"json": "JSON", "md": "Markdown", "html": "HTML"}


def _report_options(command: Any) -> Any:
    for name, kind in reversed(REPORTS.items()):
        text = f"Write it all as {kind} to a file; without one, to standard output."
        option = click.option(f"--{name}", f"{name}_to", is_flag=False, flag_value="-", metavar="[FILE]", help=text)
        command = option(command)
    return command


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
@_report_options
@store_option
def command(**given: Any) -> int:
    """Test the tests: make the good answers of RUN wrong in many small ways, and say what the suites notice.

    The agent is not asked, and no file of yours is changed. Language models are asked only with --budget.

    \b
    Exit codes: 0; 1 if a suite is broken or kills less than --min-kill; 3 if there was nothing to mutate.
    """
    from proctor.running.mutation.examine import MutationRequest, mutate
    from proctor.running.options import RunOptions

    configuration, targets = command_configuration(), _targets(given)
    options = RunOptions(
        Settings(evaluator_timeout=given["evaluator_timeout"]),
        configuration.settings,
        judge=given["judge"],
        usual_judge=configuration.values.get("judge"),
        budget_usd=configuration.budget(given["budget"]),
        keep_secrets=configuration.values.get("keep_secrets", False),
    )
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


def _targets(given: Mapping[str, Any]) -> dict[str, str]:
    chosen = {name: given[f"{name}_to"] for name in REPORTS if given[f"{name}_to"] is not None}
    if blank := [f"--{name}" for name, path in chosen.items() if not path.strip()]:
        raise UsageError(f"{' and '.join(blank)} must name a file, or - for standard output")
    if sum(path == "-" for path in chosen.values()) > 1:
        raise UsageError("only one document can go to standard output (-)")
    return chosen


def _store(report: MutationReport, folder: Path) -> str:
    """All mutants with their seed, beside the results of the run; empty where there is none."""
    if not report.rate.total:
        return ""
    from proctor.reporting.mutation_report import KEPT_IN, write_mutants
    from proctor.reporting.report_files import write_document

    path = folder / KEPT_IN / f"{report.run}-seed-{report.seed}.jsonl"
    write_document(str(path), lambda out: write_mutants(report, out))
    return str(path)


def _tell(report: MutationReport, given: Mapping[str, Any], targets: Mapping[str, str], stored: str) -> None:
    from proctor.reporting.mutation_report import WRITERS
    from proctor.reporting.report_files import write_document

    for name, path in targets.items():
        try:
            write_document(path, lambda out, name=name: WRITERS[name](report, out))  # type: ignore[misc]
        except OSError as error:
            raise StoreError(f"the report could not be written to {path}: {error.strerror or error}") from None
        if path != "-":
            say(f"report: {path}", err=True)
    if "-" in targets.values():
        return
    import shutil

    from proctor.reporting.terminal.mutation_screen import show_mutation
    from proctor.reporting.terminal.screen import StreamScreen, is_terminal, wants_colour

    width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
    screen = StreamScreen(sys.stdout, colour=wants_colour(sys.stdout, os.environ), width=width)
    show_mutation(report, screen, stored=stored, verbose=given["verbose"], quiet=given["quiet"])
