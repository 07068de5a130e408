"""The tables of docs/evaluators.md say what the code says: every name, every parameter, every default."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
import yaml
from repository import ROOT

from proctor.evaluators.registry import DEFAULT_THRESHOLD, SHIPPED, shipped

PAGE = ROOT / "docs" / "evaluators.md"
FILLED_IN = {"base", "client", "pairwise_scorer"}
"""Parameters that Proctor gives a value itself, or that only Python can give."""


def rows() -> dict[str, list[str]]:
    """The cells of each row that begins with a name in backticks, by that name."""
    found: dict[str, list[str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        name = re.fullmatch(r"`(\w+)`", cells[0]) if cells else None
        if name and name[1] in SHIPPED:
            assert name[1] not in found, f"{name[1]} has two rows"
            found[name[1]] = cells
    return found


def documented_parameters(cell: str) -> dict[str, Any]:
    """`pattern` has no default; `full: false` has one, written as in a file."""
    parameters: dict[str, Any] = {}
    for text in re.findall(r"`([^`]+)`", cell):
        name, colon, default = text.partition(":")
        parameters[name] = yaml.safe_load(default) if colon else inspect.Parameter.empty
    return parameters


def real_parameters(name: str) -> dict[str, Any]:
    parameters = inspect.signature(shipped(name)).parameters.values()
    return {
        p.name: list(p.default) if isinstance(p.default, tuple) else p.default
        for p in parameters
        if p.name not in FILLED_IN
    }


def test_every_shipped_evaluator_has_a_row_and_every_row_is_complete() -> None:
    assert set(rows()) == set(SHIPPED)
    assert {name: len(cells) for name, cells in rows().items()} == dict.fromkeys(SHIPPED, 5)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_row_shows_each_parameter_with_its_default(name: str) -> None:
    assert documented_parameters(rows()[name][1]) == real_parameters(name)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_row_shows_from_which_score_on_the_evaluator_passes(name: str) -> None:
    assert float(rows()[name][3]) == getattr(shipped(name), "default_threshold", DEFAULT_THRESHOLD)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_row_says_what_is_scored_and_when_it_is_skipped(name: str) -> None:
    score, skipped = rows()[name][2], rows()[name][4]
    assert score
    assert skipped
