"""`from proctor.evaluators import ...`: every evaluator is listed, typed, and loaded when it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import proctor
from proctor import evaluators
from proctor.evaluators.registry import SHIPPED, shipped


def test_the_package_lists_every_evaluator_that_a_file_may_name() -> None:
    assert set(SHIPPED) <= set(dir(evaluators))


@pytest.mark.parametrize("name", evaluators.__all__)
def test_every_listed_name_can_be_imported(name: str) -> None:
    value = getattr(evaluators, name)
    assert name not in SHIPPED or value is shipped(name)
    assert getattr(proctor, name, value) is value


def test_type_checkers_see_the_names_that_are_listed() -> None:
    tree = ast.parse(Path(evaluators.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    typed = [alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(typed) == sorted(evaluators.__all__) == dir(evaluators)


def test_a_name_that_is_no_evaluator_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Contians'"):
        evaluators.Contians  # noqa: B018


def test_an_evaluator_is_loaded_without_the_others() -> None:
    script = "import sys; from proctor.evaluators import Contains; print('proctor.evaluators.rag' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
