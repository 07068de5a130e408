"""The state of the git repository of a run: commit, branch, and whether files were changed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

STATUS_SECONDS = 2.0
"""Time limit of `git status`; if it takes longer, the run is stored without a state."""


@dataclass(frozen=True, slots=True)
class GitState:
    """The state of the repository when a run began."""

    commit: str | None = None
    """`None` before the first commit."""
    branch: str | None = None
    """`None` if the head is detached."""
    dirty: bool | None = None
    """Whether files that git tracks differ from the commit; None in older runs, which do not store it."""


def git_state(folder: Path) -> GitState | None:
    """Commit, branch and whether tracked files were changed; None outside a repository or without git."""
    # The repository's own settings may name a file watcher, a program that git would run; it must not.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch"]
    try:
        process = subprocess.run(
            [*command, "--untracked-files=no"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=STATUS_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return _parse_status(process.stdout.splitlines()) if process.returncode == 0 else None


def _parse_status(lines: Sequence[str]) -> GitState:
    """Read the output of `git status`: headers such as `# branch.oid 1f2e…`, then a line for each changed file."""
    headers = {}
    for line in lines:
        if line.startswith("# "):
            name, _, value = line.removeprefix("# ").partition(" ")
            headers[name] = value
    commit, branch = headers.get("branch.oid"), headers.get("branch.head")
    return GitState(
        commit=None if commit == "(initial)" else commit,
        branch=None if branch == "(detached)" else branch,
        dirty=len(lines) > sum(line.startswith("#") for line in lines),
    )
