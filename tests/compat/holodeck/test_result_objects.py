"""Results as their users compare, copy and serialise them."""

from __future__ import annotations

import asyncio
import datetime
import io
import itertools
import json
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from holodeck_tokens import tokens

from proctor.base.errors import InvalidSuite
from proctor.compat.holodeck import (
    ConfigError,
    ConfigLoader,
    ExecutionResult,
    FileInput,
    MetricResult,
    ProcessedFileInput,
    ProgressIndicator,
    ReportSummary,
    TestExecutor,
    TestReport,
    TestResult,
    TokenUsage,
    ToolInvocation,
    TurnResult,
    generate_markdown_report,
)

TESTS: list[dict[str, Any]] = [
    {"name": "one", "input": "x", "ground_truth": "x"},
    {
        "name": "talk",
        "turns": [
            {"input": "a", "ground_truth": "a", "expected_tools": [{"name": "t", "args": {"q": {"regex": "b+"}}}]},
            {"input": "b", "ground_truth": "c"},
        ],
    },
]


class Echo:
    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        return ExecutionResult(message, [{"name": "t", "arguments": {"q": "a"}}])

    async def create_session(self, *, eager_connect: bool = True) -> Echo:
        return self

    send = invoke_once


def report(folder: Path, tests: Any = TESTS, **more: Any) -> TestReport:
    metrics = {"metrics": [{"type": "standard", "metric": "equality"}]}
    path = folder / "agent.yaml"
    path.write_text(json.dumps({"name": "a", "evaluations": metrics, "test_cases": tests, **more}))
    return asyncio.run(TestExecutor(str(path), backend=Echo()).execute_tests())


def test_a_report_comes_back_from_json_as_it_was(tmp_path: Path) -> None:
    made = report(tmp_path)
    assert TestReport.model_validate_json(made.model_dump_json(indent=2)) == made
    assert TestReport.model_validate(made.model_dump()) == made
    assert TestResult.model_validate(made.results[1].model_dump()).turns == made.results[1].turns


def test_everything_that_holds_several_is_a_list(tmp_path: Path) -> None:
    made = report(tmp_path)
    one, talk = made.results
    assert isinstance(made.results, list)
    assert one.tool_calls == ["t"]
    assert isinstance(talk.turns, list)
    for found in (one, talk, *talk.turns):
        lists = (found.tool_calls, found.tool_invocations, found.metric_results, found.errors, found.processed_files)
        assert all(isinstance(items, list) for items in lists)
    assert made.warnings == []


def test_what_is_optional_may_be_left_out() -> None:
    assert TestResult(test_input="x", passed=True, execution_time_ms=1, timestamp="now").test_name is None
    assert TestResult(test_input="x").tool_calls == []
    assert TurnResult(turn_index=0, input="x").metric_results == []
    assert MetricResult(metric_name="bleu", kind="standard", score=0.5).passed is None
    assert ReportSummary(total_tests=0, passed=0, failed=0, pass_rate=0.0, total_duration_ms=0).average_scores == {}
    assert TestReport(agent_name="a", agent_config_path="a.yaml").environment == {}
    assert ProcessedFileInput(original=FileInput(path="a", type="text"), markdown_content="").error is None
    assert ToolInvocation(name="t", bytes=0).args == {}
    assert TokenUsage.model_validate_json(tokens(1, 2, 3).model_dump_json()) == tokens(1, 2, 3)


def test_dumps_leave_out_what_is_not_wanted() -> None:
    metric = MetricResult(metric_name="bleu", score=0.5)
    assert metric.model_dump(include={"metric_name", "score"}) == {"metric_name": "bleu", "score": 0.5}
    assert "score" not in metric.model_dump(exclude={"score"})
    assert None not in metric.model_dump(exclude_none=True, mode="json").values()
    assert metric.model_dump(exclude_defaults=True) == {"metric_name": "bleu", "score": 0.5}
    assert json.loads(metric.model_dump_json(exclude_none=True))["metric_name"] == "bleu"
    assert metric.model_copy(update={"score": 1.0}).score == 1.0


@pytest.mark.parametrize("text", ["[]", '{"metric_name": 3}', '{"metric_nam": "x"}', "{}", "nothing"])
def test_what_is_not_a_result_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        MetricResult.model_validate_json(text)


def test_a_file_that_cannot_be_used_is_a_config_error_with_every_problem(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("name: a\nagent: app.py:a\ntest_cases:\n  - {inptu: x}\n  - {input: 3}\n")
    with pytest.raises(ConfigError) as caught:
        ConfigLoader().load_agent_yaml(tmp_path / "agent.yaml")
    assert isinstance(caught.value, InvalidSuite)
    assert len(caught.value.problems) >= 2
    assert caught.value.field.startswith("test_cases[0]")
    for path in (tmp_path / "gone.yaml", tmp_path):
        with pytest.raises(ConfigError):
            ConfigLoader().load_agent_yaml(path)
    assert ConfigError("model.name", "is required").field == "model.name"


@pytest.mark.parametrize("verbose", [True, False])
def test_progress_does_without_times_and_names(verbose: bool) -> None:
    progress = ProgressIndicator(total_tests=2, verbose=verbose)
    assert isinstance(progress.start_time, datetime.datetime)
    progress.update(TestResult(test_input="x", passed=True, execution_time_ms=None))
    assert progress.get_progress_line() == "[Test 1/2] PASS Test 1"
    progress.update(TestResult(test_name=None, test_input="x", execution_time_ms=None))
    assert "FAIL Test 2" in progress.get_progress_line()
    assert "1/2 passed" in progress.get_summary()


def test_progress_counts_results_of_which_only_the_verdict_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.StringIO())
    progress = ProgressIndicator(total_tests=1, verbose=True)
    result = MagicMock()
    result.passed = True
    progress.update(result)
    assert progress.get_progress_line() == "[Test 1/1] PASS Test 1"
    assert "1/1 passed" in progress.get_summary()


def test_expected_tools_are_shown_as_they_were_written(tmp_path: Path) -> None:
    written: list[Any] = [
        "t",
        {"name": "t", "args": {"q": "a", "n": {"fuzzy": "1,000"}}},
        {"name": "t", "args": {"q": {"regex": "a|b"}}, "count": 2},
        {"name": "t", "count": 3},
    ]
    [found] = report(tmp_path, [{"input": "x", "expected_tools": written}]).results
    assert found.expected_tools == written


def test_a_metric_over_turns_says_that_it_is_a_mean(tmp_path: Path) -> None:
    [metric] = report(tmp_path).results[1].metric_results
    assert (metric.score, (metric.reasoning or "").splitlines()[0]) == (0.5, "mean over 2 turns")


def test_an_argument_that_no_call_has_is_unmatched_by_minus_one(tmp_path: Path) -> None:
    [told] = report(tmp_path).results[1].arg_match_details or []
    assert (told["matched_call_index"], told["args_asserted"]) == (-1, {"q": {"regex": "b+"}})


def test_headings_of_a_report_nest(tmp_path: Path) -> None:
    levels = [
        len(line) - len(line.lstrip("#"))
        for line in generate_markdown_report(report(tmp_path)).splitlines()
        if line.startswith("#")
    ]
    assert max(levels) <= 6
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))


def test_a_test_that_nothing_scores_is_run_and_reported_and_the_others_decide(tmp_path: Path) -> None:
    bare = {"name": "bare", "input": "hello", "evaluations": [{"metric": "bleu", "enabled": False}]}
    made = report(tmp_path, [bare, TESTS[0]])
    found = made.results[0]
    assert (found.agent_response, found.outcome, found.passed) == ("hello", "skipped", False)
    assert found.errors == ["nothing scores this case"]
    assert made.outcome == "passed"
    assert any("is not scored by anything" in warning for warning in made.warnings)


def test_a_run_in_which_nothing_was_scored_is_never_green(tmp_path: Path) -> None:
    made = report(tmp_path, [{"input": "hello"}, {"input": "you"}], evaluations=None)
    assert made.outcome == "error"
    assert made.summary.passed == 0
