"""Checks out versions of a repository into worktrees under the folder of the store, and removes them again.

A worktree belongs to the process that holds the lock beside it. The operating system releases the lock when the process
ends, however it ends, so a worktree whose lock is free is left over from a process that was killed. Each run that
uses the store removes such worktrees first. The obvious way, a file with the number of the process, is wrong: numbers
are used again.

`git worktree prune` is not called, because it would also forget worktrees of the user that are on a disk which is not
mounted. What is removed is always one worktree by its path. Submodules are not checked out: that would need the network
and write to the repository. Files in Git LFS are checked out as in any checkout. Hooks are not run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from proctor.base.errors import StoreError
from proctor.base.git import Commit, GitProblem, run_git
from proctor.base.locks import FileLock

FOLDER = "worktrees"
_ATTEMPTS = 5
_LOCK_SUFFIX = ".lock"
_ENVIRONMENT_SUFFIX = ".venv"


@contextlib.contextmanager
def checked_out(commit: Commit, store: Path) -> Iterator[Path]:
    """A folder with the files of a commit, removed on exit. Raises `GitProblem`."""
    remove_abandoned(store)
    path, lock = _new_worktree(store, commit)
    try:
        run_git(commit.repository, "worktree", "add", "--detach", "--force", str(path), commit.id)
        yield path.resolve()
    finally:
        _remove(path, commit.repository)
        lock.remove()
        _remove_if_empty(path.parent)


def _new_worktree(store: Path, commit: Commit) -> tuple[Path, FileLock]:
    """A path for a worktree, and its lock. The file of the lock has the path of the repository."""
    problem: Exception | None = None
    for _ in range(_ATTEMPTS):
        try:
            path = _worktree_folder(store) / f"{commit.id[:12]}-{os.urandom(4).hex()}"
            lock = FileLock(path.with_name(path.name + _LOCK_SUFFIX))
            # Between making the file and locking it, another process may have taken it for an abandoned one.
            if lock.acquire(wait=False) and lock.path.exists():
                lock.path.write_text(str(commit.repository), encoding="utf-8")
                return path, lock
            lock.release()
        except (OSError, StoreError) as error:  # another process has just removed the empty folder
            problem = error
    raise GitProblem(f"no worktree can be made below {store}: {problem}")


def has_submodules(worktree: Path) -> bool:
    """Whether the version has submodules, which are not checked out."""
    return (worktree / ".gitmodules").is_file()


def environment_beside(worktree: Path) -> Path:
    """Where the virtual environment of a worktree is; it is removed with the worktree."""
    return worktree.with_name(worktree.name + _ENVIRONMENT_SUFFIX)


def remove_abandoned(store: Path) -> None:
    """Remove the worktrees below a store whose processes have ended without removing them."""
    folder = store.absolute() / FOLDER
    if not folder.is_dir():
        return
    for lock_path in sorted(folder.glob(f"*{_LOCK_SUFFIX}")):
        lock = FileLock(lock_path)
        with contextlib.suppress(StoreError):
            if lock.acquire(wait=False):
                _remove(lock_path.with_name(lock_path.name.removesuffix(_LOCK_SUFFIX)), _repository_in(lock_path))
                lock.remove()
    _remove_if_empty(folder)


def _worktree_folder(store: Path) -> Path:
    """The folder for worktrees; git does not see it, as the rest of the store."""
    folder = store.absolute() / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not (store / ".gitignore").exists() and not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    return folder


def _repository_in(lock_path: Path) -> Path:
    """The repository of a worktree, from the file of its lock."""
    with contextlib.suppress(OSError, ValueError):
        repository = Path(lock_path.read_text(encoding="utf-8"))
        if repository.is_absolute() and repository.is_dir():
            return repository
    return lock_path.parent


def _remove_if_empty(folder: Path) -> None:
    """Remove the folder of the worktrees if there are none left."""
    ignore = folder / ".gitignore"
    with contextlib.suppress(OSError):
        if [item.name for item in folder.iterdir()] == [ignore.name]:
            ignore.unlink()
        folder.rmdir()
        folder.parent.rmdir()  # without results, if the run is not stored


def _remove(path: Path, repository: Path) -> None:
    """Remove a worktree and what the repository knows about it; also one that was only half made."""
    with contextlib.suppress(GitProblem):
        run_git(repository, "worktree", "remove", "--force", "--force", str(path))
    shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(environment_beside(path), ignore_errors=True)
