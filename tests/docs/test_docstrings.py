"""The examples in the docstrings of the Python API are executed, in a folder with a small suite."""

from __future__ import annotations

import asyncio
import doctest
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.api import RunParameters

AGENT = """
def agent(question):
    return "It is shipped." if "A-17" in question else "Which order do you mean?"
"""
SUITE = """
name: shop
agent: shop.py:agent
cases:
  - {id: shipped, input: Where is A-17?, expected: {contains: shipped}}
  - {id: lost, input: A-18 never came., expected: {contains: refund}}
"""
DOCUMENTED: list[Callable[..., Any]] = [
    proctor.load,
    proctor.run,
    proctor.run_async,
    proctor.compare,
    proctor.Run.to_dicts,
    proctor.Run.to_pandas,
    proctor.Comparison.to_dicts,
]


@pytest.mark.parametrize("function", DOCUMENTED, ids=lambda function: function.__qualname__)
def test_the_example_in_a_docstring_does_what_it_shows(
    function: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop.py").write_text(AGENT, encoding="utf-8")
    Path("shop.yaml").write_text(SUITE, encoding="utf-8")
    example = doctest.DocTestParser().get_doctest(
        inspect.getdoc(function) or "", {"proctor": proctor, "asyncio": asyncio}, function.__qualname__, None, 0
    )
    told: list[str] = []

    assert example.examples
    assert doctest.DocTestRunner().run(example, out=told.append).failed == 0, "".join(told)


@pytest.mark.parametrize("function", [proctor.run, proctor.compare, proctor.load], ids=lambda f: f.__name__)
def test_every_parameter_is_documented(function: Callable[..., Any]) -> None:
    told = set(re.findall(r"`(\w+)`", inspect.getdoc(function) or ""))

    names = set(inspect.signature(function).parameters) - {"suites"}
    if "parameters" in names:
        names = names - {"parameters"} | set(RunParameters.__annotations__)
    assert names <= told
