"""Which reason is shown first for a case that did not pass: the same one everywhere."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from reporting_samples import ERROR, FAILED, PASSED, PENDING, SKIPPED, make_run, report, score, trial

from proctor.reporting import build_findings
from proctor.reporting.comparison_report import write_markdown
from proctor.reporting.failing_cases import failing_cases
from proctor.reporting.html import report_page
from proctor.reporting.markdown.ci_pages import Comment, write_comment, write_step_summary
from proctor.results.comparison.compare import compare_runs
from proctor.results.reasons import headline_of_case, headline_reason
from proctor.results.run import Run
from proctor.results.verdict import verdict

COMMON, RARE, BROKEN = "the refund is missing", "the tone is wrong", "the judge timed out"


def run_with_several_reasons() -> Run:
    def failing(number: int, reason: str) -> object:
        return trial("a", FAILED, "No.", score(FAILED, 0.0, "Contains", reasoning=reason), number=number)

    broken = trial("a", ERROR, "No.", score(ERROR, None, "Judge", reasoning=BROKEN), number=1)
    return make_run([broken, failing(2, RARE), failing(3, COMMON), failing(4, COMMON)])  # type: ignore[list-item]


def test_the_worst_outcome_comes_first_and_then_what_most_trials_say() -> None:
    run = run_with_several_reasons()
    [case] = failing_cases(run, verdict(run))
    assert COMMON in case.headline
    assert [RARE in reason.text for reason in case.reasons] == [False, True, False]


@pytest.mark.parametrize("place", ["findings", "comment", "step summary", "html", "comparison"])
def test_every_report_shows_the_same_reason_first(place: str) -> None:
    run = run_with_several_reasons()
    out = io.StringIO()
    if place == "findings":
        out.write(build_findings.findings(run, verdict(run), {})[0].reason)
    elif place == "comment":
        write_comment(Comment(run, verdict(run)), out)
    elif place == "step summary":
        write_step_summary(run, verdict(run), out)
    elif place == "html":
        page = report(report_page, run)
        out.write(page[page.index('<section id="failures">') : page.index('<section id="evaluators">')])
    else:
        passing = (score(evaluator="Contains"), score(evaluator="Judge"))
        before = make_run([trial("a", PASSED, "Yes.", *passing, number=n) for n in (1, 2, 3, 4)])
        write_markdown(compare_runs(before, run), out)
    text = out.getvalue()
    assert COMMON in text
    assert min(text.find(other) % 10**9 for other in (RARE, BROKEN)) > text.index(COMMON)


def test_a_trial_says_why_itself_or_by_the_score_that_decides() -> None:
    informs = score(FAILED, 0.0, "Style", reasoning="too long", report_only=True)
    decides = score(FAILED, 0.2, "Contains", reasoning="no refund")
    assert headline_reason(trial("a", FAILED, "x", informs, decides)) == "Contains 0.20 < 0.50: no refund"
    assert headline_reason(trial("a", FAILED, "x", decides, reason="the agent raised")) == "the agent raised"
    assert headline_reason(trial("a", PENDING, "x", score(PENDING, None, "Human", reasoning="waits"))) == "waits"
    assert headline_reason(trial("a", SKIPPED, None, reason="the contract has ended")) == "the contract has ended"
    assert headline_reason(trial("a", PASSED, "x", informs)) == ""


def test_a_case_whose_trials_say_nothing_has_no_reason() -> None:
    assert headline_of_case(Counter({(FAILED, ""): 3})) == ""
    assert headline_of_case(Counter({(FAILED, ""): 3, (ERROR, "broke"): 1})) == "broke"
