"""Missing keys, programs and networks on the command line: exit code 4, never a failure, a regression or a baseline."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

AGENT = """
import os, urllib.request
from pathlib import Path

HERE = Path(__file__).parent


class Rejected(Exception):
    status_code = 401


def agent(question):
    problem = (HERE / "problem").read_text() if (HERE / "problem").exists() else ""
    if problem == "key":
        os.environ["SHOP_API_KEY"]
    if problem == "rejected":
        raise Rejected("wrong key")
    if problem == "bug":
        raise ValueError("a bug")
    return question
"""
SUITE = "agent: app.py:agent\nevaluators: [ExactMatch]\ncases:\n" + "".join(
    f"  - {{id: c{number}, input: q{number}, expected: q{number}}}\n" for number in range(30)
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOP_API_KEY", raising=False)
    (tmp_path / "app.py").write_text(AGENT)
    (tmp_path / "shop.yaml").write_text(SUITE)
    return tmp_path


@pytest.mark.parametrize("problem", ["key", "rejected"])
def test_a_missing_key_is_not_a_regression(project: Path, proctor: Command, problem: str) -> None:
    for _ in range(3):
        assert proctor("test", "shop.yaml", "-q").code == 0
    assert proctor("baseline", "accept").code == 0
    before = {path: path.read_bytes() for path in project.glob("*baseline*")}
    assert before

    (project / "problem").write_text(problem)
    done = proctor("test", "shop.yaml", "--gate", "--report", "json=gate.json")
    assert done.code == 4, done.out
    assert "REGRESSION" not in done.out
    assert "would fail the same way" in done.out
    gate = json.loads((project / "gate.json").read_text())["gate"]
    assert gate["verdict"] == "error"

    proctor("baseline", "accept")
    assert {path: path.read_bytes() for path in project.glob("*baseline*")} == before

    (project / "problem").write_text("bug")
    assert proctor("test", "shop.yaml", "--gate").code == 1


@pytest.mark.process
def test_a_program_that_prints_that_nobody_is_logged_in_is_an_error(project: Path, proctor: Command) -> None:
    program = project / "claude.py"
    program.write_text("print('Not logged in · Please run /login'); raise SystemExit(1)")
    agent = json.dumps({"command": [sys.executable, "claude.py"]})
    (project / "cli.yaml").write_text(f"agent: {agent}\nevaluators: [ExactMatch]\ncases: [{{input: a, expected: a}}]\n")
    done = proctor("test", "cli.yaml")
    assert done.code == 4, done.out
    assert "Not logged in" in done.out


def test_an_unknown_run_is_a_usage_mistake(project: Path, proctor: Command) -> None:
    assert proctor("test", "shop.yaml", "-q").code == 0
    assert proctor("show", "no-such-run").code == 2
