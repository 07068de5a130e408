"""pixie's documented example, as a project: nothing is changed but the import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import PYTEST

pytestmark = pytest.mark.process

EVALUATORS = '''
from typing import Any

from proctor.compat.pixie import Evaluation, Evaluable

def _get_output(evaluable: Evaluable, name: str) -> Any:
    """Look up a wrap value by name from eval_output."""
    for item in evaluable.eval_output:
        if item.name == name:
            return item.value
    return None

def tool_call_check(evaluable: Evaluable, *, trace=None) -> Evaluation:
    expected = evaluable.eval_metadata.get("expected_tool") if evaluable.eval_metadata else None
    actual = _get_output(evaluable, "function_called")
    if expected is None:
        return Evaluation(score=1.0, reasoning="No expected_tool specified")
    match = str(actual) == str(expected)
    return Evaluation(
        score=1.0 if match else 0.0,
        reasoning=f"Expected {expected}, got {actual}",
    )
'''

ENTRY = """
{
  "entry_kwargs": { "user_message": "I want to end this call" },
  "description": "User requests call end after failed verification",
  "eval_input": [{ "name": "user_input", "value": "I want to end this call" }],
  "expectation": "Agent should call endCall tool",
  "eval_metadata": { "expected_tool": "endCall", "expected_call_ended": true },
  "evaluators": ["...", "pixie_qa/evaluators.py:tool_call_check"]
}
"""

APPLICATION = """
from pydantic import BaseModel

from proctor.compat.pixie import Runnable, wrap


class AppArgs(BaseModel):
    user_message: str


class AppRunnable(Runnable[AppArgs]):
    @classmethod
    def create(cls) -> "AppRunnable":
        return cls()

    async def run(self, args: AppArgs) -> None:
        heard = wrap(args.user_message, purpose="input", name="user_input")
        called = "endCall" if "end this call" in heard else "transferCall"
        wrap(called, purpose="state", name="function_called")
        wrap("Goodbye.", purpose="output", name="response")
"""

SAYS_GOODBYE = """

def says_goodbye(evaluable: Evaluable) -> bool:
    return _get_output(evaluable, "response") == "Goodbye."
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    home = tmp_path / "pixie_qa"
    (home / "scripts").mkdir(parents=True)
    (home / "datasets").mkdir()
    (home / "scripts" / "run_app.py").write_text(APPLICATION)
    (home / "evaluators.py").write_text(EVALUATORS + SAYS_GOODBYE)
    dataset = {
        "name": "calls",
        "runnable": "pixie_qa/scripts/run_app.py:AppRunnable",
        "evaluators": ["pixie_qa/evaluators.py:says_goodbye"],
        "entries": [json.loads(ENTRY)],
    }
    (home / "datasets" / "calls.json").write_text(json.dumps(dataset, indent=2))
    return tmp_path


def proctor(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "proctor", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, encoding="utf-8", timeout=120)


def test_the_documented_dataset_is_valid(project: Path) -> None:
    done = proctor(project, "dataset", "validate", "pixie_qa/datasets")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok (pixie, 1 case)" in done.stdout


def test_the_documented_example_passes(project: Path) -> None:
    done = proctor(project, "test", "pixie_qa/datasets")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "says_goodbye 1.00, tool_call_check 1.00" in done.stdout


def test_the_documented_evaluator_fails_what_calls_the_wrong_tool(project: Path) -> None:
    dataset = project / "pixie_qa" / "datasets" / "calls.json"
    dataset.write_text(dataset.read_text().replace('"expected_tool": "endCall"', '"expected_tool": "holdCall"'))
    done = proctor(project, "test", "pixie_qa/datasets")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Expected holdCall, got endCall" in done.stdout


TEST_FILE = """
import sys

import pytest

sys.path.insert(0, ".")
from pixie_qa.evaluators import tool_call_check
from pixie_qa.scripts.run_app import AppRunnable
from proctor.compat.pixie import EvalAssertionError, ScoreThreshold, assert_dataset_pass, assert_pass_sync
import asyncio


def test_calls():
    asyncio.run(
        assert_dataset_pass(
            AppRunnable, "calls", [tool_call_check], dataset_dir="pixie_qa/datasets",
            pass_criteria=ScoreThreshold(threshold=0.5, pct=1.0),
        )
    )


def test_without_a_dataset():
    with pytest.raises(EvalAssertionError):
        assert_pass_sync(AppRunnable, [{"user_message": "Hello"}], ["ExactMatch"])
"""


def test_the_documented_functions_work_in_a_test_file(project: Path) -> None:
    (project / "test_calls.py").write_text(TEST_FILE)
    done = subprocess.run(
        [*PYTEST, "-q", "test_calls.py"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr
