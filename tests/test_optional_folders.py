"""Mutation testing and calibration are folders of their own: without them, everything else works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

pytestmark = pytest.mark.process

OPTIONAL = {"mutation": "mutate", "calibration": "calibrate"}
"""Each folder, and the command that goes with it."""
SUITE = "agent: echo.py:agent\ncases:\n  - {id: hello, input: hello, expected: hello}\n"


@pytest.fixture
def core(tmp_path: Path) -> Path:
    """A copy of the package without the optional folders and their lines."""
    source = ROOT / "src" / "proctor"
    shutil.copytree(source, tmp_path / "src" / "proctor", ignore=shutil.ignore_patterns("__pycache__", *OPTIONAL))
    declarations = tmp_path / "src" / "proctor" / "plugins.py"
    lines = declarations.read_text(encoding="utf-8").splitlines(keepends=True)
    named = [line for line in lines if not any(f'"proctor.{folder}.plugin"' in line for folder in OPTIONAL)]
    assert len(lines) - len(named) == len(OPTIONAL), "each folder has one line"
    declarations.write_text("".join(named), encoding="utf-8")
    return tmp_path / "src"


def proctor(core: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(core)}
    command = [sys.executable, "-m", "proctor", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_without_the_optional_folders_suites_run_and_are_reported(core: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "echo.py").write_text("def agent(question):\n    return question\n", encoding="utf-8")
    (folder / "suite.yaml").write_text(SUITE, encoding="utf-8")

    reports = ("--html", "run.html", "--md", "run.md", "--json", "run.json", "--junit", "run.xml")
    tested = proctor(core, folder, "test", "suite.yaml", *reports)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert all((folder / name).stat().st_size for name in reports[1::2])
    shown = proctor(core, folder, "show", "last")
    assert shown.returncode == 0, shown.stderr
    listed = proctor(core, folder, "--help")
    assert listed.returncode == 0, listed.stderr
    for command in OPTIONAL.values():
        assert command not in listed.stdout.split()
        assert proctor(core, folder, command, "last").returncode == 2
