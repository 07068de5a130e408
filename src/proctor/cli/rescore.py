"""`proctor rescore RUN`: new scores for old answers."""

from __future__ import annotations

from typing import Any

import click

from proctor.cases.suite import Settings
from proctor.cli.configuration import command_configuration
from proctor.cli.options_and_output import (
    Seconds,
    carry_out,
    case_option,
    judge_options,
    parse_evaluators,
    report_options,
    store_option,
)
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict
from proctor.running.rescore import rescore
from proctor.running.selection import CaseFilter, parse_words, tag_set
from proctor.running.settings import Listener


@click.command("rescore")
@click.argument("run_id", metavar="[RUN]", default="last")
@click.option(
    "-e", "--evaluator", "evaluators", multiple=True, metavar="NAME", help="Score by these alone; repeatable."
)
@case_option
@click.option("-k", "words", metavar="EXPR", help="Only cases that fit: refund and not slow.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Only cases with this tag; repeatable.")
@click.option("--suite", "suites", multiple=True, metavar="PATH", help="Expectations from this file instead.")
@click.option("--evaluator-timeout", type=Seconds(), metavar="S", help="Seconds for each.")
@click.option("--fast", is_flag=True, help="Leave out whatever needs a language model.")
@judge_options
@report_options
@store_option
def command(**given: Any) -> int:
    """Score what the agent answered in RUN by what the suites say now; the result is a run of its own."""
    configuration = command_configuration()
    settings = Settings(evaluator_timeout=given["evaluator_timeout"])

    def work(terminal: Listener) -> tuple[Run, RunVerdict]:
        return rescore(
            configuration.store(given["store"]),
            given["run_id"],
            options=configuration.run_options(
                settings, judge=given["judge"], budget=given["budget"], fast=given["fast"]
            ),
            evaluators=parse_evaluators(given["evaluators"]),
            suites=given["suites"],
            select=_selection(given),
            listener=terminal,
        )

    return carry_out(work, given)


def _selection(given: dict[str, Any]) -> CaseFilter | None:
    if given["words"] is None and not given["tags"] and not given["case_ids"]:
        return None
    words = None if given["words"] is None else parse_words(given["words"])
    return CaseFilter(words, tag_set(given["tags"]), ids=given["case_ids"])
