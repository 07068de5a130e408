"""A report as one Markdown document, in HoloDeck's order; no text of an agent's can change how it reads."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.base.json_data import Json, show
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

LONGEST = 10_000
DEEPEST = 6
"""Levels of headings that Markdown has."""


def generate_markdown_report(report: TestReport) -> str:
    """The whole report: summary, mean scores, every test with its answer, tools, metrics and errors."""
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
        f"- **Version:** {inline(report.holodeck_version)}",
    ]
    known = [report.environment[key] for key in ("python_version", "os") if key in report.environment]
    if known:
        lines.append(f"- **Environment:** {inline('Python ' + ' on '.join(known))}")
    if report.outcome:
        lines.append(f"- **Verdict:** {inline(report.outcome)}: {inline(report.reason)}")
    lines += [f"- **Warning:** {inline(warning)}" for warning in report.warnings]
    return "\n".join([*lines, ""])


def _summary(summary: ReportSummary) -> str:
    spent = summary.total_duration_ms
    return table_head("Metric", "Value") + "".join(
        row(title, value)
        for title, value in (
            ("Total Tests", str(summary.total_tests)),
            ("Passed", str(summary.passed)),
            ("Failed", str(summary.failed)),
            ("Without a verdict", str(summary.unmeasured)),
            ("Pass Rate", f"{summary.pass_rate:.2f}%"),
            ("Total Duration", f"{spent}ms ({spent / 1000:.1f}s)"),
        )
    )


def _test(result: TestResult) -> str:
    parts = [
        f"### Test: {inline(result.test_name or 'unnamed')} {_status(result.passed, result.outcome)}\n",
        f"**Input:**\n\n{fence(result.test_input, LONGEST)}",
        f"**Execution Time:** {result.execution_time_ms}ms\n",
    ]
    if result.token_usage is not None:
        parts.append(f"**Tokens:** {result.token_usage.total_tokens}\n")
    parts += [_files(result.processed_files), _answer(result.agent_response), _tools(result, "####")]
    parts.append(_metrics(result.metric_results, "####"))
    if result.ground_truth is not None:
        parts.append(f"#### Ground Truth Comparison\n\n{fence(result.ground_truth, LONGEST)}")
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
    known = [
        f"- {inline(file.original.name)}: {inline(key)} {inline(show(value))}\n"
        for file in files
        for key, value in (file.metadata or {}).items()
        if key not in ("path", "url", "type")
    ]
    return "#### Processed Files\n\n" + head + "".join(rows) + ("\n" + "".join(known) if known else "")


def _answer(text: str | None) -> str:
    shown = "(No response)\n" if not text else fence(text, LONGEST)
    return f"#### Agent Response\n\n{shown}"


def _tools(result: TestResult | TurnResult, level: str) -> str:
    if not result.tool_calls and result.expected_tools is None:
        return ""
    called = ", ".join(code(name) for name in result.tool_calls) or "none"
    lines = [f"- **Tools Called:** {called}"]
    if result.expected_tools is not None:
        lines.append(f"- **Expected Tools:** {', '.join(code(show(tool)) for tool in result.expected_tools) or 'none'}")
        lines.append(f"- **Match Status:** {'✅ matched' if result.tools_matched else '❌ not matched'}")
        names = [str(tool["name"]) if isinstance(tool, dict) else str(tool) for tool in result.expected_tools]
        missing = [name for name in names if not any(name in called for called in result.tool_calls)]
        extra = [called for called in result.tool_calls if not any(name in called for name in names)]
        lines += [
            f"- **{t}:** {', '.join(code(n) for n in found)}"
            for t, found in (("Missing", missing), ("Extra", extra))
            if found
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
    title = f"{level}# Metric Details" if len(level) < DEEPEST else "**Metric Details:**"
    told = f"\n{title}\n\n" + "".join(details) if details else ""
    return f"{level} Evaluation Metrics\n\n{head}{''.join(rows)}{told}"


def _metric_status(metric: MetricResult) -> str:
    if metric.passed is None:
        return "informs" if metric.outcome in ("passed", "failed") else inline(metric.outcome)
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
        f"**Input:**\n\n{fence(turn.input, LONGEST)}",
        f"**Response:**\n\n{fence(turn.response, LONGEST)}" if turn.response else "**Response:** (No response)\n",
    ]
    if turn.ground_truth is not None:
        parts.append(f"**Ground Truth:**\n\n{fence(turn.ground_truth, LONGEST)}")
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
        f"{code(show(item['args_asserted']))} {inline(item['unmatched_reason'] or '')}\n"
        for item in details
    ]
    return "**Arg Match Details:**\n\n" + "".join(lines)
