"""Git as Proctor uses it: the state of the repository of a run, and the commit that a reference means.

Settings of a repository may name programs that git runs, such as hooks and file watchers; none of them is run. Inside a
git hook, variables such as `GIT_INDEX_FILE` direct every git command to one repository; they are not passed on.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
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
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch"]
    try:
        process = _run([*command, "--untracked-files=no"], folder, os.environ, STATUS_SECONDS)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return _parse_status(process.stdout.splitlines()) if process.returncode == 0 else None


def _run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout,
        check=False,
    )


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


_OF_ANOTHER_REPOSITORY = (
    "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX GIT_COMMON_DIR GIT_NAMESPACE GIT_OBJECT_DIRECTORY "
    "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_QUARANTINE_PATH GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT"
).split()
"""Variables that git sets for hooks, and that would direct another command to the repository of the hook."""


class GitProblem(Exception):
    """A git command failed; the text is the reason that git prints."""


def without_git_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables that bind git to one repository."""
    return {name: value for name, value in environment.items() if name not in _OF_ANOTHER_REPOSITORY}


def run_git(folder: Path, *arguments: str, timeout: float = 300.0) -> str:
    """The output of a git command in a folder; runs no hooks and asks nothing. Raises `GitProblem`."""
    command = ["git", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", *arguments]
    environment = {**without_git_variables(os.environ), "GIT_TERMINAL_PROMPT": "0"}
    try:
        process = _run(command, folder, environment, timeout)
    except FileNotFoundError:
        raise GitProblem("git is not installed") from None
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise GitProblem(f"git {arguments[0]} failed: {error}") from None
    if process.returncode != 0:
        lines = [line for line in process.stderr.splitlines() if line.strip()]
        reasons = [line for line in lines if line.startswith(("fatal:", "error:"))]
        raise GitProblem((reasons or lines or [f"git {arguments[0]} failed"])[-1].removeprefix("fatal: "))
    return process.stdout


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit and the repository that has it."""

    repository: Path
    """The top folder of the working tree, without symbolic links."""
    id: str


def find_commit(folder: Path, reference: str) -> Commit:
    """The commit that a reference means in the repository of a folder. Raises `GitProblem`."""
    try:
        top = run_git(folder, "rev-parse", "--show-toplevel", timeout=STATUS_SECONDS * 10).rstrip("\n")
    except GitProblem as error:
        raise GitProblem(f"{folder} is not in a git repository: {error}") from None
    try:
        found = run_git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
    except GitProblem:
        shallow = run_git(folder, "rev-parse", "--is-shallow-repository").strip() == "true"
        advice = "the clone is shallow; fetch it with its history" if shallow else "see `git branch --all`, `git tag`"
        raise GitProblem(f"the repository has no commit {reference!r}; {advice}") from None
    return Commit(Path(top).resolve(), found.strip())
