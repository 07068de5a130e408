"""Suites in Python files: `proctor test shop.py` and `proctor test shop.py:suite`, with store, resume and compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandResult

MODULE = """
from proctor import Case, Expected, Keywords, Suite, Turn

def case(name, word):
    return Case(id=name, turns=(Turn(input=name, expected=Expected(contains=Keywords(any=(word,)))),))

def agent(question):
    return "It is shipped."

good = Suite(name="good", agent=agent, cases=(case("a", "shipped"),))
bad = Suite(name="bad", agent=agent, cases=(case("b", "sorry"),))
also_good = good
"""


Command = Callable[..., CommandResult]


@pytest.fixture(autouse=True)
def shop(project: Path) -> None:
    (project / "shop.py").write_text(MODULE, encoding="utf-8")


def test_every_suite_of_a_file_runs_once(proctor: Command) -> None:
    done = proctor("test", "shop.py")
    assert done.code == 1
    assert "2 trials" in done.out


def test_one_suite_of_a_file_runs(proctor: Command) -> None:
    assert proctor("test", "shop.py:good").code == 0
    assert proctor("test", "shop.py:bad").code == 1


def test_a_stored_run_of_a_python_suite_is_shown_scored_again_and_compared(proctor: Command) -> None:
    assert proctor("test", "shop.py").code == 1
    assert "sorry" in proctor("show", "last").out
    assert proctor("rescore", "last").code == 1
    assert proctor("compare", "last~1", "last").code == 0
    assert "1 trial" in proctor("test", "shop.py", "--lf").out


def test_a_file_without_suites_says_what_to_write(proctor: Command, project: Path) -> None:
    (project / "none.py").write_text("x = 1\n", encoding="utf-8")
    done = proctor("test", "none.py")
    assert done.code == 2
    assert "none.py: defines no suite; write name = Suite(...)" in done.err


def test_a_file_that_cannot_be_loaded_is_a_problem_with_its_line(proctor: Command, project: Path) -> None:
    (project / "broken.py").write_text("x = 1\nraise ValueError('no key')\n", encoding="utf-8")
    done = proctor("test", "broken.py")
    assert done.code == 2
    assert "broken.py:2" in done.err
    assert "no key" in done.err


@pytest.mark.process
def test_workers_answer_for_the_agents_of_a_python_file(proctor: Command, project: Path) -> None:
    """The file holds a lock and tools, which cannot be sent to another process."""
    (project / "words.py").write_text("def shout(text):\n    return text.upper()\n", encoding="utf-8")
    (project / "busy.py").write_text(
        """
import threading
from words import shout
from proctor import Case, Suite, tool

lock = threading.Lock()

@tool
def look(key):
    return key

def agent(question):
    with lock:
        return shout(look(question))

def is_a(value):
    return shout(value) == "A"

expected = {"output": "A", "tools": [{"name": "look", "args": {"key": is_a}}]}
checks = [lambda output, expected: output == expected]
function = Suite("function", [Case("a", expected)], agent=agent, evaluators=checks)
anonymous = Suite("anonymous", [Case("a", expected)], agent=lambda question: shout(look(question)))
""",
        encoding="utf-8",
    )
    done = proctor("test", "busy.py", "--workers", "1")
    assert "2 trials" in done.out, done.err
    assert done.code == 0
