"""A folder to work in and the `proctor` command, called in this process through the same door as from a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

AGENTS = """
import sys
import time


def echo(question):
    return question


def noisy(question):
    print("the agent prints")
    return question


def raises(question):
    raise ValueError("the agent has a bug")


def hangs(question):
    time.sleep(3600)


def wrong(question):
    return object()


def huge(question):
    return "x" * 10_000_000


def surrogate(question):
    return "half a pair: \\ud800"


def unicode(question):
    return "naïve — 東京"
"""

CHECKS = """
import time


def good(evaluable):
    return 1.0


def bad(evaluable):
    return 0.0


def raises(evaluable):
    raise ValueError("the check has a bug")


def nan(evaluable):
    return float("nan")


def seven(evaluable):
    return 7


def hangs(evaluable):
    time.sleep(3600)


def words(evaluable):
    return "very good"


def pending(evaluable):
    from proctor import EvaluationPending

    raise EvaluationPending("a person has to look")
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended; a traceback never comes out of one."""

    code: int
    out: str
    err: str

    def __post_init__(self) -> None:
        assert "Traceback" not in self.out + self.err, self.out + self.err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with agents and checks to name, and nothing in the environment that Proctor listens to."""
    for name in list(os.environ):
        if name.startswith(("PROCTOR_", "GITHUB_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "agents.py").write_text(AGENTS, encoding="utf-8")
    (tmp_path / "checks.py").write_text(CHECKS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def proctor(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs `proctor` with arguments, in this process."""
    from proctor.cli import main

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["proctor", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Ended(int(ended.value.code or 0), said.out, said.err)

    return run


@pytest.fixture
def shell(here: Path) -> Callable[..., Ended]:
    """Runs `python -m proctor` as a process of its own; what it writes is taken as bytes and read as UTF-8."""

    def run(*arguments: object, **environment: str) -> Ended:
        command = [sys.executable, "-m", "proctor", *map(str, arguments)]
        done: Any = subprocess.run(
            command, capture_output=True, timeout=60, cwd=here, env={**os.environ, **environment}, check=False
        )
        out, err = (stream.decode("utf-8", "backslashreplace") for stream in (done.stdout, done.stderr))
        return Ended(done.returncode, out, err)

    return run


@pytest.fixture
def suite(here: Path) -> Callable[..., Path]:
    """Writes a suite of one case, scored by a check, and returns its path."""

    def write(name: str = "suite.yaml", *, agent: str = "echo", check: str = "good", text: str | None = None) -> Path:
        path = here / name
        default = f"agent: agents.py:{agent}\ncases:\n  - id: one\n    input: hi\n    evaluators: [checks.py:{check}]\n"
        path.write_text(default if text is None else text, encoding="utf-8")
        return path

    return write
