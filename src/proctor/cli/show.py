"""`proctor show`: show a stored run, its judge calls or its analysis, on the terminal or as a report."""

from __future__ import annotations

import io
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TextIO

import click

from proctor.base.errors import UsageError
from proctor.cli.help_pages import OUTPUT, SELECT_CASES, DocumentedCommand, option
from proctor.cli.options import json_option, report_options, store_option, verbosity_options
from proctor.cli.output import say, write_documents
from proctor.cli.selection import CaseSelection, case_selection, run_argument
from proctor.config import read_configuration
from proctor.reporting.analysis import analysis_data, analyze, write_markdown
from proctor.reporting.judge_report import judged_scores, print_judge_calls, simulated_users
from proctor.reporting.reporters import refuse_overwriting, write_reports
from proctor.reporting.terminal.progress import print_finished_run
from proctor.reporting.terminal.screen import SafeStream, escape_control, is_terminal, screen_for, supports_unicode
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.store.judge_cache import StoredJudgeCalls
from proctor.results.store.run_files import open_run
from proctor.results.store.store import Store
from proctor.results.trial import Trial, Trials
from proctor.results.verdict import verdict, verdict_on_part


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """The options of the command, by name."""

    run_id: str
    selection: CaseSelection
    failed: bool
    judge_calls: bool
    analysis: bool
    store: str | None
    quiet: bool
    verbose: bool
    reports: Mapping[str, str]


@click.command(
    "show",
    cls=DocumentedCommand,
    examples=(
        "proctor show last --failed",
        "proctor show last~1 --case refund -v",
        "proctor show nightly --html report.html",
        "proctor show last --analysis",
    ),
)
@run_argument
@case_selection(verb="Show")
@option("--failed", group=SELECT_CASES, is_flag=True, help="Show only cases that did not pass.")
@store_option
@option(
    "--analysis",
    group=OUTPUT,
    is_flag=True,
    help="Group failures by cause, and show score distributions, flaky cases and the most expensive cases.",
)
@option(
    "--judge-calls",
    group=OUTPUT,
    is_flag=True,
    help="Show judge prompts, votes and replies, and simulated users; with -v, the full text.",
)
@verbosity_options("Print only the verdict.", "Print every score, reason and tool call.")
@report_options
@option("--record", "record_to", group=OUTPUT, hidden=True, metavar="FILE")
def command(record_to: str | None, **values: Any) -> int:
    """Show RUN: its verdict, failures, reasons and scores.

    RUN is an id, the beginning of one, a name, last (the default), last~1, an exported file, or - for standard input.
    Exits with 0 whatever the verdict is.
    """
    if record_to is not None:
        say(f"note: `--record FILE` is now `--report holodeck={record_to}`", err=True)
        values["reports"] = {**values["reports"], "holodeck": record_to}
    options = ShowOptions(**values)
    store, run = open_run(read_configuration().store(options.store), options.run_id)
    refuse_overwriting(options.reports, [options.run_id, *(info.path for info in run.suites)])
    if options.analysis:
        return _show_analysis(run, options.reports)
    if options.judge_calls:
        return _print_judge_calls(run, store, options)
    if options.reports:
        selection = _filter_run(run, options)
        result = verdict(run) if selection is run else verdict_on_part(run, selection)
        for path in write_reports(selection, result, options.reports, {}):
            say(f"report: {path}", err=True)
    else:
        trials = _select_trials(run, options)
        print_finished_run(run, sys.stdout, trials=trials, quiet=options.quiet, verbose=options.verbose)
    return 0


def _print_judge_calls(run: Run, store: Store, options: ShowOptions) -> int:
    targets = options.reports
    if other := [f"--{name}" for name in targets if name != "json"]:
        raise UsageError(f"--judge-calls can be combined with --json only, not with {' and '.join(other)}")
    trials = _select_trials(run, options)
    calls = StoredJudgeCalls(store.path)
    if targets:
        chosen = list(trials)
        result = {"scores": judged_scores(chosen, calls.get), "users": simulated_users(chosen, calls.get)}
        _write_json(
            {"schema": "proctor.judge-calls/1", "run": run.id, **{name: list(items) for name, items in result.items()}},
            targets["json"],
        )
        return 0
    if not print_judge_calls(screen_for(sys.stdout), trials, calls.get, verbose=options.verbose):
        say(f"run {run.id}: no selected score comes from a judge, and no user was simulated", err=True)
    return 0


def _write_json(data: Any, target: str) -> None:
    _write_text(json.dumps(data, indent=2) + "\n", target)


def _write_text(text: str, target: str) -> None:
    write_documents({"json": target}, {"json": lambda out: out.write(text)}, "the report")


def _filter_run(run: Run, options: ShowOptions) -> Run:
    """The run with only the selected cases, for reports."""
    if options.selection == CaseSelection() and not options.failed:
        return run
    trials = Trials(lambda _: _select_trials(run, options))
    selected_keys = {(trial.suite, trial.case.id, trial.number) for trial in trials}
    summaries = [item for item in run.summaries if (item.suite, item.case_id, item.number) in selected_keys]
    counts, selected = (Counter(item.suite for item in items) for items in (run.summaries, summaries))
    suites = (replace(info, planned=info.planned - counts[info.name] + selected[info.name]) for info in run.suites)
    return replace(run, suites=tuple(suites), summaries=summaries, trials=trials)


def _select_trials(run: Run, options: ShowOptions) -> Iterator[Trial]:
    """The selected trials; raises `UsageError` if no case is selected."""
    selects = options.selection.in_run(run)
    if selects is not None and not any(selects(trial.suite, trial.case) for trial in run.trials):
        raise UsageError(f"run {run.id} has no case for {options.selection.text}")
    passed = (Outcome.PASSED, Outcome.SKIPPED) if options.failed else ()
    return (
        trial
        for trial in run.trials
        if (selects is None or selects(trial.suite, trial.case)) and trial.outcome not in passed
    )


SCHEMA = "proctor.analysis/1"


def _show_analysis(run: Run, targets: Mapping[str, str]) -> int:
    """Print the analysis, or write it as Markdown or JSON."""
    if other := [f"--{name}" for name in targets if name not in ("json", "md")]:
        raise UsageError(f"--analysis can be combined with --md and --json only, not with {' and '.join(other)}")
    if not targets:
        text = _as_text(run, as_json=False)
        if not show_markdown(text, sys.stdout):
            say(text)
    for name, path in targets.items():
        _write_analysis(_as_text(run, as_json=name == "json"), path)
    return 0


def _write_analysis(text: str, target: str) -> None:
    write_documents({"": target}, {"": lambda out: out.write(f"{text}\n")}, "the analysis", "analysis")


@click.command("analyze")
@run_argument
@click.option("-o", "--output", metavar="FILE", help="Write to this file instead of the terminal.")
@json_option
@store_option
def analyze_command(run_id: str, output: str | None, as_json: bool, store: str | None) -> int:
    """Analyze RUN. This is the old name of `proctor show --analysis`, with the options it had."""
    if output is not None and not output.strip():
        raise UsageError("-o must name a file, or - for the terminal")
    text = _as_text(open_run(read_configuration().store(store), run_id)[1], as_json)
    if output is None or output == "-":
        if as_json or not show_markdown(text, sys.stdout):
            say(text)
    else:
        _write_analysis(text, output)
    return 0


def show_markdown(text: str, stream: TextIO) -> bool:
    """Print formatted Markdown; returns False if the stream is not a terminal that can show it."""
    if not (is_terminal(stream) and supports_unicode(stream)) or os.environ.get("TERM") == "dumb":
        return False
    from rich.console import Console
    from rich.markdown import Markdown

    outlet: Any = SafeStream(stream)
    console = Console(file=outlet, force_terminal=True, highlight=False, markup=False, emoji=False)
    console.print(Markdown(escape_control(text), hyperlinks=False))
    return True


def _as_text(run: Run, as_json: bool) -> str:
    analysis = analyze(run, verdict(run))
    if as_json:
        return json.dumps({"schema": SCHEMA, **analysis_data(analysis)}, indent=2)
    out = io.StringIO()
    write_markdown(analysis, out)
    return out.getvalue().rstrip("\n")
