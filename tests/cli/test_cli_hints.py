"""What the command line says where something was misspelt, left out or not found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SUITE = """\
agent: app.py:agent
cases:
  - {id: one, input: hi, expected: hi, tags: [short]}
  - {id: two, input: hi, expected: ho, tags: [long]}
"""


def proctor(folder: Path, *arguments: str, suite: str = SUITE) -> subprocess.CompletedProcess[str]:
    (folder / "app.py").write_text("def agent(question):\n    return question\n")
    (folder / "suite.yaml").write_text(suite)
    quiet = {key: value for key, value in os.environ.items() if not key.startswith("PROCTOR_")}
    command = [sys.executable, "-m", "proctor", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=quiet, check=False)


def test_a_misspelt_expectation_gets_one_hint_and_no_second_complaint(tmp_path: Path) -> None:
    done = proctor(tmp_path, "test", "suite.yaml", suite="cases:\n  - {id: a, input: hi, expectd: hi}\n")
    assert done.returncode == 2
    assert "did you mean 'expected'?" in done.stderr
    assert "scored by nothing" not in done.stderr


def test_a_filter_that_fits_nothing_names_the_cases_and_tags_there_are(tmp_path: Path) -> None:
    for choice in (["-k", "nosuch"], ["--tag", "nosuch"]):
        said = proctor(tmp_path, "test", "suite.yaml", *choice).stderr
        assert "there are one, two; tags: long, short" in said


def test_an_evaluator_without_its_argument_says_which(tmp_path: Path) -> None:
    assert "'MaxCost' needs usd" in proctor(tmp_path, "test", "suite.yaml", "-e", "MaxCost").stderr


def test_a_case_whose_only_evaluator_does_not_gate_says_that_nothing_gates_it(tmp_path: Path) -> None:
    suite = (
        "agent: app.py:agent\ncases:\n  - {id: a, input: hi, expected: hi, evaluators: [{ExactMatch: {gate: false}}]}\n"
    )
    assert proctor(tmp_path, "test", "suite.yaml", suite=suite).stdout.count("nothing gates it") == 1


def test_a_report_of_chosen_cases_has_these_alone(tmp_path: Path) -> None:
    proctor(tmp_path, "test", "suite.yaml", "-q")
    assert proctor(tmp_path, "show", "last", "-k", "two", "--json", "two.json").returncode == 0
    report = json.loads((tmp_path / "two.json").read_text())
    assert [trial["case"]["id"] for trial in report["trials"]] == ["two"]
    assert report["verdict"]["outcome"] == "failed"
