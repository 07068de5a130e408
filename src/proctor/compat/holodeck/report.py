"""HoloDeck's progress lines for terminals and logs, and its Markdown report."""

from __future__ import annotations

import datetime
import os
import sys
import time
from collections.abc import Sequence

from proctor.base.errors import UsageError
from proctor.base.json_data import Json, to_text
from proctor.compat.holodeck.test_results import (
    UNMATCHED,
    MetricResult,
    ProcessedFileInput,
    ReportSummary,
    TestReport,
    TestResult,
    TurnResult,
)
from proctor.reporting.markdown.escaping import code, fence, inline, row, table_head
from proctor.reporting.terminal.screen import escape_line, escape_unencodable, is_terminal, uses_color

RULE = "=" * 60
SLOW_MS = 1000
"""From this duration on, progress lines show the time of a test."""
_COLORS = {"✓": "32", "✗": "31", "⚠": "33", "•": "2"}


class ProgressIndicator:
    """Counts results as they arrive and formats progress for standard output."""

    SPINNER_CHARS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

    def __init__(self, total_tests: int, quiet: bool = False, verbose: bool = False) -> None:
        if not isinstance(total_tests, int) or total_tests < 0:
            raise UsageError(f"total_tests must be a whole number, 0 or more, not {total_tests!r}")
        self.total_tests = total_tests
        self.quiet = quiet
        self.verbose = verbose
        self.current_test = 0
        self.current_test_name: str | None = None
        self.passed = 0
        self.failed = 0
        self.test_results: list[TestResult] = []
        self.start_time = datetime.datetime.now()
        self._started = time.monotonic()
        self._frame = 0

    def start_test(self, test_name: str) -> None:
        self.current_test_name = test_name

    def update(self, result: TestResult) -> None:
        """Count one finished test."""
        self.current_test += 1
        self.test_results.append(result)
        if result.passed:
            self.passed += 1
        else:
            self.failed += 1

    def get_spinner_char(self) -> str:
        """The next frame of the spinner."""
        self._frame += 1
        return self.SPINNER_CHARS[(self._frame - 1) % len(self.SPINNER_CHARS)]

    def get_spinner_line(self) -> str:
        """`⠋ Test 1/5: Running...` in a terminal; empty elsewhere."""
        if self.quiet or not is_terminal(sys.stdout):
            return ""
        number = min(self.current_test + 1, self.total_tests)
        return _printable(f"{self.get_spinner_char()} Test {number}/{self.total_tests}: Running...")

    def get_progress_line(self) -> str:
        """The line for the last finished test; if quiet, only for the final one."""
        if not self.test_results or (self.quiet and self.current_test < self.total_tests):
            return ""
        total = max(self.total_tests, self.current_test)
        progress, result = f"Test {self.current_test}/{total}", self.test_results[-1]
        name = _name(result, self.current_test) + self._time(result)
        if is_terminal(sys.stdout):
            return _printable(f"{progress}: {_mark(result.passed)} {name}")
        return _printable(f"[{progress}] {'PASS' if result.passed else 'FAIL'} {name}")

    def get_summary(self) -> str:
        """How many tests passed, the duration and, if verbose, the result of each metric."""
        total = max(self.total_tests, self.current_test)
        if total == 0:
            return "No tests to execute"
        head = f"Test Results: {self.passed}/{total} passed ({100 * self.passed / total:.1f}%)"
        if is_terminal(sys.stdout):
            head = f"{_color('✓') if self.passed == total else _color('⚠')} {head}"
        lines = ["", RULE, head]
        if self.failed:
            lines.append(f"  Failed: {self.failed}")
        if missing := total - self.current_test:
            lines.append(f"  Not run: {missing}")
        lines.append(f"  Duration: {time.monotonic() - self._started:.2f}s")
        if self.verbose and self.test_results:
            lines += ["", "Test Details:"]
            for number, result in enumerate(self.test_results, 1):
                lines += self._details(result, number)
        return _printable("\n".join([*lines, RULE]))

    def _details(self, result: TestResult, number: int) -> list[str]:
        duration = f" ({result.execution_time_ms}ms)" if isinstance(result.execution_time_ms, int | float) else ""
        lines = [f"  {_mark(result.passed)} {_name(result, number)}{duration}"]
        for metric in result.metric_results:
            lines.append(f"      {_mark(metric.passed)} {escape_line(metric.metric_name)}: {_score(metric)}")
            if metric.reasoning:
                lines.append(f"        Reasoning: {escape_line(metric.reasoning)}")
        return lines

    def _time(self, result: TestResult) -> str:
        duration_ms = result.execution_time_ms
        if not isinstance(duration_ms, int | float):
            return ""
        if duration_ms >= SLOW_MS:
            return f" ({duration_ms / 1000:.2f}s)"
        return f" ({duration_ms}ms)" if self.verbose else ""


def _name(result: TestResult, number: int) -> str:
    name: object = result.test_name
    return escape_line(name) if isinstance(name, str) and name else f"Test {number}"


def _mark(passed: bool | None) -> str:
    return _color("•" if passed is None else "✓" if passed else "✗")


def _color(mark: str) -> str:
    return f"\033[{_COLORS[mark]}m{mark}\033[0m" if uses_color(sys.stdout, os.environ) else mark


def _score(metric: MetricResult) -> str:
    if metric.score is None:
        return metric.outcome or "not measured"
    return f"{metric.score:.2f}" + ("" if metric.threshold is None else f" (threshold {metric.threshold:g})")


def _printable(text: str) -> str:
    return escape_unencodable(text, getattr(sys.stdout, "encoding", None))


MAX_TEXT = 10_000
"""The maximum number of characters of a text in the report."""
MAX_HEADING_LEVEL = 6
"""The levels of headings in Markdown."""


def generate_markdown_report(report: TestReport) -> str:
    """The whole report: summary, mean scores, and every test with its answer, tools, metrics and errors."""
    parts = [_header(report), "## Summary\n\n" + _summary(report.summary)]
    if report.summary.average_scores:
        rows = [row(inline(n), f"{mean:.2f}", "0-1") for n, mean in report.summary.average_scores.items()]
        parts.append("### Average Metric Scores\n\n" + table_head("Metric", "Average Score", "Scale") + "".join(rows))
    parts.append("---\n\n## Test Results\n")
    parts += [_test(result) for result in report.results]
    counts = report.summary
    parts.append(
        f"---\n\n## Report Summary\n\n{'✅ ' * bool(counts.passed)}**{counts.passed} tests passed** | "
        f"{'❌ ' * bool(counts.failed)}**{counts.failed} tests failed** | **Pass Rate: {counts.pass_rate:.2f}%**\n"
    )
    return "\n".join(parts)


def _header(report: TestReport) -> str:
    lines = [
        f"# Test Report: {inline(report.agent_name)}\n",
        f"- **Configuration:** {code(report.agent_config_path)}",
        f"- **Generated:** {inline(report.timestamp)}",
        f"- **HoloDeck Version:** {inline(report.holodeck_version)}",
    ]
    environment = [report.environment[key] for key in ("python_version", "os") if key in report.environment]
    if environment:
        lines.append(f"- **Environment:** {inline('Python ' + ' on '.join(environment))}")
    if report.outcome:
        lines.append(f"- **Verdict:** {inline(report.outcome)}: {inline(report.reason)}")
    lines += [f"- **Warning:** {inline(warning)}" for warning in report.warnings]
    return "\n".join([*lines, ""])


def _summary(summary: ReportSummary) -> str:
    duration_ms = summary.total_duration_ms
    return table_head("Metric", "Value") + "".join(
        row(title, value)
        for title, value in (
            ("Total Tests", str(summary.total_tests)),
            ("Passed", str(summary.passed)),
            ("Failed", str(summary.failed)),
            ("Without a result", str(summary.unmeasured)),
            ("Pass Rate", f"{summary.pass_rate:.2f}%"),
            ("Total Duration", f"{duration_ms}ms ({duration_ms / 1000:.1f}s)"),
        )
    )


def _test(result: TestResult) -> str:
    parts = [
        f"### Test: {inline(result.test_name or 'unnamed')} {_status(result.passed, result.outcome)}\n",
        f"**Input:**\n\n{fence(result.test_input, MAX_TEXT)}",
        f"**Execution Time:** {result.execution_time_ms}ms\n",
    ]
    if result.token_usage is not None:
        parts.append(f"**Tokens:** {result.token_usage.total_tokens}\n")
    parts += [_files(result.processed_files), _answer(result.agent_response), _tools(result, "####")]
    parts.append(_metrics(result.metric_results, "####"))
    if result.ground_truth is not None:
        parts.append(f"#### Ground Truth Comparison\n\n{fence(result.ground_truth, MAX_TEXT)}")
    if result.errors:
        parts.append("#### Errors\n\n" + "".join(f"- {inline(error)}\n" for error in result.errors))
    if result.warnings:
        parts.append("#### Warnings\n\n" + "".join(f"- {inline(warning)}\n" for warning in result.warnings))
    if result.turns:
        parts.append("#### Turns\n")
        parts += [_turn(turn) for turn in result.turns]
    else:
        parts.append(_arguments(result.arg_match_details))
    return "\n".join(part for part in parts if part)


def _status(passed: bool, outcome: str = "") -> str:
    if passed:
        return "✅ PASSED"
    return f"❌ FAILED ({outcome})" if outcome not in ("", "failed") else "❌ FAILED"


def _files(files: Sequence[ProcessedFileInput]) -> str:
    if not files:
        return ""
    head = table_head("File", "Type", "Format", "Processing Time", "Status")
    rows = [
        row(
            inline(file.original.name),
            inline(file.original.type or ""),
            "" if file.markdown_content is None else "text",
            "" if file.processing_time_ms is None else f"{file.processing_time_ms}ms",
            f"❌ {inline(file.error)}" if file.error else "✅",
        )
        for file in files
    ]
    metadata = [
        f"- {inline(file.original.name)}: {inline(key)} {inline(to_text(value))}\n"
        for file in files
        for key, value in (file.metadata or {}).items()
        if key not in ("path", "url", "type")
    ]
    return "#### Processed Files\n\n" + head + "".join(rows) + ("\n" + "".join(metadata) if metadata else "")


def _answer(text: str | None) -> str:
    answer = "(No response)\n" if not text else fence(text, MAX_TEXT)
    return f"#### Agent Response\n\n{answer}"


def _tools(result: TestResult | TurnResult, level: str) -> str:
    if not result.tool_calls and result.expected_tools is None:
        return ""
    called = ", ".join(code(name) for name in result.tool_calls) or "none"
    lines = [f"- **Tools Called:** {called}"]
    if result.expected_tools is not None:
        lines.append(
            f"- **Expected Tools:** {', '.join(code(to_text(tool)) for tool in result.expected_tools) or 'none'}"
        )
        lines.append(f"- **Match Status:** {'✅ matched' if result.tools_matched else '❌ not matched'}")
        names = [str(tool["name"]) if isinstance(tool, dict) else str(tool) for tool in result.expected_tools]
        missing = [name for name in names if not any(name in called for called in result.tool_calls)]
        extra = [called for called in result.tool_calls if not any(name in called for name in names)]
        lines += [
            f"- **{t}:** {', '.join(code(n) for n in listed_names)}"
            for t, listed_names in (("Missing", missing), ("Extra", extra))
            if listed_names
        ]
    return f"{level} Tool Usage\n\n" + "\n".join(lines) + "\n"


def _metrics(metrics: Sequence[MetricResult], level: str) -> str:
    if not metrics:
        return ""
    head = table_head("Metric", "Score", "Threshold", "Status", "Model", "Eval Time")
    rows = [
        row(
            inline(metric.metric_name),
            "" if metric.score is None else f"{metric.score:.3f}",
            "" if metric.threshold is None else f"{metric.threshold:g}",
            _metric_status(metric),
            inline(metric.model_used or ""),
            "" if metric.evaluation_time_ms is None else f"{metric.evaluation_time_ms}ms",
        )
        for metric in metrics
    ]
    details = [line for metric in metrics for line in _details(metric)]
    title = f"{level}# Metric Details" if len(level) < MAX_HEADING_LEVEL else "**Metric Details:**"
    details_text = f"\n{title}\n\n" + "".join(details) if details else ""
    return f"{level} Evaluation Metrics\n\n{head}{''.join(rows)}{details_text}"


def _metric_status(metric: MetricResult) -> str:
    if metric.passed is None:
        return "report only" if metric.outcome in ("passed", "failed") else inline(metric.outcome)
    return "✅" if metric.passed else "❌"


def _details(metric: MetricResult) -> list[str]:
    name = inline(metric.metric_name)
    lines = [f"- **{name}:** {inline(metric.reasoning)}\n"] if metric.reasoning else []
    if metric.error:
        lines.append(f"- ⚠️ **{name}:** {inline(metric.error)}\n")
    if metric.retry_count:
        lines.append(f"- **{name}:** {metric.retry_count} retries\n")
    return lines


def _turn(turn: TurnResult) -> str:
    skipped = " (skipped)" if turn.skipped else ""
    parts = [
        f"##### Turn {turn.turn_index + 1}{skipped} {_status(turn.passed)}\n",
        f"**Input:**\n\n{fence(turn.input, MAX_TEXT)}",
        f"**Response:**\n\n{fence(turn.response, MAX_TEXT)}" if turn.response else "**Response:** (No response)\n",
    ]
    if turn.ground_truth is not None:
        parts.append(f"**Ground Truth:**\n\n{fence(turn.ground_truth, MAX_TEXT)}")
    parts.append(f"**Execution Time:** {turn.execution_time_ms}ms\n")
    if turn.token_usage is not None:
        parts.append(f"**Tokens:** {turn.token_usage.total_tokens}\n")
    parts += [_tools(turn, "######"), _arguments(turn.arg_match_details), _metrics(turn.metric_results, "######")]
    parts += [f"- {inline(error)}\n" for error in turn.errors]
    return "\n".join(part for part in parts if part)


def _arguments(details: Sequence[dict[str, Json]] | None) -> str:
    if not details:
        return ""
    lines = [
        f"- {'❌' if item['matched_call_index'] == UNMATCHED else '✅'} {code(str(item['expected_tool']))} "
        f"{code(to_text(item['args_asserted']))} {inline(item['unmatched_reason'] or '')}\n"
        for item in details
    ]
    return "**Arg Match Details:**\n\n" + "".join(lines)
