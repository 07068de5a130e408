from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import proctor
from proctor.api import RunParameters

VERBS = [
    getattr(proctor, name)
    for name in sorted(proctor.__all__)
    if name.islower() and inspect.isroutine(getattr(proctor, name))
]


def _name(verb: Callable[..., Any]) -> str:
    return verb.__name__


def test_run_and_its_asynchronous_form_take_the_same_parameters() -> None:
    assert inspect.signature(proctor.run).parameters == inspect.signature(proctor.run_async).parameters


@pytest.mark.parametrize("verb", VERBS, ids=_name)
def test_help_shows_the_real_parameters_of_a_public_function(verb: Callable[..., Any]) -> None:
    """Keywords that stand in a `TypedDict` are described one by one; no function takes just any."""
    parameters = inspect.signature(verb).parameters.values()

    assert verb.__doc__
    assert all(p.annotation is not p.empty for p in parameters if p.name != "self"), inspect.signature(verb)
    keywords = [p.annotation for p in parameters if p.kind is p.VAR_KEYWORD]
    assert all("RunParameters" in str(annotation) for annotation in keywords)


def test_every_parameter_of_run_is_described() -> None:
    assert [name for name in RunParameters.__annotations__ if f"`{name}`" not in str(proctor.run.__doc__)] == []


def test_every_parameter_of_the_evaluator_decorator_is_described() -> None:
    keywords = [p.name for p in inspect.signature(proctor.evaluator).parameters.values() if p.kind is p.KEYWORD_ONLY]

    assert {"family", "threshold", "report_only"} <= set(keywords)
    assert [name for name in keywords if f"- `{name}`: " not in str(proctor.evaluator.__doc__)] == []
