"""One case is chosen by its name, as `suite.yaml::id` or `--case`, by every command that chooses cases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

SUITE = """
name: shop
agent: agents.py:echo
cases:
  - {id: one, input: a, expected: a}
  - {id: two, input: b, expected: other}
  - {id: "odd::id", input: c, expected: c}
"""
OTHER = """
name: desk
agent: agents.py:echo
cases:
  - {id: one, input: a, expected: a}
  - {id: five, input: b, expected: b}
"""


@pytest.fixture
def suites(suite: Command, project: Path) -> None:
    suite("shop.yaml", text=SUITE)
    suite("desk.yaml", text=OTHER)
    (project / "listed.py").write_text(
        "TEST_CASES = [{'id': n, 'input': n, 'expected_output_contains': [n]} for n in ('x', 'y')]\n"
    )


def _ran(ended: Any) -> list[str]:
    assert ended.out, ended.err
    return [f"{trial['suite']}/{trial['case']['id']}" for trial in json.loads(ended.out)["trials"]]


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        (("shop.yaml::one",), ["shop/one"]),
        (("shop.yaml::two", "shop.yaml::one"), ["shop/one", "shop/two"]),
        (("shop.yaml::odd::id",), ["shop/odd::id"]),
        (("shop.yaml::one", "desk.yaml"), ["shop/one", "desk/one", "desk/five"]),
        (("desk.yaml", "desk.yaml::one"), ["desk/one", "desk/five"]),
        ((".::five",), ["desk/five"]),
        (("listed.py:TEST_CASES::y", "--agent", "agents.py:echo"), ["listed/y"]),
        (("--case", "one"), ["desk/one", "shop/one"]),
        (("--case", "shop/one", "--case", "five"), ["desk/five", "shop/one"]),
        (("--case", "desk.yaml::one"), ["desk/one"]),
        (("shop.yaml", "--case", "odd::id"), ["shop/odd::id"]),
        (("shop.yaml::one", "-k", "shop"), ["shop/one"]),
    ],
)
def test_a_case_runs_alone(proctor: Command, suites: None, arguments: tuple[str, ...], chosen: list[str]) -> None:
    assert _ran(proctor("test", "--json", "-", *arguments)) == chosen


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("shop.yaml::on",), "no case 'shop.yaml::on'; did you mean 'one'?"),
        (("--case", "fiv"), "no case 'fiv'; did you mean 'five'?"),
        (("desk.yaml", "--case", "two"), "no case 'two'"),
        (("shop.yaml::",), "'shop.yaml::': write a file and a case id, such as suite.yaml::case-id"),
        (("gone.yaml::one",), "gone.yaml: does not exist"),
        (("shop.yaml::one", "--case", "two"), "no case matches"),
    ],
)
def test_a_name_that_no_case_has_is_a_mistake(
    proctor: Command, suites: None, arguments: tuple[str, ...], told: str
) -> None:
    ended = proctor("test", *arguments)
    assert ended.code == 2
    assert told in ended.err


def test_a_kept_run_is_shown_and_scored_anew_by_case(proctor: Command, suites: None) -> None:
    proctor("test", "shop.yaml", "desk.yaml")
    for names, chosen in (
        (("--case", "five"), ["desk/five"]),
        (("--case", "shop/one", "--case", "two"), ["shop/one", "shop/two"]),
        (("--case", "shop.yaml::one"), ["shop/one"]),
    ):
        assert _ran(proctor("show", "last", "--json", "-", *names)) == chosen
        again = proctor("rescore", "last", "--json", "-", *names)
        assert _ran(again) == chosen
        proctor("test", "shop.yaml", "desk.yaml")
    assert "no case 'fife'; did you mean 'five'?" in proctor("show", "last", "--case", "fife").err
    assert proctor("rescore", "last", "-k", "nowhere").code == 2


def test_other_commands_take_the_same_names(proctor: Command, suites: None) -> None:
    assert json.loads(proctor("plan", "shop.yaml::one", "--json").out)["cases"] == 1
    assert json.loads(proctor("plan", "--case", "one", "--json").out)["cases"] == 2
    for arguments in (("shop.yaml::two",), ("shop.yaml", "--case", "two")):
        assert [row["case"] for row in json.loads(proctor("accept", *arguments, "--json").out)] == ["two"]
    assert json.loads(proctor("flaky", "shop.yaml::one", "--json").out) == []
    assert proctor("flaky", "--case", "nope").code == 2
    ended = proctor("quarantine", "desk.yaml::one", "--reason", "slow", "--until", "2999-01-01")
    assert ended.code == 0, ended.err


def test_what_waits_for_a_grade_is_listed_by_case(proctor: Command, suite: Command) -> None:
    cases = "".join(f"  - {{id: {name}, input: a, evaluators: [checks.py:pending]}}\n" for name in ("a", "b"))
    suite(text=f"agent: agents.py:echo\ncases:\n{cases}")
    proctor("test")
    assert [row["case"] for row in json.loads(proctor("grade", "--json", "--case", "b").out)] == ["b"]
    assert proctor("grade", "--case", "c").code == 2
