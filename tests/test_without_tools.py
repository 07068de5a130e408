"""Proctor without the tools that it ships: suites run and are reported, and the tools' commands are gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT
from without_tool import TOOLS, copy_repository, remove

from proctor.plugins import SHIPPED

pytestmark = [
    pytest.mark.process,
    pytest.mark.needs(*TOOLS),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git lists the files to copy"),
]

COMMANDS = ("mutate", "calibrate")
SUITE = "agent: echo.py:agent\ncases:\n  - {id: hello, input: hello, expected: hello}\n"


@pytest.fixture
def core(tmp_path: Path) -> Path:
    """The source of a copy without any tool."""
    copy_repository(tmp_path / "copy")
    for tool in TOOLS:
        remove(tool, tmp_path / "copy")
    return tmp_path / "copy" / "src"


def proctor(core: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(core)}
    command = [sys.executable, "-m", "proctor", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_script_knows_every_tool() -> None:
    assert {f"proctor.{folder.replace('/', '.')}.plugin" for folder in TOOLS.values()} == set(SHIPPED)


def test_without_the_tools_suites_run_and_are_reported(core: Path, tmp_path: Path) -> None:
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
    for command in COMMANDS:
        assert command not in listed.stdout.split()
        assert proctor(core, folder, command, "last").returncode == 2
