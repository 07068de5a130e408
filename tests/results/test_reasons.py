"""Which reason is shown first for a case that did not pass: the same one everywhere."""

from __future__ import annotations

import io
import itertools
import random
from collections import Counter
from dataclasses import replace

import pytest
from builders import single
from reporting_samples import ERROR, FAILED, PASSED, PENDING, SKIPPED, make_run, report, score, trial

from proctor.cases.suite import EvaluatorSpec
from proctor.evaluators import family_of, shipped_evaluators
from proctor.reporting import build_findings
from proctor.reporting.comparison_report import write_markdown
from proctor.reporting.explain import explain
from proctor.reporting.failing_cases import failing_cases
from proctor.reporting.failure_causes import cause_name
from proctor.reporting.html import report_page
from proctor.reporting.markdown.ci_pages import Comment, write_comment, write_step_summary
from proctor.results.comparison.compare import compare_runs
from proctor.results.reasons import headline_of_case, headline_reason, scores_by_importance
from proctor.results.run import Run
from proctor.results.score import Score
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


JUDGED = {"judge": {"model": "rules", "calls": []}}
BY_MODEL = {"judge": {"model": "openai:gpt-5-mini", "calls": []}}
WRONG_AMOUNT = "refund: amount expected 20, got 200"


def failed(evaluator: str, reasoning: str = "wrong", **rest: object) -> Score:
    return replace(score(FAILED, 0.0, evaluator, reasoning=reasoning), **rest)  # type: ignore[arg-type]


def test_a_wrong_refund_is_the_headline_and_not_a_remark_about_the_answer() -> None:
    """Whatever the order of the evaluators in the suite."""
    remark = failed("Faithfulness", "the context does not say that 200 were refunded", details=JUDGED)
    missing = failed("Contains", "none of 'sorry' is in the answer")
    amount = failed("ExpectedTools", WRONG_AMOUNT)
    for scores in itertools.permutations((remark, missing, amount)):
        assert WRONG_AMOUNT in headline_reason(trial("refund", FAILED, "Refunded.", *scores))


def test_checks_come_in_the_order_of_what_they_say_about_the_failure() -> None:
    order = [
        failed("FinalState"),
        failed("own_check"),
        failed("ROUGE"),
        failed("ValidJSON"),
        failed("MaxLatency"),
        failed("Tone", details={"graded_by": "ann", **BY_MODEL}),
        failed("Toxicity", details=BY_MODEL),
        failed("GEval", details=BY_MODEL),
        failed("AnswerRelevancy", details=JUDGED),
        failed("Faithfulness", details=BY_MODEL),
        failed("Judge", details=BY_MODEL, report_only=True),
        score(PASSED, 1.0, "Contains"),
    ]
    for seed in range(20):
        shuffled = random.Random(seed).sample(order, len(order))
        names = [item.evaluator for item in scores_by_importance(trial("a", FAILED, "x", *shuffled))]
        assert names == [item.evaluator for item in order]


def test_a_check_that_gives_a_reason_comes_before_one_that_gives_none() -> None:
    silent, telling = failed("is_polite", ""), failed("has_total", "the total is 12 instead of 10")
    assert "the total is 12" in headline_reason(trial("a", FAILED, "x", silent, telling))


def test_an_evaluator_counts_as_what_it_is_whatever_the_suite_calls_it() -> None:
    specs = (EvaluatorSpec("ToolTrajectory", label="refunds the right amount"), EvaluatorSpec("checks.py:Faithfulness"))
    case = replace(single("a"), evaluators=specs)
    own, calls = failed("Faithfulness", "own code"), failed("refunds the right amount #2", WRONG_AMOUNT)
    assert WRONG_AMOUNT in headline_reason(trial(case, FAILED, "x", own, calls))


def test_the_family_of_every_shipped_evaluator_is_known() -> None:
    assert all(map(family_of, shipped_evaluators()))
    assert family_of("checks.py:mine") == ""


def test_the_explanation_of_a_failure_and_its_cause_start_with_the_headline() -> None:
    remark = failed("Faithfulness", "the context does not say so", details=JUDGED)
    one = trial("refund", FAILED, "Refunded.", remark, failed("ExpectedTools", WRONG_AMOUNT))
    reasons = [fact.label for fact in explain(one) if fact.outcome is not None]
    assert reasons == ["ExpectedTools", "Faithfulness"]
    assert cause_name(one).startswith("refund: amount expected")


def test_a_case_has_one_reason_in_python_and_in_reports() -> None:
    """Although every trial words the same failure in its own way, and another one comes first."""
    remark = trial("a", FAILED, "No.", failed("Faithfulness", "it says so nowhere", details=BY_MODEL), number=1)
    texts = [f'missing "{n} days"; got "{n} weeks"' for n in (2, 3, 4)]
    wrong = [trial("a", FAILED, "No.", failed("Contains", text), number=n) for n, text in enumerate(texts, 2)]
    run = make_run([remark, *wrong])
    [case] = failing_cases(run, verdict(run))
    assert run["a"].reason == case.headline
    assert "2 days" in case.headline
