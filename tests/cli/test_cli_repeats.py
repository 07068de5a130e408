"""A suite of 25 cases with five repeats, as people live with it: each failing case is told once, everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

DESK = """
import itertools

import proctor

COUNTS = {f"A-{n}": itertools.count() for n in range(25)}


@proctor.tool
def order_status(order):
    return "lost"


def agent(order):
    number, time = int(order[2:]), next(COUNTS[order])
    status = order_status(order)
    if number in (3, 4, 5):
        raise KeyError("no such customer")
    if number < 12 or (number == 12 and time % 2):
        return f"Your order is {status}."
    return "Sorry, you get a refund."
"""

FAILING = [f"order-{n}" for n in range(13)]


@pytest.fixture
def desk(project: Path, suite: Command) -> Path:
    (project / "desk.py").write_text(DESK, encoding="utf-8")
    cases = "".join(f"  - {{id: order-{n}, input: A-{n}, expected: {{contains: [refund]}}}}\n" for n in range(24))
    skipped = "  - {id: order-24, input: A-24, expected: {contains: [refund]}, skip: no such order yet}\n"
    suite(text=f"name: shop\nagent: desk.py:agent\ncases:\n{cases}{skipped}")
    return project


def heads(text: str, word: str) -> list[str]:
    return re.findall(rf"^{word} +shop/(order-\d+)", text, re.MULTILINE)


def test_each_failing_case_is_printed_once_and_named_in_the_step_summary(
    desk: Path, proctor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "step.md")

    ended = proctor("test", "--repeat", "5", "--md", "report.md")

    assert ended.code == 1
    assert sorted(heads(ended.out, "FAIL")) == sorted(FAILING)
    assert heads(ended.out, "SKIP") == ["order-24"]
    assert ended.out.count("no such order yet") == 1
    assert "FAIL   shop/order-12 3/5 passed" in ended.out
    page, report = ((desk / name).read_text(encoding="utf-8") for name in ("step.md", "report.md"))
    for case in FAILING:
        assert page.count(f"**shop/{case}** ") == 1
        assert len(re.findall(rf"^#### {case} ❌ FAILED \d/5 passed", report, re.MULTILINE)) == 1
    assert "**shop/order-12** 3/5 passed (flaky)" in page


def test_a_run_that_is_shown_again_looks_the_same_and_can_be_narrowed_to_what_failed(
    desk: Path, proctor: Command
) -> None:
    proctor("test", "--repeat", "5", "-q")

    whole, failed = proctor("show").out, proctor("show", "--failed").out

    assert sorted(heads(whole, "FAIL")) == sorted(FAILING)
    assert len(heads(whole, "PASS")) == 11
    assert sorted(heads(failed, "FAIL")) == sorted(FAILING)
    assert not heads(failed, "PASS")
    assert "FAIL   shop/order-12 3/5 passed" in failed


def test_the_end_of_the_run_lists_every_failing_case_with_how_often_it_failed(desk: Path, proctor: Command) -> None:
    out = proctor("test", "--repeat", "5").out
    end = out[out.index("25 cases:") :]

    for case in FAILING:
        assert len(re.findall(rf"\b{case}\b", end)) == 1
    assert re.search(r"^  FAIL  order-12 +3/5 passed  FLAKY 3/5$", end, re.MULTILINE)
