"""`proctor compare [A] [B]`: what changed from one run to another, and whether luck explains it."""

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

from proctor.base.documents import nearest
from proctor.base.errors import UsageError
from proctor.cases.suite import Suite
from proctor.cli.configuration import Configuration, read_configuration
from proctor.cli.options_and_output import (
    DOCUMENTS,
    document_options,
    judge_options,
    report_targets,
    say,
    store_option,
    write_documents,
)
from proctor.reporting.comparison_report import WRITERS, case_to_json
from proctor.reporting.markdown.ci_pages import Comment, write_comment
from proctor.reporting.output import write_document
from proctor.reporting.terminal.comparison_screen import show_case, show_comparison
from proctor.reporting.terminal.screen import screen_of
from proctor.results.comparison.comparing import align_case, compare_runs
from proctor.results.comparison.comparison import Comparison
from proctor.results.comparison.pairing import Choose
from proctor.results.run import Run
from proctor.results.store.run_files import read_run_of_agent
from proctor.results.verdict import verdict
from proctor.running.rescore import rescore
from proctor.running.selection import CaseFilter, names_case, parse_words, tag_set

REGRESSION, INCONCLUSIVE, ERRORS = 1, 3, 4
NOTHING_BEFORE = "nothing"
"""Stands for the earlier run where there is none."""


@dataclass(frozen=True, slots=True)
class Named:
    """A run as the command line names it: `last`, or `last@careful` for what one of its agents answered."""

    run: Run
    agent: str | None


@click.command("compare")
@click.argument("before", metavar="[A]", default="last~1")
@click.argument("after", metavar="[B]", default="last")
@click.option("-k", "words", metavar="EXPR", help="Only cases that fit: refund and not slow.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Only cases with this tag; repeatable.")
@click.option("--suite", "suites", multiple=True, metavar="NAME", help="Only cases of this suite; repeatable.")
@click.option("--case", "case_id", metavar="ID", help="Both conversations of this case, step by step.")
@click.option("--rescore", "rescored", is_flag=True, help="Score both runs by today's evaluators first.")
@click.option(
    "--pr", "as_comment", is_flag=True, help="Markdown for a comment on a pull request, short enough for one."
)
@click.option("--report-url", metavar="URL", help="With --pr: where the HTML report of B is; cases link into it.")
@click.option("--pr-key", metavar="WORD", help="With --pr: tells comments of several jobs apart.")
@click.option("--fail-on", type=click.Choice(["regression"]), help="Exit 1 if B is worse than A beyond luck.")
@click.option("-v", "--verbose", is_flag=True, help="Also cases that still pass, and every reason.")
@click.option("-q", "--quiet", is_flag=True, help="Only the sentence.")
@judge_options
@document_options("the comparison")
@store_option
def command(**given: Any) -> int:
    """Compare run B with run A: which cases broke, which were fixed, and whether luck explains it.

    A run is an id, the beginning of one, a name, last, last~1, an exported file, or - for standard input.
    RUN@AGENT takes one agent of a run that asked several. With --pr, A may be `nothing`: there is no earlier run.

    \b
    Exit codes: 0 whatever the result; with --fail-on regression 1 for a regression and 3 if nothing can be said;
    2 if the runs have no case in common, 4 if errors kept every case from being compared.
    """
    configuration, targets = read_configuration(), _targets(given)
    folder = configuration.store(given["store"])
    if given["before"] == given["after"] == "-":
        raise UsageError("only one of the two runs can come from standard input")
    if given["as_comment"] and given["before"] == NOTHING_BEFORE:
        return _comment(_named(folder, given["after"]), None, given, targets)
    first, second = _named(folder, given["before"]), _named(folder, given["after"])
    if given["rescored"]:
        first, second = (_rescored(folder, side, given, configuration) for side in (first, second))
    choose = _choose(given)
    if given["case_id"] is not None:
        return _tell_case(first, second, given, choose, targets)
    comparison = compare_runs(first.run, second.run, before_agent=first.agent, after_agent=second.agent, choose=choose)
    if given["as_comment"]:
        _comment(second, comparison, given, targets)
    else:
        _tell(comparison, given, targets)
    return _exit_code(comparison, given["fail_on"])


def _named(folder: Path, wanted: str) -> Named:
    return Named(*read_run_of_agent(folder, wanted))


def _rescored(folder: Path, side: Named, given: Mapping[str, Any], configuration: Configuration) -> Named:
    """The same answers, scored by what suites say now, as a run of its own."""
    if side.run.store is None:
        raise UsageError(f"run {side.run.id} comes from a file: `proctor import` it to score it anew")
    options = configuration.run_options(judge=given["judge"], budget=given["budget"])
    run, _ = rescore(folder, side.run.id, options=options)
    say(f"rescored {side.run.id} as {run.id}", err=True)
    return Named(run, side.agent)


def _choose(given: Mapping[str, Any]) -> Choose | None:
    """Cases by the words, tags and suites that were asked for."""
    if given["words"] is None and not given["tags"] and not given["suites"]:
        return None
    words = None if given["words"] is None else parse_words(given["words"])
    fits, names = CaseFilter(words, tag_set(given["tags"])), frozenset(given["suites"])
    return lambda suite, case: (not names or suite in names) and fits(Suite(suite, (case,)), case)


def _comment(second: Named, comparison: Comparison | None, given: Mapping[str, Any], targets: Mapping[str, str]) -> int:
    """The comparison as the comment of a pull request."""
    comment = Comment(second.run, verdict(second.run), comparison, given["report_url"] or "", given["pr_key"] or "")
    write_documents(targets, {"md": partial(write_comment, comment)}, "the comment", told_as="comment")
    return 0


def _check_comment(given: Mapping[str, Any], chosen: Mapping[str, str]) -> None:
    """A comment is Markdown, of whole runs, and its address and key are what they seem to be."""
    if not given["as_comment"]:
        for name in ("report_url", "pr_key"):
            if given[name] is not None:
                raise UsageError(f"--{name.replace('_', '-')} is for --pr, which was not given")
        return
    if other := [f"--{name}" for name in chosen if name != "md"] + ["--case"] * (given["case_id"] is not None):
        raise UsageError(f"--pr is Markdown; it does not go with {' and '.join(other)}")
    if given["report_url"] is not None and not re.match(r"https?://[^\s/]", given["report_url"]):
        raise UsageError(f"--report-url must be an address with http:// or https://, not {given['report_url']!r}")
    if given["pr_key"] is not None and not re.fullmatch(r"[A-Za-z0-9][\w. /-]{0,60}", given["pr_key"]):
        raise UsageError(f"--pr-key must be a short word of letters, digits, - and _, not {given['pr_key']!r}")


def _targets(given: Mapping[str, Any]) -> dict[str, str]:
    chosen = report_targets(given, DOCUMENTS)
    _check_comment(given, chosen)
    return chosen | {"md": chosen.get("md", "-")} if given["as_comment"] else chosen


def _tell(comparison: Comparison, given: Mapping[str, Any], targets: Mapping[str, str]) -> None:
    write_documents(targets, {name: partial(write, comparison) for name, write in WRITERS.items()}, "the comparison")
    if "-" not in targets.values():
        show_comparison(comparison, screen_of(sys.stdout), verbose=given["verbose"], quiet=given["quiet"])


def _tell_case(
    first: Named, second: Named, given: Mapping[str, Any], choose: Choose | None, targets: Mapping[str, str]
) -> int:
    """The two conversations that differ least, with where they part; `--json` gives them as data."""
    if other := [f"--{name}" for name in targets if name != "json"]:
        raise UsageError(f"--case goes to the terminal or, with --json, to a file; not with {' and '.join(other)}")
    wanted = _address(second.run, given["case_id"])
    pair = align_case(first.run, second.run, wanted, before_agent=first.agent, after_agent=second.agent, choose=choose)
    if isinstance(pair, list):
        raise UsageError(f"no case {given['case_id']!r} is in both runs{nearest(given['case_id'], pair)}")
    if targets:
        text = json.dumps(case_to_json(pair, first.run.id, second.run.id), indent=2) + "\n"
        write_document(targets["json"], lambda out: out.write(text))
        return 0
    show_case(pair, first.run.id, second.run.id, screen_of(sys.stdout))
    return 0


def _address(run: Run, wanted: str) -> str:
    """What `file::id` names, as suite/id; every other name as it is."""
    if "::" not in wanted:
        return wanted
    paths = {info.name: info.path for info in run.suites}
    cases = ((item.suite, item.case_id) for item in run.summaries)
    return next((f"{s}/{c}" for s, c in cases if c != wanted and names_case(wanted, s, paths.get(s), c)), wanted)


def _exit_code(comparison: Comparison, fail_on: str | None) -> int:
    if comparison.is_unmeasured:
        return ERRORS
    if fail_on is None:
        return 0
    return {"regression": REGRESSION, "not comparable": INCONCLUSIVE}.get(comparison.verdict, 0)
