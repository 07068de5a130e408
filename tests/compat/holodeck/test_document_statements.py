"""The 46 statements of the documentation of HoloDeck's test runner, each by itself, under HoloDeck's own import names.

`make peers-equal` runs the same statements with the original. Here they run once, in a process of their own, and the
results are compared with what the documentation says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

FACTS = Path(__file__).resolve().parents[3] / "scripts" / "peers_equal" / "drivers" / "holodeck_facts.py"
GOOD = {"metric_name": "equality", "kind": "standard", "score": 1.0, "passed": True, "scale": "0-1", "error": None}
SUMMARY = {"total_tests": 2, "passed": 1, "failed": 1, "pass_rate": 50.0, "metrics_evaluated": {"equality": 2}}
LINE = "=" * 60
SPINNER = list("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏⠋")
PARAMETERS = """agent_config_path execution_config file_processor evaluators config_loader progress_callback
on_test_start force_ingest agent_config resolved_execution_config backend""".split()
RAG = {
    "FAITHFULNESS": ["faithfulness", "FaithfulnessEvaluator"],
    "CONTEXTUAL_RELEVANCY": ["contextual_relevancy", "ContextualRelevancyEvaluator"],
    "CONTEXTUAL_PRECISION": ["contextual_precision", "ContextualPrecisionEvaluator"],
    "CONTEXTUAL_RECALL": ["contextual_recall", "ContextualRecallEvaluator"],
    "ANSWER_RELEVANCY": ["answer_relevancy", "AnswerRelevancyEvaluator"],
}
DEEPEVAL = {"actual_output": "30 days", "input": "How long?", "retrieval_context": ["30 days."]}

STATEMENTS: dict[str, Any] = {
    "1 the agent is loaded from YAML": ["desk", ["one", "two"], "openai", "gpt-4o"],
    "2 settings of the caller come before the file's": 5,
    "3 settings of the file come before the environment's": [7, 8],
    "4 the defaults come last": [30, 30, True, 1],
    "5 the text of files reaches the agent": [True, True],
    "6 the agent's answer is in the result": ["one", "2 + 2", "4", "4", True],
    "7 tool calls are compared with the expected ones": [
        [["vectorstore-search", "log"], ["search"], True, True],
        [["vectorstore-search", "log"], ["fetch"], False, False],
    ],
    "8 metrics are computed": [[GOOD], [{**GOOD, "score": 0.0, "passed": False}]],
    "9 the report has summary statistics": ["desk", "agent.yaml", SUMMARY],
    "10 an injected backend answers with invoke_once": ["invoke_once", "invoke_once"],
    "11 without one, BackendSelector selects by provider": [True, ["agent", "tool_instances", "mode"]],
    "12 the parameters of TestExecutor": [[name, False if name == "force_ingest" else None] for name in PARAMETERS],
    "13 agent_config_path and cli_config": ["agent.yaml", 5],
    "14 agent_config is loaded if it is not passed": "desk",
    "15 a passed agent_config is used": [True, ["a"]],
    "16 config is resolved, or passed as it is": True,
    "17 a passed file_processor reads the files": True,
    "18 evaluators are created by metric name": {"bleu": "BLEUEvaluator", "equality": "EqualityEvaluator"},
    "19 passed evaluators are used": [0.25, True],
    "20 a passed config_loader loads the agent": [True, ["agent.yaml"]],
    "21 a passed config_loader resolves the settings": [11, 3],
    "22 progress_callback is called with each result": [["TestResult", "a", True], ["TestResult", "b", False]],
    "23 on_test_start is called with each test": [[True, "a"], [True, "b"]],
    "24 force_ingest is accepted": True,
    "25 tests run one after the other by default": 1,
    "26 parallel_test_cases tests run at the same time": 2,
    "27 results keep the order of the file": ["0", "1", "2"],
    "28 turns run strictly one after the other in one session": [
        ["create_session", "close"],
        ["a", "b", "c"],
        1,
        ["after a", "after b", "after c"],
        True,
    ],
    "29 callbacks do not overlap": 1,
    "30 shutdown tears the backend down": "teardown",
    "31 an error in shutdown is logged, not raised": True,
    "32 a part of the name is enough": True,
    "33 every expected tool must be found": [True, False, True],
    "34 without an expectation nothing is validated": None,
    "35 RAGEvaluatorConstructor is a protocol": True,
    "36 RAG_EVALUATOR_MAP has a constructor for each metric type": RAG,
    "37 the header names the agent, its file, the time and the version": [True] * 4,
    "38 the summary table": [True] * 5,
    "39 the average scores": [True] * 3,
    "40 a section for each test with all its fields": [True] * 5,
    "41 the final line counts and names the pass rate": [True] * 4,
    "42 the attributes of ProgressIndicator": [[2, 0, 0, 0, False, False], [2, 2, 1, 1, False, False]],
    "43 progress lines are plain text outside a terminal, and empty if quiet": ["", "[Test 1/2] PASS good", ""],
    "44 the spinner turns, and is empty outside a terminal": [SPINNER, ""],
    "45 start_test and the summary": [
        "third",
        ["", LINE, "Test Results: 1/2 passed (50.0%)", "  Failed: 1", LINE],
        "No tests to execute",
    ],
    "46 arguments are built by the evaluator's specification": [
        ["30 days."],
        DEEPEVAL,
        {"response": "30 days", "ground_truth": "30-day guarantee"},
    ],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("statements")
    (folder / "in.json").write_text(json.dumps({"who": "proctor", "facts": "statements"}))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PROCTOR", "HOLODECK"))}
    command = [sys.executable, "-P", str(FACTS), "in.json", "out.json"]
    done = subprocess.run(
        command, cwd=folder, env=kept | {"HOME": str(folder)}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return found


def test_there_are_46_statements(results: dict[str, Any]) -> None:
    assert list(results) == list(STATEMENTS)
    assert len(STATEMENTS) == 46


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statement(results: dict[str, Any], statement: str) -> None:
    assert results[statement] == STATEMENTS[statement]
