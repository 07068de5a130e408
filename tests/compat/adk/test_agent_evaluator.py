"""ADK's AgentEvaluator, over any agent."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from proctor.agents.reply import Reply, ToolCall
from proctor.base.errors import InvalidSuite, StoreError, UsageError
from proctor.compat.adk import AgentEvaluationFailed, AgentEvaluator


def turn(text: str, answer: str | None = None, *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {"creationTimestamp": 0, "userContent": {"role": "user", "parts": [{"text": text}]}}
    if answer is not None:
        data["finalResponse"] = {"role": "model", "parts": [{"text": answer}]}
    if calls:
        uses = [{"name": name, "args": args} for name, args in calls]
        data["intermediateData"] = {"toolUses": uses, "intermediateResponses": []}
    return data


WEATHER = ("get_weather", {"city": "London"})


def eval_set(name: str = "weather", *cases: dict[str, Any]) -> dict[str, Any]:
    usual = {"evalId": "london", "conversation": [turn("Weather in London?", "It is sunny in London.", WEATHER)]}
    return {"evalSetId": name, "creationTimestamp": 0, "evalCases": list(cases or (usual,))}


def good(question: str) -> Reply:
    return Reply("It is sunny in London.", (ToolCall("get_weather", {"city": "London"}),))


def bad(question: str) -> Reply:
    return Reply("Bananas.", (ToolCall("get_weather", {"city": "Paris"}),))


def write(folder: Path, name: str, data: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def evaluate(*args: Any, **options: Any) -> Any:
    return asyncio.run(AgentEvaluator.evaluate(*args, **options))


def test_an_agent_that_meets_the_defaults_passes_and_the_run_comes_back(tmp_path: Path) -> None:
    run = evaluate(good, write(tmp_path, "weather.test.json", eval_set()))
    assert [(trial.case.id, trial.number, trial.outcome) for trial in run.trials] == [
        ("london", 1, "passed"),
        ("london", 2, "passed"),
    ]


def test_the_error_names_file_case_metric_threshold_score_and_why(tmp_path: Path) -> None:
    path = write(tmp_path, "weather.test.json", eval_set())
    with pytest.raises(AgentEvaluationFailed) as caught:
        evaluate(bad, path, 2)
    trajectory, match = caught.value.failures
    assert (trajectory.file, trajectory.eval_id, trajectory.metric) == (
        str(path),
        "london",
        "tool_trajectory_avg_score",
    )
    assert (trajectory.threshold, trajectory.score) == (1.0, 0.0)
    assert [line.split(":")[0] for line in trajectory.places] == ["run 1", "run 2"]
    assert "Paris" in trajectory.places[0]
    assert match.metric == "response_match_score"
    text = str(caught.value)
    assert f"{path}: london: tool_trajectory_avg_score is 0, below 1" in text
    assert isinstance(caught.value, AssertionError)


def test_the_turns_that_lost_a_metric_are_reported(tmp_path: Path) -> None:
    case = {
        "evalId": "two",
        "conversation": [turn("One?", "It is sunny in London."), turn("Two?", "It rains in Rome.")],
    }
    with pytest.raises(AgentEvaluationFailed) as caught:
        evaluate(good, write(tmp_path, "two.test.json", eval_set("two", case)), 1)
    (failure,) = caught.value.failures
    assert len(failure.places) == 1
    assert failure.places[0].startswith("turn 2: (0.")


def test_every_file_is_run_before_it_raises_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(tmp_path, "deep/b.test.json", eval_set("b"))
    write(tmp_path, "a.test.json", eval_set("a"))
    write(tmp_path, "node_modules/x.test.json", eval_set("x"))
    write(tmp_path, ".hidden/y.test.json", eval_set("y"))
    write(tmp_path, "deep/other.json", {"anything": 1})
    with pytest.raises(AgentEvaluationFailed) as caught:
        evaluate(bad, tmp_path, 1)
    assert [Path(failure.file).name for failure in caught.value.failures] == ["a.test.json"] * 2 + ["b.test.json"] * 2
    assert [suite.name for suite in caught.value.run.suites] == ["a", "b"]


def test_each_file_is_scored_by_the_config_of_its_own_folder(tmp_path: Path) -> None:
    write(tmp_path, "a.test.json", eval_set("a"))
    write(tmp_path, "lenient/b.test.json", eval_set("b"))
    write(tmp_path, "lenient/test_config.json", {"criteria": {"tool_trajectory_avg_score": 0.0}})
    with pytest.raises(AgentEvaluationFailed) as caught:
        evaluate(bad, tmp_path, 1)
    assert {Path(failure.file).name for failure in caught.value.failures} == {"a.test.json"}


def test_what_broke_is_separate_from_what_failed(tmp_path: Path) -> None:
    def agent(question: str) -> Reply:
        if "down" in question:
            raise ConnectionError("service unavailable")
        if "crash" in question:
            raise ValueError("no such city")
        return bad(question)

    cases = [
        {"evalId": name, "conversation": [turn(f"{name}?", "It is sunny.")]} for name in ("wrong", "down", "crash")
    ]
    with pytest.raises(AgentEvaluationFailed) as caught:
        evaluate(agent, write(tmp_path, "a.test.json", eval_set("a", *cases)), 1)
    assert [failure.eval_id for failure in caught.value.failures] == ["wrong", "crash"]
    assert [error.eval_id for error in caught.value.errors] == ["down"]
    assert "not failures of the agent" in str(caught.value)
    assert "no such city" in str(caught.value)


def test_a_metric_on_another_scale_is_reported_on_its_own(tmp_path: Path) -> None:
    class Judge:
        name = "strict"

        async def ask(self, question: Any, *, sample: int = 0) -> Any:
            return question.reply(reason="it rambles", mark=2)

    write(tmp_path, "test_config.json", {"criteria": {"response_evaluation_score": 4}})
    with pytest.raises(AgentEvaluationFailed, match="response_evaluation_score is 2, below 4"):
        evaluate(good, write(tmp_path, "a.test.json", eval_set()), 1, judge=Judge())


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "there are no"),
        ({"a.test.json": {"evalSetId": "a", "evalCases": []}}, "is empty"),
        ({"a.test.json": "{broken"}, "is not valid JSON"),
        ({"a.test.json": eval_set(), "test_config.json": "{broken"}, "is not valid JSON"),
        ({"a.test.json": eval_set(), "test_config.json": {"criteria": {}}}, "criteria is empty"),
        ({"a.test.json": eval_set(), "test_config.json": {"criteria": {"nonsense": 1}}}, "not a known metric"),
    ],
)
def test_what_adk_passes_in_silence_is_an_error(tmp_path: Path, files: dict[str, Any], said: str) -> None:
    for name, data in files.items():
        write(tmp_path, name, data)
    with pytest.raises((UsageError, InvalidSuite), match=said):
        evaluate(good, tmp_path)


@pytest.mark.parametrize("runs", [0, -1, True, "2", 1.5, None])
def test_runs_are_a_whole_number_from_one(tmp_path: Path, runs: Any) -> None:
    with pytest.raises(UsageError, match="num_runs"):
        evaluate(good, write(tmp_path, "a.test.json", eval_set()), runs)


def test_a_path_that_is_not_there_and_an_unknown_parameter_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        evaluate(good, tmp_path / "nowhere")
    with pytest.raises(TypeError, match="artifact_service"):
        evaluate(good, tmp_path, artifact_service=1)
    with pytest.raises(UsageError, match="pass the agent"):
        evaluate(None, tmp_path)


LEGACY = [{"query": "Weather?", "reference": "It is sunny in London."}]


def test_the_state_of_an_initial_session_reaches_the_agent_of_a_legacy_file(tmp_path: Path) -> None:
    def agent(question: str, state: dict[str, Any]) -> str:
        return f"It is {state['sky']} in London."

    old = write(tmp_path, "old.test.json", LEGACY)
    for session in ({"sky": "sunny"}, {"app_name": "a", "user_id": "u", "state": {"sky": "sunny"}}):
        given = write(tmp_path, "session.json", session)
        with pytest.warns(DeprecationWarning, match="legacy"):
            evaluate(agent, old, 1, initial_session_file=given)


def test_an_initial_session_next_to_an_eval_set_is_an_error(tmp_path: Path) -> None:
    session = write(tmp_path, "session.json", {"state": {}})
    with pytest.raises(UsageError, match="is an EvalSet"):
        evaluate(good, write(tmp_path, "a.test.json", eval_set()), initial_session_file=session)


@pytest.mark.parametrize("text", ["[]", "{broken", '{"state": 3}'])
def test_an_initial_session_that_is_none_is_an_error(tmp_path: Path, text: str) -> None:
    old = write(tmp_path, "old.test.json", LEGACY)
    with pytest.raises(InvalidSuite):
        evaluate(good, old, initial_session_file=write(tmp_path, "session.json", text))
    with pytest.raises(InvalidSuite, match="does not exist"):
        evaluate(good, old, initial_session_file=tmp_path / "nothing.json")


def test_legacy_data_is_migrated_with_its_session(tmp_path: Path) -> None:
    old, new = write(tmp_path, "old.json", LEGACY), tmp_path / "new" / "a.test.json"
    session = write(tmp_path, "session.json", {"sky": "sunny"})
    asyncio.run(AgentEvaluator.migrateEvalDataToNewSchema(old, new, session))
    (case,) = json.loads(new.read_text())["evalCases"]
    assert case["sessionInput"]["state"] == {"sky": "sunny"}
    evaluate(good, new, 1)
    with pytest.raises(UsageError, match="both"):
        AgentEvaluator.migrate_eval_data_to_new_schema_sync("", new)


def test_the_config_of_a_file_is_found_and_a_broken_one_is_never_replaced(tmp_path: Path) -> None:
    find = AgentEvaluator.find_config_for_test_file_sync
    file = tmp_path / "a.test.json"
    assert find(file) == {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    write(tmp_path, "test_config.json", {"criteria": {"response_match_score": 0.5}})
    assert asyncio.run(AgentEvaluator.findConfigForTestFile(file)) == {"response_match_score": 0.5}
    write(tmp_path, "test_config.json", "{broken")
    with pytest.raises(InvalidSuite):
        find(file)


SNAKE = {
    "eval_set_id": "weather",
    "eval_cases": [
        {
            "eval_id": "london",
            "conversation": [
                {"user_content": {"parts": [{"text": "Weather?"}]}, "final_response": {"parts": [{"text": "Sunny."}]}}
            ],
        }
    ],
}


class Dumped:
    """Like an object of a pydantic class."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def model_dump(self, **_: Any) -> Any:
        return self._data


@pytest.mark.parametrize("given", [eval_set(), SNAKE, Dumped(SNAKE)], ids=["camel", "snake", "object"])
def test_an_eval_set_in_memory_touches_no_file(given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "test_config.json", "{broken")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    run = AgentEvaluator.evaluate_eval_set_sync("oracle", given, num_runs=1)
    assert [trial.outcome for trial in run.trials] == ["passed"]
    assert sorted(tmp_path.iterdir()) == before


def test_an_eval_set_in_memory_is_scored_by_the_given_criteria() -> None:
    lenient = {"response_match_score": 0.0}
    AgentEvaluator.evaluate_eval_set_sync(bad, eval_set(), lenient, 1)
    AgentEvaluator.evaluate_eval_set_sync(bad, eval_set(), eval_config=Dumped({"criteria": lenient}), num_runs=1)
    with pytest.raises(AgentEvaluationFailed, match="weather: london: tool_trajectory_avg_score"):
        asyncio.run(AgentEvaluator.evaluateEvalSet(bad, eval_set(), {"tool_trajectory_avg_score": 1.0}, 1))


def test_all_that_is_wrong_with_a_set_and_its_criteria_is_reported_at_once() -> None:
    with pytest.raises(InvalidSuite) as caught:
        AgentEvaluator.evaluate_eval_set_sync(good, {"evalSetId": "a", "evalCases": []}, {"nonsense": 1})
    assert [str(problem).partition(";")[0] for problem in caught.value.problems] == [
        "eval_config: criteria.nonsense is not a known metric",
        "EvalSet: evalCases is empty",
    ]
    with pytest.raises(UsageError, match="not both"):
        AgentEvaluator.evaluate_eval_set_sync(good, eval_set(), {"safety_v1": 1}, eval_config={"criteria": {}})
    with pytest.raises(UsageError, match="pass the EvalSet"):
        AgentEvaluator.evaluate_eval_set_sync(good, None)


class Fake:
    """A tree of agents as frameworks have them."""

    def __init__(self, name: str, *below: Fake) -> None:
        self.name = name
        self.sub_agents = list(below)

    def __call__(self, question: str) -> str:
        return "Sunny." if self.name == "inner" else "Ask somebody else."


ROOT = Fake("outer", Fake("middle", Fake("inner")))


def module(name: str, **names: Any) -> ModuleType:
    made = ModuleType(name)
    for key, value in names.items():
        setattr(made, key, value)
    return made


@pytest.mark.parametrize(
    "home",
    [
        module("desk", root_agent=ROOT),
        module("desk", agent=module("desk.agent", root_agent=ROOT)),
        module("desk", agent=ROOT, root_agent=ROOT),
        module("desk", agent=module("desk.agent", app=module("x"), get_agent_async=lambda: (ROOT, None))),
    ],
)
def test_an_agent_is_found_where_adk_python_looks_for_it(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "desk", home)
    for given in ({"agent": "desk"}, {"agent_module": "desk"}, {"agent": home}):
        AgentEvaluator.evaluate_eval_set_sync(eval_set=SNAKE, num_runs=1, agent_name="inner", **given)
    with pytest.raises(AgentEvaluationFailed):
        AgentEvaluator.evaluate_eval_set_sync("desk", SNAKE, num_runs=1)
    with pytest.raises(UsageError, match="there are outer, middle, inner"):
        AgentEvaluator.evaluate_eval_set_sync("desk", SNAKE, agent_name="nobody")


def test_what_get_agent_async_opened_is_closed_after_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    class Stack:
        async def aclose(self) -> None:
            closed.append(True)

    async def get_agent_async() -> Any:
        return ROOT, Stack()

    monkeypatch.setitem(sys.modules, "desk", module("desk", get_agent_async=get_agent_async))
    AgentEvaluator.evaluate_eval_set_sync("desk", SNAKE, num_runs=1, agent_name="inner")
    assert closed == [True]


def test_agents_in_files_are_found_with_and_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "sky.py", "def root_agent(question):\n    return 'Sunny.'\n")
    write(tmp_path, "empty_sky.py", "x = 1\n")
    for given in ("sky.py", "sky.py:root_agent", "sky:root_agent"):
        AgentEvaluator.evaluate_eval_set_sync(given, SNAKE, num_runs=1)
    with pytest.raises(UsageError, match="has no agent"):
        AgentEvaluator.evaluate_eval_set_sync("empty_sky.py", SNAKE)
    with pytest.raises(UsageError, match="there is no module 'nowhere_at_all'"):
        AgentEvaluator.evaluate_eval_set_sync("nowhere_at_all", SNAKE)


def test_details_show_expected_and_made_calls_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AgentEvaluationFailed):
        AgentEvaluator.evaluate_eval_set_sync(bad, eval_set(), num_runs=1, print_detailed_results=True)
    printed = capsys.readouterr().out
    assert "failed  weather / london" in printed
    assert 'get_weather(city="London") | get_weather(city="Paris")  <- city' in printed


def test_an_output_file_gets_a_row_per_score_of_every_evaluation(tmp_path: Path) -> None:
    file = tmp_path / "out" / "scores.csv"
    for _ in range(2):
        AgentEvaluator.evaluate_eval_set_sync(good, eval_set(), num_runs=1, output_file=file)
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [row["evaluator"] for row in rows] == ["tool_trajectory_avg_score", "response_match_score"] * 2
    file.write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="does not have the columns"):
        AgentEvaluator.evaluate_eval_set_sync(good, eval_set(), num_runs=1, output_file=file)
    with pytest.raises(StoreError, match="could not be written"):
        AgentEvaluator.evaluate_eval_set_sync(good, eval_set(), num_runs=1, output_file=tmp_path)


def test_a_run_is_kept_where_a_store_is_named(tmp_path: Path) -> None:
    AgentEvaluator.evaluate_eval_set_sync(good, eval_set(), num_runs=1, store=tmp_path / "s")
    assert (tmp_path / "s" / "results.db").is_file()


def test_a_case_in_which_everything_was_skipped_says_of_each_metric_why(tmp_path: Path) -> None:
    path = write(tmp_path, "a.test.json", eval_set("a", {"evalId": "hi", "conversation": [turn("Hi", "Hello")] * 2}))
    criteria = {"tool_trajectory_avg_score": 1.0, "per_turn_user_simulator_quality_v1": 0.5}
    write(tmp_path, "test_config.json", {"criteria": criteria})
    with pytest.warns(UserWarning, match="was skipped"), pytest.raises(AgentEvaluationFailed) as caught:
        evaluate(good, path, 2)
    (unmeasured,) = caught.value.errors
    assert caught.value.failures == []
    told = [line for line in unmeasured.places if "skipped:" in line]
    assert told == [
        "tool_trajectory_avg_score was skipped: the case does not say which tool calls it expects",
        "per_turn_user_simulator_quality_v1 was skipped: "
        "needs a conversation, and `conversation_scenario` in the metadata of the case",
    ]


def test_warnings_point_at_the_file_they_are_about(tmp_path: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "x" * 1000}}
    data = eval_set()
    data["evalCases"][0]["conversation"][0]["userContent"]["parts"].append(picture)
    for indent, shows_a_line in ((1, True), (None, False)):
        path = write(tmp_path, "picture.test.json", json.dumps(data, indent=indent))
        with pytest.warns(UserWarning, match="inline_data") as caught:
            evaluate(good, path, 1)
        assert [(warning.filename, warning.lineno > 0) for warning in caught] == [(str(path), shows_a_line)]


def test_a_file_without_an_agent_is_called_by_its_name(tmp_path: Path) -> None:
    agents = write(tmp_path, "nobody.py", "x = 1")
    with pytest.raises(UsageError, match=r"nobody\.py has no agent"):
        evaluate(str(agents), write(tmp_path, "weather.test.json", eval_set()))


def test_whatever_an_agent_says_the_error_and_the_details_can_be_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nasty(question: str) -> Reply:
        calls = (ToolCall("\x1b[2J", {"\udfff": "\ud800"}),)
        return Reply("half a pair \ud800, \x1b[31mred\x1b[0m, \x00 and 東京", calls)

    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(AgentEvaluationFailed) as caught:
        evaluate(nasty, write(tmp_path, "weather.test.json", eval_set()), print_detailed_results=True)
    str(caught.value).encode()
    out.seek(0)
    for text in (str(caught.value), out.read()):
        assert "half a pair \\ud800" in text
        assert "\x1b" not in text


@pytest.mark.parametrize(
    ("session", "named"),
    [
        ({"app_name": "bank", "user_id": "ann", "state": {"n": 1}}, {"app_name": "bank", "user_id": "ann"}),
        ({"n": 1}, {"app_name": "old", "user_id": "user"}),
    ],
)
def test_a_migrated_session_has_the_names_without_which_adk_refuses_it(
    tmp_path: Path, session: dict[str, Any], named: dict[str, Any]
) -> None:
    old = write(tmp_path, "old.json", [{"query": "Hi", "reference": "Hello"}])
    new = tmp_path / "new.test.json"
    given = write(tmp_path, "session.json", session)
    AgentEvaluator.migrate_eval_data_to_new_schema_sync(old, new, given)
    assert json.loads(new.read_text())["eval_cases"][0]["session_input"] == {**named, "state": {"n": 1}}


def test_a_sub_agent_of_what_has_none_is_an_error_that_says_so() -> None:
    with pytest.raises(UsageError, match="neither a name nor sub-agents"):
        AgentEvaluator.evaluate_eval_set_sync(good, eval_set(), agent_name="billing")
