"""A project with hostile agents in it. The command under attack runs as a process of its own, as CI runs it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

AGENTS = Path(__file__).with_name("hostile_agents.py")


@pytest.fixture
def project(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONUTF8", "1")
    (project / "agents.py").write_bytes(AGENTS.read_bytes())
    return project


@pytest.fixture
def environment(project: Path) -> dict[str, str]:
    """The environment for processes that a test starts by itself."""
    return dict(os.environ)


@pytest.fixture
def suite(project: Path) -> Callable[..., Path]:
    """Write a suite of `count` cases `c1`, `c2`, … whose input is also the expected answer."""

    def write(agent: str, count: int = 4, evaluators: str = "[ExactMatch]", settings: str = "{parallel: 1}") -> Path:
        cases = "".join(f"  - {{id: c{n}, input: q{n}, expected: q{n}}}\n" for n in range(1, count + 1))
        head = f"name: desk\nagent: agents.py:{agent}\nevaluators: {evaluators}\nsettings: {settings}\ncases:\n"
        path = project / "suite.yaml"
        path.write_text(head + cases, encoding="utf-8")
        return path

    return write
