"""A JSON report says what a program needs to mend a failure: stable id, place, first divergence, and the command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

AGENT = """
import proctor

ANSWERED = []


@proctor.tool
def refund(order):
    return "done"


def agent(question):
    ANSWERED.append(question)
    if question == "crash":
        raise ValueError("no such order")
    if question == "flaky":
        return "yes" if ANSWERED.count(question) % 2 else "no"
    if question == "A-18":
        refund("A-17")
    return "fine"
"""
SUITE = """\
name: shop
cases:
  - {id: fine, input: hello, expected: fine}
  - id: it's lost
    input: A-18
    expected:
      tools: [{name: refund, args: {order: A-18}}]
  - {id: crash, input: crash, expected: fine}
  - {id: words, input: hello, expected: goodbye}
  - {id: flaky, input: flaky, repeat: 2, expected: "yes"}
"""


@pytest.fixture
def failures(project: Path, proctor: Callable[..., Any]) -> dict[str, Any]:
    """By id, what a report says of the cases that did not pass."""
    (project / "shop.py").write_text(AGENT, encoding="utf-8")
    (project / "shop.yaml").write_text(SUITE, encoding="utf-8")
    ended = proctor("test", "shop.yaml", "--agent", "shop.py:agent", "--json", "report.json")
    assert ended.code == 1
    found = json.loads((project / "report.json").read_text(encoding="utf-8"))["failures"]
    return {item["id"]: item for item in found}


def test_a_failure_has_a_stable_id_and_the_line_of_its_case(failures: dict[str, Any]) -> None:
    assert {name: (item["file"], item["line"]) for name, item in failures.items()} == {
        "shop/it's lost": ("shop.yaml", 4),
        "shop/crash": ("shop.yaml", 8),
        "shop/words": ("shop.yaml", 9),
        "shop/flaky": ("shop.yaml", 10),
    }


def test_the_first_divergence_is_the_tool_call_the_crash_or_the_answer(failures: dict[str, Any]) -> None:
    wrong_call = failures["shop/it's lost"]["divergence"]

    assert (wrong_call["turn"], wrong_call["kind"]) == (1, "call differs")
    assert "A-18" in wrong_call["expected"]
    assert "A-17" in wrong_call["got"]
    assert failures["shop/crash"]["divergence"]["kind"] == "no answer"
    assert "no such order" in failures["shop/crash"]["divergence"]["got"]
    assert failures["shop/words"]["divergence"] == {
        "turn": 1,
        "kind": "score of ExactMatch",
        "expected": "goodbye",
        "got": "fine",
    }


def test_a_repeated_case_is_one_failure_that_says_whether_it_is_flaky(failures: dict[str, Any]) -> None:
    flaky = failures["shop/flaky"]

    assert flaky["flaky"] is True
    assert flaky["counts"] == {"passed": 1, "failed": 1}
    assert [reason["trials"] for reason in flaky["reasons"]] == [1]


def test_the_command_runs_just_that_case_with_the_same_agent(
    failures: dict[str, Any], project: Path, proctor: Callable[..., Any]
) -> None:
    for item in failures.values():
        words = shlex.split(item["reproduce"])
        assert words[0] == "proctor"
        proctor(*words[1:], "--json", "again.json")
        again = json.loads((project / "again.json").read_text(encoding="utf-8"))
        assert {trial["case"]["id"] for trial in again["trials"]} == {item["case"]}
        assert again["suites"][0]["agent"] == "shop.py:agent"


def test_a_run_that_is_shown_again_says_the_same(failures: dict[str, Any], proctor: Callable[..., Any]) -> None:
    shown = json.loads(proctor("show", "last", "--json", "-").out)

    assert {item["id"]: item for item in shown["failures"]} == failures


def test_a_run_without_failures_has_none(project: Path, proctor: Callable[..., Any]) -> None:
    (project / "fine.yaml").write_text("name: f\nagent: oracle\ncases: [{id: a, input: q, expected: a}]\n")
    proctor("test", "fine.yaml", "--json", "report.json")

    assert "failures" not in json.loads((project / "report.json").read_text(encoding="utf-8"))


def test_a_run_from_a_file_cannot_name_the_agent_of_the_command(
    failures: dict[str, Any], project: Path, proctor: Callable[..., Any]
) -> None:
    assert "--agent shop.py:agent" in failures["shop/crash"]["reproduce"]
    proctor("export", "last", "--output", "run.jsonl")
    text = (project / "run.jsonl").read_text(encoding="utf-8")
    (project / "foreign.jsonl").write_text(
        text.replace('"agent":"shop.py:agent"', '"agent":"cmd:evil"'), encoding="utf-8"
    )
    shown = json.loads(proctor("show", "foreign.jsonl", "--json", "-").out)

    assert [item["reproduce"] for item in shown["failures"] if "--agent" in item["reproduce"]] == []
