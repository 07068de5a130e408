"""Code that hands back hostile objects, raises anything, or tampers with the process it runs in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tampering_agents import ANSWERS, FATAL, HARMLESS

Command = Callable[..., Any]
SOURCE = Path(__file__).with_name("tampering_agents.py")


@pytest.fixture
def write(project: Path) -> Command:
    (project / "tampering_agents.py").write_bytes(SOURCE.read_bytes())

    def suite(names: Iterable[str], evaluator: str = "ExactMatch") -> None:
        cases = "".join(f"  - {{id: {name}, input: {name}, expected: {name}}}\n" for name in names)
        head = f"name: desk\nagent: tampering_agents.py:agent\nevaluators: ['{evaluator}']\n"
        settings = "settings: {parallel: 1, timeout: 2, evaluator_timeout: 1}\n"
        (project / "suite.yaml").write_text(f"{head}{settings}cases:\n{cases}")

    return suite


def outcomes(project: Path) -> dict[str, str]:
    report = json.loads((project / "r.json").read_text(encoding="utf-8"))
    return {trial["case"]["id"]: trial["outcome"] for trial in report["trials"]}


def test_whatever_an_agent_hands_back_or_raises_is_that_trials_alone(
    proctor_process: Command, write: Command, project: Path
) -> None:
    write([*ANSWERS, "q-last"])
    ended = proctor_process(
        "test", "suite.yaml", "--json", "r.json", "--html", "r.html", "--junit", "r.xml", "--md", "r.md"
    )
    found = outcomes(project)
    assert list(found) == [*ANSWERS, "q-last"]
    assert {name for name, outcome in found.items() if outcome == "passed"} == {"q-last"}
    assert ended.code in (1, 4)
    assert f"1 of {len(ANSWERS) + 1} cases passed" in ended.out
    assert "\n::error::" not in ended.out and "\x1b" not in ended.out and ended.err == ""


def test_whatever_an_evaluator_hands_back_or_raises_is_an_error_of_that_score_alone(
    proctor_process: Command, write: Command, project: Path
) -> None:
    names = [name for name in ANSWERS if name != "endless-table"]
    write([f"q-{name}" for name in names], "tampering_agents.py:check")
    ended = proctor_process("test", "suite.yaml", "--json", "r.json")
    assert ended.code == 4
    assert set(outcomes(project).values()) == {"error"}
    assert len(outcomes(project)) == len(names)
    assert ended.err == ""


def test_tampering_with_the_process_changes_neither_the_verdict_nor_where_reports_go(
    proctor_process: Command, write: Command, project: Path
) -> None:
    write([*HARMLESS, "q-last"])
    ended = proctor_process("test", "suite.yaml", "--json", "r.json")
    assert ended.code == 0
    assert f"PASSED  {len(HARMLESS) + 1} of {len(HARMLESS) + 1} cases passed" in ended.out
    (project / "r.json").chmod(0o600)
    assert set(outcomes(project).values()) == {"passed"}


def test_arguments_that_json_has_no_word_for_are_shown_and_kept(
    proctor_process: Command, write: Command, project: Path
) -> None:
    write(["q-a"])
    (project / "suite.yaml").write_text(
        "name: desk\nagent: tampering_agents.py:odd_calls\ncases:\n"
        "- {id: a, input: q-a, expected: {tools: [{name: note, args: {a: 1}}]}}\n"
    )
    ended = proctor_process(
        "test", "suite.yaml", "--json", "r.json", "--html", "r.html", "--junit", "r.xml", "--md", "r.md"
    )
    assert ended.code == 1
    assert "a number of about 5,000 digits" in ended.out
    assert outcomes(project) == {"a": "failed"}


@pytest.mark.parametrize("name", FATAL)
def test_what_ends_a_run_from_within_is_one_line_and_no_pass(
    proctor_process: Command, write: Command, name: str
) -> None:
    write(["q-first", name, "q-last"])
    ended = proctor_process("test", "suite.yaml")
    assert ended.code == 4
    assert "PASSED" not in ended.out
    said = ended.err or ended.out.partition("\nERROR ")[2]
    assert any(word in said for word in ("saved", "stored", "kept"))
    assert ended.err.count("\n") <= 1


def test_a_recursion_limit_that_leaves_no_stack_without_a_verdict_does_not_pass(
    proctor_process: Command, write: Command
) -> None:
    write(["q-first", "no-stack", "q-last"])
    ended = proctor_process("test", "suite.yaml")
    assert ended.code == (0 if "PASSED  3 of 3 cases passed" in ended.out else 4)
    assert ended.err.count("\n") <= 1
