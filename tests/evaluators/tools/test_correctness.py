"""The share of expected tool use, and tools that are asked again."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.agents.reply import ToolCall
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.registry import resolve_evaluator
from proctor.evaluators.tools.consistency import RerunFailed, ToolConsistency


def rate() -> float:
    return 0.05


def broken() -> None:
    raise ConnectionError("no route")


TOOLS = {"rate": rate, "broken": broken}


def score(*calls: ToolCall, **options: Any) -> proctor.Evaluation:
    found = proctor.evaluate_sync(ToolConsistency(**{"tools": TOOLS, **options}), Evaluable(tool_calls=calls))
    assert found is not None
    return found


def test_a_tool_that_answers_as_before_passes() -> None:
    found = score(ToolCall("rate", {}, 0.05))
    assert found.score == 1.0
    assert found.details["calls"][0]["differs"] is False


def test_a_tool_that_answers_something_else_is_a_finding() -> None:
    found = score(ToolCall("rate", {}, 0.05), ToolCall("rate", {}, 0.04))
    assert found.score == 0.5
    assert "rate() returns 0.05; the agent got 0.04" in found.reasoning


def test_a_tool_that_cannot_be_called_again_is_an_error_and_no_zero() -> None:
    with pytest.raises(RerunFailed, match="no route"):
        score(ToolCall("broken", {}, 1), ToolCall("rate", {}, 0.05))


def test_a_difference_is_a_finding_whatever_else_went_wrong() -> None:
    found = score(ToolCall("broken", {}, 1), ToolCall("rate", {}, 0.04))
    assert found.score == 0.0
    assert "not compared: broken()" in found.reasoning


@pytest.mark.parametrize("calls", [(), (ToolCall("unknown", {}, 1),), (ToolCall("rate"),)])
def test_without_anything_to_compare_it_is_skipped(calls: tuple[ToolCall, ...]) -> None:
    with pytest.raises(NothingToCompare):
        score(*calls)


@pytest.mark.parametrize("seconds", [0, -1, True, "1", float("nan")])
def test_a_time_that_is_no_time_is_refused(seconds: Any) -> None:
    with pytest.raises(ValueError, match="seconds"):
        ToolConsistency(seconds=seconds)


SUITE = """
    name: loans
    agent: app.py:agent
    {setting}
    evaluators: {evaluators}
    cases:
      - id: rate
        input: What is the rate?
        {double}
"""
APP = """
    import proctor
    CALLS = []

    @proctor.tool
    def current_rate(name: str) -> dict:
        CALLS.append(name)
        return {"rate": 5 if len(CALLS) == 1 else {LATER}, "name": name}

    TOOLS = [current_rate]

    def agent(question):
        found = current_rate("fixed")
        return f"The rate is {found['rate']}."
"""


def run(
    folder: Path, *, setting: str = "", evaluators: str = "[ToolConsistency]", later: int = 5, double: str = ""
) -> Any:
    (folder / "app.py").write_text(textwrap.dedent(APP).replace("{LATER}", str(later)))
    text = textwrap.dedent(SUITE).format(setting=setting, evaluators=evaluators, double=double)
    (folder / "suite.yaml").write_text(text)
    found = proctor.run(proctor.load(folder / "suite.yaml"), store=None)
    [trial] = found.trials
    return trial


def test_a_suite_names_it_and_finds_the_tools_that_are_marked(tmp_path: Path) -> None:
    assert run(tmp_path).outcome == "passed"


def test_a_suite_fails_when_a_tool_answers_otherwise(tmp_path: Path) -> None:
    assert run(tmp_path, later=9).outcome == "failed"


def test_a_tool_that_a_case_answers_for_is_not_called_again(tmp_path: Path) -> None:
    trial = run(tmp_path, later=9, double="mocks: {current_rate: [{result: {rate: 7}}]}")
    [found] = trial.scores
    assert (found.outcome, "the case mocks it" in found.reasoning) == ("skipped", True)


@pytest.mark.parametrize(
    "setting", ["rerun_tools: true", "rerun_tools: app.py:TOOLS", "rerun_tools: {current_rate: app.py:current_rate}"]
)
def test_with_rerun_tools_an_answer_is_held_against_what_the_tools_really_give(tmp_path: Path, setting: str) -> None:
    trial = run(tmp_path, setting=setting, evaluators="[Faithfulness]", later=9)
    assert trial.replies[0].retrieval_context == ('{"rate": 9, "name": "fixed"}',)
    assert trial.outcome == "failed"
    assert any("re-run" in warning and '"rate": 9' in warning for warning in trial.warnings)


def test_without_it_the_answer_is_held_against_what_the_agent_was_given(tmp_path: Path) -> None:
    assert run(tmp_path, evaluators="[Faithfulness]", later=9).outcome == "passed"


@pytest.mark.parametrize(
    "setting", ["rerun_tools: 3", "rerun_tools: {}", "rerun_tools: nowhere.py:TOOLS", "rerun_tools: {a: 3}"]
)
def test_tools_that_are_not_there_are_told_before_anything_runs(tmp_path: Path, setting: str) -> None:
    with pytest.raises(proctor.InvalidSuite, match="rerun_tools"):
        run(tmp_path, setting=setting)


def test_a_suite_with_rerun_tools_is_written_as_it_was_read(tmp_path: Path) -> None:
    from proctor.cases.formats.native.writer import write_text

    run(tmp_path, setting="rerun_tools: app.py:TOOLS")
    suites = proctor.load(tmp_path / "suite.yaml")
    (tmp_path / "again.yaml").write_text(write_text(suites).text)
    assert proctor.load(tmp_path / "again.yaml")[0].rerun_tools == "app.py:TOOLS"


def test_another_table_is_another_evaluator() -> None:
    one, other = (
        resolve_evaluator(proctor.EvaluatorSpec("ToolConsistency", {"seconds": seconds})) for seconds in (1, 2)
    )
    assert one.fingerprint != other.fingerprint
