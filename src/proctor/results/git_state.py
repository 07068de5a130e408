"""The commit, the branch and whether files were changed, where a run is made inside a git repository."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

from proctor.base.records import record

STATUS_SECONDS = 2.0
"""How long `git status` may take; in a repository where it takes longer, `dirty` stays unknown."""
MOST_BYTES = 10_000_000
"""A file of references that is larger is not read."""


@record
class GitState:
    """What the repository looked like when a run began."""

    commit: str | None = None
    """`None` before the first commit."""
    branch: str | None = None
    """`None` where a commit is checked out by itself."""
    dirty: bool | None = None
    """Whether files that git tracks differ from the commit; `None` where git is missing or took too long."""


def git_state(folder: Path) -> GitState | None:
    """Commit and branch, read from git's own files, which takes no process; `None` outside of a repository."""
    try:
        found = _git_folder(folder)
        return None if found is None else _head(found)
    except (OSError, ValueError):
        return None


class DirtyCheck:
    """Asks git in a thread whether files were changed, so that a run does not wait for it."""

    def __init__(self, folder: Path, state: GitState | None) -> None:
        self._folder = folder
        self._state = state
        self._thread: threading.Thread | None = None
        if state is not None:
            self._thread = threading.Thread(target=self._ask, name="proctor-git-status", daemon=True)
            self._thread.start()

    def result(self) -> GitState | None:
        if self._thread is not None:
            self._thread.join(STATUS_SECONDS + 1)
        return self._state

    def _ask(self) -> None:
        dirty = _is_dirty(self._folder)
        if self._state is not None:
            self._state = replace(self._state, dirty=dirty)


def _is_dirty(folder: Path) -> bool | None:
    import subprocess

    # A file watcher that the repository's own settings name would be a program to run: none is.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain"]
    try:
        done = subprocess.run(
            [*command, "--untracked-files=no"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=STATUS_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return bool(done.stdout.strip()) if done.returncode == 0 else None


def _git_folder(folder: Path) -> Path | None:
    """Where git keeps the repository that `folder` is in; a worktree has a file there that says where."""
    if "GIT_DIR" in os.environ:
        return Path(os.environ["GIT_DIR"])
    folder = folder.resolve()
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_dir():
            return git
        if git.is_file():
            said = _read(git).partition("gitdir:")[2].strip()
            return place / said if said else None
    return None


def _head(git: Path) -> GitState | None:
    said = _read(git / "HEAD").strip()
    if not said.startswith("ref:"):
        return GitState(_checked(said)) if _checked(said) else None
    reference = said.removeprefix("ref:").strip()
    branch = reference.removeprefix("refs/heads/")
    shared = git / _read(git / "commondir").strip() if (git / "commondir").is_file() else git
    return GitState(_commit(git, shared, reference), branch)


def _commit(git: Path, shared: Path, reference: str) -> str | None:
    """The commit of a branch: in a file of its own, or in the one for branches that rarely move."""
    for folder in (git, shared):
        if (folder / reference).is_file():
            return _checked(_read(folder / reference).strip())
    packed = shared / "packed-refs"
    for line in _read(packed).splitlines() if packed.is_file() else ():
        commit, _, name = line.partition(" ")
        if name == reference:
            return _checked(commit)
    return None


def _checked(commit: str) -> str | None:
    return commit if len(commit) >= 40 and all(digit in "0123456789abcdef" for digit in commit) else None


def _read(path: Path) -> str:
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} is too large for a file of git's own")
    return path.read_text(encoding="utf-8", errors="replace")
