"""Fourteen verdicts that HoloDeck 0.7.1 gives wrongly, or dies of; each is right here."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from proctor.compat.holodeck import ExecutionResult, TestExecutor, TestReport, generate_markdown_report


class Scripted:
    """A backend that gives its answers in turn, and says which tools it called."""

    def __init__(self, *answers: Any, calls: tuple[dict[str, Any], ...] = ()) -> None:
        self.answers = iter(answers)
        self.calls = list(calls)
        self.torn_down = 0

    async def initialize(self) -> None: ...

    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        results = [{"name": call["name"], "result": "found"} for call in self.calls]
        return ExecutionResult(answer, tool_calls=list(self.calls), tool_results=results)

    async def create_session(self, *, eager_connect: bool = True) -> Any:
        backend = self

        class Conversation:
            async def prepare(self) -> None: ...

            async def send(self, message: str) -> ExecutionResult:
                return await backend.invoke_once(message)

            async def close(self) -> None: ...

        return Conversation()

    async def teardown(self) -> None:
        self.torn_down += 1


def write(folder: Path, metrics: list[dict[str, Any]], tests: list[dict[str, Any]], **rest: Any) -> str:
    agent: dict[str, Any] = {"name": "agent", "test_cases": tests, **rest}
    if metrics:
        agent["evaluations"] = {"metrics": metrics}
    path = folder / "agent.yaml"
    path.write_text(json.dumps(agent))
    return str(path)


def run_tests(path: str, backend: Any, **given: Any) -> TestReport:
    async def run() -> TestReport:
        executor = TestExecutor(path, backend=backend, **given)
        try:
            return await executor.execute_tests()
        finally:
            await executor.shutdown()

    return asyncio.run(run())


def question(**more: Any) -> dict[str, Any]:
    return {"input": "What is the total?", **more}


def test_1_rouge_of_identical_texts_is_one_and_of_disjoint_texts_zero(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        [{"type": "standard", "metric": "rouge", "threshold": 0.5}],
        [question(ground_truth="the cat sat"), question(ground_truth="red green blue")],
    )
    report = run_tests(path, Scripted("the cat sat", "one two three"))
    assert [r.metric_results[0].score for r in report.results] == [1.0, 0.0]
    assert [r.passed for r in report.results] == [True, False]


def test_2_a_judges_mark_is_a_share_of_its_scale_and_never_above_one(tmp_path: Path) -> None:
    class Marks:
        """An evaluator of HoloDeck's shape: 2 of 5."""

        def get_param_spec(self) -> Any:
            from proctor.compat.holodeck import EvalParam, ParamSpec

            return ParamSpec(frozenset({EvalParam.RESPONSE, EvalParam.QUERY}))

        async def evaluate(self, response: str, query: str) -> dict[str, Any]:
            return {"score": 0.4, "relevance": 2.0, "reasoning": "beside the point"}

    path = write(tmp_path, [{"type": "standard", "metric": "relevance", "threshold": 0.9}], [question()])
    [result] = run_tests(path, Scripted("Perhaps."), evaluators={"relevance": Marks()}).results
    assert (result.passed, result.metric_results[0].score) == (False, 0.4)
    assert result.metric_results[0].reasoning == "beside the point"


def test_3_scores_of_zero_count_in_the_average(tmp_path: Path) -> None:
    path = write(tmp_path, [{"type": "standard", "metric": "equality"}], [question(ground_truth="7")] * 4)
    summary = run_tests(path, Scripted("7", "8", "8", "8")).summary
    assert summary.average_scores == {"equality": 0.25}
    assert summary.metrics_evaluated == {"equality": 4}


def test_4_an_empty_answer_fails(tmp_path: Path) -> None:
    path = write(tmp_path, [{"type": "standard", "metric": "equality"}], [question(ground_truth="7")])
    [result] = run_tests(path, Scripted("")).results
    assert (result.passed, result.metric_results[0].score) == (False, 0.0)


def test_5_a_metric_that_cannot_be_measured_says_so_and_passes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, [{"type": "rag", "metric_type": "contextual_recall"}], [question(ground_truth="7")])
    report = run_tests(path, Scripted("7"))
    [result] = report.results
    assert (result.passed, result.outcome, report.outcome) == (False, "error", "error")
    assert result.metric_results == []
    assert "contextual_recall was skipped" in result.warnings[0]
    assert "passages" in result.warnings[0]
    assert "passages" in generate_markdown_report(report)


def test_6_a_disabled_metric_is_off_and_an_optional_one_that_breaks_decides_nothing(tmp_path: Path) -> None:
    (tmp_path / "graders.py").write_text("def broken(context):\n    raise RuntimeError('no such table')\n")
    metrics = [
        {"type": "standard", "metric": "equality"},
        {"type": "standard", "metric": "numeric", "enabled": False},
        {"type": "code", "grader": "graders.py:broken", "fail_on_error": False},
    ]
    [result] = run_tests(write(tmp_path, metrics, [question(ground_truth="seven")]), Scripted("seven")).results
    assert result.passed
    assert [metric.metric_name for metric in result.metric_results] == ["equality", "broken"]
    assert "no such table" in (result.metric_results[1].error or "")

    metrics[2]["fail_on_error"] = True
    [result] = run_tests(write(tmp_path, metrics, [question(ground_truth="seven")]), Scripted("seven")).results
    assert (result.passed, result.outcome) == (False, "error")


def test_7_a_metric_without_threshold_informs_and_passes_nothing_by_itself(tmp_path: Path) -> None:
    path = write(tmp_path, [{"type": "standard", "metric": "bleu"}], [question(ground_truth="red green blue")])
    [result] = run_tests(path, Scripted("one two three")).results
    assert (result.passed, result.metric_results[0].passed) == (False, None)
    assert "report only" in result.errors[0]

    both = [{"type": "standard", "metric": "bleu"}, {"type": "standard", "metric": "equality"}]
    [result] = run_tests(write(tmp_path, both, [question(ground_truth="7")]), Scripted("7")).results
    assert result.passed


def test_8_what_one_test_allows_is_not_allowed_to_another(tmp_path: Path) -> None:
    loose = [{"type": "standard", "metric": "equality", "case_insensitive": True}]
    tests = [question(ground_truth="YES", evaluations=loose), question(ground_truth="YES")]
    report = run_tests(write(tmp_path, [{"type": "standard", "metric": "equality"}], tests), Scripted("yes", "yes"))
    assert [result.passed for result in report.results] == [True, False]


def test_9_a_missing_ground_truth_is_the_same_in_one_turn_and_in_several(tmp_path: Path) -> None:
    tests = [question(), {"turns": [question(), question()]}]
    report = run_tests(write(tmp_path, [{"type": "standard", "metric": "equality"}], tests), Scripted("7", "7", "7"))
    assert [(result.passed, result.outcome) for result in report.results] == [(False, "error")] * 2
    assert [result.metric_results for result in report.results] == [[], []]
    assert all("equality was skipped" in " ".join(result.warnings) for result in report.results)


def test_10_why_a_number_does_not_count_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path, [{"type": "standard", "metric": "numeric"}], [question(ground_truth="7")])
    [result] = run_tests(path, Scripted("about seven")).results
    assert not result.passed
    assert "about seven" in (result.metric_results[0].reasoning or "")


@pytest.mark.process
def test_11_a_report_is_written_where_expected_tools_have_arguments_and_fail(tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(
        "import proctor\n\n@proctor.tool\ndef research(topic):\n    return 1\n\n"
        "def answer(question):\n    research(topic='a')\n    return 'x'\n"
    )
    expected = [{"name": "search", "args": {"topic": "b"}, "count": 2}, "fetch"]
    path = write(tmp_path, [], [question(expected_tools=expected)], agent="desk.py:answer")
    command = [sys.executable, "-m", "proctor", "test", path, "--md", str(tmp_path / "r.md")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "fetch" in (tmp_path / "r.md").read_text()

    report = run_tests(path, None)
    markdown = generate_markdown_report(report)
    assert "- **Missing:** `fetch`" in markdown
    assert report.results[0].arg_match_details is not None
    assert report.results[0].arg_match_details[0]["matched_call_index"] == -1


def test_12_one_broken_session_or_callback_ends_nothing_but_itself(tmp_path: Path) -> None:
    def raising(anything: Any) -> None:
        raise ValueError("not today")

    path = write(tmp_path, [{"type": "standard", "metric": "equality"}], [question(ground_truth="7")] * 2)
    report = run_tests(path, Scripted(RuntimeError("down"), "7"), progress_callback=raising, on_test_start=raising)
    assert [result.passed for result in report.results] == [False, True]
    assert "down" in report.results[0].errors[0]
    assert set(report.warnings) >= {
        "progress_callback raised ValueError: not today",
        "on_test_start raised ValueError: not today",
    }


@pytest.mark.process
def test_13_the_base_install_can_be_imported_and_run(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import sys
        import proctor.compat.holodeck as holodeck
        holodeck.TestExecutor, holodeck.ConfigLoader, holodeck.generate_markdown_report
        missing = [name for name in ("openai", "pydantic_ai", "pypdf", "azure", "deepeval") if name in sys.modules]
        assert not missing, missing
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("turns", [1, 2])
def test_14_a_grader_sees_the_tools_and_the_name_of_its_test(tmp_path: Path, turns: int) -> None:
    (tmp_path / "graders.py").write_text(
        "def saw(context):\n"
        "    [call] = context.tool_invocations\n"
        "    return call.name == 'lookup' and call.args == {'id': 3} and context.test_case_name == 'named'\n"
    )
    told = question()
    test = {"name": "named", **told} if turns == 1 else {"name": "named", "turns": [told, told]}
    path = write(tmp_path, [{"type": "code", "grader": "graders.py:saw"}], [test])
    backend = Scripted("7", "7", calls=({"name": "lookup", "arguments": '{"id": 3}'},))
    [result] = run_tests(path, backend).results
    assert result.passed, result.errors
    assert result.metric_results[0].kind == "code"
    assert backend.torn_down == 1
