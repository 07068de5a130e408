"""What an arm may be, and in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.base.errors import InvalidSuite, UsageError
from proctor.cases.arms import Arm, agent_with_settings, read_arm
from proctor.cases.suite import Settings

CASES = "cases: [{id: c, input: q, expected: q}]\n"


@pytest.mark.parametrize(
    ("value", "arm"),
    [
        ("main", Arm(ref="main")),
        ("HEAD~1", Arm(ref="HEAD~1")),
        ("origin/feature-1", Arm(ref="origin/feature-1")),
        (".", Arm(ref=".")),
        ("app.py:agent", Arm(agent="app.py:agent")),
        ("package.module:make()", Arm(agent="package.module:make()")),
        ("https://example.org/chat", Arm(agent="https://example.org/chat")),
        ("cmd:python bot.py", Arm(agent="cmd:python bot.py")),
        ("oracle", Arm(agent="oracle")),
        ({"chat": {"model": "m"}}, Arm(agent={"chat": {"model": "m"}})),
        ({}, Arm()),
        ('{"ref": "v1", "settings": {"tone": "calm"}}', Arm(ref="v1", arguments={"tone": "calm"})),
        ('{"chat": {"model": "m"}}', Arm(agent='{"chat": {"model": "m"}}')),
        ({"ref": "v1", "venv": True, "env": {"A": "1"}}, Arm(ref="v1", venv=True, env={"A": "1"})),
        (
            {"agent": "app.py:bot", "settings": {"timeout": 3, "temperature": 0}},
            Arm(agent="app.py:bot", settings=Settings(timeout=3), arguments={"temperature": 0}),
        ),
    ],
)
def test_an_arm_is_a_reference_an_agent_or_its_parts(value: Any, arm: Arm) -> None:
    assert read_arm(value) == arm


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (" ", "is blank"),
        ({"ref": 1}, "ref must be a git reference"),
        ({"reff": "main", "venv": False}, "did you mean 'ref'"),
        ({"venv": True}, "venv needs ref"),
        ({"ref": "main", "env": {"A": 1}}, "env must have text"),
        ({"agent": "app.py:bot", "settings": 3}, "settings must be an object"),
    ],
)
def test_what_is_wrong_with_an_arm_is_said(value: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        read_arm(value)


def test_settings_of_an_agent_are_its_arguments_or_options() -> None:
    assert agent_with_settings("app.py:bot", {"t": 1}) == {"python": "app.py:bot", "arguments": {"t": 1}}
    merged = agent_with_settings({"python": "app.py:bot", "arguments": {"a": 1, "t": 0}}, {"t": 1})
    assert merged == {"python": "app.py:bot", "arguments": {"a": 1, "t": 1}}
    assert agent_with_settings({"chat": {"model": "m"}}, {"model": "n"}) == {"chat": {"model": "n"}}
    with pytest.raises(UsageError, match="temperature cannot be passed"):
        agent_with_settings("https://example.org", {"temperature": 1})


def test_the_same_agent_with_other_settings_in_a_suite(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("def bot(q, length='long'):\n    return length\n")
    (tmp_path / "suite.yaml").write_text(
        "name: desk\narms:\n  short: {agent: app.py:bot, settings: {length: short, timeout: 3}}\n"
        "  long: {agent: app.py:bot}\ncases: [{id: c, input: q, expected: long}]\n"
    )
    run = proctor.run(tmp_path / "suite.yaml")
    assert [arm["c"].output for arm in run.arms.values()] == ["short", "long"]
    assert run.passed  # the last arm decides


@pytest.mark.parametrize(
    ("arms", "problem"),
    [
        ("{a: {agent: nop, settings: {timeout: -1}}, b: nop}", "must be more than 0"),
        ("{a: {agent: nop, sttings: {}}, b: nop}", "did you mean 'settings'"),
        ("{a: {venv: true}, b: nop}", "venv needs ref"),
    ],
)
def test_problems_of_arms_have_their_line(tmp_path: Path, arms: str, problem: str) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(f"name: desk\narms: {arms}\n{CASES}")
    with pytest.raises(InvalidSuite) as raised:
        proctor.load(path)
    assert [(item.line, problem in item.message) for item in raised.value.problems] == [(2, True)]


def test_the_suites_agent_is_the_agent_of_arms_that_name_none(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(f"name: desk\nagent: nop\narms: {{a: {{}}, b: oracle}}\n{CASES}")
    run = proctor.run(path)
    assert {name: arm.passed for name, arm in run.arms.items()} == {"a": False, "b": True}


@pytest.mark.parametrize(
    ("key", "criteria", "passed"), [("arms", "", True), ("agents", "", False), ("arms", "all", False)]
)
def test_the_last_arm_decides_unless_the_criteria_or_the_old_key_count_all(
    tmp_path: Path, key: str, criteria: str, passed: bool
) -> None:
    path = tmp_path / "suite.yaml"
    line = f"criteria: {{arms: {criteria}}}\n" if criteria else ""
    path.write_text(f"name: desk\n{key}: {{worse: nop, better: oracle}}\n{line}{CASES}")
    assert proctor.run(path).passed is passed
