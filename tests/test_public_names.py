"""`from proctor import ...`: every public name is there, typed, and costs nothing until it is used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import proctor
from proctor import _HOMES

HOME_OF = {name: f"proctor.{home}" for home, names in _HOMES.items() for name in names.split()}
LAZY = [name for name in proctor.__all__ if name != "__version__"]


def _typed() -> dict[str, str]:
    """The names that type checkers see, and where they think these live."""
    tree = ast.parse(Path(proctor.__file__).read_text(encoding="utf-8"))
    [block] = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    return {
        alias.asname or alias.name: str(statement.module)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


@pytest.mark.parametrize("name", proctor.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(proctor, name) is not None


def test_what_is_public_what_is_lazy_and_what_is_typed_are_the_same() -> None:
    assert set(LAZY) == set(HOME_OF) == set(_typed())
    assert _typed() == HOME_OF
    assert len(set(proctor.__all__)) == len(proctor.__all__)
    assert dir(proctor) == sorted(proctor.__all__)


@pytest.mark.parametrize("name", LAZY)
def test_every_public_name_lives_where_it_is_said_to(name: str) -> None:
    value = getattr(proctor, name)
    assert getattr(importlib.import_module(HOME_OF[name]), name) is value
    home = getattr(value, "__module__", None)
    within_evaluators = HOME_OF[name] == "proctor.evaluators" and str(home).startswith("proctor.evaluators.")
    assert home is None or home == HOME_OF[name] or within_evaluators or name == "UNSET"


def test_every_shipped_evaluator_is_public() -> None:
    from proctor.evaluators.registry import SHIPPED

    assert set(SHIPPED) - {"CodeGrader"} <= set(proctor.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'proctor' has no attribute 'nope'"):
        _ = proctor.nope  # type: ignore[attr-defined]


def test_a_star_import_gives_every_public_name() -> None:
    script = "from proctor import *; import proctor; assert all(name in globals() for name in proctor.__all__)"
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True, timeout=60)


def test_suites_are_run_from_paths_and_objects_alike(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("agent: oracle\ncases: [{id: a, input: q, expected: a}]\n")
    other = tmp_path / "t.yaml"
    other.write_text("agent: oracle\ncases: [{id: b, input: q, expected: b}]\n")
    [suite] = proctor.load(path)
    for given in (path, str(path), suite, [suite], [path]):
        assert [trial.case.id for trial in proctor.run(given).trials] == ["a"]
    mixed = proctor.run([suite, other])
    assert [trial.case.id for trial in mixed.trials] == ["a", "b"]
    assert proctor.judge(mixed).exit_code == 0
