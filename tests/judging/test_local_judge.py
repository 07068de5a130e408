"""Local models are asked for one word about one statement, and never for a text that a score would rest on."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from judge_server import Asked, JudgeServer, judge_server, says, status
from logit_server import with_logits

from proctor.cases.suite import NamedData
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.evaluators.judged_evaluator import NoVerdict
from proctor.evaluators.rag import (
    AnswerCorrectness,
    AnswerRelevancy,
    ContextualRecall,
    ContextualRelevancy,
    Faithfulness,
)
from proctor.evaluators.rubric.marks import GEval
from proctor.judging.context import JudgeContext, judge_context
from proctor.judging.judge_factory import SharedJudges
from proctor.judging.local_judge import HELPS, MEETS, SAID, evidence, scale_of
from proctor.judging.prompts import short_prompt_of
from proctor.judging.questions import claims

QUESTION = "How long do refunds take, and what does shipping cost?"
ANSWER = "Hello! Refunds take 5 days. Shipping to Norway costs 90 euros."
PASSAGES = ("Refunds take 5 days.", "Shipping to Norway costs 12 euros.")
KNOWN = {
    " ".join(sample.material["statement"].split()): sample.word  # type: ignore[union-attr]
    for kind in (SAID, HELPS)
    for sample in kind.known
}

Chances = Callable[[str], Mapping[str, float]]


def about(asked: Asked) -> str:
    """The text that the request asks about: the last thing between marks."""
    return re.findall(r"<statement-\w+>\n(.*?)\n</statement-", asked.last, re.DOTALL)[-1]


def reluctant(says_yes: Callable[[str], bool]) -> Any:
    """A model that says no to everything, and is less sure of it where a yes is right."""

    def script(asked: Asked) -> Any:
        statement = about(asked)
        is_right = KNOWN[statement] == "yes" if statement in KNOWN else says_yes(statement)
        return with_logits(("no", {"no": 0.6, "yes": 0.3} if is_right else {"no": 0.8, "yes": 0.1}))

    return script


def evaluated(evaluator: Any, server: JudgeServer, answer: str = ANSWER, **options: Any) -> Evaluation:
    async def work() -> Any:
        case = Evaluable(
            eval_input=[NamedData("input", QUESTION)],
            eval_output=[NamedData("output", answer)],
            expectation="Refunds take 5 days. Shipping is 12 euros.",
            retrieval_context=PASSAGES,
        )
        with judge_context(JudgeContext(SharedJudges(), {"model": f"local:{server.root}", **options})):
            return await evaluator(case)

    found = asyncio.run(work())
    assert isinstance(found, Evaluation)
    return found


def verdicts(found: Evaluation) -> list[tuple[str, str]]:
    return [(item["text"], item["verdict"]) for item in found.details["findings"]]


FIVE_DAYS, NORWAY = "Refunds take 5 days.", "Shipping to Norway costs 90 euros."


def test_a_model_that_says_no_to_everything_is_read_by_how_sure_it_is_where_the_answer_is_known() -> None:
    with judge_server(reluctant(lambda statement: "5 days" in statement)) as server:
        found = evaluated(Faithfulness(), server)
    assert verdicts(found) == [(FIVE_DAYS, "supported"), (NORWAY, "contradicted")]
    assert [item["credit"] for item in found.details["findings"]] == pytest.approx([0.9, 0.1], abs=0.01)


def test_one_word_is_asked_for_by_grammar_with_examples_before_it() -> None:
    with judge_server(reluctant(lambda statement: True)) as server:
        evaluated(Faithfulness(), server)
        asked = next(each for each in server.requests if about(each) == NORWAY)
    assert asked.body["grammar"] == 'root ::= "yes" | "no" | "unclear"'
    assert "response_format" not in asked.body
    assert [said["role"] for said in asked.messages] == ["system", *["user", "assistant"] * len(SAID.shown), "user"]
    assert {said["content"] for said in asked.messages if said["role"] == "assistant"} == {"yes", "no", "unclear"}
    assert asked.system.endswith("Reply with one word: yes, no or unclear.")
    assert ANSWER not in json.dumps(asked.body)


def test_whatever_all_questions_of_a_kind_share_comes_first_so_that_it_is_read_once() -> None:
    with judge_server(reluctant(lambda statement: True)) as server:
        evaluated(Faithfulness(), server)
        beginnings = {json.dumps(each.messages[:-1]) for each in server.requests}
    assert len(beginnings) == 1


def test_a_model_is_shown_the_sentences_that_speak_of_the_statement_and_no_others() -> None:
    passages = [
        "The shop is in Bergen. It was opened in 1998. Refunds take 5 days.",
        "Gift cards are valid for a year. Nobody likes rain. A refund goes back to the card.",
    ]
    found = evidence("Refunds take 5 days and go back to the card.", passages).splitlines()
    assert evidence("It was opened in 1998.", passages) == "It was opened in 1998."
    assert found == ["Refunds take 5 days.", "Gift cards are valid for a year.", "A refund goes back to the card."]
    assert evidence("Cats sleep.", ["One.", "Two.", "Three.", "Four."]) == "One.\nTwo.\nThree."


def test_a_statement_stands_between_marks_that_it_cannot_hold() -> None:
    every = [f"{number:04x}" for number in range(0x10000)]
    prompt = short_prompt_of(SAID.about({"passage": "So.", "statement": " ".join(every)}))
    (mark,) = set(re.findall(r"<statement-(\w+)>", prompt.user))
    assert mark not in every


def test_known_answers_are_asked_for_once() -> None:
    judges = SharedJudges()

    async def twice(server: JudgeServer) -> None:
        judge = judges.panel({"model": f"local:{server.root}"}).judges[0]
        for text in ("One.", "Two."):
            await judge.ask(claims([text], ["One."]))

    with judge_server(reluctant(lambda statement: True)) as server:
        asyncio.run(twice(server))
        assert len(server.requests) == 2 + len(SAID.known)


def test_a_model_that_finds_known_answers_alike_gives_an_error_and_no_score() -> None:
    same = with_logits(("yes", {"yes": 0.9, "no": 0.1}))
    with judge_server(same) as server, pytest.raises(NoVerdict, match="name a larger model"):
        evaluated(Faithfulness(), server)


@pytest.mark.parametrize("reply", ["...", "The passages say so.", "Reply with one word", "maybe", ""])
def test_a_reply_that_is_none_of_the_words_is_sent_back_once_and_then_an_error(reply: str) -> None:
    with judge_server(reply) as server:
        with pytest.raises(NoVerdict, match="asked twice"):
            evaluated(Faithfulness(), server, answer=FIVE_DAYS)
        assert len(server.requests) == 2
        assert "Reply again with one word: yes, no or unclear." in server.requests[1].last


@pytest.mark.parametrize("reply", ["yes", "Yes.", " yes\n", '"yes"', '{"word": "yes"}'])
def test_a_server_without_probabilities_is_taken_at_its_word(reply: str) -> None:
    with judge_server(reply) as server:
        found = evaluated(Faithfulness(), server)
        assert len(server.requests) == 2
    assert (found.score, verdicts(found)) == (1.0, [(FIVE_DAYS, "supported"), (NORWAY, "supported")])


def test_a_server_that_refuses_grammars_is_asked_without() -> None:
    def script(asked: Asked) -> Any:
        return status(400, "unknown field: grammar") if "grammar" in asked.body else says("unclear")

    with judge_server(script) as server:
        found = evaluated(Faithfulness(), server, answer=FIVE_DAYS)
    assert verdicts(found) == [(FIVE_DAYS, "unmentioned")]


def test_relevancy_asks_of_each_statement_whether_it_helps_and_of_no_greeting() -> None:
    with judge_server(reluctant(lambda statement: "Refunds" in statement)) as server:
        found = evaluated(AnswerRelevancy(), server)
        asked = {about(each) for each in server.requests} - set(KNOWN)
    assert asked == {FIVE_DAYS, NORWAY}
    assert verdicts(found) == [("Hello!", "partly relevant"), (FIVE_DAYS, "relevant"), (NORWAY, "irrelevant")]


def test_faithfulness_does_not_ask_what_is_relevant() -> None:
    with judge_server(reluctant(lambda statement: True)) as server:
        evaluated(Faithfulness(), server)
        assert not [each for each in server.requests if HELPS.instructions in each.system]


def test_an_expected_answer_is_split_by_rule_too() -> None:
    with judge_server(reluctant(lambda statement: "5 days" in statement)) as server:
        recall = evaluated(ContextualRecall(), server)
        relevance = evaluated(ContextualRelevancy(), server)
        correct = evaluated(AnswerCorrectness(answer_similarity_weight=0.0), server)
    assert [item["text"] for item in recall.details["findings"]] == [FIVE_DAYS, "Shipping is 12 euros."]
    assert recall.score == pytest.approx(0.5, abs=0.01)
    assert relevance.score == pytest.approx(0.5, abs=0.01)
    assert correct.details["factuality"] < 0.5


CRITERIA = "The answer is polite and names a price."


def test_the_criteria_are_the_only_step_of_a_local_model_and_are_asked_for_by_a_word() -> None:
    def script(asked: Asked) -> Any:
        known = re.findall(r"<answer-\w+>\n(.*?)\n</answer-", asked.last)[-1]
        is_right = known in [each.material["answer"] for each in MEETS.known if each.word == "yes"]
        return with_logits(("no", {"no": 0.6, "yes": 0.3} if is_right or known == ANSWER else {"no": 0.8, "yes": 0.1}))

    with judge_server(script) as server:
        found = evaluated(GEval(criteria=CRITERIA), server)
        asked = server.requests[0]
    assert found.details["steps"] == [CRITERIA]
    assert found.reasoning == "whether the criteria are met, the model answers yes"
    assert (found.score, found.details["mark"]) == pytest.approx((0.9, 9.0), abs=0.1)
    assert asked.last.startswith(f"The criteria: {CRITERIA}\n")
    assert asked.body["grammar"] == 'root ::= "yes" | "no"'
    assert len(server.requests) == 1 + len(MEETS.known)


@pytest.mark.parametrize(("word", "score"), [("yes", 1.0), ("no", 0.0)])
@pytest.mark.parametrize("given", [{"criteria": CRITERIA}, {"evaluation_steps": ("Be polite.", "Name a price.")}])
@pytest.mark.parametrize("strict_mode", [True, False])
def test_a_word_without_probabilities_is_all_or_nothing(word: str, score: float, given: Any, strict_mode: bool) -> None:
    with judge_server(word) as server:
        assert evaluated(GEval(**given, strict_mode=strict_mode), server).score == score


def test_a_rubric_is_marked_within_a_grammar() -> None:
    bands = ({"score_range": (0, 4), "expected_outcome": "rude"}, {"score_range": (5, 9), "expected_outcome": "polite"})
    with judge_server(json.dumps({"mark": "9", "reason": ""})) as server:
        found = evaluated(GEval(criteria=CRITERIA, rubric=bands), server)
        (asked,) = server.requests
    assert (found.score, found.details["steps"]) == (1.0, [CRITERIA])
    assert asked.system.count(CRITERIA) == 1
    schema = asked.body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["mark"] == {"enum": [str(mark) for mark in range(10)]}


def test_a_model_that_is_sure_of_itself_is_believed_as_it_is() -> None:
    scale = scale_of([0.999, 0.999, 0.001], ["yes", "yes", "no"])
    assert scale is not None
    assert scale.credit(0.9) == pytest.approx(0.9)
    assert scale_of([0.4, 0.4], ["yes", "no"]) is None
