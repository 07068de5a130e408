from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judge import ScriptedJudge, judged, seen
from tool_marks import needing

import proctor
from proctor.agents.reply import Reply, ToolCall
from proctor.base.errors import JudgeFailed, UsageError
from proctor.cases.suite import Turn
from proctor.evaluators.evaluable import Exchange
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.judged_evaluator import Finding, JudgeAbstained, mean, mean_of_findings
from proctor.evaluators.material import passages
from proctor.evaluators.retrieval import (
    AnswerRelevancy,
    ContextEntityRecall,
    ContextRelevancy,
    ContextualPrecision,
    ContextualRecall,
    ContextualRelevancy,
    Faithfulness,
    average_precision,
)
from proctor.judging.prompts import prompt_of
from proctor.judging.rule_judge.judge import RuleJudge

PASSAGES = ("The shop opens at nine.", "It is closed on Mondays.", "Parking is free.")


def said(*relevant: str, claim: str = "yes", **more: Any) -> dict[str, Any]:
    """The reply to what an answer says."""
    return {
        "statements": [
            {"text": f"statement {number}", "claim": claim, "relevant": verdict, "reason": "off topic", **more}
            for number, verdict in enumerate(relevant, 1)
        ]
    }


def verdicts(*given: str) -> dict[str, Any]:
    found = [{"number": n, "verdict": verdict, "reason": f"reason {n}"} for n, verdict in enumerate(given, 1)]
    return {"verdicts": found}


def test_relevancy_is_the_share_of_statements_about_the_question_background_included() -> None:
    evaluation = judged(AnswerRelevancy(), seen("text"), {"statements": said("yes", "partly", "no", "yes")})
    assert evaluation.score == 0.75
    assert evaluation.reasoning == "3 of 4 statements address the question. irrelevant: “statement 3” (off topic)"
    assert [item["verdict"] for item in evaluation.details["findings"]] == [
        "relevant",
        "partly relevant",
        "irrelevant",
        "relevant",
    ]


@pytest.mark.parametrize("answer", ["", " \n", None])
def test_an_empty_answer_is_not_relevant_and_no_judge_is_asked(answer: Any) -> None:
    judge = ScriptedJudge()
    assert judged(AnswerRelevancy(), seen(answer), judge).score == 0
    assert judge.asked == []


def test_an_answer_that_says_nothing_is_not_relevant() -> None:
    assert judged(AnswerRelevancy(), seen("..."), {"statements": said()}).score == 0


def test_relevancy_without_a_question_is_skipped() -> None:
    with pytest.raises(NothingToCompare, match="question"):
        judged(AnswerRelevancy(), seen("text", question=None))


CLAIMS = {
    "statements": said("yes", "yes", "yes", "no"),
    "claims": verdicts("supported", "unmentioned", "contradicted", "supported"),
}


def test_grounded_faithfulness_counts_only_what_is_supported() -> None:
    replies = {"statements": said("yes", "yes"), "claims": verdicts("supported", "unmentioned")}
    evaluation = judged(Faithfulness(), seen("text", retrieval_context=PASSAGES), replies)
    assert evaluation.score == 0.5
    assert evaluation.reasoning == "1 of 2 claims are supported by the passages. unmentioned: “statement 2” (reason 2)"


@pytest.mark.parametrize("mode", ["grounded", "contradicted"])
def test_one_contradicted_claim_fails_an_answer_and_is_shown_first(mode: Any) -> None:
    evaluation = judged(Faithfulness(mode=mode), seen("text", retrieval_context=PASSAGES), CLAIMS, threshold=0.0)
    assert (evaluation.score, evaluation.passed) == (0.0, False)
    assert evaluation.reasoning.partition(". ")[2].startswith("contradicted: “statement 3” (reason 3)")


def test_the_other_mode_holds_only_contradictions_against_an_answer() -> None:
    replies = {"statements": said("yes", "yes"), "claims": verdicts("supported", "unmentioned")}
    evaluation = judged(Faithfulness(mode="contradicted"), seen("text", retrieval_context=PASSAGES), replies)
    assert evaluation.score == 1
    assert evaluation.details["mode"] == "contradicted"


def test_verdicts_in_another_order_belong_to_their_numbers() -> None:
    shuffled = {"verdicts": list(reversed(verdicts("supported", "contradicted")["verdicts"]))}
    replies = {"statements": said("yes", "yes"), "claims": shuffled}
    found = judged(Faithfulness(), seen("text", retrieval_context=PASSAGES), replies).details["findings"]
    assert {item["text"]: item["verdict"] for item in found} == {
        "statement 1": "supported",
        "statement 2": "contradicted",
    }


def test_too_few_verdicts_are_an_error_and_no_score() -> None:
    with pytest.raises(JudgeFailed, match=r"gave 1 verdict for 2 statements \(none for 2\)"):
        judged(
            Faithfulness(),
            seen("text", retrieval_context=PASSAGES),
            {"statements": said("yes", "yes"), "claims": verdicts("supported")},
        )


@pytest.mark.parametrize(
    ("answer", "reply"),
    [("", said()), ("...", said()), ("Hello! How can I help?", said("partly", "partly", claim="no"))],
)
def test_an_answer_without_claims_is_neither_faithful_nor_unfaithful(answer: str, reply: dict[str, Any]) -> None:
    with pytest.raises(NothingToCompare, match=r"makes no claim|is empty"):
        judged(Faithfulness(), seen(answer, retrieval_context=PASSAGES), {"statements": reply})


@pytest.mark.parametrize("evaluator", [Faithfulness(), ContextualRelevancy(), ContextRelevancy()])
@pytest.mark.parametrize("texts", [None, (), ("", " ")])
def test_without_passages_there_is_nothing_to_compare(evaluator: Any, texts: Any) -> None:
    with pytest.raises(NothingToCompare, match="passages"):
        judged(evaluator, seen("text", retrieval_context=texts))


def test_an_unknown_mode_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="grounded, contradicted"):
        Faithfulness(mode="strict")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "score"),
    [("yyn", 1.0), ("yny", 5 / 6), ("nyn", 0.5), ("nny", 1 / 3), ("nnn", 0.0), ("yyy", 1.0)],
)
def test_precision_rewards_useful_passages_that_come_first(given: str, score: float) -> None:
    reply = verdicts(*("yes" if letter == "y" else "no" for letter in given))
    case = seen("text", expectation="nine", retrieval_context=PASSAGES)
    assert judged(ContextualPrecision(), case, {"useful-passages": reply}).score == pytest.approx(score)


def test_recall_is_the_share_of_expected_sentences_found_in_the_passages() -> None:
    case = seen("text", expectation="It opens at nine. It has a cat.", retrieval_context=PASSAGES)
    sentences = [
        {"text": "It opens at nine.", "reason": "passage 1", "attributable": "yes"},
        {"text": "It has a cat.", "reason": "no passage", "attributable": "no"},
    ]
    evaluation = judged(ContextualRecall(), case, {"attributions": {"sentences": sentences}})
    assert evaluation.score == 0.5
    assert "not attributable: “It has a cat.” (no passage)" in evaluation.reasoning
    with pytest.raises(JudgeFailed, match="at least one sentence"):
        judged(ContextualRecall(), case, {"attributions": {"sentences": []}})


@pytest.mark.parametrize("evaluator", [ContextualPrecision(), ContextualRecall(), ContextEntityRecall()])
def test_what_is_held_against_the_expected_answer_is_skipped_without_one(evaluator: Any) -> None:
    with pytest.raises(NothingToCompare, match="expected"):
        judged(evaluator, seen("text", retrieval_context=PASSAGES))


def sentences(*relevant: tuple[int, str, str]) -> dict[str, Any]:
    return {"sentences": [{"passage": number, "text": text, "relevant": verdict} for number, text, verdict in relevant]}


def test_relevancy_of_passages_goes_by_statements_or_by_length() -> None:
    case = seen("text", retrieval_context=("12345678", "90"))
    reply = {"relevant-sentences": sentences((1, "1234", "yes"), (1, "5678", "no"), (2, "90", "yes"))}
    assert judged(ContextualRelevancy(), case, reply).score == pytest.approx(2 / 3)
    assert judged(ContextRelevancy(), case, reply).score == pytest.approx(6 / 10)
    assert judged(ContextualRelevancy(by="length"), case, reply).score == pytest.approx(6 / 10)


def test_passages_that_are_all_about_the_question_are_wholly_relevant_by_length() -> None:
    case = seen("text", retrieval_context=("It rains. It pours.", "It is wet."))
    reply = {
        "relevant-sentences": sentences((1, "It rains.", "yes"), (1, "It pours.", "yes"), (2, "It is wet.", "yes"))
    }
    assert judged(ContextRelevancy(), case, reply).score == 1.0


def test_a_judge_that_writes_more_than_was_there_gives_no_more_than_one() -> None:
    case = seen("text", retrieval_context=("12345678",))
    assert judged(ContextRelevancy(), case, {"relevant-sentences": sentences((1, "x" * 99, "yes"))}).score == 1


@pytest.mark.parametrize(
    "reply", [sentences(), sentences((1, "a", "yes")), sentences((1, "a", "yes"), (3, "b", "yes"))]
)
def test_a_passage_that_is_left_out_or_made_up_is_an_error(reply: dict[str, Any]) -> None:
    with pytest.raises(JudgeFailed, match="each passage from 1 to 2"):
        judged(ContextualRelevancy(), seen("text", retrieval_context=("a", "b")), {"relevant-sentences": reply})


def test_entity_recall_is_the_share_of_entities_that_the_passages_name() -> None:
    case = seen("text", expectation="Ada met Grace in 1950.", retrieval_context=PASSAGES)
    found = [{"text": name, "found": verdict} for name, verdict in [("Ada", "yes"), ("Grace", "no"), ("1950", "no")]]
    evaluation = judged(ContextEntityRecall(), case, {"entities": {"entities": found}})
    assert evaluation.score == pytest.approx(1 / 3)
    assert "missing: “Grace”; missing: “1950”" in evaluation.reasoning
    with pytest.raises(NothingToCompare, match="has no names"):
        judged(ContextEntityRecall(), case, {"entities": {"entities": []}})


FINDINGS = st.lists(
    st.builds(
        Finding,
        text=st.text(),
        verdict=st.sampled_from(["supported", "contradicted"]),
        counts=st.booleans(),
        reason=st.text(),
    )
)


@given(FINDINGS)
def test_a_share_lies_between_nothing_and_everything_and_counts_every_item(findings: list[Finding]) -> None:
    evaluation = mean_of_findings(findings, "things are fine")
    assert 0 <= evaluation.score <= 1
    assert len(evaluation.details["findings"]) == len(findings)
    holding = sum(finding.counts for finding in findings)
    assert evaluation.reasoning.startswith(f"{holding} of {len(findings)} things are fine")


@given(FINDINGS.filter(bool), st.data())
def test_one_more_item_that_holds_never_lowers_a_share(findings: list[Finding], data: Any) -> None:
    place = data.draw(st.integers(0, len(findings) - 1))
    item = findings[place]
    better = [*findings[:place], Finding(item.text, "supported", True), *findings[place + 1 :]]
    assert mean_of_findings(better, "").score >= mean_of_findings(findings, "").score - 1e-12


@given(st.lists(st.floats(0, 1)))
def test_a_mean_stays_between_its_extremes(values: list[float]) -> None:
    assert mean(values) == 0 if not values else min(values) - 1e-12 <= mean(values) <= max(values) + 1e-12


@given(st.lists(st.booleans()))
def test_average_precision_is_bounded_and_perfect_only_for_useful_ones_first(useful: list[bool]) -> None:
    score = average_precision(useful)
    assert 0 <= score <= 1
    assert (score > 0) == any(useful)
    assert (score == 1) == (any(useful) and useful == sorted(useful, reverse=True))


@given(st.lists(st.booleans(), min_size=1), st.data())
def test_moving_a_useful_passage_up_never_lowers_precision(useful: list[bool], data: Any) -> None:
    place = data.draw(st.integers(0, len(useful) - 1))
    moved = [*useful[:place], *useful[place + 1 :]]
    moved.insert(data.draw(st.integers(0, place)), useful[place])
    if useful[place]:
        assert average_precision(moved) >= average_precision(useful) - 1e-12


def test_a_degree_of_certainty_that_a_model_writes_itself_is_not_believed() -> None:
    unsure = {"verdicts": [{**item, "partial_credit": 1.0} for item in verdicts("unmentioned")["verdicts"]]}
    replies = {"statements": said("yes"), "claims": unsure}
    assert judged(Faithfulness(), seen("text", retrieval_context=PASSAGES), replies).score == 0


LOAN = "Your loan is approved at 3 percent."
MADE_UP = [
    (ToolCall("send_email", {"body": LOAN}, result="sent"), LOAN),
    (ToolCall("quote", {"amount": 500}, error="the service is down"), "The amount is 500."),
    (ToolCall("quote", {"amount": 500}, result={"error": "the service is down"}), "The amount is 500."),
    (ToolCall("send_email", {"body": LOAN}, result={"status": "sent", "body": LOAN}), LOAN),
    (ToolCall("note", {"lines": [LOAN]}, result=f"saved: {LOAN}"), LOAN),
    (ToolCall("quote", {"amount": 500}, error="amount 500 refused"), "The amount is 500."),
    (ToolCall("quote", {"amount": 500}, result={"error": {"amount": 500}}), "The amount is 500."),
]


@pytest.mark.parametrize(("call", "answer"), MADE_UP)
@pytest.mark.parametrize("evaluator", ["Faithfulness", needing("adk", "Hallucinations")])
def test_what_the_agent_passed_to_a_tool_is_no_evidence(evaluator: str, call: ToolCall, answer: str) -> None:
    turns = (
        Exchange(Turn("Am I a good customer?"), Reply(answer, tool_calls=(call,))),
        Exchange(Turn("And now?"), Reply(answer)),
    )
    for evaluable in (
        seen(answer, "And now?", tool_calls=(call,)),
        seen(answer, "And now?", tool_calls=(call,), turns=turns),
    ):
        try:
            passed = judged(getattr(proctor, evaluator)(), evaluable, RuleJudge(), threshold=0.8).score >= 0.8
        except JudgeAbstained:
            passed = False
        assert not passed


@pytest.mark.parametrize(("call", "answer"), MADE_UP)
@pytest.mark.parametrize(
    "evaluator",
    ["Faithfulness", "ContextualRelevancy", needing("deepeval", "Hallucination"), needing("adk", "Hallucinations")],
)
def test_no_judge_sees_the_arguments_of_a_call_as_evidence(evaluator: str, call: ToolCall, answer: str) -> None:
    judge = ScriptedJudge({"statements": said("yes")})
    with contextlib.suppress(AssertionError):  # it has no reply to the question that counts
        judged(getattr(proctor, evaluator)(), seen("It is.", "How much?", tool_calls=(call,)), judge)
    sent = "\n".join(prompt_of(question).user for question in judge.asked)
    assert call.name in sent
    assert not [text for text in ("500", LOAN) if text in sent]


def test_an_answer_may_repeat_what_a_tool_returned() -> None:
    call = ToolCall("quote", {"amount": 500}, result={"rate": "3 percent"})
    evaluable = seen("The rate is 3 percent.", "What is the rate if the amount is 500?", tool_calls=(call,))
    assert judged(Faithfulness(), evaluable, RuleJudge(), threshold=0.8).score == 1


def test_the_rules_do_not_take_what_only_the_user_says_for_evidence() -> None:
    call = ToolCall("quote", {"amount": 500}, result={"rate": "3 percent"})
    evaluable = seen("The limit is 900.", "The limit is 900. What is the rate?", tool_calls=(call,))
    with pytest.raises(JudgeAbstained, match=r"cannot decide.*The limit is 900"):
        judged(Faithfulness(), evaluable, RuleJudge(), threshold=0.8)


def test_a_name_that_a_tool_repeats_with_its_answer_is_evidence() -> None:
    call = ToolCall("rate", {"city": "Oslo", "year": 2026}, result={"city": "Oslo", "year": 2026, "rate": "4 percent"})
    answer = "The rate in Oslo is 4 percent."
    evaluable = seen(answer, "What is the rate?", tool_calls=(call,))
    assert judged(Faithfulness(), evaluable, RuleJudge(), threshold=0.8).score == 1
    assert passages(evaluable) == ['{"tool": "rate", "result": {"city": "Oslo", "year": 2026, "rate": "4 percent"}}']


def test_passages_of_the_case_win_over_results_of_tools() -> None:
    call = ToolCall("find", {}, result="The shop opens at nine.")
    assert passages(seen("x", tool_calls=(call,), context=("It opens at ten.",))) == ["It opens at ten."]
    assert passages(seen("x", tool_calls=(call,), retrieval_context=("It is shut.",))) == ["It is shut."]
    assert passages(seen("x", tool_calls=(call,))) == ['{"tool": "find", "result": "The shop opens at nine."}']


class Hasty:
    """A judge from outside that leaves out verdicts."""

    name = "hasty"

    async def ask(self, question: Any, sample: int = 0) -> Any:
        replies = {"statements": said("yes", "yes"), "claims": verdicts("supported")}
        return question.reply.model_validate(replies[question.kind])


def test_an_incomplete_reply_of_any_judge_is_explained() -> None:
    with pytest.raises(JudgeFailed, match="hasty cannot be used: the judge gave 1 verdict for 2 statements"):
        judged(Faithfulness(), seen("text", retrieval_context=PASSAGES), Hasty())
