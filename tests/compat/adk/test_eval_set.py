"""Reading ADK EvalSets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import adk_documents as docs
import pytest

from proctor.base.errors import InvalidSuite
from proctor.base.json_data import UNSET
from proctor.cases.matchers import Equals
from proctor.cases.scenario import Scenario
from proctor.cases.suite import EvaluatorSpec, ExpectedCall
from proctor.compat.adk.recognition import recognises


def problems(folder: Path, data: Any) -> list[str]:
    with pytest.raises(InvalidSuite) as caught:
        docs.read(folder, data)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


@pytest.mark.parametrize("data", docs.DOCUMENTED.values(), ids=docs.DOCUMENTED.keys())
def test_every_documented_shape_reads(tmp_path: Path, data: Any) -> None:
    suite = docs.read(tmp_path, data)
    assert suite.cases
    assert suite.format == "adk"
    assert suite.criteria.trials == "mean"


def test_a_set_becomes_a_suite_of_conversations(tmp_path: Path) -> None:
    suite = docs.read(tmp_path, docs.eval_set(description="What the desk knows"))
    [case] = suite.cases
    [turn] = case.turns
    assert (suite.name, suite.description, case.id, turn.input) == (
        "parcels",
        "What the desk knows",
        "parcel",
        "Where is parcel 7?",
    )
    assert turn.expected.output == "It is in Utrecht."
    assert turn.expected.tools == (ExpectedCall("track", {"parcel": Equals(7)}),)


def test_snake_case_reads_as_camel_case_does(tmp_path: Path) -> None:
    snake = {
        "eval_set_id": "parcels",
        "eval_cases": [
            {
                "eval_id": "parcel",
                "conversation": [
                    {
                        "user_content": docs.user("Where is parcel 7?"),
                        "final_response": docs.model("It is in Utrecht."),
                        "intermediate_data": {"tool_uses": [docs.TRACK], "intermediate_responses": []},
                        "creation_timestamp": 0.0,
                    }
                ],
            }
        ],
    }
    assert docs.read(tmp_path, snake) == docs.read(tmp_path, docs.eval_set())


def test_a_bare_case_is_a_set_of_one_named_after_its_file(tmp_path: Path) -> None:
    suite = docs.read(tmp_path, docs.case("hello", docs.ANSWERED), name="greetings.test.json")
    assert (suite.name, [case.id for case in suite.cases]) == ("greetings", ["hello"])


def test_what_is_not_given_is_not_expected(tmp_path: Path) -> None:
    suite = docs.read(tmp_path, docs.eval_set(docs.case("a", docs.ANSWERED), docs.case("b", docs.TRACKED)))
    answered, tracked = (case.turns[0].expected for case in suite.cases)
    assert answered.tools is None
    assert tracked.output is UNSET


def test_an_empty_list_of_tool_uses_expects_that_no_tool_is_called(tmp_path: Path) -> None:
    suite = docs.read(tmp_path, docs.case("quiet", docs.turn(intermediateData=docs.tools())))
    assert suite.cases[0].turns[0].expected.tools == ()


def test_a_call_without_args_is_expected_to_have_none(tmp_path: Path) -> None:
    suite = docs.read(tmp_path, docs.case("quiet", docs.turn(intermediateData=docs.tools({"name": "ping"}))))
    assert suite.cases[0].turns[0].expected.tools == (ExpectedCall("ping", {}),)


def test_an_argument_that_looks_like_a_matcher_is_a_literal(tmp_path: Path) -> None:
    use = {"name": "find", "args": {"where": {"$regex": "A.*"}}}
    suite = docs.read(tmp_path, docs.case("find", docs.turn(intermediateData=docs.tools(use))))
    [call] = suite.cases[0].turns[0].expected.tools or ()
    assert call.args == {"where": Equals({"$regex": "A.*"})}


def test_text_parts_are_joined_and_thoughts_left_out(tmp_path: Path) -> None:
    response = {"role": "model", "parts": [{"text": "hmm", "thought": True}, {"text": "One"}, {"text": "Two"}]}
    suite = docs.read(tmp_path, docs.case("parts", docs.turn(finalResponse=response)))
    assert suite.cases[0].turns[0].expected.output == "One\nTwo"


@pytest.mark.parametrize(
    ("parts", "output"),
    [([{"text": ""}], ""), ([], ""), ([{"functionCall": {"name": "f", "args": {}}}], UNSET), ([{"text": None}], UNSET)],
)
def test_an_empty_response_is_expected_and_one_without_text_is_not(tmp_path: Path, parts: Any, output: Any) -> None:
    response = {"role": "model", "parts": parts}
    turn = docs.turn(finalResponse=response, intermediateData=docs.tools(docs.TRACK))
    suite = docs.read(tmp_path, docs.case("quiet", turn))
    assert suite.cases[0].turns[0].expected.output == output


def test_nulls_as_adk_python_dumps_them_mean_absence(tmp_path: Path) -> None:
    part = {"video_metadata": None, "thought": None, "inline_data": None, "function_call": None}
    data = docs.case(
        "dumped",
        {
            "userContent": {"parts": [{**part, "text": "Where is parcel 7?"}], "role": "user"},
            "finalResponse": {"parts": [{**part, "text": None}], "role": "model"},
            "intermediateData": docs.tools({**docs.TRACK, "id": None}),
            "rubrics": None,
        },
        sessionInput=None,
        conversationScenario=None,
    )
    [turn] = docs.read(tmp_path, data).cases[0].turns
    assert turn.input == "Where is parcel 7?"
    assert turn.expected.output is UNSET
    assert len(turn.expected.tools or ()) == 1


def test_the_calls_of_recorded_events_are_expected(tmp_path: Path) -> None:
    parts = [{"text": "Let me see."}, {"functionCall": {**docs.TRACK, "id": "c1"}}]
    events = {"invocationEvents": [{"author": "desk", "content": {"role": "model", "parts": parts}}]}
    suite = docs.read(tmp_path, docs.case("recorded", docs.turn(intermediateData=events)))
    assert suite.cases[0].turns[0].expected.tools == (ExpectedCall("track", {"parcel": Equals(7)}),)


def test_the_session_starts_with_its_state_and_keeps_its_names(tmp_path: Path) -> None:
    session = {"appName": "post", "userId": "", "sessionId": "s1", "state": {"parcels": [7]}}
    [case] = docs.read(tmp_path, docs.case(sessionInput=session)).cases
    assert case.state == {"parcels": [7]}
    assert case.extra == {"x-adk": {"appName": "post", "userId": "", "sessionId": "s1"}}


def test_a_final_session_state_is_judged(tmp_path: Path) -> None:
    [case] = docs.read(tmp_path, docs.case("end", docs.ANSWERED, finalSessionState={"seen": True})).cases
    assert case.final_state == {"seen": True}
    assert case.evaluators is not None
    assert case.evaluators[-1] == EvaluatorSpec("FinalState")


def test_default_criteria_apply_only_where_a_case_has_something_to_compare(tmp_path: Path) -> None:
    suite = docs.read(
        tmp_path,
        docs.eval_set(docs.case("a", docs.ANSWERED), docs.case("b", docs.TRACKED), docs.case("c", docs.BOTH)),
    )
    titles = {case.id: [spec.title for spec in suite.evaluators_of(case)] for case in suite.cases}
    assert titles == {
        "a": ["response_match_score"],
        "b": ["tool_trajectory_avg_score"],
        "c": ["tool_trajectory_avg_score", "response_match_score"],
    }


def test_a_case_that_nothing_can_judge_is_a_problem(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, docs.eval_set(docs.case("a", docs.turn())))
    assert "desk.test.json:5: evalCases[0] has neither a final response nor tool uses" in problem


def test_an_empty_conversation_is_a_problem_with_its_line(tmp_path: Path) -> None:
    cases = [docs.case("ok"), {"evalId": "empty", "conversation": []}]
    lines = json.dumps(docs.eval_set(*cases), indent=2).splitlines()
    line = next(number for number, text in enumerate(lines, start=1) if '"conversation": []' in text)
    expected = f"desk.test.json:{line}: evalCases[1].conversation is empty; add at least one turn"
    assert problems(tmp_path, docs.eval_set(*cases)) == [expected]


SCENARIO = {"startingPrompt": "Hi", "conversationPlan": "Ask for parcel 7.", "userPersona": "NOVICE"}


def test_a_scenario_becomes_a_case_whose_user_is_played_as_the_config_says(tmp_path: Path) -> None:
    config = {
        "criteria": {"safety_v1": 0.8},
        "user_simulator_config": {
            "type": "llm_backed",
            "model": "gemini-2.5-flash",
            "max_allowed_invocations": 4,
            "include_function_calls": True,
        },
    }
    [case] = docs.read(tmp_path, docs.eval_set({"evalId": "sim", "conversationScenario": SCENARIO}), config).cases
    assert [turn.input for turn in case.turns] == ["Hi"]
    assert case.scenario == Scenario(
        "Hi", "Ask for parcel 7.", "NOVICE", 4, model={"judge_model": "gemini-2.5-flash"}, show_tools=True
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"conversation": [docs.BOTH], "conversationScenario": SCENARIO},
            "conversation is set together with conversation_scenario",
        ),
        ({"conversationScenario": {"startingPrompt": "Hi"}}, "needs 'conversationPlan'"),
        ({"conversationScenario": SCENARIO | {"userPersona": "novice"}}, "did you mean 'NOVICE'?"),
        ({"conversationScenario": SCENARIO | {"userPersona": {"id": "me"}}}, "needs 'description'"),
        ({"conversationScenario": SCENARIO | {"goal": "x"}}, "goal is not a known key"),
        ({"conversationScenario": []}, "must be an object, not a list"),
        ({"conversationScenario": SCENARIO}, "or choose other criteria in test_config.json"),
    ],
)
def test_a_scenario_that_cannot_be_held_is_a_problem(tmp_path: Path, changed: Any, said: str) -> None:
    found = problems(tmp_path, docs.eval_set({"evalId": "sim", **changed}))
    assert any(said in problem for problem in found), found


def test_two_cases_of_one_id_are_a_problem(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, docs.eval_set(docs.case("same"), docs.case("same")))
    assert "evalCases[1] has the same id as an earlier case: 'same'" in problem


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (docs.eval_set(evalCase=[]), "evalCase is not a known key; did you mean 'evalCases'?"),
        (docs.eval_set(docs.case(sesionInput={})), "evalCases[0].sesionInput is not a known key"),
        (docs.eval_set(docs.case("a", {**docs.BOTH, "finalRespons": {}})), "finalRespons is not a known key"),
        (docs.eval_set(docs.case("a", {**docs.BOTH, "userContent": {"parts": [{"txt": "Hi"}]}})), "parts[0].txt"),
        (docs.eval_set(docs.case("a", docs.turn(intermediateData={"toolUse": []}))), "intermediateData.toolUse"),
        (docs.eval_set(docs.case(eval_id="b", evalID="c")), "evalID is not a known key"),
        ({**docs.eval_set(), "eval_set_id": "again"}, "is set twice"),
    ],
)
def test_a_key_that_is_not_known_is_reported_where_it_stands(tmp_path: Path, data: Any, said: str) -> None:
    assert any(said in problem for problem in problems(tmp_path, data))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"evalSetId": "x", "evalCases": []}, "evalCases is empty"),
        ({"evalSetId": "x"}, "needs"),
        ({"evalCases": [docs.case()]}, "needs"),
        (docs.eval_set({"conversation": [docs.BOTH]}), "evalCases[0] needs"),
        (docs.eval_set(docs.case("")), "must not be blank"),
        (docs.eval_set(docs.case("a", {"finalResponse": docs.model("x")})), "needs 'userContent'"),
        (docs.eval_set(docs.case("a", docs.turn(""), docs.BOTH)), "userContent has no text to send to the agent"),
        (docs.eval_set(docs.case("a", {**docs.BOTH, "userContent": "Hi"})), "userContent must be an object, not text"),
        (docs.eval_set(docs.case("a", docs.turn(intermediateData=docs.tools({"args": {}})))), "needs 'name'"),
        (docs.eval_set(docs.case("a", docs.turn(intermediateData=docs.tools({"name": "f", "args": [1]})))), "args"),
        (
            docs.eval_set(
                docs.case("a", docs.turn(intermediateData={"toolUses": [docs.TRACK], "invocationEvents": []}))
            ),
            "both set",
        ),
    ],
)
def test_what_cannot_be_meant_is_a_problem(tmp_path: Path, data: Any, said: str) -> None:
    assert any(said in problem for problem in problems(tmp_path, data))


def test_parts_that_do_not_reach_the_agent_are_kept_and_pointed_out_once(tmp_path: Path) -> None:
    content = {"role": "user", "parts": [{"text": "What is this?"}, {"inlineData": {"data": "AA=="}}]}
    turn = {**docs.ANSWERED, "userContent": content}
    suite = docs.read(tmp_path, docs.eval_set(docs.case("a", turn), docs.case("b", turn)))
    [warning] = suite.warnings
    assert "inline_data" in warning.message
    assert warning.where == "evalCases[0].conversation[0].userContent"
    assert suite.cases[1].turns[0].extra["x-adk"]["userContent"] == content


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("test_config.json", docs.eval_set()),
        ("rows.csv", [{"query": "Hi", "reference": "Hello"}]),
        ("rows.jsonl", [{"query": "Hi"}]),
        ("a.json", {"criteria": {"safety_v1": 1}}),
        ("a.json", {"cases": []}),
        ("a.json", {"query": "Hi"}),
        ("a.json", [{"input": "Hi"}]),
        ("a.json", []),
        ("a.json", None),
        ("a.json", "evalSetId"),
    ],
)
def test_files_of_other_kinds_are_left_alone(name: str, data: Any) -> None:
    assert not recognises(Path(name), data)
