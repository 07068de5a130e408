"""Several agents in one run: a table of cases and agents, and what their difference amounts to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import proctor as package

Command = Callable[..., Any]

CASES = "cases: [{}]\n".format(", ".join(f"{{id: c{n}, input: q{n}, expected: q{n}}}" for n in range(7)))
SUITE = f"name: desk\nagent: agents.py:echo\n{CASES}"
SCHEMA = json.loads((Path(package.__file__).parent / "schemas" / "report.schema.json").read_text(encoding="utf-8"))


def test_two_agents_are_asked_every_case_and_told_apart(proctor: Command, suite: Command, project: Path) -> None:
    suite(text=SUITE)
    done = proctor("test", "--agent", "good=agents.py:echo", "--agent", "lazy=nop", "--json", "r.json")
    assert done.code == 1
    lines = [line.split() for line in done.out.splitlines()]
    assert ["desk", "good", "lazy"] in lines
    assert any([line[0], line[1], line[-3]] == ["c0", "1/1", "0/1"] for line in lines if len(line) == 7)
    assert "lazy compared with good: worse: 7 of 7 cases broken, pass rate 100% → 0%" in done.out
    data = json.loads((project / "r.json").read_text())
    jsonschema_rs.validator_for(SCHEMA).validate(data)
    assert [item["name"] for item in data["suites"]] == ["desk [good]", "desk [lazy]"]
    assert data["agents"][0]["comparisons"][0]["verdict"] == "regression"
    assert data["agents"][0]["cases"][0] == {"id": "c0", "passed": [1, 0], "trials": [1, 1]}


def test_agents_without_names_go_by_their_references(proctor: Command, suite: Command) -> None:
    suite(text=SUITE)
    assert (
        "nop compared with agents.py:echo: worse" in proctor("test", "--agent", "agents.py:echo", "--agent", "nop").out
    )


def test_one_agent_may_have_a_name_too(proctor: Command, suite: Command, project: Path) -> None:
    suite(text=SUITE)
    assert proctor("test", "--agent", "mine=agents.py:echo", "--json", "r.json").code == 0
    data = json.loads((project / "r.json").read_text())
    assert [(item["name"], item["agent"]) for item in data["suites"]] == [("desk", "mine")]
    assert "agents" not in data


@pytest.mark.parametrize(
    ("agents", "told"),
    [
        (["nop", "nop"], "two agents are called 'nop'"),
        (["a=nop", "a=oracle"], "two agents are called 'a'"),
        (["nop", '{"chat": {}}'], "described in JSON a name"),
        (["a=nop", "b=gone.py:agent"], "gone.py"),
    ],
)
def test_agents_that_cannot_be_told_apart_or_found_stop_everything(
    proctor: Command, suite: Command, agents: list[str], told: str
) -> None:
    suite(text=SUITE)
    done = proctor("test", *(part for agent in agents for part in ("--agent", agent)))
    assert (done.code, told in done.err) == (2, True)
    assert not Path(".proctor").exists()


@pytest.mark.parametrize("written", ["{good: agents.py:echo, lazy: nop}", "[agents.py:echo, nop]"])
def test_a_suite_names_several_agents(proctor: Command, suite: Command, written: str) -> None:
    suite(text=f"name: desk\nagents: {written}\n{CASES}")
    done = proctor("test")
    assert done.code == 1
    assert "worse: 7 of 7 cases broken" in done.out
    again = proctor("test", "--agent", "oracle")
    assert (again.code, "against" in again.out) == (0, False)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("agents: nop", "must be an object of names and agents"),
        ("agents: []", "must be an object of names and agents"),
        ("agents: [nop, nop]", "has an agent twice"),
        ("agents: {a: 3}", "must have a reference"),
        ("agents: {a: nop}\nagent: nop", "cannot be combined with 'agent'"),
    ],
)
def test_agents_of_a_suite_that_make_no_sense_are_named_with_their_line(
    proctor: Command, suite: Command, written: str, told: str
) -> None:
    suite(text=f"name: desk\n{written}\n{CASES}")
    done = proctor("test")
    assert (done.code, told in done.err, "suite.yaml:" in done.err) == (2, True, True)


def test_agents_of_one_run_are_compared_by_name(proctor: Command, suite: Command) -> None:
    suite(text=SUITE)
    proctor("test", "-q", "--agent", "good=agents.py:echo", "--agent", "lazy=nop")
    assert proctor("compare", "last@good", "last@lazy", "-q").out.startswith("Worse: 7 of 7 cases broken")
    assert proctor("compare", "last", "last", "-q").out.startswith("No change: all 14 cases")
    proctor("test", "-q")
    assert proctor("compare", "last~1@good", "last", "-q").out.startswith("No change: all 7 cases")
    case = proctor("compare", "last~1@good", "last~1@lazy", "--case", "c3")
    assert "first difference" in case.out


def test_a_run_of_several_agents_is_shown_rescored_and_written_again(proctor: Command, suite: Command) -> None:
    suite(text=SUITE)
    proctor("test", "-q", "--agent", "good=agents.py:echo", "--agent", "lazy=nop")
    assert "lazy compared with good: worse" in proctor("show").out
    assert "## desk: 2 arms" in proctor("show", "--md", "-").out
    assert "desk: 2 arms</h2>" in proctor("show", "--html", "-").out
    assert "lazy compared with good: worse" in proctor("rescore").out


def test_a_suite_with_several_agents_survives_being_written(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(f"name: desk\nagents: {{a: app.py:one, b: app.py:two}}\n{CASES}")
    [suite] = package.load(path)
    from proctor.cases.formats.native.writer import write_text

    copy = tmp_path / "copy.yaml"
    copy.write_text(write_text([suite]).text)
    [again] = package.load(copy)
    assert again.arms == suite.arms == {"a": "app.py:one", "b": "app.py:two"}


def test_python_asks_several_agents_too() -> None:
    suite = package.Suite("desk", (package.Case(id="c", turns=(package.Turn("hi", package.Expected(output="hi")),)),))
    run = package.run(suite, arms={"good": lambda text: text, "bad": lambda text: "no"})
    assert [(info.name, info.agent, info.source) for info in run.suites] == [
        ("desk [good]", "good", "desk"),
        ("desk [bad]", "bad", "desk"),
    ]


def test_the_history_of_a_suite_has_a_line_for_each_agent(proctor: Command, suite: Command) -> None:
    suite(text=SUITE)
    proctor("test", "-q", "--agent", "good=agents.py:echo", "--agent", "lazy=nop")
    first, second = proctor("runs", "--suite", "desk").out.splitlines()
    assert "good" in first
    assert "lazy" in second
