"""A suite of one case for the tests of the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def suite(project: Path) -> Callable[..., Path]:
    """Write a suite of one case, scored by a check, and return its path."""

    def write(name: str = "suite.yaml", *, agent: str = "echo", check: str = "good", text: str | None = None) -> Path:
        path = project / name
        default = f"agent: agents.py:{agent}\ncases:\n  - id: one\n    input: hi\n    evaluators: [checks.py:{check}]\n"
        path.write_text(default if text is None else text, encoding="utf-8")
        return path

    return write
