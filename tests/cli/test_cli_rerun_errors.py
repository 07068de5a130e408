"""After errors: the summary says how to run only them again, and `--resume` does it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

AGENT = """\
from pathlib import Path

def agent(question):
    with Path("asked").open("a") as log:
        log.write(question + "\\n")
    if question == "broken" and Path("down").exists():
        raise ConnectionError("the provider is down")
    return question
"""
SUITE = """\
name: desk
agent: app.py:agent
settings: {retries: 0, parallel: 1}
cases:
  - {id: right, input: right, expected: right}
  - {id: wrong, input: wrong, expected: other}
  - {id: broken, input: broken, expected: broken}
"""


@pytest.fixture
def desk(project: Path) -> Path:
    """A project with a case that passes, one that fails and one that is an error while the file `down` exists."""
    (project / "app.py").write_text(AGENT)
    (project / "suite.yaml").write_text(SUITE)
    (project / "down").touch()
    return project


def asked(desk: Path) -> list[str]:
    lines = (desk / "asked").read_text().split()
    (desk / "asked").unlink()
    return lines


def test_the_command_in_the_summary_runs_only_the_errors_again(desk: Path, proctor: Command) -> None:
    first = proctor("test", "suite.yaml", "--json", "first.json")
    assert (first.code, asked(desk)) == (1, ["right", "wrong", "broken"])
    (line,) = [line for line in first.out.splitlines() if "run only the errors again: " in line]
    program, *arguments = shlex.split(line.partition("again: ")[2])
    assert program == "proctor"
    assert json.loads((desk / "first.json").read_text())["rerun_errors"] == shlex.join(["proctor", *arguments])

    (desk / "down").unlink()
    second = proctor(*arguments)
    assert asked(desk) == ["broken"]
    assert "3 cases: 2 passed, 1 failed" in second.out
    assert "errors again" not in second.out
    report = json.loads((desk / "first.json").read_text())
    assert [trial["outcome"] for trial in report["trials"]] == ["passed", "failed", "passed"]


def test_a_run_whose_latest_results_have_no_errors_is_not_resumed(desk: Path, proctor: Command) -> None:
    """An older run of the same command had an error; it is over."""
    proctor("test", "suite.yaml")
    (desk / "down").unlink()
    proctor("test", "suite.yaml")
    asked(desk)
    proctor("test", "suite.yaml", "--resume")
    assert asked(desk) == ["right", "wrong", "broken"]


def test_quiet_names_errors_next_to_failures_and_how_to_run_them_again(desk: Path, proctor: Command) -> None:
    lines = proctor("test", "suite.yaml", "-q").out.splitlines()
    assert lines == [
        "FAILED  1 of 3 cases passed; 1 ended in errors",
        "        run only the errors again: proctor test suite.yaml -q --resume",
    ]


def test_a_suite_with_errors_is_named_when_another_one_failed(desk: Path, proctor: Command) -> None:
    lines = SUITE.splitlines(keepends=True)
    (desk / "suite.yaml").write_text("".join(lines[:-1]))
    (desk / "second.yaml").write_text("".join([lines[0].replace("desk", "second"), *lines[1:4], lines[6]]))
    said = proctor("test", "suite.yaml", "second.yaml", "-q").out
    assert "FAILED  desk: 1 of 2 cases passed; second ended in errors" in said


def test_reports_say_how_to_run_the_errors_again(desk: Path, proctor: Command) -> None:
    proctor("test", "suite.yaml", "--md", "report.md")
    command = "Run only the errors again: `proctor test suite.yaml --md report.md --resume`"
    assert command in (desk / "report.md").read_text()


def test_an_answer_whose_evaluator_broke_is_scored_again_without_asking(desk: Path, proctor: Command) -> None:
    (desk / "down").unlink()
    (desk / "checks.py").write_text(
        "from pathlib import Path\n\n"
        "def steady(evaluable):\n"
        "    if evaluable.output == 'broken' and Path('judge-down').exists():\n"
        "        raise ConnectionError('the judge is down')\n"
        "    return True\n"
    )
    (desk / "judge-down").touch()
    proctor("test", "suite.yaml", "-e", "checks.py:steady")
    asked(desk)
    (desk / "judge-down").unlink()
    done = proctor("test", "suite.yaml", "-e", "checks.py:steady", "--resume")
    assert not (desk / "asked").exists()
    assert "3 cases: 2 passed, 1 failed" in done.out


def test_secrets_of_the_command_line_are_masked_in_the_advice(desk: Path, proctor: Command) -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    done = proctor("test", "suite.yaml", "--name", key, "-q")
    assert "errors again: proctor test suite.yaml --name " in done.out
    assert key not in done.out
