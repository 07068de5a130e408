"""Results of adk-python, `*.evalset_result.json`, as runs to show and to compare with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import adk_documents as docs
import pytest

from proctor.agents.reply import Reply, ToolCall
from proctor.base.errors import InvalidSuite
from proctor.compat.adk import AgentEvaluationFailed, AgentEvaluator
from proctor.results.comparison.compare import compare_runs
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.store.run_files import import_file, open_run
from proctor.results.store.store import Store
from proctor.results.verdict import verdict

PASSED, FAILED, NOT_EVALUATED, INFORMATIONAL = 1, 2, 3, 4


def metric(name: str, score: float | None, status: int, threshold: float | None = 0.8, **rest: Any) -> dict[str, Any]:
    criterion = None if threshold is None else {"threshold": threshold}
    return {
        "metric_name": name,
        "threshold": threshold,
        "criterion": criterion,
        "score": score,
        "eval_status": status,
        "details": {"rubric_scores": None},
        **rest,
    }


def invocation(answer: str, *events: dict[str, Any], text: str = "Where is parcel 7?") -> dict[str, Any]:
    return {
        "invocation_id": "e-1",
        "user_content": docs.user(text),
        "final_response": {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": answer}]},
        "intermediate_data": {"invocation_events": list(events)},
        "creation_timestamp": 1.0,
        "duration": 0.25,
        "rubrics": None,
    }


def event(**part: Any) -> dict[str, Any]:
    usage = {"prompt_token_count": 11, "candidates_token_count": 7}
    return {"author": "desk", "content": {"role": "model", "parts": [part]}, "usage_metadata": usage}


CALL = event(function_call={"id": "c1", "name": "track", "args": {"parcel": 7}})
RESPONSE = event(function_response={"id": "c1", "name": "track", "response": {"city": "Utrecht"}})


def case_result(eval_id: str, answer: str, *metrics: dict[str, Any], **rest: Any) -> dict[str, Any]:
    expected = {
        "invocation_id": "",
        "user_content": docs.user("Where is parcel 7?"),
        "final_response": docs.model("It is in Utrecht."),
        "intermediate_data": {"tool_uses": [{**docs.TRACK, "id": None}], "tool_responses": []},
        "creation_timestamp": 0.0,
        "rubrics": None,
    }
    per_invocation = {
        "actual_invocation": invocation(answer, CALL, RESPONSE),
        "expected_invocation": expected,
        "eval_metric_results": list(metrics),
    }
    return {
        "eval_set_id": "parcels",
        "eval_id": eval_id,
        "final_eval_status": max((item["eval_status"] for item in metrics), default=FAILED),
        "overall_eval_metric_results": list(metrics),
        "eval_metric_result_per_invocation": [per_invocation] if metrics else [],
        "session_id": "s",
        **rest,
    }


def result(*cases: dict[str, Any]) -> dict[str, Any]:
    return {
        "eval_set_result_id": "desk_parcels_1794996262.63",
        "eval_set_result_name": "desk_parcels_1794996262.63",
        "eval_set_id": "parcels",
        "eval_case_results": list(cases),
        "creation_timestamp": 1794996262.63,
    }


TRAJECTORY = metric("tool_trajectory_avg_score", 1.0, PASSED, 1.0)
GOOD = (TRAJECTORY, metric("response_match_score", 1.0, PASSED))
BAD = (TRAJECTORY, metric("response_match_score", 0.0, FAILED))
COUNT = metric("tool_call_count_v1", 1.0, INFORMATIONAL, None)


def imported(folder: Path, data: Any, name: str = "r.evalset_result.json") -> Run:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    run, is_new = import_file(Store(folder / "store"), str(path))
    assert is_new
    return run


def test_scores_answers_and_calls_are_those_of_the_file(tmp_path: Path) -> None:
    data = result(
        case_result("a", "It is in Utrecht.", *GOOD, COUNT),
        case_result("b", "I do not know.", *BAD),
        case_result("a", "It is in Utrecht.", *GOOD),
    )
    run = imported(tmp_path, data)
    first, second, other = run.trials
    assert [(trial.case.id, trial.number, trial.outcome.value) for trial in (first, second, other)] == [
        ("a", 1, "passed"),
        ("a", 2, "passed"),
        ("b", 1, "failed"),
    ]
    [reply] = first.replies
    assert (reply.text, reply.thoughts, reply.duration_ms) == ("It is in Utrecht.", "Hm.", 250.0)
    assert reply.tool_calls == (ToolCall("track", {"parcel": 7}, {"city": "Utrecht"}, id="c1"),)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (22, 14)
    assert [(score.evaluator, score.value, score.threshold) for score in first.scores] == [
        ("tool_trajectory_avg_score", 1.0, 1.0),
        ("response_match_score", 1.0, 0.8),
    ]
    assert (run.suites[0].name, run.suites[0].agent, verdict(run).outcome) == ("parcels", "desk", "failed")


def test_a_result_is_compared_with_a_run_of_the_same_eval_set(tmp_path: Path) -> None:
    before = imported(tmp_path, result(case_result("a", "It is in Utrecht.", *GOOD)))
    with pytest.raises(AgentEvaluationFailed) as failed:
        AgentEvaluator.evaluate_eval_set_sync(
            lambda question: Reply("Lost.", (ToolCall("track", {"parcel": 7}),)), docs.eval_set(docs.case("a"))
        )
    [change] = compare_runs(before, failed.value.run).to_dicts()
    assert (change["case"], change["group"]) == ("a", "broken")


def test_the_eval_set_of_the_application_provides_the_state_of_sessions(tmp_path: Path) -> None:
    session = {"appName": "post", "userId": "u1", "state": {"customer": "Ann"}}
    (tmp_path / "parcels.evalset.json").write_text(json.dumps(docs.eval_set(docs.case("a", sessionInput=session))))
    data = result(case_result("a", "It is in Utrecht.", *GOOD))
    run = imported(tmp_path, data, ".adk/eval_history/desk_parcels_1.evalset_result.json")
    [trial] = run.trials
    assert trial.case.state == {"customer": "Ann"}


def test_a_file_that_was_encoded_twice_is_read_and_imported_once(tmp_path: Path) -> None:
    data = result(case_result("a", "It is in Utrecht.", *GOOD))
    run = imported(tmp_path, json.dumps(data))
    again, is_new = import_file(Store(tmp_path / "store"), str(tmp_path / "r.evalset_result.json"))
    assert (again.id, is_new) == (run.id, False)


def test_a_result_under_another_name_is_recognised_and_can_be_opened_without_importing(tmp_path: Path) -> None:
    path = tmp_path / "before.json"
    path.write_text(json.dumps(result(case_result("a", "It is in Utrecht.", *GOOD))))
    store, run = open_run(tmp_path / "nowhere", str(path))
    assert [trial.outcome for trial in run.trials] == [Outcome.PASSED]
    store.close()


def test_what_was_not_evaluated_is_an_error_and_not_a_pass(tmp_path: Path) -> None:
    unknown, counted = (metric(name, None, NOT_EVALUATED) for name in ("safety_v1", "tool_call_count_v1"))
    cases = [case_result("a", "Hi", TRAJECTORY, unknown), case_result("b", ""), case_result("c", "Hi", *GOOD, counted)]
    run = imported(tmp_path, result(*cases))
    assert [trial.outcome for trial in run.trials] == [Outcome.ERROR, Outcome.ERROR, Outcome.ERROR]
    assert "log says why" in list(run.trials)[1].reason


def test_a_mark_from_one_to_five_becomes_a_share_and_rationales_are_reasons(tmp_path: Path) -> None:
    mark = metric("response_evaluation_score", 4.0, PASSED, 3.0)
    rubrics = {"rubric_scores": [{"rubric_id": "polite", "rationale": "It says please.", "score": 1.0}]}
    rubric = metric("rubric_based_final_response_quality_v1", 1.0, PASSED, details=rubrics)
    [trial] = imported(tmp_path, result(case_result("a", "Hi", mark, rubric))).trials
    assert [(score.value, score.threshold) for score in trial.scores] == [(0.75, 0.5), (1.0, 0.8)]
    assert trial.scores[1].reasoning == "polite: It says please."


def test_a_metric_for_which_less_is_better_stays_passed(tmp_path: Path) -> None:
    [trial] = imported(tmp_path, result(case_result("a", "Hi", metric("cost", 0.1, PASSED, 0.5)))).trials
    assert trial.outcome is Outcome.PASSED


def test_problems_are_reported_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "r.evalset_result.json"
    path.write_text('{"eval_set_result_id": "x",\n "eval_set_id": "parcels",\n "eval_case_results": [{"eval_id": 7}]}')
    with pytest.raises(InvalidSuite, match=r"r.evalset_result.json:3: .*eval_id must be text"):
        import_file(Store(tmp_path / "store"), str(path))
