"""A run says at which commit it was made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from proctor.base.git import GitState, git_state

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

SUITE = "agent: agent.py:agent\ncases:\n  - {id: a, input: hi, expected: hi}\n"


@pytest.fixture(autouse=True)
def no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org"]
    process = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return process.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "topic/refunds")
    (folder / "suite.yaml").write_text(SUITE)
    (folder / "agent.py").write_text("def agent(question):\n    return question\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "First")
    return folder


@needs_git
def test_the_commit_and_branch_are_those_of_git(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    assert git_state(repository) == GitState(commit, "topic/refunds", False)
    (repository / "inner").mkdir()
    assert git_state(repository / "inner") == GitState(commit, "topic/refunds", False)


@needs_git
def test_a_packed_branch_is_found(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    git(repository, "pack-refs", "--all")
    assert not (repository / ".git/refs/heads/topic/refunds").exists()
    assert git_state(repository) == GitState(commit, "topic/refunds", False)


@needs_git
def test_a_detached_head_has_no_branch(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "--detach")
    assert git_state(repository) == GitState(commit, None, False)


@needs_git
def test_a_worktree_has_its_own_branch(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    commit = git(repository, "rev-parse", "HEAD")
    assert git_state(tmp_path / "tree") == GitState(commit, "other", False)


@needs_git
def test_a_repository_without_a_commit_has_only_a_branch(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    assert git_state(tmp_path) == GitState(None, "main", False)


@needs_git
def test_a_changed_file_makes_the_state_dirty_and_an_untracked_one_does_not(repository: Path) -> None:
    assert git_state(repository) == GitState(git(repository, "rev-parse", "HEAD"), "topic/refunds", False)
    (repository / "notes.txt").write_text("new")
    assert git_state(repository) == GitState(git(repository, "rev-parse", "HEAD"), "topic/refunds", False)
    (repository / "agent.py").write_text("def agent(question):\n    return 'no'\n")
    assert git_state(repository) == GitState(git(repository, "rev-parse", "HEAD"), "topic/refunds", True)


def test_there_is_no_state_outside_a_repository(tmp_path: Path) -> None:
    assert git_state(tmp_path) is None


@pytest.mark.parametrize("head", ["", "nonsense", "ref: refs/heads/../../../etc/passwd", "\x00" * 50, "ref:"])
def test_a_damaged_repository_is_not_an_error(head: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text(head)
    actual = git_state(tmp_path)
    assert actual is None or actual.commit is None


@needs_git
def test_there_is_no_state_without_git(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert git_state(repository) is None


def proctor(folder: Path, *words: str) -> Any:
    command = [sys.executable, "-m", "proctor", *words]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return json.loads(process.stdout) if words[0] in ("runs", "show") else None


@pytest.mark.process
@needs_git
def test_a_run_stores_and_reports_its_commit(repository: Path) -> None:
    (repository / "suite.yaml").write_text(SUITE.replace("id: a", "id: b"))
    proctor(repository, "test", "suite.yaml", "--json", "report.json")
    state = {"commit": git(repository, "rev-parse", "HEAD"), "branch": "topic/refunds", "dirty": True}
    assert json.loads((repository / "report.json").read_text())["run"]["git"] == state
    assert proctor(repository, "show", "last", "--json", "-")["run"]["git"] == state
    assert [run["git"] for run in proctor(repository, "runs", "--json")] == [state]
    proctor(repository, "rescore", "last")
    assert [run["git"] for run in proctor(repository, "runs", "--json")] == [state, state]


@pytest.mark.process
@needs_git
def test_a_pytest_session_stores_its_commit(repository: Path) -> None:
    command = [sys.executable, "-m", "pytest", "suite.yaml", "-q", "-p", "no:cacheprovider", "-n", "0"]
    process = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    [run] = proctor(repository, "runs", "--json")
    assert run["git"] == {"commit": git(repository, "rev-parse", "HEAD"), "branch": "topic/refunds", "dirty": False}
