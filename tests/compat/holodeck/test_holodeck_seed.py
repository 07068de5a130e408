"""The two example scripts of HoloDeck's page on its test runner, as they stand there but for their imports."""

from __future__ import annotations

import asyncio
import textwrap
from pathlib import Path
from typing import Any

import pytest
from scripted_judge import ScriptedJudge

import proctor
from proctor.compat.holodeck import EvaluationError, FaithfulnessEvaluator, TestReport

AGENT = """\
name: support
agent: desk.py:answer
evaluations:
  metrics:
    - type: standard
      metric: equality
test_cases:
  - name: Refunds
    input: What is your refund policy?
    ground_truth: We offer 30-day returns.
    expected_tools: [search]
  - name: Opening hours
    input: When are you open?
    ground_truth: Always.
"""

DESK = """\
import proctor

@proctor.tool
def vectorstore_search(query):
    return "Refund policy allows 30-day returns."

def answer(question):
    if "refund" in question:
        vectorstore_search(query=question)
        return "We offer 30-day returns."
    return "Never."
"""

RUN_ALL = """\
from proctor.compat.holodeck import TestExecutor
from proctor.compat.holodeck import generate_markdown_report
from proctor.compat.holodeck import ProgressIndicator
from proctor.compat.holodeck import ConfigLoader

# Load agent configuration
loader = ConfigLoader()
agent = loader.load_agent_yaml("agent.yaml")

# Set up progress tracking
progress = ProgressIndicator(total_tests=len(agent.test_cases or []))

# Create executor with progress callback
executor = TestExecutor(
    agent_config_path="agent.yaml",
    progress_callback=progress.update,
    on_test_start=lambda tc: progress.start_test(tc.name or "unnamed"),
)

# Run all test cases
report = await executor.execute_tests()

# Display summary
print(progress.get_summary())

# Generate markdown report
markdown = generate_markdown_report(report)
with open("report.md", "w") as f:
    f.write(markdown)
"""

KWARGS = """\
from proctor.compat.holodeck import (
    EvalKwargsBuilder,
    build_retrieval_context_from_tools,
)

# Build retrieval context from tool results
retrieval_ctx = build_retrieval_context_from_tools(
    tool_results=[
        {"name": "search_kb", "result": "Refund policy allows 30-day returns."},
        {"name": "get_user", "result": "User: Alice"},
    ],
    retrieval_tool_names={"search_kb"},
)

# Build kwargs for an evaluator
builder = EvalKwargsBuilder(
    agent_response="We offer 30-day returns.",
    input_query="What is your refund policy?",
    ground_truth="30-day money-back guarantee on all products.",
    retrieval_context=retrieval_ctx,
)
kwargs = builder.build_for(evaluator)
result = await evaluator.evaluate(**kwargs)
"""


def run_script(text: str, **given: Any) -> dict[str, Any]:
    """A script with `await` at its top level, as such pages write them."""
    body = f"async def script():\n{textwrap.indent(text, '    ')}\n    return locals()\n"
    scope = dict(given)
    exec(compile(body, "script", "exec"), scope)
    found: dict[str, Any] = asyncio.run(scope["script"]())
    return found


def test_the_script_that_runs_all_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.yaml").write_text(AGENT)
    (tmp_path / "desk.py").write_text(DESK)

    found = run_script(RUN_ALL)

    report: TestReport = found["report"]
    assert [(r.test_name, r.passed) for r in report.results] == [("Refunds", True), ("Opening hours", False)]
    assert report.results[0].tool_calls == ["vectorstore_search"]
    assert report.results[0].tools_matched is True
    assert (report.summary.total_tests, report.summary.passed, report.summary.failed) == (2, 1, 1)
    assert "Test Results: 1/2 passed (50.0%)" in capsys.readouterr().out
    assert found["progress"].current_test_name == "Opening hours"
    markdown = (tmp_path / "report.md").read_text()
    assert "### Test: Refunds ✅ PASSED" in markdown
    assert "### Test: Opening hours ❌ FAILED" in markdown


def test_the_script_that_builds_arguments_for_an_evaluator() -> None:
    said = {"text": "We offer 30-day returns.", "claim": "yes", "relevant": "yes", "reason": ""}
    verdict = {"number": 1, "verdict": "supported", "reason": "allowed and offered is the same here"}
    judge = ScriptedJudge({"statements": {"statements": [said]}, "claims": {"verdicts": [verdict]}})
    found = run_script(KWARGS, evaluator=FaithfulnessEvaluator(judge))

    assert found["kwargs"] == {
        "actual_output": "We offer 30-day returns.",
        "input": "What is your refund policy?",
        "retrieval_context": ["Refund policy allows 30-day returns."],
    }
    assert (found["result"]["score"], found["result"]["passed"]) == (1, True)


def test_the_same_script_without_a_model_says_that_the_rule_based_judge_cannot_tell() -> None:
    with pytest.raises(EvaluationError, match=r"^FaithfulnessEvaluator: the rule-based judge cannot decide") as caught:
        run_script(KWARGS, evaluator=FaithfulnessEvaluator())
    assert isinstance(caught.value, proctor.EvaluationPending)
