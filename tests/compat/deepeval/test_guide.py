"""The evaluation guide of the loan advisor runs as it is written, but for its imports, offline."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from command_line import PYTEST
from repository import ROOT

pytestmark = pytest.mark.process

EXAMPLE = ROOT / "examples" / "loan_advisor"
MODULE = EXAMPLE / "evaluation" / "test_loan_advisor_agent.py"


def run(*arguments: str, **environment: str) -> tuple[int, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PROCTOR", "OPENAI"))}
    command = [*PYTEST, "-q", "-s", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=240, env=kept | environment
    )
    return done.returncode, done.stdout + done.stderr


def test_nothing_of_it_fails_without_a_model_and_it_shows_what_it_found() -> None:
    """What only a model can judge is pending, which is red unless the user chooses otherwise."""
    code, output = run(str(MODULE), "--proctor-pending=skip", PYTHONIOENCODING="ascii")
    assert code == 0, output
    for line in (
        "Running test case: loan_calculation_basic",
        "Tool: calculate_loan_payment",
        "     - loan_amount: 50000",
        "Tool call information extracted successfully",
        "All outputs contain expected keywords",
    ):
        assert line in output


@pytest.mark.parametrize("name", ["test_tool_calls_info", "test_individual_case_example"])
def test_one_test_can_be_chosen(name: str) -> None:
    code, output = run(f"{MODULE}::{name}", "--proctor-pending=skip")
    assert code == 0, output


def test_an_agent_that_is_wrong_does_not_pass(tmp_path: Path) -> None:
    folder = tmp_path / "evaluation"
    folder.mkdir()
    for path in EXAMPLE.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    text = MODULE.read_text(encoding="utf-8").replace("agent.py:agent", "agent_wrong.py:agent")
    (folder / MODULE.name).write_text(text, encoding="utf-8")
    code, output = run(str(folder / MODULE.name))
    assert code == 1
    assert "failed: Keywords (score: 0.5" in output
    assert 'missing "1,498"' in output
