"""Hundreds of runs in one process: nothing of a run stays behind, except what the caller has."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor import Case, Suite

RUNS = 12


class Check:
    """An evaluator that is another one for each run, as one that holds data is."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, evaluable: Any) -> bool:
        return self.number >= 0


class Agent:
    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, question: str) -> str:
        return f"{question} {self.number}"


def runs_with(make: Any) -> int:
    """How many of the objects that `make` gives to a suite are alive after the runs."""
    references = []
    for number in range(RUNS):
        made, suite = make(number)
        assert proctor.run(suite).passed
        references.append(weakref.ref(made))
        del made, suite
    gc.collect()
    return sum(reference() is not None for reference in references)


def with_evaluator(number: int) -> tuple[Any, Suite]:
    check = Check(number)
    return check, Suite("s", [Case("a")], evaluators=[check], agent=lambda question: question)


def with_agent(number: int) -> tuple[Any, Suite]:
    agent = Agent(number)
    return agent, Suite("s", [Case("a", {"contains": ["a"]})], agent=agent)


def with_matcher(number: int) -> tuple[Any, Suite]:
    def is_small(value: int) -> bool:
        return value < number + 10

    def agent(question: str) -> proctor.Reply:
        return proctor.Reply("done", (proctor.ToolCall("count", {"to": 3}),))

    expected = {"tools": [{"name": "count", "args": {"to": is_small}}]}
    return is_small, Suite("s", [Case("a", expected)], agent=agent)


@pytest.mark.parametrize("make", [with_evaluator, with_agent, with_matcher])
def test_what_a_run_was_given_does_not_outlive_it(make: Any) -> None:
    assert runs_with(make) <= 1  # the last one may still be in a variable of a thread


def test_a_run_that_is_kept_can_be_scored_again_with_its_own_evaluator(tmp_path: Path) -> None:
    run = proctor.run(Suite("s", [Case("a")], evaluators=[Check(1)], agent=lambda question: question), store=tmp_path)
    gc.collect()

    assert run.rescore().passed


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files in /proc")
def test_runs_that_are_kept_hold_no_file_open(tmp_path: Path) -> None:
    suite = Suite("s", [Case("a", {"contains": ["a"]})], agent=lambda question: question)
    runs = [proctor.run(suite, store=tmp_path / str(number)) for number in range(RUNS)]

    assert _open_files_below(tmp_path) == []
    assert [trial.output for run in runs for trial in run.trials] == ["a"] * RUNS


def _open_files_below(folder: Path) -> list[str]:
    found = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{entry}"))
        except OSError:  # the one that lists the folder
            continue
    return [name for name in found if name.startswith(str(folder))]
