"""Pending cases: listed with the next command, and why they wait, once."""

from __future__ import annotations

import io
import json
import re

import pytest
from reporting_samples import FAILED, PASSED, PENDING, make_run, report, score, trial

from proctor.reporting import json_report
from proctor.reporting.html import report_page
from proctor.reporting.html.notebook import run_html
from proctor.reporting.markdown import report as markdown_report
from proctor.reporting.markdown.ci_pages import Comment, write_comment, write_step_summary
from proctor.reporting.pending_cases import pending_cases
from proctor.reporting.terminal.progress import print_finished_run
from proctor.results.run import Run
from proctor.results.verdict import verdict

WAITS = "a person reads the poem"
RULES = {"judge": {"model": "rules", "calls": []}}
COMMAND = "proctor grade 20260101-000000-cafe"


def waiting_run(count: int = 26) -> Run:
    waiting = [
        trial(f"poem-{n:02}", PENDING, "Roses", score(PENDING, None, "Human", reasoning=WAITS)) for n in range(count)
    ]
    return make_run([trial("ok", PASSED, "yes"), *waiting, trial("bad", FAILED, "no", score(FAILED, 0.0))])


def printed(run: Run, place: str) -> str:
    out = io.StringIO()
    if place == "terminal":
        print_finished_run(run, out)
    elif place == "html":
        page = report(report_page, run)
        return page[page.index("<main>") : page.index('<section id="evaluators">')]
    elif place == "markdown":
        text = report(markdown_report, run)
        return text[: text.index("## Test results")]
    elif place == "step summary":
        write_step_summary(run, verdict(run), out)
    elif place == "comment":
        write_comment(Comment(run, verdict(run)), out)
    else:
        return re.sub("<[^>]*>", "", run_html(run))
    return out.getvalue()


@pytest.mark.parametrize("place", ["terminal", "html", "markdown", "step summary", "comment", "notebook"])
def test_pending_cases_are_listed_with_the_next_command_and_their_reason_is_said_once(place: str) -> None:
    text = printed(waiting_run(), place)
    assert text.count(WAITS) == 1
    assert COMMAND in text
    assert "poem-25" in text
    assert "poem-00" in text


def test_a_model_is_named_only_for_what_the_rule_based_judge_left_open() -> None:
    run = waiting_run(1)
    pending = pending_cases(run, verdict(run))
    assert pending is not None
    assert pending.title == "1 case is pending"
    assert pending.commands == [("grade it", COMMAND)]

    judged = trial("faith", PENDING, "x", score(PENDING, None, "Faithfulness", reasoning="no rule", details=RULES))
    run = make_run([judged], store="elsewhere/my results")
    pending = pending_cases(run, verdict(run))
    assert pending is not None
    store = "--store 'elsewhere/my results'"
    assert [command for _, command in pending.commands] == [
        f"{COMMAND} {store}",
        f"proctor rescore 20260101-000000-cafe --judge PROVIDER:MODEL {store}",
    ]


def test_a_run_that_is_not_stored_names_no_command_that_could_not_find_it() -> None:
    run = make_run([trial("a", PENDING, "x", score(PENDING, None, "Human", reasoning=WAITS))], store=None)
    pending = pending_cases(run, verdict(run))
    assert pending is not None
    assert pending.commands == []
    judged = trial("faith", PENDING, "x", score(PENDING, None, "Faithfulness", reasoning="no rule", details=RULES))
    run = make_run([judged], store=None)
    pending = pending_cases(run, verdict(run))
    assert pending is not None
    assert pending.commands == [("let a model judge it", 'run.rescore(judge="PROVIDER:MODEL")')]


def test_the_json_report_has_the_next_command_too() -> None:
    data = json.loads(report(json_report, waiting_run()))
    assert data["pending"]["commands"] == [COMMAND]
    assert data["pending"]["reasons"] == [f"26 cases: {WAITS}"]
    assert len(data["pending"]["cases"]) == 26


def test_a_run_without_pending_cases_says_nothing_about_them() -> None:
    run = make_run([trial("a", PASSED, "x")])
    assert pending_cases(run, verdict(run)) is None
    assert 'id="pending"' not in printed(run, "html")


@pytest.mark.parametrize("place", ["terminal", "html", "markdown", "step summary", "notebook"])
def test_a_pass_rate_says_of_how_many_cases(place: str) -> None:
    """`1 of 28 cases passed` stands next to a rate of the two cases that passed or failed."""
    text = " ".join(re.sub("<[^>]*>", "", printed(waiting_run(), place)).split())
    assert "50.0% of 2 cases" in text
