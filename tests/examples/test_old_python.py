"""`make demo` on a Python that is too old."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from repository import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.mark.parametrize("goal", ["demo", "test"])
def test_a_python_that_is_too_old_is_named_in_one_line(tmp_path: Path, goal: str) -> None:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    old = tmp_path / "old-python"
    old.write_text('#!/bin/sh\necho "is 3.10.13"\n')
    old.chmod(0o755)
    done = subprocess.run(["make", goal, f"PYTHON={old}"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert f"Proctor needs Python 3.11 or newer, and {old} is 3.10.13; name another one: make {goal} PYTHON=" in line
    assert not (tmp_path / ".venv").exists()
