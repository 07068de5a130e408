from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from proctor.compat.holodeck import TestExecutor, TestReport, generate_markdown_report

AGENT = """
from proctor import Reply, ToolCall

def agent(question):
    return Reply("done", tuple(ToolCall(name) for name in question.split()))
"""


def _tool_lines(folder: Path, called: str, expected: list[str]) -> list[str]:
    """What the Markdown report says of the tools of one test, line by line."""
    (folder / "app.py").write_text(AGENT)
    test = {"name": "tools", "input": called, "ground_truth": "done", "expected_tools": expected}
    metrics = [{"type": "standard", "metric": "rouge", "threshold": 0.5}]
    data = {"name": "desk", "agent": "app.py:agent", "evaluations": {"metrics": metrics}, "test_cases": [test]}
    (folder / "agent.yaml").write_text(json.dumps(data))

    async def run() -> TestReport:
        executor = TestExecutor(str(folder / "agent.yaml"))
        try:
            return await executor.execute_tests()
        finally:
            await executor.shutdown()

    text = generate_markdown_report(asyncio.run(run()))
    return [line for line in text.splitlines() if line.startswith(("- **Missing", "- **Extra"))]


@pytest.mark.parametrize(
    ("called", "expected", "lines"),
    [
        ("search refund mail", ["search"], ["- **Extra:** `refund`, `mail`"]),
        ("search", ["search"], []),
        ("refund", ["search"], ["- **Missing:** `search`", "- **Extra:** `refund`"]),
        ("vectorstore-search refund", ["search"], ["- **Extra:** `refund`"]),
    ],
)
def test_the_report_names_every_tool_that_was_called_and_not_expected(
    tmp_path: Path, called: str, expected: list[str], lines: list[str]
) -> None:
    assert _tool_lines(tmp_path, called, expected) == lines
