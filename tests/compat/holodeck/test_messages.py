"""What people who come from HoloDeck's command line are told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

AGENT = """
name: desk
agent: desk.py:answer
evaluations:
  model:
    provider: openai
    name: gpt-x
    api_key: ${NO_SUCH_KEY}
  metrics:
    - {type: standard, metric: coherence}
test_cases:
  - {name: one, input: x}
"""
HTTP = """
name: desk
agent:
  http:
    url: http://127.0.0.1:9/
    headers:
      authorization: Bearer ${NO_SUCH_KEY}
cases:
  - {input: q, expected: q}
evaluators: [ExactMatch]
"""


def proctor(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "desk.py").write_text("def answer(question):\n    return question\n")
    command = [sys.executable, "-m", "proctor", "test", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("agent.yaml", AGENT, "agent.yaml:8: judge: judge.api_key uses ${NO_SUCH_KEY}, which is not set"),
        ("suite.yaml", HTTP, "suite.yaml:7: agent: headers.authorization uses ${NO_SUCH_KEY}, which is not set"),
    ],
)
def test_a_variable_that_is_not_set_is_reported_with_its_key_and_its_line(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    (tmp_path / name).write_text(text)
    done = proctor(tmp_path, name)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_run_of_nothing_but_tests_that_nothing_scores_is_not_green(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("name: a\nagent: desk.py:answer\ntest_cases:\n  - {name: one, input: hi}\n")
    done = proctor(tmp_path, "agent.yaml", "-v")
    assert done.returncode == 4
    assert "nothing scores" in done.stdout + done.stderr


def test_a_test_that_nothing_scores_does_not_refuse_the_others(tmp_path: Path) -> None:
    scored = "{name: two, input: hi, ground_truth: hi, evaluations: [{metric: equality}]}"
    text = f"name: a\nagent: desk.py:answer\ntest_cases:\n  - {{name: one, input: hi}}\n  - {scored}\n"
    (tmp_path / "agent.yaml").write_text(text)
    done = proctor(tmp_path, "agent.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_cases[0] is not scored by anything" in done.stderr
