"""The `proctor` command in a folder of its own, called in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def commanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Runs `proctor` with arguments; gives back how it ended and all that it said, which is never a traceback."""
    from proctor.cli import main

    for name in list(os.environ):
        if name.startswith(("PROCTOR_", "HOLODECK_", "GITHUB_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["proctor", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert "Traceback" not in said.out + said.err, said
        return int(ended.value.code or 0), said.out + said.err

    return run
