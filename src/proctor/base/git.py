"""The state of the git repository that a run is made in: commit, branch, and whether files were changed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

STATUS_SECONDS = 2.0
"""How long `git status` may take; of a repository where it takes longer, nothing is stored."""


@dataclass(frozen=True, slots=True)
class GitState:
    """What the repository looked like when a run began."""

    commit: str | None = None
    """`None` before the first commit."""
    branch: str | None = None
    """`None` where a commit is checked out by itself."""
    dirty: bool | None = None
    """Whether files that git tracks differ from the commit; None in runs that were stored without it."""


def git_state(folder: Path) -> GitState | None:
    """Commit, branch and whether tracked files were changed; None outside of a repository and without git."""
    # A file watcher that the repository's own settings name would be a program to run: none is.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch"]
    try:
        done = subprocess.run(
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
    return _state_in(done.stdout.splitlines()) if done.returncode == 0 else None


def _state_in(lines: Sequence[str]) -> GitState:
    """What `git status` says: headers such as `# branch.oid 1f2e…` first, then a line for each file that differs."""
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
