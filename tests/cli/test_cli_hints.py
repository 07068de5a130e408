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


def test_a_key_of_another_tool_and_a_file_of_another_ending_are_recognized(hint: Command, project: Path) -> None:
    (project / "list.yaml").write_text("agent: app.py:agent\ntests:\n  - {input: hi, expected: hi}\n")
    assert "did you mean 'cases'?" in hint("test", "list.yaml").err
    assert "did you mean 'suite.yaml'?" in hint("test", "suite.yml").err
    suite = SUITE.replace("cases:", "evaluators: [{GEval: {criterion: is polite}}]\ncases:")
    assert "GEval has no parameter 'criterion'; did you mean 'criteria'?" in hint("test", "suite.yaml", suite=suite).err


@pytest.mark.parametrize("text", ["cases:\n\t- input: hi\n", "cases:\n  - input: hi\n\texpected: hi\n"])
def test_a_tab_is_called_a_tab_and_its_line_is_named(hint: Command, text: str) -> None:
    done = hint("test", "suite.yaml", suite=f"agent: app.py:agent\n{text}")
    line = 2 + text[: text.index("\t")].count("\n")
    assert done.code == 2
    assert f"suite.yaml:{line}: is not valid YAML: line {line} is indented with a tab; use spaces" in done.err


def test_an_agent_that_forgets_to_return_is_reported_as_that(proctor: Command, project: Path) -> None:
    (project / "app.py").write_text("def agent(question):\n    question.upper()\n")
    (project / "suite.yaml").write_text(SUITE)
    done = proctor("test", "suite.yaml", "--html", "report.html", "--md", "report.md")
    assert done.code == 1
    assert done.out.count("(the agent returned None)") == 2
    for report in ("report.html", "report.md"):
        assert "(the agent returned None)" in (project / report).read_text(encoding="utf-8")
    assert "(the agent returned None)" in proctor("show").out  # it is stored


def test_a_wrong_type_of_cases_in_a_folder_is_a_problem_of_that_file(hint: Command, project: Path) -> None:
    (project / "more").mkdir()
    (project / "more" / "list.json").write_text('{"cases": 12}')
    done = hint("test", "more")
    assert done.code == 2
    assert "list.json:1: cases must be a list, not a number" in done.err


def test_evaluators_that_all_return_none_are_named_with_what_to_do(hint: Command, project: Path) -> None:
    (project / "mine.py").write_text("def polite(evaluable):\n    print('thanks' in evaluable.output)\n")
    suite = "agent: app.py:agent\ncases:\n  - {id: a, input: hi, evaluators: [mine.py:polite]}\n"
    done = hint("test", "suite.yaml", suite=suite)
    assert done.code == 4
    assert "nothing was compared (polite: returned None" in done.out
    assert "return True or False" in done.out


def test_the_size_and_time_limits_of_the_doctor_have_units(hint: Command) -> None:
    lines = [line.split() for line in hint("doctor").out.splitlines()]
    assert ["max_reply_bytes", "10", "MB", "default"] in lines
    assert ["timeout", "300", "s", "default"] in lines


def test_the_usual_slips_of_a_first_suite_say_what_to_write(hint: Command, project: Path) -> None:
    colon = "agent: app.py:agent\ncases:\n  - input: hi: there\n    expected: hi\n"
    assert "a value with a colon and a space in it needs quotes" in hint("test", "suite.yaml", suite=colon).err
    text = "agent: app.py:agent\ncases:\n  - hello\n"
    assert 'must be an object, not text; write {input: "hello", expected: ...}' in hint("test", suite=text).err
    tools = "agent: app.py:agent\ncases:\n  - {input: hi, expected: {tools: search}}\n"
    assert "expected.tools must be a list, not text" in hint("test", "suite.yaml", suite=tools).err
    file = SUITE.replace("app.py", "ap.py")
    assert "ap.py; did you mean 'app.py'?" in hint("test", "suite.yaml", suite=file).err


def test_a_package_that_is_not_installed_is_named_with_the_requirements_of_the_agent(
    proctor: Command, project: Path
) -> None:
    (project / "made").mkdir()
    (project / "made" / "app.py").write_text("import no_such_package\n")
    (project / "made" / "suite.yaml").write_text(SUITE)
    assert "install what it needs" not in proctor("test", "made").err
    (project / "made" / "requirements.txt").write_text("no-such-package\n")
    said = proctor("test", "made").err
    assert "No module named 'no_such_package'; install what it needs: " in said
    assert f"pip install -r {project / 'made' / 'requirements.txt'}" in said
