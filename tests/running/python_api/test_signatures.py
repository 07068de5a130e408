from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import proctor

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
    """Free keywords are left to those that hand on what the user's own function takes."""
    parameters = inspect.signature(verb).parameters.values()

    assert verb.__doc__
    assert all(p.annotation is not p.empty for p in parameters if p.name != "self"), inspect.signature(verb)
    assert not [p.name for p in parameters if p.kind is p.VAR_KEYWORD]
