from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judge import ScriptedJudge, judged, seen

from proctor.agents.reply import Reply, ToolCall
from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite, JudgeFailed, UsageError
from proctor.cases.suite import Suite, Turn
from proctor.compat.adk.criteria import METRICS
from proctor.compat.adk.eval_set import read_document
from proctor.compat.adk.hallucinations import Hallucinations
from proctor.compat.adk.judge_samples import VoteCount, count_votes, judge_from_options, majority_vote, votes_needed
from proctor.compat.adk.judged_metrics import (
    FinalResponseMatch,
    FinalResponseQuality,
    ResponseEvaluation,
    RubricEvaluator,
    Safety,
    ToolUseQuality,
    TrajectoryQuality,
    UserSimulatorQuality,
)
from proctor.evaluators.evaluable import Evaluable, Exchange
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.judge_questions import yes_no_question
from proctor.judging.judge import NeedsModel
from proctor.tracing.spans import (
    AssistantMessage,
    LLMSpan,
    SystemMessage,
    TextContent,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
    build_tree,
)

YES, NO = {"reason": "it fits", "verdict": "yes"}, {"reason": "it differs", "verdict": "no"}
LOST = JudgeFailed("no usable reply")
ASKED = seen("It is 5.", "How much?", "5 euros")


def yes_no_replies(*said: str) -> dict[str, Any]:
    return {"verdicts": [{"number": n, "reason": f"reason {n}", "verdict": v} for n, v in enumerate(said, 1)]}


def match_score(*replies: Any, samples: int = 5) -> tuple[float, int]:
    """The score of `FinalResponseMatch`, and how often the judge was asked for it."""
    judge = ScriptedJudge({"response-match": list(replies)})
    evaluation = judged(FinalResponseMatch(judge_model_options={"num_samples": samples}), ASKED, judge)
    return evaluation.score, len(judge.asked)


def test_most_samples_decide_and_no_more_are_asked_than_it_takes() -> None:
    assert match_score(YES, YES, YES) == (1.0, 3)
    assert match_score(NO, NO, NO) == (0.0, 3)
    assert match_score(YES, NO, YES, YES) == (1.0, 4)
    assert match_score(YES, NO, NO, YES, NO) == (0.0, 5)


def test_a_tie_is_lost() -> None:
    assert match_score(YES, NO, samples=2) == (0.0, 2)
    assert match_score(NO, samples=2) == (0.0, 1)
    assert match_score(YES, YES, NO, NO, samples=4) == (0.0, 4)


def test_samples_that_gave_no_vote_are_reported_next_to_those_that_did() -> None:
    evaluator = FinalResponseMatch(judge_model_options={"num_samples": 3})
    details = judged(evaluator, ASKED, {"response-match": [YES, LOST, YES]}).details
    assert details["votes"] == {"in_favour": 2, "against": 0, "abstained": ["no usable reply"]}


def test_a_reply_that_cannot_be_used_is_not_a_vote() -> None:
    assert match_score(LOST, LOST, YES, LOST, LOST) == (1.0, 5)
    assert match_score(LOST, NO, YES, YES, NO) == (0.0, 5)


def test_when_no_reply_can_be_used_nothing_is_known_of_the_answer() -> None:
    with pytest.raises(JudgeFailed):
        match_score(LOST, LOST, LOST, LOST, LOST)


def test_a_judge_without_a_model_is_asked_once_and_cannot_answer() -> None:
    judge = ScriptedJudge({"response-match": NeedsModel("no")})
    with pytest.raises(NeedsModel, match="FinalResponseMatch needs a model"):
        judged(FinalResponseMatch(judge_model_options={"parallelism_limit": 1}), ASKED, judge)
    assert len(judge.asked) == 1


def test_a_response_match_without_a_reference_is_skipped() -> None:
    with pytest.raises(NothingToCompare):
        judged(FinalResponseMatch(), seen("x"), {})


def test_five_samples_are_the_default_and_samples_are_separate() -> None:
    samples: list[int] = []

    class Counting(ScriptedJudge):
        async def ask(self, question: Any, *, sample: int = 0) -> Any:
            samples.append(sample)
            return await ScriptedJudge.ask(self, question)

    judge = Counting({"response-match": [YES, NO, YES, NO, YES]})
    judged(FinalResponseMatch(), ASKED, judge)
    assert samples == [0, 1, 2, 3, 4]


def test_a_limit_of_parallelism_is_kept() -> None:
    class Crowded(ScriptedJudge):
        inside = most = 0

        async def ask(self, question: Any, *, sample: int = 0) -> Any:
            self.inside += 1
            self.most = max(self.most, self.inside)
            await asyncio.sleep(0)
            self.inside -= 1
            return await ScriptedJudge.ask(self, question)

    for limit, most in ((None, 3), (2, 2), (1, 1)):
        judge = Crowded({"response-match": YES})
        options = {"parallelism_limit": limit} if limit else {}
        judged(FinalResponseMatch(judge_model_options=options), ASKED, judge)
        assert judge.most == most


def test_adks_options_say_who_judges() -> None:
    options = {"judge_model": "gemini-2.5-flash", "judge_model_config": {"temperature": 0.2, "safety_settings": []}}
    expected = {"judge_model": "gemini-2.5-flash", "judge_model_config": {"temperature": 0.2}}
    assert FinalResponseMatch(judge_model_options=options).model == expected
    assert FinalResponseMatch(judge_model_options=options, model="local:x.gguf").model == "local:x.gguf"
    assert judge_from_options({"num_samples": 3}) is None


@pytest.mark.parametrize(
    "options", [3, {"samples": 1}, {"num_samples": 0}, {"num_samples": True}, {"parallelism_limit": "2"}]
)
def test_options_that_adk_does_not_know_are_refused(options: Any) -> None:
    with pytest.raises(ValueError, match="judge_model_options"):
        Safety(judge_model_options=options)


@pytest.mark.parametrize(("mark", "score"), [(1, 0.0), (3, 0.5), (4.7, 0.925), (5, 1.0)])
def test_coherence_from_1_to_5_becomes_a_score(mark: float, score: float) -> None:
    evaluation = judged(ResponseEvaluation(), ASKED, {"coherence": {"reason": "so", "mark": mark}})
    assert evaluation.score == pytest.approx(score)


def test_the_middle_one_of_several_marks_decides() -> None:
    marks = [{"reason": str(mark), "mark": mark} for mark in (5, 1, 4)]
    options = {"num_samples": 4}
    evaluation = judged(ResponseEvaluation(judge_model_options=options), ASKED, {"coherence": [*marks, LOST]})
    assert (evaluation.score, evaluation.reasoning) == (0.75, "4")


def test_an_empty_answer_is_safe_and_not_coherent() -> None:
    judge = ScriptedJudge()
    assert judged(Safety(), seen(""), judge).score == 1.0
    assert judged(ResponseEvaluation(), seen(""), judge).score == 0.0


def test_safety_is_kept_or_violated() -> None:
    assert judged(Safety(), ASKED, {"safety": YES}).score == 1.0
    assert judged(Safety(), ASKED, {"safety": NO}).score == 0.0


RUBRICS = [
    {"rubric_id": "polite", "rubric_content": {"text_property": "It is polite."}},
    {"rubric_id": "short", "rubric_content": {"text_property": "It is short."}},
]


def test_each_rubric_has_its_own_majority_and_the_score_is_their_mean() -> None:
    replies = [yes_no_replies("yes", "no"), yes_no_replies("yes", "yes"), yes_no_replies("no", "no")]
    options = {"num_samples": 3}
    evaluator = FinalResponseQuality(rubrics=RUBRICS, judge_model_options=options)
    evaluation = judged(evaluator, ASKED, {"answer-rubrics": replies})
    assert evaluation.score == 0.5
    assert evaluation.reasoning == "not met: short (reason 2)"
    assert [entry["votes"] for entry in evaluation.details["rubrics"]] == [
        {"in_favour": 2, "against": 1},
        {"in_favour": 1, "against": 2},
    ]


def test_samples_go_on_until_every_rubric_is_decided() -> None:
    judge = ScriptedJudge({"answer-rubrics": [yes_no_replies("yes", v) for v in ("no", "yes", "no", "no")]})
    judged(FinalResponseQuality(rubrics=RUBRICS), ASKED, judge)
    assert len(judge.asked) == 4


def test_a_judge_that_leaves_a_rubric_out_has_not_voted() -> None:
    replies = [
        yes_no_replies("yes"),
        yes_no_replies("yes", "no"),
        yes_no_replies("yes", "no"),
        yes_no_replies("yes", "no"),
    ]
    assert judged(FinalResponseQuality(rubrics=RUBRICS), ASKED, {"answer-rubrics": replies}).score == 0.5


def test_rubrics_are_required_and_their_absence_skips() -> None:
    with pytest.raises(NothingToCompare, match="rubrics"):
        judged(ToolUseQuality(), ASKED, {})


def test_rubrics_that_cannot_be_read_are_the_files_fault() -> None:
    with pytest.raises(UsageError, match=r"case metadata: rubrics\[0\] has no text"):
        judged(ToolUseQuality(), seen("x", eval_metadata={"rubrics": [{}]}), {})


def eval_set(config: Mapping[str, Any], folder: Path) -> Suite:
    """An EvalSet with rubrics of the case, of each turn, and for other metrics."""

    def rubric(name: str, kind: str | None = None) -> dict[str, Any]:
        said = {"rubricId": name, "rubricContent": {"textProperty": f"The {name} one."}}
        return said if kind is None else {**said, "type": kind}

    def turn(text: str, *rubrics: Any) -> dict[str, Any]:
        return {"userContent": {"role": "user", "parts": [{"text": text}]}, "rubrics": list(rubrics)}

    data = {
        "evalSetId": "set",
        "evalCases": [
            {
                "evalId": "case",
                "rubrics": [rubric("case", "FINAL_RESPONSE_QUALITY"), rubric("tools", "TOOL_USE_QUALITY")],
                "conversation": [turn("One", rubric("first")), turn("Two", rubric("second", "TRAJECTORY_QUALITY"))],
            }
        ],
    }
    (folder / "test_config.json").write_text(json.dumps({"criteria": config}))
    path = folder / "set.evalset.json"
    path.write_text(json.dumps(data))
    [suite] = read_document(Document(path, path.read_text()))
    return suite


def evaluables(suite: Suite) -> list[Evaluable]:
    """What evaluators see of each turn."""
    [case] = suite.cases
    exchanges = [Exchange(turn, Reply(f"answer to {turn.input}")) for turn in case.turns]
    return [
        seen(
            each.reply.text,
            each.turn.input,
            eval_metadata=case.metadata,
            turn_metadata=each.turn.metadata,
            turns=tuple(exchanges[: number + 1]),
        )
        for number, each in enumerate(exchanges)
    ]


def rubric_texts(evaluator: RubricEvaluator, evaluable: Evaluable) -> list[str]:
    return [rubric.id for rubric in evaluator.applicable_rubrics(evaluable)]


def test_rubrics_of_case_and_turn_reach_the_evaluator_of_each_turn(tmp_path: Path) -> None:
    own = {"rubricId": "own", "rubricContent": {"textProperty": "The own one."}}
    metric = "rubric_based_final_response_quality_v1"
    suite = eval_set({metric: {"threshold": 0.8, "rubrics": [own]}}, tmp_path)
    evaluator = FinalResponseQuality(**suite.evaluators[0].arguments)
    first, second = evaluables(suite)
    assert rubric_texts(evaluator, first) == ["own", "case", "first"]
    assert rubric_texts(evaluator, second) == ["own", "case"]
    assert rubric_texts(ToolUseQuality(), second) == ["tools"]


def test_an_evaluator_of_the_conversation_sees_the_rubrics_of_all_turns(tmp_path: Path) -> None:
    suite = eval_set({"rubric_based_multi_turn_trajectory_quality_v1": 0.8}, tmp_path)
    _, whole = evaluables(suite)
    judge = ScriptedJudge({"conversation-rubrics": yes_no_replies("yes", "yes")})
    assert judged(TrajectoryQuality(), whole, judge).score == 1.0
    assert judge.asked[0].instructions.endswith("1. The first one.\n2. The second one.")
    assert list(judge.asked[0].material["line"]) == [
        "user, turn 1: One",
        "agent, turn 1: answer to One",
        "user, turn 2: Two",
        "agent, turn 2: answer to Two",
    ]


def test_a_judge_setting_without_effect_is_warned_about(tmp_path: Path) -> None:
    settings = {"temperature": 0, "topP": 0.5, "safetySettings": [], "seed": None}
    options = {"judgeModel": "gemini-2.5-flash", "judgeModelConfig": settings}
    suite = eval_set({"safety_v1": {"threshold": 0.5, "judgeModelOptions": options}}, tmp_path)
    [warning] = suite.warnings
    assert "judgeModelConfig.safetySettings has no effect" in str(warning)
    assert Safety(**suite.evaluators[0].arguments).model == {
        "judge_model": "gemini-2.5-flash",
        "judge_model_config": {"temperature": 0, "top_p": 0.5},
    }


def test_settings_for_a_judge_that_is_not_named_are_warned_about(tmp_path: Path) -> None:
    options = {"judge_model_config": {"temperature": 0}}
    suite = eval_set({"safety_v1": {"threshold": 0.5, "judge_model_options": options}}, tmp_path)
    assert "has no effect without judge_model" in str(suite.warnings[0])


@pytest.mark.parametrize(
    "rubric", [{"rubricId": "r"}, {"rubricId": "r", "rubricContent": {}}, {"rubricId": "r", "x": 1}, 3]
)
def test_a_rubric_of_a_case_that_says_nothing_is_a_problem_of_the_file(rubric: Any) -> None:
    turn = {"userContent": {"role": "user", "parts": [{"text": "x"}]}, "finalResponse": {"parts": [{"text": "y"}]}}
    data = {"evalId": "case", "conversation": [turn], "rubrics": [rubric]}
    with pytest.raises(InvalidSuite, match=r"rubrics\[0\]"):
        read_document(Document(Path("one.test.json"), json.dumps(data)))


def test_evaluators_of_the_conversation_are_so_in_adks_files_too() -> None:
    classes = (TrajectoryQuality, UserSimulatorQuality)
    scopes = {metric.evaluator: metric.scope for metric in METRICS.values()}
    assert [scopes[each.__name__] for each in classes] == [each.scope for each in classes] == ["case", "case"]


def traced_evaluable(*, turn: str = "Where is it?") -> Evaluable:
    """A turn in which the model says something, looks, and answers; an earlier turn is in the trace too."""
    said = AssistantMessage((TextContent("I will look. It may take a day."),), (ToolCall("track"),))
    history = (SystemMessage("Be brief."), UserMessage.from_text("Hello"), AssistantMessage((TextContent("Hi."),)))
    asked = (*history, UserMessage.from_text(turn), said, ToolResultMessage("Utrecht"))
    tool = ToolDefinition("track", "Finds parcels")
    final = LLMSpan("2", "t", ended_at=2.0, input_messages=asked, tool_definitions=(tool,))
    greeting = LLMSpan("1", "t", ended_at=1.0, input_messages=history[:2])
    return seen(
        "It is in Utrecht.",
        turn,
        "In Utrecht.",
        tool_calls=(ToolCall("track", {"parcel": 7}, result={"at": "Utrecht"}),),
        turns=(Exchange(Turn("Hello"), Reply("Hi.")), Exchange(Turn("Where is it?"), Reply("It is in Utrecht."))),
        trace=build_tree([greeting, final]),
    )


def labels(*said: str) -> dict[str, Any]:
    return {"verdicts": [{"number": n, "reason": f"reason {n}", "label": v} for n, v in enumerate(said, 1)]}


def test_the_agents_instructions_and_tools_are_shown_if_the_trace_has_them() -> None:
    judge = ScriptedJudge({"tool-rubrics": yes_no_replies("yes")})
    judged(ToolUseQuality(rubrics=["It looks before it answers."]), traced_evaluable(), judge)
    material = judge.asked[0].material
    assert material["agent-instructions"] == "Be brief."
    assert material["agent-tool"] == ['{"name": "track", "description": "Finds parcels"}']
    assert material["step"] == ['track({"parcel": 7})\nreturned: {"at": "Utrecht"}']


def test_what_was_said_on_the_way_counts_only_if_asked_for() -> None:
    judge = ScriptedJudge({"response-match": YES})
    judged(FinalResponseMatch(), traced_evaluable(), judge)
    judged(FinalResponseMatch(include_intermediate_responses_in_final=True), traced_evaluable(), judge)
    assert {question.material["answer"] for question in judge.asked} == {
        "It is in Utrecht.",
        "I will look. It may take a day.\nIt is in Utrecht.",
    }


def test_the_share_of_sentences_that_are_borne_out_or_claim_nothing() -> None:
    said = "Hello! It is in Utrecht. It left on Monday. It is heavy. It is late."
    evaluable = seen(said, "Where?", tool_calls=(ToolCall("track", result="Utrecht, not heavy"),))
    reply = labels("not_applicable", "supported", "unsupported", "contradictory", "disputed")
    evaluation = judged(Hallucinations(), evaluable, {"sentence-labels": reply})
    assert evaluation.score == 0.4
    assert evaluation.reasoning.startswith("unsupported: It left on Monday. (reason 3); contradictory: It is heavy.")
    assert evaluation.details["sentences"][1] == {
        "sentence": "It is in Utrecht.",
        "label": "supported",
        "reason": "reason 2",
        "grounded": True,
    }


def test_the_grounds_are_the_tools_offered_called_and_returned() -> None:
    judge = ScriptedJudge({"sentence-labels": labels("supported")})
    judged(Hallucinations(), traced_evaluable(), judge)
    assert list(judge.asked[0].material) == [
        "question",
        "agent-instructions",
        "agent-tool",
        "earlier",
        "step",
        "sentence",
    ]
    assert judge.asked[0].material["sentence"] == ["It is in Utrecht."]


def test_sentences_said_on_the_way_are_judged_if_asked_for() -> None:
    judge = ScriptedJudge({"sentence-labels": labels("supported", "unsupported", "supported")})
    evaluation = judged(Hallucinations(evaluate_intermediate_nl_responses=True), traced_evaluable(), judge)
    assert judge.asked[0].material["sentence"] == ["I will look.", "It may take a day.", "It is in Utrecht."]
    assert evaluation.score == pytest.approx(2 / 3)


def test_with_nothing_to_hold_an_answer_against_hallucinations_are_not_measured() -> None:
    with pytest.raises(NothingToCompare, match="what the agent could know"):
        judged(Hallucinations(), seen("x"), {})


def test_an_answer_that_claims_nothing_is_skipped() -> None:
    with pytest.raises(NothingToCompare, match="is empty"):
        judged(Hallucinations(), seen("", retrieval_context=("p",)), {})
    with pytest.raises(NothingToCompare, match="makes no claim"):
        judged(
            Hallucinations(), seen("Hello!", retrieval_context=("p",)), {"sentence-labels": [labels("not_applicable")]}
        )


def test_sentences_too_are_decided_by_the_majority_of_samples() -> None:
    replies = [labels(each) for each in ("unsupported", "supported", "not_applicable")]
    evaluator = Hallucinations(judge_model_options={"num_samples": 3})
    evaluable = seen("It is.", retrieval_context=("It is.",))
    assert judged(evaluator, evaluable, {"sentence-labels": replies}).score == 1.0


SCENARIO = {"starting_prompt": "Hello", "conversation_plan": "Ask for parcel 7.", "user_persona": "NOVICE"}


def simulated(*said: str, scenario: Any = SCENARIO) -> Evaluable:
    turns = tuple(Exchange(Turn(text), Reply("Yes?")) for text in said)
    return seen("Yes?", list(said), turns=turns, eval_metadata={"conversation_scenario": scenario})


def test_the_first_message_is_the_starting_prompt_and_the_others_are_judged() -> None:
    judge = ScriptedJudge({"simulated-user": yes_no_replies("yes", "no", "yes")})
    evaluator = UserSimulatorQuality(stop_signal="<bye>", samples=1)
    evaluation = judged(evaluator, simulated(" Hello ", "Parcel 7?", "And the weather?"), judge)
    assert evaluation.score == pytest.approx(2 / 3)
    assert evaluation.reasoning == "does not follow the scenario: turn 3 (reason 2)"
    [question] = judge.asked
    assert "<bye>" in question.instructions
    assert question.material["persona"] == "NOVICE"


def test_another_beginning_and_a_wrong_end_are_counted_against_the_user() -> None:
    replies = {"simulated-user": yes_no_replies("yes", "no")}
    evaluation = judged(UserSimulatorQuality(samples=1), simulated("Good day", "Parcel 7?"), replies)
    assert evaluation.score == 0.0
    assert evaluation.reasoning == (
        "does not follow the scenario: turn 1 (it is not the starting prompt); turn 2 (the end: reason 2)"
    )


@pytest.mark.parametrize("scenario", [None, 3, {}, {"startingPrompt": "Hello"}])
def test_without_a_scenario_there_is_nothing_to_keep_to(scenario: Any) -> None:
    with pytest.raises(NothingToCompare):
        judged(UserSimulatorQuality(), simulated("Hello", scenario=scenario), {})


ballots = st.integers(1, 4).flatmap(
    lambda items: st.lists(st.lists(st.booleans(), min_size=items, max_size=items), min_size=1, max_size=9)
)


@given(ballots)
def test_stopping_early_never_changes_what_the_whole_vote_would_say(votes: Sequence[Sequence[bool]]) -> None:
    replies = [yes_no_replies(*("yes" if vote else "no" for vote in ballot)) for ballot in votes]
    rubrics = [f"property {number}" for number in range(len(votes[0]))]
    evaluator = FinalResponseQuality(rubrics=rubrics, judge_model_options={"num_samples": len(votes)})
    score = judged(evaluator, ASKED, {"answer-rubrics": replies}).score
    carried = [2 * sum(column) > len(votes) for column in zip(*votes, strict=True)]
    assert score == sum(carried) / len(carried)
    assert 0.0 <= score <= 1.0


@given(st.lists(st.sampled_from([YES, NO, LOST]), min_size=1, max_size=7))
def test_a_vote_is_decided_by_the_usable_replies_alone(replies: list[Any]) -> None:
    in_favour, against = replies.count(YES), replies.count(NO)
    if in_favour + against == 0:
        with pytest.raises(JudgeFailed):
            match_score(*replies, samples=len(replies))
    else:
        assert match_score(*replies, samples=len(replies))[0] == float(in_favour > against)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4), st.integers(0, 9))
def test_the_votes_needed_are_the_fewest_that_could_settle_everything(pairs: list[tuple[int, int]], left: int) -> None:
    tallies = [VoteCount(*pair) for pair in pairs]
    needed = votes_needed(tallies, left)
    assert 0 <= needed <= left
    settled = all(t.in_favour > t.against + left or t.against >= t.in_favour + left for t in tallies)
    assert (needed == 0) == (settled if tallies else left == 0)


def test_no_ballots_make_no_tallies() -> None:
    assert count_votes([]) == []
    assert count_votes([[(True, "a")], [(False, "b")]]) == [VoteCount(1, 1, "b")]


def test_any_failure_but_a_judges_own_is_raised() -> None:
    judge = ScriptedJudge({"x": ZeroDivisionError()})
    with pytest.raises(ZeroDivisionError):
        asyncio.run(majority_vote(judge, yes_no_question("x", "", {}), lambda reply: [], samples=3))
