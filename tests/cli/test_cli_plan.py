"""`proctor test --gate --plan`: what a gated run takes, before anything is run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

SUITE = "name: desk\nagent: counted.py:agent\ncases:\n" + "".join(
    f"  - {{id: c{number}, input: hi, expected: hi, tags: [{'odd' if number % 2 else 'even'}]}}\n"
    for number in range(4)
)


@pytest.fixture
def counted(suite: Command, project: Path) -> Path:
    (project / "counted.py").write_text(
        "def agent(question):\n    open('calls', 'a').write('x')\n    return question\n"
    )
    return suite(text=SUITE)


def test_a_plan_asks_no_agent_and_stores_nothing(proctor: Command, counted: Path, project: Path) -> None:
    ended = proctor("test", "--gate", "--plan")
    assert ended.code == 0
    assert ended.out.startswith("4 cases of desk\n")
    assert "a gated run takes about" in ended.out
    assert not (project / "calls").exists()
    assert not (project / ".proctor").exists()


def test_the_old_command_says_the_same(proctor: Command, counted: Path) -> None:
    old = json.loads(proctor("plan", "--see", "0.2", "--json").out)
    assert old == json.loads(proctor("test", "--gate", "--plan", "--see", "0.2", "--json", "-").out)


def test_a_plan_is_of_the_selected_cases(proctor: Command, counted: Path, project: Path) -> None:
    assert proctor("test", "suite.yaml::c1", "--gate", "--plan").out.startswith("1 case of desk")
    assert proctor("test", "--gate", "--plan", "--tag", "odd", "--json", "plan.json").code == 0
    assert json.loads((project / "plan.json").read_text())["cases"] == 2


def test_a_comparison_with_another_version_is_planned_without_a_baseline(proctor: Command, counted: Path) -> None:
    ended = proctor("test", "--gate", "--against", "main", "--plan")
    assert ended.code == 0, ended.err
    assert "against    main, side by side" in ended.out and "one broken case" in ended.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--plan",), "--plan needs --gate"),
        (("--gate", "--plan", "--html", "r.html"), "--plan can be combined with --json only"),
        (("--gate", "--plan", "--agent", "a=counted.py:agent", "--agent", "b=nop"), "use --agent once"),
        (("--gate", "--repeat", "2"), "--gate and --repeat cannot be combined"),
        (("--gate", "--plan", "--repeat", "2"), "--gate and --repeat cannot be combined"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    proctor: Command, counted: Path, options: tuple[str, ...], message: str
) -> None:
    ended = proctor("test", *options)
    assert ended.code == 2
    assert message in ended.err
