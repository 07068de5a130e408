"""What the command line says where something was misspelt, left out or not found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

SUITE = """\
agent: app.py:agent
cases:
  - {id: one, input: hi, expected: hi, tags: [short]}
  - {id: two, input: hi, expected: ho, tags: [long]}
"""


@pytest.fixture
def hint(project: Path, proctor: Command) -> Command:
    """Run the command on a suite of two cases, or on another one."""

    def run(*arguments: str, suite: str = SUITE) -> Any:
        (project / "app.py").write_text("def agent(question):\n    return question\n")
        (project / "suite.yaml").write_text(suite)
        return proctor(*arguments)

    return run


def test_a_misspelt_expectation_gets_one_hint_and_no_second_complaint(hint: Command) -> None:
    done = hint("test", "suite.yaml", suite="cases:\n  - {id: a, input: hi, expectd: hi}\n")
    assert done.code == 2
    assert "did you mean 'expected'?" in done.err
    assert "scored by nothing" not in done.err


def test_a_filter_that_fits_nothing_names_the_cases_and_tags_there_are(hint: Command) -> None:
    for choice in (["-k", "nosuch"], ["--tag", "nosuch"]):
        said = hint("test", "suite.yaml", *choice).err
        assert "available: one, two; tags: long, short" in said


def test_an_evaluator_without_its_argument_says_which(hint: Command) -> None:
    assert "MaxCost needs usd" in hint("test", "suite.yaml", "-e", "MaxCost").err


def test_a_case_whose_only_evaluator_does_not_gate_says_that_nothing_gates_it(hint: Command) -> None:
    suite = (
        "agent: app.py:agent\n"
        "cases:\n"
        "  - {id: a, input: hi, expected: hi, evaluators: [{ExactMatch: {report_only: true}}]}\n"
    )
    assert hint("test", "suite.yaml", suite=suite).out.count("evaluators are report only") == 1


def test_a_report_of_chosen_cases_has_these_alone(hint: Command) -> None:
    hint("test", "suite.yaml", "-q")
    assert hint("show", "last", "-k", "two", "--json", "two.json").code == 0
    report = json.loads(Path("two.json").read_text(encoding="utf-8"))
    assert [trial["case"]["id"] for trial in report["trials"]] == ["two"]
    assert report["verdict"]["outcome"] == "failed"
