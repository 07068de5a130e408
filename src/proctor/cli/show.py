"""`proctor show`, `proctor view` and `proctor analyze`: a run again, in any form, in the browser, or summed up."""

from __future__ import annotations

import io
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

import click

from proctor.base.errors import UsageError
from proctor.base.json_data import plain
from proctor.cases.suite import Suite
from proctor.cli.configuration import read_configuration
from proctor.cli.grade import person_named
from proctor.cli.options_and_output import (
    case_option,
    json_option,
    report_options,
    report_targets,
    say,
    store_option,
    write_documents,
)
from proctor.reporting.analysis import analyse, write_markdown
from proctor.reporting.judge_report import judged_scores, simulated_users, tell_judge_calls
from proctor.reporting.report_files import write_reports
from proctor.reporting.terminal.progress import PlainTerminal
from proctor.reporting.terminal.screen import Outlet, is_terminal, is_unicode, screen_of, visible
from proctor.results.run import Outcome, Run, TrialResult, Trials
from proctor.results.store.judge_cache import JudgeCalls
from proctor.results.store.run_files import open_run
from proctor.results.store.store import Store
from proctor.results.verdict import RunVerdict, verdict, verdict_on_part
from proctor.running.selection import CaseFilter, Predicate, check_names, names_case, parse_words
from proctor.viewer.library import open_library


@click.command("show")
@click.argument("run_id", metavar="[RUN]", default="last")
@case_option
@click.option("-k", "words", metavar="EXPR", help="Only cases that fit: refund and not slow.")
@click.option("--failed", is_flag=True, help="Only what did not pass.")
@click.option("--judge-calls", is_flag=True, help="What judged scores and simulated users rest on; -v also all words.")
@report_options
@store_option
def command(**given: Any) -> int:
    """Show a run: its id, the beginning of one, its name, last, last~1, or an exported file (- is standard input).

    Exits 0 whatever the verdict was.
    """
    kept, run = open_run(read_configuration().store(given["store"]), given["run_id"])
    targets = report_targets(given)
    if given["judge_calls"]:
        return _tell_judge_calls(run, kept, given, targets)
    if targets:
        shown = _filtered(run, given)
        found = verdict(run) if shown is run else verdict_on_part(run, shown)
        for path in write_reports(shown, found, targets, {}):
            say(f"report: {path}", err=True)
    else:
        _tell(run, verdict(run), given)
    return 0


def _tell(run: Run, found: RunVerdict, given: Mapping[str, Any]) -> None:
    trials = _chosen(run, given)
    made = Counter((summary.suite, summary.case_id) for summary in run.summaries)
    run.repeats = {address: count for address, count in made.items() if count > 1}
    terminal = PlainTerminal(sys.stdout, quiet=given["quiet"], verbose=given["verbose"])
    terminal.started(run, sum(suite.planned for suite in run.suites), 0)
    for _, own in groupby(trials, key=lambda trial: (trial.suite, trial.case.id)):
        terminal.case_shown(list(own))
    terminal.finished(run, found)


def _tell_judge_calls(run: Run, kept: Store, given: Mapping[str, Any], targets: Mapping[str, str]) -> int:
    if other := [f"--{name}" for name in targets if name != "json"]:
        raise UsageError(
            f"--judge-calls goes to the terminal or, with --json, to a file; not with {' and '.join(other)}"
        )
    trials = _chosen(run, given)
    calls = JudgeCalls(kept.path)
    if targets:
        chosen = list(trials)
        told = {"scores": judged_scores(chosen, calls.find), "users": simulated_users(chosen, calls.find)}
        _write_json(
            {"schema": "proctor.judge-calls/1", "run": run.id, **{name: list(items) for name, items in told.items()}},
            targets["json"],
        )
        return 0
    if not tell_judge_calls(screen_of(sys.stdout), trials, calls.find, verbose=given["verbose"]):
        say(f"no score of run {run.id} that was chosen comes from a judge, and no user was simulated", err=True)
    return 0


def _write_json(data: Any, target: str) -> None:
    _write_text(json.dumps(data, indent=2) + "\n", target)


def _write_text(text: str, target: str) -> None:
    write_documents({"json": target}, {"json": lambda out: out.write(text)}, "the report")


def _filtered(run: Run, given: Mapping[str, Any]) -> Run:
    """The run with the chosen cases alone, for reports."""
    if not given["case_ids"] and given["words"] is None and not given["failed"]:
        return run
    trials = Trials(lambda _: _chosen(run, given))
    kept = {(trial.suite, trial.case.id, trial.number) for trial in trials}
    summaries = [item for item in run.summaries if (item.suite, item.case_id, item.number) in kept]
    made, shown = (Counter(item.suite for item in items) for items in (run.summaries, summaries))
    suites = (replace(info, planned=info.planned - made[info.name] + shown[info.name]) for info in run.suites)
    return replace(run, suites=tuple(suites), summaries=summaries, trials=trials)


def _chosen(run: Run, given: Mapping[str, Any]) -> Iterator[TrialResult]:
    """The trials asked for; an id that nothing has is said before anything is shown."""
    paths = {info.name: info.path for info in run.suites}
    known = {(summary.suite, paths.get(summary.suite), summary.case_id) for summary in run.summaries}
    try:
        check_names(given["case_ids"], sorted(known, key=str))
    except UsageError as error:
        raise UsageError(f"run {run.id}: {error}") from None
    named = {case for case in known if any(names_case(name, *case) for name in given["case_ids"])}
    chosen = {(suite, case_id) for suite, _, case_id in named} if given["case_ids"] else None
    words = None if given["words"] is None else parse_words(given["words"])
    if words is not None and not any(_fits(trial, chosen, words, False) for trial in run.trials):
        raise UsageError(f"run {run.id} has no case that fits -k {given['words']!r}")
    return (trial for trial in run.trials if _fits(trial, chosen, words, given["failed"]))


def _fits(trial: TrialResult, chosen: set[tuple[str, str]] | None, words: Predicate | None, failed: bool) -> bool:
    if chosen is not None and (trial.suite, trial.case.id) not in chosen:
        return False
    if failed and trial.outcome in (Outcome.PASSED, Outcome.SKIPPED):
        return False
    return words is None or CaseFilter(words)(Suite(trial.suite, ()), trial.case)


@click.command("view")
@click.argument("named", metavar="[RUN|STORE|FILE]...", nargs=-1)
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Listen elsewhere; every page then needs a token.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port (default: any free one).")
@click.option("--no-open", is_flag=True, help="Open no browser.")
@store_option
def view_command(named: tuple[str, ...], host: str, port: int, no_open: bool, store: str | None) -> int:
    """Show runs in the browser: of the store, of other stores, exported runs (.jsonl) and baselines.

    Serves this machine alone unless --host names another address. Ctrl-C ends it.
    """
    try:
        from proctor.viewer.server import serve  # the extra `view` may not be installed
    except ImportError as error:
        raise UsageError(f"the viewer needs more packages: pip install 'proctor[view]' ({error})") from None
    library = open_library(named, read_configuration().store(store))
    try:
        serve(library, host, port, open_browser=not no_open, say=say, person=person_named(None))
    except KeyboardInterrupt:
        pass
    finally:
        library.close()
    return 0


SCHEMA = "proctor.analysis/1"


@click.command("analyze")
@click.argument("run_id", metavar="[RUN]", default="last")
@click.option("-o", "--output", metavar="FILE", help="Write to this file instead of the terminal.")
@json_option
@store_option
def analyze_command(run_id: str, output: str | None, as_json: bool, store: str | None) -> int:
    """Analyse a run: what failures have in common, how scores spread, what varies and what costs most.

    On a terminal it is laid out; in a pipe or a file it is Markdown. RUN is an id, the beginning of one, a name,
    `last`, `last~1`, or an exported file. Exits 0 whatever the verdict was.
    """
    if output is not None and not output.strip():
        raise UsageError("-o must name a file, or - for the terminal")
    text = _as_text(read_configuration().store(store), run_id, as_json)
    if output is None or output == "-":
        if as_json or not show_markdown(text, sys.stdout):
            say(text)
        return 0
    write_documents({"md": output}, {"md": lambda out: out.write(f"{text}\n")}, "the analysis", told_as="analysis")
    return 0


def show_markdown(text: str, stream: TextIO) -> bool:
    """Lay Markdown out on a terminal; False where the stream is none that can show it."""
    if not (is_terminal(stream) and is_unicode(stream)) or os.environ.get("TERM") == "dumb":
        return False
    from rich.console import Console
    from rich.markdown import Markdown

    outlet: Any = Outlet(stream)
    console = Console(file=outlet, force_terminal=True, highlight=False, markup=False, emoji=False)
    console.print(Markdown(visible(text), hyperlinks=False))
    return True


def _as_text(folder: Path, run_id: str, as_json: bool) -> str:
    _, run = open_run(folder, run_id)
    analysis = analyse(run, verdict(run))
    if as_json:
        return json.dumps({"schema": SCHEMA, **plain(analysis)}, indent=2)
    out = io.StringIO()
    write_markdown(analysis, out)
    return out.getvalue().rstrip("\n")
