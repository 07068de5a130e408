"""When an agent's own files last changed: prompts and settings make it another agent as much as code does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ENDINGS = frozenset(
    ".py .md .txt .j2 .jinja .jinja2 .prompt .mustache .tmpl .toml .ini .cfg .yaml .yml .json .env .xml".split()
)
NOT_THE_AGENTS = ("test_", "conftest.", "pytest.", "tox.", "setup.cfg")
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "build", "dist", "tests", "test"})
MOST_FILES = 5_000
"""No more are looked at: beyond that a folder is more than an agent."""


def last_change(agent: Any) -> float:
    """The latest moment at which a file of the agent's folder was written; 0 where it has no folder of its own.

    Tests and suites do not count: they say what is asked, not who answers.
    """
    folder = _home_of(agent)
    return 0.0 if folder is None else max(map(_written_at, _files(folder)), default=0.0)


def _home_of(agent: Any) -> Path | None:
    for name in ("function", "kind", "target"):
        target = getattr(agent, name, None)
        owner = target if hasattr(target, "__module__") else type(target)
        file = getattr(sys.modules.get(getattr(owner, "__module__", None) or ""), "__file__", None)
        if target is not None and file and "site-packages" not in Path(file).parts:
            return Path(file).parent
    return None


def _files(folder: Path) -> Iterator[Path]:
    left = MOST_FILES
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith(".")]
        for name in names:
            if _may_be_the_agents(name):
                left -= 1
                if left < 0:
                    return
                yield Path(place, name)


def _may_be_the_agents(name: str) -> bool:
    if name.startswith(NOT_THE_AGENTS) or name.endswith((".test.json", ".evalset.json", "_test.py")):
        return False
    return ".proctor." not in name and (os.path.splitext(name)[1] in ENDINGS or name.startswith(".env"))  # noqa: PTH122


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
