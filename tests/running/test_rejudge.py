"""Scoring the answers of some cases once more, as `proctor flaky --rejudge` does."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.cases.formats.loading import load
from proctor.results.score import Outcome
from proctor.results.store.store import Store
from proctor.running.rescore import rejudge
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions

AGENT = """
name: desk
agent: desk.py:answer
evaluations:
  metrics:
    - {type: code, grader: "desk.py:grade"}
test_cases:
  - {name: one, input: hello}
"""
DESK = """
import os

def answer(question):
    return question

def grade(context):
    return 1.0 if os.environ.get("DESK_KEY") == "sk-desk" else 0.0
"""


@pytest.mark.needs("holodeck")
def test_the_variables_of_the_suites_are_set_while_answers_are_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.yaml").write_text(AGENT)
    (tmp_path / "desk.py").write_text(DESK)
    (tmp_path / ".env").write_text("DESK_KEY=sk-desk\n")
    run, _ = run_suites(RunRequest(load(["agent.yaml"]), store=tmp_path / ".proctor"))
    [trial] = run.trials
    assert trial.outcome is Outcome.PASSED

    key = (trial.suite, trial.case.id)
    found = rejudge(Store(tmp_path / ".proctor"), run.id, {key}, RunOptions())

    assert found == {(*key, 1): Outcome.PASSED}
