"""No key of an agent.yaml is taken in silence: each has an effect that a test shows, is refused, or is warned of."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from declared_projects import project
from key_table import REFERENCE, REFUSED, WARNED, shown
from key_walk import NOWHERE, keys_read

from proctor.base.errors import InvalidSuite
from proctor.cases.formats import holodeck
from proctor.cases.formats.loading import load
from proctor.running.engine.plan import RunOptions, make_plan

TESTS = Path(__file__).parents[1]
SHOWN = shown()
PLACES = sorted({(level, key, place) for (level, key), places in SHOWN.items() for place in places})


def test_every_key_that_is_read_or_that_holodeck_has_is_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = {(level, key) for level, keys in keys_read(tmp_path, monkeypatch).items() for key in keys}
    theirs = {(level, key) for level, keys in REFERENCE.items() for key in keys.split()}
    table = {*SHOWN, *REFUSED, *WARNED}
    assert sorted(theirs - read) == sorted(
        ("tools.hierarchical_document", key)
        for key in ("source", "chunking_strategy", "search_mode", "top_k", "enable_reranking")
    ), "these alone are refused unread, with the tool that has them"
    assert sorted((read | theirs) - table) == [], "keys of which nobody says what becomes of them"
    assert sorted(table - read - theirs) == [], "keys that nobody has"


@functools.cache
def source_of(place: str) -> str:
    """The text of one test, with its parameters."""
    file, _, name = place.partition("::")
    assert name.startswith("test_")
    text = (TESTS / file).read_text(encoding="utf-8")
    [found] = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name]
    first = min([found.lineno, *(decorator.lineno for decorator in found.decorator_list)])
    return "\n".join(text.splitlines()[first - 1 : found.end_lineno])


@pytest.mark.parametrize(("level", "key", "place"), PLACES)
def test_the_test_that_shows_the_effect_of_a_key_is_there_and_speaks_of_it(level: str, key: str, place: str) -> None:
    assert re.search(rf"\b{key}\b", source_of(place)), f"{place} says nothing of {level}.{key}"


def problems_and_warnings(folder: Path, more: dict[str, Any]) -> tuple[list[str], list[str]]:
    (folder / "faq.md").write_text("A refund takes 30 days.")
    [suite] = load([project(folder, NOWHERE, **more)])
    try:
        make_plan([suite], RunOptions())
    except InvalidSuite as error:
        return [str(problem) for problem in error.problems], [str(warning) for warning in suite.warnings]
    return [], [str(warning) for warning in suite.warnings]


@pytest.mark.parametrize(("level", "key"), sorted(REFUSED))
def test_a_key_that_cannot_be_honoured_is_refused_with_the_reason(tmp_path: Path, level: str, key: str) -> None:
    more, complaint = REFUSED[level, key]
    found, _ = problems_and_warnings(tmp_path, more)
    assert any(complaint in problem for problem in found), found


@pytest.mark.parametrize(("level", "key"), sorted(WARNED))
def test_a_key_that_changes_nothing_in_a_test_is_warned_of(tmp_path: Path, level: str, key: str) -> None:
    more, complaint = WARNED[level, key]
    found, warnings = problems_and_warnings(tmp_path, more)
    assert found == []
    assert any(key in warning and complaint in warning for warning in warnings), warnings


def test_the_author_is_kept_when_a_file_is_written_anew(tmp_path: Path) -> None:
    [suite] = load([project(tmp_path, NOWHERE, author="Ada")])
    assert yaml.safe_load(holodeck.write([suite]).text)["author"] == "Ada"
