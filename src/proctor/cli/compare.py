"""`proctor compare [A] [B]`: what changed between two runs, and whether luck explains it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from proctor.base.errors import UsageError
from proctor.cli import suggestions
from proctor.cli.help_pages import AGENT_AND_JUDGE, OUTPUT, REGRESSION_GATE, SELECT_CASES, DocumentedCommand, option
from proctor.cli.options import document_options, judge_options, store_option, verbosity_options
from proctor.cli.output import say, write_documents
from proctor.cli.selection import CaseSelection, case_selection
from proctor.config import Configuration, read_configuration
from proctor.reporting.comparison_report import WRITERS, case_to_json
from proctor.reporting.markdown.ci_pages import Comment, write_comment
from proctor.reporting.output import write_document
from proctor.reporting.reporters import refuse_overwriting
from proctor.reporting.terminal.comparison_screen import print_case, print_comparison
from proctor.reporting.terminal.screen import screen_for
from proctor.results.comparison.compare import align_case, compare_runs
from proctor.results.comparison.comparison import Comparison
from proctor.results.comparison.pairing import CasePredicate
from proctor.results.run import Run
from proctor.results.store.run_files import open_run_reference
from proctor.results.verdict import verdict
from proctor.running.rescore import rescore
from proctor.running.run import raise_if_stopped
from proctor.running.selection import names_case

REGRESSION, INCONCLUSIVE, ERRORS = 1, 3, 4
NO_EARLIER_RUN = "nothing"
"""Written instead of A if there is no earlier run."""


@dataclass(frozen=True, slots=True)
class ComparedAgent:
    """A run on the command line: `last`, or `last@careful` for one of its agents."""

    run: Run
    agent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """The options of the command, by name."""

    before: str
    after: str
    selection: CaseSelection
    case_id: str | None
    rescored: bool
    judge: str | None
    budget: float | None
    fail_on: str | None
    store: str | None
    as_comment: bool
    report_url: str | None
    pr_key: str | None
    quiet: bool
    verbose: bool
    reports: Mapping[str, str]


@click.command(
    "compare",
    cls=DocumentedCommand,
    examples=(
        "proctor compare before last",
        "proctor compare last~1 last --case refund",
        "proctor compare main.jsonl last --fail-on regression --md comment.md --pr",
    ),
)
@click.argument("before", metavar="[A]", default="last~1", shell_complete=suggestions.runs)
@click.argument("after", metavar="[B]", default="last", shell_complete=suggestions.runs)
@option(
    "--case",
    "case_id",
    group=SELECT_CASES,
    metavar="ID",
    shell_complete=suggestions.cases,
    help="Show both conversations of this case, step by step.",
)
@case_selection(ids=False, suites=True, verb="Compare")
@option(
    "--rescore",
    "rescored",
    group=AGENT_AND_JUDGE,
    is_flag=True,
    help="First rescore both runs with the current evaluators.",
)
@judge_options
@option(
    "--fail-on",
    group=REGRESSION_GATE,
    type=click.Choice(["regression"]),
    help="Exit with 1 if B is significantly worse than A.",
)
@store_option
@verbosity_options("Print only the summary line.", "Also print cases that still pass, and every reason.")
@document_options
@option(
    "--pr",
    "as_comment",
    group=OUTPUT,
    is_flag=True,
    help="Write Markdown for a pull request comment, within the size limit of one.",
)
@option("--report-url", group=OUTPUT, metavar="URL", help="With --pr: URL of the HTML report of B, for links.")
@option(
    "--pr-key", group=OUTPUT, metavar="WORD", help="With --pr: a word that keeps the comments of several jobs apart."
)
def command(**values: Any) -> int:
    """Compare run B with run A: which cases broke, which were fixed, and whether luck explains it.

    A run is an id, the beginning of one, a name, last, last~1, an exported file, or - for standard input. The default
    is to compare last with last~1. RUN@AGENT selects one agent of a run with several. With --pr, A may be `nothing` if
    there is no earlier run.

    Exit codes: 0 whatever the result; with --fail-on regression, 1 for a regression and 3 if no case can be compared;
    2 if the runs have no case in common; 4 if errors prevented every comparison.
    """
    options = CompareOptions(**values)
    configuration, targets = read_configuration(), _targets(options)
    refuse_overwriting(targets, [options.before, options.after])
    folder = configuration.store(options.store)
    if options.before == options.after == "-":
        raise UsageError("only one of the two runs can be read from standard input")
    if options.as_comment and options.before == NO_EARLIER_RUN:
        return _comment(_open(folder, options.after), None, options, targets)
    first, second = _open(folder, options.before), _open(folder, options.after)
    refuse_overwriting(targets, [info.path for side in (first, second) for info in side.run.suites])
    if options.rescored:
        first, second = (_rescore_side(folder, side, options, configuration) for side in (first, second))
    select = options.selection.in_run(second.run)
    if options.case_id is not None:
        return _print_case(first, second, options.case_id, select, targets)
    comparison = compare_runs(first.run, second.run, before_agent=first.agent, after_agent=second.agent, select=select)
    if options.as_comment:
        _comment(second, comparison, options, targets)
    else:
        _print_comparison(comparison, options, targets)
    return _exit_code(comparison, options.fail_on)


def _open(folder: Path, reference: str) -> ComparedAgent:
    return ComparedAgent(*open_run_reference(folder, reference))


def _rescore_side(
    folder: Path, side: ComparedAgent, options: CompareOptions, configuration: Configuration
) -> ComparedAgent:
    """The same answers, rescored with the current suites, as a new run."""
    if side.run.store is None:
        raise UsageError(f"run {side.run.id} is in a file; store it with `proctor runs import` to rescore it")
    scoring = configuration.run_options(judge=options.judge, budget=options.budget)
    run, _ = rescore(folder, side.run.id, options=scoring)
    raise_if_stopped(run)
    say(f"rescored {side.run.id} as {run.id}", err=True)
    return ComparedAgent(run, side.agent)


def _comment(
    second: ComparedAgent, comparison: Comparison | None, options: CompareOptions, targets: Mapping[str, str]
) -> int:
    """Write the comparison as a pull request comment."""
    comment = Comment(second.run, verdict(second.run), comparison, options.report_url or "", options.pr_key or "")
    write_documents(targets, {"md": partial(write_comment, comment)}, "the comment", "comment")
    return 0


def _check_comment(options: CompareOptions, chosen: Mapping[str, str]) -> None:
    """Check the options of `--pr`: it writes Markdown about whole runs, and needs a valid URL and key."""
    if not options.as_comment:
        for name in ("report_url", "pr_key"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} needs --pr")
        return
    if other := [f"--{name}" for name in chosen if name != "md"] + ["--case"] * (options.case_id is not None):
        raise UsageError(f"--pr writes Markdown and cannot be combined with {' and '.join(other)}")
    if options.report_url is not None and not re.match(r"https?://[^\s/]", options.report_url):
        raise UsageError(f"--report-url must be a URL with http:// or https://, not {options.report_url!r}")
    if options.pr_key is not None and not re.fullmatch(r"[A-Za-z0-9][\w. /-]{0,60}", options.pr_key):
        raise UsageError(f"--pr-key must be at most 61 letters, digits, spaces and . _ / -, not {options.pr_key!r}")


def _targets(options: CompareOptions) -> dict[str, str]:
    chosen = dict(options.reports)
    _check_comment(options, chosen)
    return chosen | {"md": chosen.get("md", "-")} if options.as_comment else chosen


def _print_comparison(comparison: Comparison, options: CompareOptions, targets: Mapping[str, str]) -> None:
    write_documents(targets, {name: partial(write, comparison) for name, write in WRITERS.items()}, "the comparison")
    if "-" not in targets.values():
        print_comparison(comparison, screen_for(sys.stdout), verbose=options.verbose, quiet=options.quiet)


def _print_case(
    first: ComparedAgent, second: ComparedAgent, case_id: str, select: CasePredicate | None, targets: Mapping[str, str]
) -> int:
    """Show the two most similar conversations and their first difference; `--json` writes them as data."""
    if other := [f"--{name}" for name in targets if name != "json"]:
        raise UsageError(f"--case can be combined with --json only, not with {' and '.join(other)}")
    name = _address(second.run, case_id)
    pair = align_case(first.run, second.run, name, before_agent=first.agent, after_agent=second.agent, select=select)
    if targets:
        text = json.dumps(case_to_json(pair, first.run.id, second.run.id), indent=2) + "\n"
        write_document(targets["json"], lambda out: out.write(text))
        return 0
    print_case(pair, first.run.id, second.run.id, screen_for(sys.stdout))
    return 0


def _address(run: Run, name: str) -> str:
    """The name of a case: `file::id` as suite/id, any other name unchanged."""
    if "::" not in name:
        return name
    paths = {info.name: info.path for info in run.suites}
    cases = ((item.suite, item.case_id) for item in run.summaries)
    return next((f"{s}/{c}" for s, c in cases if c != name and names_case(name, s, paths.get(s), c)), name)


def _exit_code(comparison: Comparison, fail_on: str | None) -> int:
    if comparison.is_unmeasured:
        return ERRORS
    if fail_on is None:
        return 0
    return {"regression": REGRESSION, "not comparable": INCONCLUSIVE}.get(comparison.verdict, 0)
