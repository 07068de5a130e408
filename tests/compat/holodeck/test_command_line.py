"""What HoloDeck promises of its command line and does not hold: tests at once, and a time limit that limits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

DESK = """
import asyncio
import threading
import time

met = threading.Barrier(3)
asked = threading.Event()
last = threading.Event()


def echo(question):
    return question


def backwards(question):
    '''The first test is answered last.'''
    if question == "first":
        last.wait(30)
    if question == "last":
        last.set()
    return "line one of " + question + chr(10) + "line two of " + question


def sleeps(question):
    if question == "slow":
        time.sleep(3)
    return question


async def awaits(question):
    if question == "slow":
        await asyncio.sleep(3)
    return question


def rings(question):
    if question == "second":
        asked.set()
    return question


def meets(context):
    '''Passes only where three of its kind are at work at the same time.'''
    met.wait(30)
    return True


def waits_for_the_second(context):
    '''Passes only where an agent can be asked while this is at work.'''
    return asked.wait(30)
"""


def command(folder: Path, *arguments: str, **agent: Any) -> subprocess.CompletedProcess[str]:
    (folder / "desk.py").write_text(DESK)
    (folder / "agent.yaml").write_text(json.dumps({"name": "desk", **agent}))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PROCTOR_", "HOLODECK_"))}
    told = [sys.executable, "-m", "proctor", "test", "agent.yaml", *arguments]
    done = subprocess.run(
        told, cwd=folder, env={**environment, "HOME": str(folder)}, capture_output=True, text=True, timeout=120
    )
    assert "Traceback" not in done.stdout + done.stderr, done
    return done


def named_tests(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "input": name, "ground_truth": name} for name in names]


def graded_by(function: str) -> dict[str, Any]:
    return {"metrics": [{"type": "code", "grader": f"desk.py:{function}"}]}


EQUALITY = {"metrics": [{"type": "standard", "metric": "equality"}]}


def test_tests_at_once_keep_their_blocks_whole_and_the_report_in_order(tmp_path: Path) -> None:
    names = ["first", *(f"middle-{number}" for number in range(10)), "last"]
    done = command(
        tmp_path,
        "--json",
        "report.json",
        "--md",
        "report.md",
        agent="desk.py:backwards",
        evaluations=EQUALITY,
        test_cases=named_tests(*names),
        execution={"parallel_test_cases": 12},
    )
    assert done.returncode == 1, done
    blocks = done.stdout.split("\n\n")
    told = [block for block in blocks if block.lstrip().startswith("FAIL ")]
    assert len(told) == len(names)
    for name in names:
        [block] = [block for block in told if f"desk/{name} " in block]
        assert f"line one of {name}" in block
        assert not [other for other in names if other != name and f"line two of {other}" in block]
    report = json.loads((tmp_path / "report.json").read_text())
    assert [trial["case"]["id"] for trial in report["trials"]] == names
    markdown = (tmp_path / "report.md").read_text()
    places = [markdown.index(f"line one of {name}") for name in names]
    assert places == sorted(places)


def test_graders_that_block_do_not_wait_for_each_other(tmp_path: Path) -> None:
    done = command(
        tmp_path,
        agent="desk.py:echo",
        evaluations=graded_by("meets"),
        test_cases=named_tests("a", "b", "c"),
        execution={"parallel_test_cases": 3},
    )
    assert done.returncode == 0, done


def test_a_grader_that_blocks_keeps_no_agent_from_being_asked(tmp_path: Path) -> None:
    done = command(
        tmp_path,
        agent="desk.py:rings",
        evaluations=graded_by("waits_for_the_second"),
        test_cases=named_tests("first", "second"),
        execution={"parallel_test_cases": 2},
    )
    assert done.returncode == 0, done


@pytest.mark.parametrize("agent", ["sleeps", "awaits"])
@pytest.mark.parametrize("parallel", [1, 4])
def test_a_timeout_ends_a_slow_test_and_no_other(tmp_path: Path, agent: str, parallel: int) -> None:
    done = command(
        tmp_path,
        "--timeout",
        "1",
        agent=f"desk.py:{agent}",
        evaluations=EQUALITY,
        test_cases=named_tests("one", "slow", "two"),
        execution={"parallel_test_cases": parallel},
    )
    assert done.returncode == 1, done
    assert done.stdout.count("the agent gave no answer within 1 s") == 1
    assert [f"PASS   desk/{name} " in done.stdout for name in ("one", "slow", "two")] == [True, False, True]


def test_what_the_command_line_says_of_time_beats_the_file(tmp_path: Path) -> None:
    slow = {"agent": "desk.py:sleeps", "evaluations": EQUALITY, "test_cases": named_tests("slow")}
    assert command(tmp_path, **slow, execution={"llm_timeout": 1}).returncode == 1
    assert command(tmp_path, "--timeout", "60", **slow, execution={"llm_timeout": 1}).returncode == 0
