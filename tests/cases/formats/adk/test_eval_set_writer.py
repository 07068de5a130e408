"""Writing suites as ADK EvalSets, and reading them back."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import adk_documents as docs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.base.errors import UsageError
from proctor.cases.formats import adk
from proctor.cases.matchers import Equals, Regex
from proctor.cases.scenario import Scenario
from proctor.cases.suite import (
    Attachment,
    Case,
    Criteria,
    EvaluatorSpec,
    Expected,
    ExpectedCall,
    Keywords,
    NamedData,
    Settings,
    Suite,
    Turn,
)
from proctor.evaluators.evaluation import Evaluable
from proctor.evaluators.tools.checks import FinalState

ASKED = Turn("Where is parcel 7?", Expected(output="In Utrecht."))
SUITE = Suite("parcels", (Case("one", (ASKED,)),), criteria=Criteria(trials="mean"))


@pytest.mark.parametrize("data", docs.DOCUMENTED.values(), ids=docs.DOCUMENTED.keys())
def test_every_documented_shape_comes_back_the_same(tmp_path: Path, data: Any) -> None:
    suite = docs.read(tmp_path, data)
    written = adk.write([suite])
    again = docs.read_again(written)
    assert replace(docs.content_of(again), warnings=()) == replace(docs.content_of(suite), warnings=())
    assert written.losses == ()


def test_a_set_is_written_as_it_was_documented(tmp_path: Path) -> None:
    data = docs.eval_set(docs.case(sessionInput={"appName": "post", "userId": "u1", "state": {"a": 1}}), name="Desk")
    assert json.loads(adk.write([docs.read(tmp_path, data)]).text) == data


def test_what_proctor_does_not_use_is_written_as_it_was(tmp_path: Path) -> None:
    turn = {
        "invocationId": "i1",
        "creationTimestamp": 12.5,
        "userContent": {"role": "user", "parts": [{"text": "What is this?"}, {"fileData": {"fileUri": "gs://a"}}]},
        "finalResponse": {"role": "model", "parts": [{"text": "A parcel."}, {"text": "A big one."}]},
        "intermediateData": {
            "toolUses": [docs.TRACK | {"id": "c1"}],
            "toolResponses": [{"name": "track", "response": {"at": "Utrecht"}}],
            "intermediateResponses": [["clerk", [{"text": "Looking."}]]],
        },
        "rubrics": [{"rubricId": "r", "rubricContent": {"textProperty": "It is short."}}],
        "appDetails": {"agentDetails": {}},
        "duration": 3,
        "modelDuration": 2,
        "toolDuration": 1,
    }
    noted = docs.turn(finalResponse={"parts": []}, intermediateData={"toolUses": [], "toolResponses": [{"name": "f"}]})
    recorded = docs.turn(intermediateData={"invocationEvents": [{"author": "desk"}]})
    session = {"appName": "post", "userId": "", "sessionId": "s1", "state": {}}
    case = docs.case("all", turn, noted, recorded, sessionInput=session, rubrics=turn["rubrics"])
    data = docs.eval_set({**case, "creationTimestamp": 3}, name="Desk", description="All of it")
    data["creationTimestamp"] = 7
    written = adk.write([docs.read(tmp_path, data)])
    assert json.loads(written.text) == data
    assert written.losses == ()


def test_default_criteria_need_no_config_and_chosen_ones_bring_theirs(tmp_path: Path) -> None:
    assert adk.write([docs.read(tmp_path, docs.eval_set())]).companions == ()
    config = {"criteria": {"safety_v1": 0.9, "response_evaluation_score": 3.7}}
    [(name, text)] = adk.write([docs.read(tmp_path, docs.eval_set(), config)]).companions
    assert (name, json.loads(text)) == ("test_config.json", config)


@settings(deadline=None)
@given(docs.eval_sets, st.none() | docs.criteria)
def test_any_eval_set_comes_back_the_same(data: Any, criteria: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = None if criteria is None else {"criteria": criteria}
        suite = docs.read(Path(folder), data, config)
    written = adk.write([suite])
    assert written.losses == ()
    assert docs.content_of(docs.read_again(written)) == docs.content_of(suite)


@settings(deadline=None)
@given(docs.eval_sets | docs.simulated_sets, docs.configs)
def test_scenarios_and_metrics_of_ones_own_come_back_the_same(data: Any, config: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        suite = docs.read(Path(folder), data, config)
    written = adk.write([suite])
    assert written.losses == ()
    if any(case.scenario is None for case in suite.cases):
        return  # without a scenario there is nothing for a simulator to be written for
    assert docs.content_of(docs.read_again(written)) == docs.content_of(suite)


def test_a_scenario_of_another_format_becomes_adks(tmp_path: Path) -> None:
    told = Scenario("Hi.", "Ask for parcel 7.", "A hurried courier.", 5, "<bye>", "openai:gpt-5-mini")
    case = Case("sim", (Turn("Hi."),), scenario=told, evaluators=(EvaluatorSpec("Safety", threshold=0.5),))
    written = adk.write([replace(SUITE, cases=(case,))])
    [loss] = written.losses
    assert "the stop mark '<bye>' cannot be expressed" in loss
    [again] = docs.read_again(written).cases
    assert again.scenario == replace(
        told, stop="</finished>", persona={"id": "sim", "description": "A hurried courier.", "behaviors": []}
    )


def test_text_that_utf8_cannot_hold_is_escaped() -> None:
    suite = replace(SUITE, cases=(Case("one", (replace(ASKED, input="broken \ud800"),)),))
    written = adk.write([suite])
    written.text.encode()
    assert json.loads(written.text)["evalCases"][0]["conversation"][0]["userContent"] == docs.user("broken \ud800")


def test_a_changed_turn_is_written_as_it_is_now_and_not_as_it_was_read(tmp_path: Path) -> None:
    content = {"role": "user", "parts": [{"text": "One"}, {"text": "Two"}]}
    suite = docs.read(tmp_path, docs.case("a", {**docs.BOTH, "userContent": content}))
    turn = replace(suite.cases[0].turns[0], input="Three")
    changed = replace(suite, cases=(replace(suite.cases[0], turns=(turn,)),))
    assert docs.read_again(adk.write([changed])).cases[0].turns[0].input == "Three"


CANNOT: list[tuple[str, Suite]] = [
    ("case 'one': tags", replace(SUITE, cases=(Case("one", (ASKED,), tags=("slow",)),))),
    ("case 'one': description", replace(SUITE, cases=(Case("one", (ASKED,), description="d"),))),
    ("case 'one': inputs", replace(SUITE, cases=(Case("one", (ASKED,), inputs=(NamedData("a", 1),)),))),
    ("case 'one': metadata", replace(SUITE, cases=(Case("one", (ASKED,), metadata={"a": 1}),))),
    ("case 'one': skip", replace(SUITE, cases=(Case("one", (ASKED,), skip="not now"),))),
    ("case 'one': repeat", replace(SUITE, cases=(Case("one", (ASKED,), repeat=3),))),
    ("case 'one': x-other", replace(SUITE, cases=(Case("one", (ASKED,), extra={"x-other": 1}),))),
    (
        "case 'one': attachments",
        replace(SUITE, cases=(Case("one", (replace(ASKED, attachments=(Attachment("a.pdf"),)),)),)),
    ),
    (
        "case 'one' turn 2: evaluators",
        replace(SUITE, cases=(Case("one", (ASKED, replace(ASKED, evaluators=()))),)),
    ),
    (
        "case 'one': keywords",
        replace(SUITE, cases=(Case("one", (Turn("q", Expected(keywords=Keywords(("a",)))),)),)),
    ),
    ("case 'one': context", replace(SUITE, cases=(Case("one", (Turn("q", Expected(context=("a",))),)),))),
    ("case 'one': input is not text", replace(SUITE, cases=(Case("one", (replace(ASKED, input={"a": 1}),)),))),
    (
        "case 'one': expected output is not text",
        replace(SUITE, cases=(Case("one", (Turn("q", Expected(output=[1])),)),)),
    ),
    ("suite 'parcels': agent", replace(SUITE, agent="app.py:agent")),
    ("suite 'parcels': repeat", replace(SUITE, settings=Settings(repeat=3))),
    ("suite 'parcels': pct", replace(SUITE, criteria=Criteria(trials="mean", pct=0.9))),
    ("ADK judges by the mean", replace(SUITE, criteria=Criteria())),
    ("evaluator 'ExactMatch': has no ADK metric", replace(SUITE, evaluators=(EvaluatorSpec("ExactMatch"),))),
    (
        "response_match_score cannot express its arguments",
        replace(SUITE, evaluators=(EvaluatorSpec("ROUGE", {"variant": "rougeL"}, threshold=0.5),)),
    ),
    ("evaluator 'Safety': gates", replace(SUITE, evaluators=(EvaluatorSpec("Safety", threshold=0.5, gates=False),))),
    (
        "safety_v1 can be given only once",
        replace(SUITE, evaluators=(EvaluatorSpec("Safety", threshold=0.5), EvaluatorSpec("Safety", threshold=0.6))),
    ),
    (
        "case 'two': is scored by fewer evaluators",
        replace(
            SUITE,
            evaluators=(EvaluatorSpec("Safety", threshold=0.5),),
            cases=(Case("one", (ASKED,)), Case("two", (ASKED,), evaluators=())),
        ),
    ),
]


@pytest.mark.parametrize(("said", "suite"), CANNOT, ids=[said for said, _ in CANNOT])
def test_what_an_eval_set_cannot_say_is_listed(said: str, suite: Suite) -> None:
    losses = adk.write([suite]).losses
    assert any(said in loss for loss in losses), losses


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("an EvalSet knows only literal arguments", ExpectedCall("track")),
        ("argument 'parcel' is not a literal", ExpectedCall("track", {"parcel": Regex("7")})),
        ("count", ExpectedCall("track", {}, count=2)),
        ("substring", ExpectedCall("track", {}, substring=True)),
        ("an EvalSet knows only literal arguments", ExpectedCall("track", {}, extra_arguments=True)),
        ("result", ExpectedCall("track", {}, result="Utrecht")),
    ],
)
def test_what_an_eval_set_cannot_say_of_a_call_is_listed(said: str, call: ExpectedCall) -> None:
    suite = replace(SUITE, cases=(Case("one", (Turn("q", Expected(tool_calls=(call,))),)),))
    assert any(f"tool 'track': {said}" in loss for loss in adk.write([suite]).losses)


def test_literal_arguments_and_a_state_are_written_for_a_suite_of_another_format() -> None:
    calls = (ExpectedCall("track", {"parcel": Equals(7)}),)
    suite = replace(SUITE, cases=(Case("one", (Turn("q", Expected(tool_calls=calls)),), state={"a": 1}),))
    [case] = json.loads(adk.write([suite]).text)["evalCases"]
    assert case["sessionInput"] == {"appName": "parcels", "userId": "user", "state": {"a": 1}}
    assert case["conversation"][0]["intermediateData"]["toolUses"] == [docs.TRACK]


def test_several_suites_become_one_set_with_distinct_ids() -> None:
    written = adk.write([SUITE, replace(SUITE, name="more")])
    data = json.loads(written.text)
    assert (data["evalSetId"], [case["evalId"] for case in data["evalCases"]]) == ("parcels", ["one", "one-2"])
    assert any("suite 'more': joined" in loss for loss in written.losses)
    assert any("renamed to 'one-2'" in loss for loss in written.losses)


def test_an_evaluator_of_the_final_state_needs_no_metric(tmp_path: Path) -> None:
    data = docs.case("end", docs.ANSWERED, finalSessionState={"seen": True})
    suite = docs.read(tmp_path, data, {"criteria": {"safety_v1": 1.0}})
    written = adk.write([suite])
    assert written.losses == ()
    assert docs.content_of(docs.read_again(written)) == docs.content_of(suite)


def test_no_suite_at_all_is_refused() -> None:
    with pytest.raises(UsageError):
        adk.write([])


def test_arguments_that_cannot_be_written_are_not_compared_instead_of_refused() -> None:
    calls = (ExpectedCall("track", {"parcel": Regex("7")}),)
    suite = replace(
        SUITE,
        cases=(Case("one", (Turn("q", Expected(tool_calls=calls)),)),),
        evaluators=(EvaluatorSpec("ExpectedTools"),),
    )
    [(name, text)] = adk.write([suite]).companions
    assert name == "test_config.json"
    assert json.loads(text) == {
        "criteria": {"tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "ANY_ORDER", "ignore_args": True}}
    }


def test_a_metric_without_a_threshold_gets_its_evaluators_own() -> None:
    calls = (ExpectedCall("track", {}),)
    suite = replace(
        SUITE,
        cases=(Case("one", (Turn("q", Expected(output="a", tool_calls=calls)),)),),
        evaluators=(EvaluatorSpec("ToolTrajectory", {"match": "IN_ORDER"}), EvaluatorSpec("Safety")),
    )
    [(_, text)] = adk.write([suite]).companions
    criteria = json.loads(text)["criteria"]
    assert criteria["tool_trajectory_avg_score"]["threshold"] == 1.0
    assert criteria["safety_v1"] == 0.5


def test_a_final_state_is_literal_however_it_looks_and_comes_back_as_it_was(tmp_path: Path) -> None:
    state = {"$top": 1, "price": {"$usd": 5}, "seen": [{"$regex": "("}, {"a": {"$x": []}}], "cart": []}
    suite = docs.read(tmp_path, docs.case("end", docs.ANSWERED, finalSessionState=state))
    (case,) = suite.cases
    assert FinalState()(Evaluable(expected_state=case.final_state, state=state)).score == 1.0
    assert FinalState()(Evaluable(expected_state=case.final_state, state={**state, "price": {"$usd": 6}})).score == 0.0
    written = adk.write([suite])
    assert written.losses == ()
    assert json.loads(written.text)["evalCases"][0]["finalSessionState"] == state


def test_a_final_state_with_matchers_is_told_as_lost() -> None:
    case = Case("a", (Turn("q", Expected("a")),), final_state={"id": {"$regex": "A-.*"}, "n": 1})
    written = adk.write([Suite("s", (case,), evaluators=(EvaluatorSpec("ROUGE"),))])
    assert json.loads(written.text)["evalCases"][0]["finalSessionState"] == {"n": 1}
    assert any("final state 'id' has the matcher $regex" in loss for loss in written.losses)
