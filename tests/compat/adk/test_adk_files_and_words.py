"""What ADK's users bring and write: files of both ADKs, parameters of both, and verdicts on means."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from proctor.base.errors import InvalidSuite, UsageError
from proctor.cases.formats.loading import load
from proctor.compat.adk import AgentEvaluationFailed, AgentEvaluator
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions


def content(text: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text, **more}]}


def turn(asked: str, answer: str | None = None, calls: Any = None, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"userContent": content(asked), **more}
    if answer is not None:
        given["finalResponse"] = content(answer, "model")
    if calls is not None:
        given["intermediateData"] = {"toolUses": calls, "intermediateResponses": []}
    return given


def eval_set(*turns: Any, **case: Any) -> dict[str, Any]:
    return {"evalSetId": "talk", "evalCases": [{"evalId": "one", "conversation": list(turns), **case}]}


def write(folder: Path, data: Any, config: Any = None, name: str = "talk.test.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(data))
    if config is not None:
        (folder / "test_config.json").write_text(json.dumps(config))
    return path


def echo(question: str) -> str:
    return f"hello {question}"


def evaluate(*args: Any, **named: Any) -> Any:
    return asyncio.run(AgentEvaluator.evaluate(*args, **named))


def warning_texts(path: Path) -> list[str]:
    return [str(warning) for suite in load([path]) for warning in suite.warnings]


def test_keys_without_a_value_say_nothing_at_any_level(tmp_path: Path) -> None:
    part = {"text": "x", "audio_transcription": None, "speech_metadata": None}
    asked = {"role": "user", "parts": [part], "new_content_key": None}
    call = {"name": "t", "args": {}, "new_call_key": None}
    used = {"toolUses": [call], "intermediateResponses": [], "new_data_key": None}
    answered = content("y", "model")
    talk = {"userContent": asked, "finalResponse": answered, "intermediateData": used, "new_turn_key": None}
    data = eval_set(talk, new_case_key=None, sessionInput={"appName": "a", "userId": "u", "state": {}, "new": None})
    assert warning_texts(write(tmp_path, {**data, "new_set_key": None})) == []


def test_extra_keys_that_adk_ignores_are_a_warning_once_each(tmp_path: Path) -> None:
    talk = {"userContent": content("x", quantum=1), "finalResponse": content("y", "model", quantum=2)}
    data = eval_set(talk, owner="me", sessionInput={"appName": "a", "userId": "u", "state": {}, "locale": "en"})
    found = warning_texts(write(tmp_path, {**data, "revision": 7}))
    assert [sum(key in warning for warning in found) for key in ("quantum", "owner", "locale", "revision")] == [1] * 4
    assert all("is ignored" in warning for warning in found)


@pytest.mark.parametrize("key", ["final_respose", "surprise"])
def test_a_turn_with_a_key_that_adk_forbids_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(InvalidSuite, match=f"{key} is not a known key"):
        load([write(tmp_path, eval_set(turn("x", "y", **{key: {}})))])


def test_a_misspelt_key_is_refused_where_adk_would_ignore_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidSuite, match="did you mean 'sessionInput'"):
        load([write(tmp_path, eval_set(turn("x", "y"), sesionInput={}))])


@pytest.mark.parametrize(
    "given",
    [
        {"initial_state": {"a": 1}},
        {"initialState": {"a": 1}},
        {"sessionInput": {"appName": "x", "userId": "u", "initial_state": {"a": 1}}},
    ],
)
def test_an_initial_state_is_the_state_that_a_session_starts_with(tmp_path: Path, given: Any) -> None:
    [suite] = load([write(tmp_path, eval_set(turn("x", "y"), **given))])
    assert suite.cases[0].state == {"a": 1}


def test_an_initial_state_next_to_another_is_refused(tmp_path: Path) -> None:
    session = {"appName": "x", "userId": "u", "state": {"b": 1}, "initial_state": {"a": 1}}
    with pytest.raises(InvalidSuite, match="initial_state is set together with"):
        load([write(tmp_path, eval_set(turn("x", "y"), sessionInput=session))])


MEANS = {"criteria": {"response_match_score": 0.5, "tool_trajectory_avg_score": 1.0}}
MIXED = (turn("one", "hello one", []), turn("two", "nothing alike", []))
"""The mean of the first criterion is 0.5; the second turn alone has 0."""


def evaluate_file(path: Path, agent: Any = echo, **options: Any) -> Any:
    return run_suites(RunRequest(load([path]), RunOptions(**options), agent=agent, store=None))


def reports(run: Any, verdict: Any) -> dict[str, str]:
    import io

    from proctor.reporting import junit
    from proctor.reporting.markdown import report as markdown
    from proctor.reporting.wording import score_texts

    found = {}
    for name, module in (("junit", junit), ("markdown", markdown)):
        out = io.StringIO()
        module.write(run, verdict, out)
        found[name] = out.getvalue()
    found["line"] = ", ".join(text for trial in run.trials for text, _ in score_texts(trial.scores))
    return found


def test_a_criterion_whose_mean_meets_the_threshold_is_reported_as_met(tmp_path: Path) -> None:
    run, verdict = evaluate_file(write(tmp_path, eval_set(*MIXED), MEANS))
    told = reports(run, verdict)
    assert verdict.outcome == "passed"
    assert (
        told["line"] == "response_match_score mean 0.50 over 2 turns, tool_trajectory_avg_score mean 1.00 over 2 turns"
    )
    assert "FAILED" not in told["markdown"] and "PASSED (mean 0.50)" in told["markdown"]
    assert "<failure" not in told["junit"]
    assert [item.failed for item in verdict.suites[0].evaluators] == [0, 0]


def test_only_the_criterion_that_was_missed_is_blamed(tmp_path: Path) -> None:
    calls: Any = [{"name": "look", "args": {}}]
    turns = (turn("one", "hello one", []), turn("two", "nothing alike", calls))
    run, verdict = evaluate_file(write(tmp_path, eval_set(*turns), MEANS))
    told = reports(run, verdict)
    assert verdict.outcome == "failed"
    assert "tool_trajectory_avg_score mean 0.50 < 1.00 over 2 turns" in told["line"]
    [failure] = ElementTree.fromstring(told["junit"]).iter("failure")
    assert "at turn 2" in failure.attrib["message"] and "response_match_score" not in failure.attrib["message"]
    assert "response_match_score" not in str(failure.text)
    with pytest.raises(AgentEvaluationFailed) as caught:
        evaluate(echo, tmp_path, 1)
    assert [failure.metric for failure in caught.value.failures] == ["tool_trajectory_avg_score"]


def test_a_run_below_the_mean_is_not_a_junit_failure_where_the_case_passed(tmp_path: Path) -> None:
    from proctor.cases.suite import Settings

    answers = iter(["nothing", "hello one"])
    path = write(tmp_path, eval_set(turn("one", "hello one")), {"criteria": {"response_match_score": 0.5}})
    given = Settings(repeat=2, parallel=1)
    run, verdict = evaluate_file(path, lambda question: next(answers), overrides=given)
    assert verdict.outcome == "passed"
    suite = ElementTree.fromstring(reports(run, verdict)["junit"])[0]
    assert (suite.attrib["tests"], suite.attrib["failures"], len(list(suite.iter("failure")))) == ("2", "0", 0)


def test_a_criterion_that_could_not_be_measured_is_said_aloud(tmp_path: Path) -> None:
    write(tmp_path, eval_set(turn("one", "hello one")), MEANS)
    with pytest.warns(UserWarning, match="one: tool_trajectory_avg_score was skipped: the case does not say"):
        evaluate(echo, tmp_path, 1)


ROWS = [{"query": "one", "reference": "hello one"}, {"query": "two", "reference": "hello two"}]


def test_rows_that_the_two_adks_read_differently_say_how_they_are_read(tmp_path: Path) -> None:
    [ambiguous] = [text for text in warning_texts(write(tmp_path, ROWS)) if "legacy_rows" in text]
    assert "2 rows" in ambiguous and "one case each, like ADK-TS" in ambiguous and "conversation" in ambiguous


@pytest.mark.parametrize(("reading", "shape"), [("cases", [1, 1]), ("conversation", [2])])
def test_what_rows_are_can_be_chosen(tmp_path: Path, reading: str, shape: list[int]) -> None:
    path = write(tmp_path, ROWS, {"criteria": {"response_match_score": 0.8}, "legacy_rows": reading})
    [suite] = load([path])
    assert [len(case.turns) for case in suite.cases] == shape
    assert not [text for text in warning_texts(path) if "legacy_rows" in text]


def test_a_reading_that_there_is_not_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, ROWS, {"criteria": {"response_match_score": 0.8}, "legacy_rows": "turns"})
    with pytest.raises(InvalidSuite, match="must be one of cases, conversation"):
        load([path])


@pytest.mark.parametrize(
    "rows",
    [ROWS[:1], [{**row, "expected_tool_use": [{"tool_name": "t", "tool_input": {}}]} for row in ROWS]],
    ids=["one row", "rows of adk-python"],
)
def test_rows_that_mean_the_same_everywhere_need_no_choice(tmp_path: Path, rows: Any) -> None:
    assert not [text for text in warning_texts(write(tmp_path, rows)) if "legacy_rows" in text]


def test_the_legacy_format_is_deprecated(tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="legacy format"):
        evaluate(echo, write(tmp_path, ROWS[:1]), 1)


def test_adk_ts_names_of_parameters_are_taken(tmp_path: Path) -> None:
    path = write(tmp_path, ROWS[:1])
    session = write(tmp_path, {"colour": "red"}, name="session.json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = evaluate(
            echo, evalDatasetFilePathOrDir=path, numRuns=3, initialSessionFile=session, printDetailedResults=False
        )
    trials = list(run.trials)
    assert len(trials) == 3 and trials[0].case.state == {"colour": "red"}
    data = eval_set(turn("one", "hello one"))
    given = {"evalSet": data, "numRuns": 1, "criteria": {"response_match_score": 0.8}}
    assert len(list(asyncio.run(AgentEvaluator.evaluateEvalSet(echo, **given)).trials)) == 1


def test_an_app_name_is_that_of_sessions_without_one(tmp_path: Path) -> None:
    path = write(tmp_path, eval_set(turn("one", "hello one")), {"criteria": {"response_match_score": 0.8}})
    [trial] = evaluate(echo, path, 1, app_name="desk").trials
    assert trial.case.extra["x-adk"]["appName"] == "desk"
    own = eval_set(turn("one", "hello one"), sessionInput={"appName": "own", "userId": "u", "state": {}})
    [trial] = evaluate(echo, write(tmp_path, own), 1, app_name="desk").trials
    assert trial.case.extra["x-adk"]["appName"] == "own"


@pytest.mark.parametrize("name", ["artifact_service", "artifactService", "eval_set_results_manager"])
def test_a_parameter_that_is_not_taken_is_refused_by_name_with_what_to_do(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, eval_set(turn("one", "hello one")))
    with pytest.raises(TypeError, match=r"AgentEvaluator does not support \w+: \w+"):
        evaluate(echo, path, 1, **{name: object()})
    with pytest.raises(TypeError, match="no parameter 'num_rums'"):
        evaluate(echo, path, num_rums=1)


@pytest.mark.process
def test_a_failure_in_pytest_shows_the_metrics_and_not_our_source(tmp_path: Path) -> None:
    write(tmp_path, eval_set(turn("one", "nothing alike")), {"criteria": {"response_match_score": 0.8}})
    (tmp_path / "test_it.py").write_text(
        "from proctor.compat.adk import AgentEvaluator\n\n"
        "def test_agent():\n    AgentEvaluator.evaluate_sync(lambda q: 'hello', 'talk.test.json', 1)\n\n"
        "def test_with_a_loop():\n    import asyncio\n"
        "    asyncio.run(AgentEvaluator.evaluate(lambda q: 'hello', 'talk.test.json', 1))\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_it.py"]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120).stdout
    assert shown.count("one: response_match_score is 0, below 0.8") >= 2
    assert "raise AgentEvaluationFailed" not in shown


def test_migration_writes_what_the_adk_of_its_name_reads(tmp_path: Path) -> None:
    old, new = write(tmp_path, ROWS[:1]), tmp_path / "new.evalset.json"
    asyncio.run(AgentEvaluator.migrateEvalDataToNewSchema(oldEvalDataFile=old, newEvalDataFile=new))
    assert "evalCases" in json.loads(new.read_text())
    asyncio.run(AgentEvaluator.migrate_eval_data_to_new_schema(old, new))
    assert "eval_cases" in json.loads(new.read_text())
    asyncio.run(AgentEvaluator.migrate_eval_data_to_new_schema(old, new, to="adk"))
    assert "evalCases" in json.loads(new.read_text())
    with pytest.raises(UsageError, match="'adk' or 'adk-python'"):
        asyncio.run(AgentEvaluator.migrate_eval_data_to_new_schema(old, new, to="java"))
