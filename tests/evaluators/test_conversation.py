from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judge import ScriptedJudge, judged, seen

from proctor.agents.reply import Reply, ToolCall
from proctor.base.errors import JudgeFailed, NeedsModel
from proctor.cases.suite import NamedData, Turn
from proctor.evaluators.conversation import (
    ConversationCompleteness,
    KnowledgeRetention,
    RoleAdherence,
    TurnRelevancy,
)
from proctor.evaluators.evaluable import Evaluable, Exchange
from proctor.evaluators.evaluation import NothingToCompare
from proctor.judging.judge import Question
from proctor.judging.rule_judge.judge import RuleJudge

ALL = [RoleAdherence(role="a waiter"), KnowledgeRetention(), ConversationCompleteness(), TurnRelevancy()]


def talk(*answers: str, **more: Any) -> Evaluable:
    turns = tuple(Exchange(Turn(f"question {n}"), Reply(answer)) for n, answer in enumerate(answers, 1))
    return Evaluable(turns=turns, eval_output=[NamedData("output", answers[-1])] if answers else [], **more)


def ruled(*verdicts: str) -> dict[str, Any]:
    return {"verdicts": [{"number": n, "verdict": v, "reason": f"reason {n}"} for n, v in enumerate(verdicts, 1)]}


def remembered(*forgot: str, facts: tuple[int, ...] = (1,)) -> dict[str, Any]:
    return {
        "facts": [{"turn": turn, "text": f"fact of turn {turn}"} for turn in facts],
        "verdicts": [{"number": n, "reason": f"reason {n}", "forgot": each} for n, each in enumerate(forgot, 1)],
    }


def wanted(*satisfied: str) -> dict[str, Any]:
    return {"intentions": [{"text": f"wish {n}", "reason": "why", "satisfied": s} for n, s in enumerate(satisfied, 1)]}


@pytest.mark.parametrize("evaluator", ALL)
def test_a_conversation_is_looked_at_once_as_a_whole(evaluator: Any) -> None:
    assert evaluator.scope == "case"


@pytest.mark.parametrize("evaluator", ALL)
def test_without_a_conversation_there_is_nothing_to_judge(evaluator: Any) -> None:
    with pytest.raises(NothingToCompare, match="conversation"):
        judged(evaluator, Evaluable())


@pytest.mark.parametrize("evaluator", ALL)
def test_the_embedded_judge_cannot_answer_and_never_scores(evaluator: Any) -> None:
    with pytest.raises(NeedsModel, match="needs a model"):
        judged(evaluator, talk("one", "two"), RuleJudge())


def test_role_adherence_is_the_share_of_answers_in_the_role() -> None:
    judge = ScriptedJudge({"role-adherence": ruled("yes", "no", "yes")})
    evaluation = judged(RoleAdherence(role="a waiter"), talk("one", "two", "three"), judge)
    assert evaluation.score == pytest.approx(2 / 3)
    assert evaluation.reasoning == "2 of 3 answers stay in the role. out of role: “two” (reason 2)"
    assert judge.asked[0].material["role"] == "a waiter"


@pytest.mark.parametrize("key", ["chatbot_role", "chatbotRole"])
def test_the_role_may_stand_in_the_metadata_of_the_case(key: str) -> None:
    evaluation = judged(RoleAdherence(), talk("one", eval_metadata={key: "a nurse"}), {"role-adherence": ruled("yes")})
    assert evaluation.details["role"] == "a nurse"


@pytest.mark.parametrize("metadata", [None, {}, {"chatbot_role": ""}, {"chatbot_role": "  "}])
def test_without_a_role_there_is_nothing_to_adhere_to(metadata: Any) -> None:
    with pytest.raises(NothingToCompare, match="agent's role"):
        judged(RoleAdherence(), talk("one", eval_metadata=metadata))


@pytest.mark.parametrize("verdicts", [(), ("yes",), ("yes", "yes", "yes")])
def test_a_judge_must_speak_of_every_turn_once(verdicts: tuple[str, ...]) -> None:
    with pytest.raises(JudgeFailed, match="exactly one entry"):
        judged(RoleAdherence(role="x"), talk("one", "two"), {"role-adherence": ruled(*verdicts)})


def test_an_agent_that_says_nothing_is_neither_in_its_role_nor_out_of_it() -> None:
    with pytest.raises(NothingToCompare, match="are empty"):
        judged(RoleAdherence(role="x"), talk("", "  "))


def test_retention_takes_one_call_for_a_conversation_of_any_length() -> None:
    judge = ScriptedJudge({"knowledge-retention": remembered("no", "yes", "no")})
    evaluation = judged(KnowledgeRetention(), talk("one", "two", "three"), judge)
    assert judge.kinds == ["knowledge-retention"]
    assert evaluation.score == pytest.approx(2 / 3)
    assert evaluation.reasoning == "2 of 3 answers forget nothing. forgot: “two” (reason 2)"
    assert evaluation.details["facts"] == [{"turn": 1, "text": "fact of turn 1"}]


def test_answers_before_the_user_told_anything_do_not_count_as_remembering() -> None:
    reply = {"knowledge-retention": remembered("no", "no", "yes", facts=(3,))}
    assert judged(KnowledgeRetention(), talk("one", "two", "three"), reply).score == 0


def test_where_the_user_told_nothing_nothing_can_be_forgotten() -> None:
    with pytest.raises(NothingToCompare, match="stated no facts"):
        judged(KnowledgeRetention(), talk("one"), {"knowledge-retention": remembered("no", facts=())})


@pytest.mark.parametrize("turn", [0, 3, -1])
def test_a_fact_of_a_turn_that_does_not_exist_is_not_believed(turn: int) -> None:
    with pytest.raises(JudgeFailed, match="numbered from 1 to 2"):
        judged(KnowledgeRetention(), talk("a", "b"), {"knowledge-retention": remembered("no", "no", facts=(1, turn))})


def test_completeness_is_the_share_of_intentions_that_were_satisfied() -> None:
    judge = ScriptedJudge({"conversation-completeness": wanted("yes", "no")})
    evaluation = judged(ConversationCompleteness(), talk("one", "two"), judge)
    assert evaluation.score == 0.5
    assert evaluation.reasoning == "1 of 2 requests were satisfied. not satisfied: “wish 2” (why)"
    assert len(judge.asked) == 1


def test_completeness_sees_what_the_tools_did() -> None:
    judge = ScriptedJudge({"conversation-completeness": wanted("yes")})
    exchange = Exchange(Turn("Book it"), Reply("Done", tool_calls=(ToolCall("book", {"n": 1}, result="ok"),)))
    judged(ConversationCompleteness(), Evaluable(turns=(exchange,)), judge)
    assert any("book(" in line and "ok" in line for line in judge.asked[0].material["line"])


def test_a_conversation_without_intentions_is_skipped() -> None:
    with pytest.raises(NothingToCompare, match="requested nothing"):
        judged(ConversationCompleteness(), talk("one"), {"conversation-completeness": wanted()})


def test_one_question_and_its_answer_are_a_conversation_too() -> None:
    evaluation = judged(TurnRelevancy(), seen("Nine.", "When do you open?"), {"turn-relevancy": ruled("yes")})
    assert evaluation.score == 1


def ruled_for(question: Question[Any], verdict: str) -> dict[str, Any]:
    return ruled(*[verdict] * (len(question.material["line"]) // 2))


def test_long_conversations_are_judged_in_parts_that_see_what_came_before() -> None:
    judge = ScriptedJudge({"turn-relevancy": lambda question: ruled_for(question, "yes")})
    evaluation = judged(TurnRelevancy(window=2), talk("one", "two", "three", "four", "five"), judge)
    assert evaluation.score == 1
    assert len(judge.asked) == 3
    assert [len(question.material["line"]) // 2 for question in judge.asked] == [2, 2, 1]
    assert "earlier" not in judge.asked[0].material
    assert judge.asked[2].material["earlier"][-1].endswith("four")
    assert len(judge.asked[2].material["earlier"]) == 4


@pytest.mark.parametrize("window", [0, -1, 1.5, True, "10"])
def test_a_window_is_a_whole_number(window: Any) -> None:
    with pytest.raises(ValueError, match="window must be"):
        TurnRelevancy(window=window)


def test_an_empty_answer_is_not_relevant_whatever_the_judge_says() -> None:
    evaluation = judged(TurnRelevancy(), talk("one", ""), {"turn-relevancy": ruled("yes", "yes")})
    assert evaluation.score == 0.5
    assert "unanswered: “question 2” (the answer is empty)" in evaluation.reasoning


def test_no_judge_is_asked_about_a_conversation_without_answers() -> None:
    judge = ScriptedJudge()
    assert judged(TurnRelevancy(), talk("", " "), judge).score == 0
    assert judge.asked == []


@given(st.lists(st.booleans(), min_size=1, max_size=25), st.integers(1, 12))
def test_relevancy_is_the_share_of_relevant_turns_however_they_are_split(relevant: list[bool], window: int) -> None:
    def reply(question: Question[Any]) -> dict[str, Any]:
        answers = [line.rpartition(" ")[2] for line in question.material["line"][1::2]]
        return ruled(*["yes" if answer == "good" else "no" for answer in answers])

    evaluable = talk(*["good" if each else "bad" for each in relevant])
    evaluation = judged(TurnRelevancy(window=window), evaluable, {"turn-relevancy": reply})
    assert evaluation.score == pytest.approx(sum(relevant) / len(relevant))
    assert len(evaluation.details["findings"]) == len(relevant)


@given(st.lists(st.sampled_from(["yes", "no"]), min_size=1, max_size=12), st.data())
def test_retention_counts_the_turns_from_the_first_fact_on(forgot: list[str], data: st.DataObject) -> None:
    facts = data.draw(st.lists(st.integers(1, len(forgot)), min_size=1, max_size=4))
    reply = {"knowledge-retention": remembered(*forgot, facts=tuple(facts))}
    counted = forgot[min(facts) - 1 :]
    evaluation = judged(KnowledgeRetention(), talk(*["text"] * len(forgot)), reply)
    assert evaluation.score == pytest.approx(counted.count("no") / len(counted))


@given(st.text(), st.text())
def test_any_words_can_be_asked_about(question: str, answer: str) -> None:
    judge = ScriptedJudge({"conversation-completeness": wanted("yes")})
    assert judged(ConversationCompleteness(), seen(answer, question), judge).score == 1
