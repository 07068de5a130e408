"""Every field of a HoloDeck report, and every section of its Markdown, holds what it is named after."""

from __future__ import annotations

import asyncio
import datetime
import json
import threading
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import proctor.compat.holodeck as holodeck
from proctor.compat.holodeck import ExecutionConfig, ExecutionResult, TestExecutor, TestReport, TokenUsage
from proctor.compat.holodeck import generate_markdown_report as markdown_of

DOCUMENTED = {
    "FileInput": "path url type description pages sheet range cache",
    "ProcessedFileInput": "original markdown_content metadata cached_path processing_time_ms error",
    "MetricResult": "metric_name kind score threshold passed scale error retry_count evaluation_time_ms model_used"
    " reasoning",
    "ToolInvocation": "name args result bytes duration_ms error",
    "TurnResult": "turn_index input response ground_truth expected_tools tool_calls tool_invocations tools_matched"
    " arg_match_details metric_results passed execution_time_ms token_usage errors skipped grader_details",
    "TestResult": "test_name test_input processed_files agent_response tool_calls tool_invocations expected_tools"
    " tools_matched metric_results ground_truth passed execution_time_ms errors timestamp token_usage turns",
    "ReportSummary": "total_tests passed failed pass_rate total_duration_ms metrics_evaluated average_scores",
    "TestReport": "agent_name agent_config_path results summary timestamp holodeck_version environment",
    "TokenUsage": "prompt_tokens completion_tokens total_tokens cache_creation_tokens cache_read_tokens",
    "ExecutionResult": "response tool_calls tool_results token_usage structured_output num_turns is_error error_reason"
    " thinking",
    "GraderContext": "turn_input agent_response ground_truth tool_invocations retrieval_context turn_index"
    " test_case_name turn_config",
}

GRADERS = """
from proctor.compat.holodeck import GraderResult


def kind(context):
    return GraderResult(0.75, reason="kind enough", details={"words": 2})


def broken(context):
    raise RuntimeError("no such table")
"""

METRICS = [
    {"type": "standard", "metric": "equality"},
    {"type": "standard", "metric": "bleu"},
    {"type": "code", "grader": "graders.py:kind", "threshold": 0.5},
    {"type": "code", "grader": "graders.py:broken", "fail_on_error": False},
    {"type": "rag", "metric_type": "answer_relevancy", "threshold": 0.1},
]


class Desk:
    """A backend that looks something up, counts tokens as caches do, and knows which turn it is."""

    def __init__(self) -> None:
        self.said = 0

    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        self.said += 1
        answer = message.split("\n")[0] if "--- file" not in message else "Within 30 days."
        calls = [{"name": "vectorstore-search", "arguments": {"query": "returns", "page": 1}, "call_id": "1"}]
        results = [{"name": "vectorstore-search", "result": {"found": 2}, "call_id": "1"}]
        return ExecutionResult(
            answer,
            calls,
            results,
            TokenUsage(
                prompt_tokens=10, completion_tokens=5, total_tokens=18, cache_creation_tokens=2, cache_read_tokens=1
            ),
        )

    async def create_session(self, *, eager_connect: bool = True) -> Any:
        backend = self

        class Conversation:
            async def send(self, message: str) -> ExecutionResult:
                return await backend.invoke_once(message)

            async def close(self) -> None: ...

        return Conversation()

    async def teardown(self) -> None: ...


def write(folder: Path, tests: list[dict[str, Any]], metrics: list[dict[str, Any]] | None = None, **more: Any) -> str:
    (folder / "graders.py").write_text(GRADERS)
    (folder / "policy.md").write_text("# Returns\nwithin 30 days\n")
    (folder / "prices.csv").write_text("a,b\n")
    data = {"name": "desk", "evaluations": {"metrics": metrics or METRICS}, "test_cases": tests, **more}
    (folder / "agent.yaml").write_text(json.dumps(data))
    return str(folder / "agent.yaml")


def run_tests(path: str, backend: Any = None, **given: Any) -> TestReport:
    async def run() -> TestReport:
        executor = TestExecutor(path, backend=backend or Desk(), **given)
        try:
            return await executor.execute_tests()
        finally:
            await executor.shutdown()

    return asyncio.run(run())


ONE = {
    "name": "Returns",
    "input": "How long may I wait?",
    "ground_truth": "Within 30 days.",
    "expected_tools": ["search", {"name": "search", "args": {"page": 2}}, "fetch"],
    "files": [
        {"path": "policy.md", "type": "text", "description": "our rules"},
        {"path": "prices.csv", "type": "csv"},
    ],
}
TALK = {
    "name": "Talk",
    "evaluations": [METRICS[0], METRICS[2]],
    "turns": [
        {"input": "hello", "ground_truth": "hello", "expected_tools": ["search"]},
        {"input": "bye", "ground_truth": "good bye"},
    ],
}


def fields_of(kind: Any) -> set[str]:
    return {field.name for field in fields(kind)} if is_dataclass(kind) else set(kind.model_fields)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> TestReport:
    return run_tests(write(tmp_path_factory.mktemp("desk"), [ONE, TALK]))


@pytest.mark.parametrize(("name", "documented"), DOCUMENTED.items())
def test_every_documented_field_is_there_under_its_name(name: str, documented: str) -> None:
    assert set(documented.split()) <= fields_of(getattr(holodeck, name))


ONE_SAYS = {
    "test_name": "Returns",
    "test_input": "How long may I wait?",
    "agent_response": "Within 30 days.",
    "tool_calls": ["vectorstore-search"],
    "tool_invocations": [
        {
            "name": "vectorstore-search",
            "args": {"query": "returns", "page": 1},
            "result": {"found": 2},
            "bytes": len('{"found": 2}'),
            "duration_ms": None,
            "error": None,
        }
    ],
    "expected_tools": ["search", {"name": "search", "args": {"page": 2}}, "fetch"],
    "tools_matched": False,
    "ground_truth": "Within 30 days.",
    "passed": False,
    "outcome": "failed",
    "token_usage": {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 18,
        "cache_creation_tokens": 2,
        "cache_read_tokens": 1,
    },
    "turns": None,
    "grader_details": {"kind": {"words": 2}},
    "warnings": [],
}


@pytest.mark.parametrize("field", ONE_SAYS)
def test_a_test_says_what_happened(report: TestReport, field: str) -> None:
    assert json.loads(report.model_dump_json())["results"][0][field] == ONE_SAYS[field]


def test_missing_arguments_are_reported(report: TestReport) -> None:
    [told] = report.results[0].arg_match_details or []
    assert (told["expected_tool"], told["args_asserted"], told["matched_call_index"]) == ("search", {"page": 2}, -1)
    assert "page" in told["unmatched_reason"]
    [error] = report.results[0].errors
    assert "fetch" in error


def test_files_are_reported_with_the_text_sent_to_the_agent(report: TestReport) -> None:
    policy, prices = [file.model_dump() for file in report.results[0].processed_files]
    assert policy["original"] == {
        **dict.fromkeys(DOCUMENTED["FileInput"].split()),
        "path": "policy.md",
        "type": "text",
        "description": "our rules",
    }
    assert policy["markdown_content"] == "# Returns\nwithin 30 days"
    assert policy["processing_time_ms"] >= 0
    assert policy["metadata"] == {"path": "policy.md", "type": "text", "size_bytes": 25}
    assert (policy["error"], prices["markdown_content"]) == (None, "a,b")


METRICS_SAY = {
    "equality": ("standard", 1.0, 0.5, True, "passed", None),
    "bleu": ("standard", 1.0, None, None, "passed", None),
    "kind": ("code", 0.75, 0.5, True, "passed", None),
    "broken": ("code", None, 0.5, None, "skipped", "no such table"),
    "answer_relevancy": ("rag", pytest.approx(0.55, abs=0.45), 0.1, True, "passed", None),
}


@pytest.mark.parametrize("name", METRICS_SAY)
def test_metrics_say_what_they_found(report: TestReport, name: str) -> None:
    [metric] = [metric for metric in report.results[0].metric_results if metric.metric_name == name]
    kind, score, threshold, passed, outcome, error = METRICS_SAY[name]
    assert (metric.kind, metric.threshold, metric.passed, metric.outcome) == (kind, threshold, passed, outcome)
    assert metric.score == score
    assert (metric.scale, metric.retry_count) == ("0-1", 0)
    assert isinstance(metric.evaluation_time_ms, int)
    assert error is None or error in (metric.error or "")
    assert (metric.model_used is not None) == (kind == "rag")
    assert metric.reasoning or metric.error


def test_a_conversation_is_the_sum_of_its_turns(report: TestReport) -> None:
    talk = report.results[1]
    assert talk.turns is not None
    first, second = talk.turns
    assert [(turn.turn_index, turn.input, turn.response, turn.ground_truth) for turn in talk.turns] == [
        (0, "hello", "hello", "hello"),
        (1, "bye", "bye", "good bye"),
    ]
    assert [(turn.passed, turn.tools_matched, turn.skipped) for turn in talk.turns] == [
        (True, True, False),
        (False, None, False),
    ]
    assert first.token_usage == TokenUsage(
        prompt_tokens=10, completion_tokens=5, total_tokens=18, cache_creation_tokens=2, cache_read_tokens=1
    )
    assert talk.token_usage == TokenUsage(
        prompt_tokens=20, completion_tokens=10, total_tokens=36, cache_creation_tokens=4, cache_read_tokens=2
    )
    assert (talk.test_input, talk.agent_response) == ("hello\n---\nbye", "bye")
    assert (talk.ground_truth, talk.expected_tools) == ("hello\n---\ngood bye", ["search"])
    assert (talk.tools_matched, talk.tool_calls) == (True, ["vectorstore-search"] * 2)
    scores = {metric.metric_name: (metric.score, metric.passed) for metric in talk.metric_results}
    assert scores["equality"] == (0.5, False)
    assert second.grader_details == {"kind": {"words": 2}}
    assert (talk.execution_time_ms or 0) >= (second.execution_time_ms or 0) >= 0


def test_the_summary_counts_every_score_and_every_test(report: TestReport) -> None:
    summary = report.summary
    assert (summary.total_tests, summary.passed, summary.failed, summary.unmeasured) == (2, 0, 2, 0)
    assert summary.pass_rate == 0.0
    assert summary.metrics_evaluated == {"equality": 2, "bleu": 1, "kind": 2, "answer_relevancy": 1}
    assert summary.average_scores["equality"] == 0.75
    assert summary.average_scores["kind"] == 0.75


def test_the_head_of_a_report_says_what_it_is_about(report: TestReport) -> None:
    assert (report.agent_name, Path(report.agent_config_path).name) == ("desk", "agent.yaml")
    assert report.holodeck_version.startswith("proctor ")
    for stamp in (report.timestamp, report.results[0].timestamp):
        assert datetime.datetime.fromisoformat(stamp).tzinfo is not None
    assert {"python_version", "os", "execution_config", "agent_fingerprint", "run"} <= set(report.environment)
    assert (report.outcome, report.reason) == ("failed", "0 of 2 cases passed")


def test_the_duration_of_a_run_is_its_own_and_not_the_sum_of_its_tests(tmp_path: Path) -> None:
    together = threading.Barrier(4)

    class Slow(Desk):
        async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
            await asyncio.to_thread(together.wait, 30)
            await asyncio.sleep(0.3)
            return ExecutionResult(message)

    tests = [{"input": str(number), "ground_truth": str(number)} for number in range(4)]
    path = write(tmp_path, tests, [{"type": "standard", "metric": "equality"}])
    found = run_tests(path, Slow(), execution_config=ExecutionConfig(parallel_test_cases=4))
    assert found.summary.passed == 4
    assert 0 < found.summary.total_duration_ms < sum(result.execution_time_ms for result in found.results)


SECTIONS = (
    "# Test Report: desk",
    "- **Configuration:** `",
    "- **Generated:** ",
    "- **HoloDeck Version:** proctor ",
    "- **Environment:** Python ",
    "## Summary",
    "| Total Tests | 2 |",
    "| Pass Rate | 0.00% |",
    "| Total Duration | ",
    "### Average Metric Scores",
    "| equality | 0.75 | 0-1 |",
    "## Test Results",
    "### Test: Returns ❌ FAILED",
    "**Input:**",
    "**Execution Time:** ",
    "**Tokens:** 18",
    "#### Processed Files",
    "| policy.md | text | text | ",
    "- policy.md: size_bytes 25",
    "#### Agent Response",
    "#### Tool Usage",
    "- **Tools Called:** `vectorstore-search`",
    "- **Match Status:** ❌ not matched",
    "- **Missing:** `fetch`",
    "#### Evaluation Metrics",
    "| equality | 1.000 | 0.5 | ✅ |",
    "##### Metric Details",
    "- ⚠️ **broken:** ",
    "#### Ground Truth Comparison",
    "#### Errors",
    "**Arg Match Details:**",
    "### Test: Talk ❌ FAILED",
    "#### Turns",
    "##### Turn 1 ✅ PASSED",
    "###### Tool Usage",
    "- **Match Status:** ✅ matched",
    "##### Turn 2 ❌ FAILED",
    "## Report Summary",
    "**0 tests passed** | ❌ **2 tests failed** | **Pass Rate: 0.00%**",
)


def test_the_markdown_report_has_every_section_in_order(report: TestReport) -> None:
    text, place = markdown_of(report), 0
    for section in SECTIONS:
        found = text.find(section, place)
        assert found >= 0, f"{section!r} is not behind {text[max(0, place - 80) : place]!r}"
        place = found


def test_a_tool_that_was_found_by_part_of_its_name_is_neither_missing_nor_extra(report: TestReport) -> None:
    text = markdown_of(report)
    assert "**Missing:** `search`" not in text
    assert "**Extra:**" not in text
