"""Versions of an agent from git, side by side in one run, through the command line."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import proctor as package
from proctor.base.errors import ProctorError
from proctor.results.run import Run

pytestmark = pytest.mark.process
Command = Callable[..., Any]

AGENT = """
import os
from pathlib import Path

import answers
import proctor


@proctor.tool
def look(question):
    return answers.TEXT


def agent(question):
    look(question=question)
    return f"{answers.TEXT} {question} {os.environ.get('MODE', '')}".strip()


def place(question):
    return f"{Path(__file__).parent.name} {Path.cwd().name} {os.getpid()}"
"""
CASES = "cases:\n" + "".join(f"  - {{id: c{n}, input: q{n}, expected: new q{n}}}\n" for n in range(3))
SUITE = f"name: desk\nagent: app.py:agent\n{CASES}"


def git(*arguments: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def commit(message: str = "a change") -> None:
    git("add", "--all")
    git("commit", "--quiet", "--message", message)


@pytest.fixture
def repository(project: Path) -> Path:
    """A repository with two commits: the agent answers `old`, then `new`."""
    git("init", "--quiet")
    (project / "app.py").write_text(AGENT)
    (project / "answers.py").write_text("TEXT = 'old'\n")
    commit()
    git("tag", "first")
    (project / "answers.py").write_text("TEXT = 'new'\n")
    (project / "suite.yaml").write_text(SUITE)
    commit()
    return project


def worktrees() -> list[str]:
    return git("worktree", "list", "--porcelain").split("\n\n")


def nothing_is_left(project: Path) -> bool:
    return len(worktrees()) == 1 and not (project / ".proctor" / "worktrees").exists()


def test_two_versions_run_side_by_side_on_the_cases_of_the_working_folder(proctor: Command, repository: Path) -> None:
    before = git("for-each-ref"), git("config", "--list"), git("stash", "list")
    done = proctor("test", "--arms", "old=first,new=.", "--json", "r.json")
    run = Run.load()
    assert done.code == 0  # the last arm decides, and it passes
    assert [case.output for case in run.arms["old"]] == [f"old q{n}" for n in range(3)]
    assert [case.output for case in run.arms["new"]] == [f"new q{n}" for n in range(3)]
    assert [call.name for trial in run.trials for call in trial.tool_calls] == ["look"] * 6
    assert (run.arms["old"].passed, run.arms["new"].passed) == (False, True)
    first = git("rev-parse", "first")
    assert [info.version for info in run.suites] == [f"first ({first[:10]})", ""]
    assert nothing_is_left(repository)
    assert before == (git("for-each-ref"), git("config", "--list"), git("stash", "list"))
    new = [line for line in git("status", "--porcelain").splitlines() if "__pycache__" not in line]
    assert new == ["?? r.json"]


def test_work_that_is_not_committed_is_in_the_working_folder_only(proctor: Command, repository: Path) -> None:
    (repository / "answers.py").unlink()
    (repository / "app.py").write_text("import fresh\n\ndef agent(question):\n    return f'{fresh.WORD} {question}'\n")
    (repository / "fresh.py").write_text("WORD = 'new'\n")  # unknown to git
    assert proctor("test", "--arms", "old=HEAD,new=.").code == 0
    assert {arm["c0"].output for arm in Run.load().arms.values()} == {"new q0"}
    git("rm", "--quiet", "--cached", "answers.py")
    commit("without answers and fresh")
    git("reset", "--quiet", "--soft", "HEAD~1")
    git("commit", "--quiet", "--all", "--message", "app without fresh")
    git("rm", "--quiet", "--cached", "fresh.py")
    git("commit", "--quiet", "--message", "without fresh")
    done = proctor("test", "--arms", "old=HEAD,new=.")
    assert done.code == 4
    assert "No module named 'fresh'" in done.out
    assert nothing_is_left(repository)


def test_each_arm_has_its_process_its_folder_and_its_variables(proctor: Command, repository: Path) -> None:
    (repository / "suite.yaml").write_text(
        "name: desk\nagent: app.py:place\narms:\n  old: {ref: HEAD}\n  new: {ref: .}\n"
        "cases: [{id: a, input: q, evaluators: [checks.py:good]}, {id: b, input: q, evaluators: [checks.py:good]}]\n"
    )
    assert proctor("test").code == 0
    arms = {name: [str(case.output).split() for case in arm] for name, arm in Run.load().arms.items()}
    assert arms["new"][0][:2] == [repository.name, repository.name]
    commit_id = git("rev-parse", "HEAD")[:12]
    assert all(place.startswith(commit_id) for place in arms["old"][0][:2])
    pids = {arm: {answer[2] for answer in answers} for arm, answers in arms.items()}
    assert [len(pid) for pid in pids.values()] == [1, 1]  # one process for all trials of an arm
    assert len({str(os.getpid()), *pids["old"], *pids["new"]}) == 3

    (repository / "suite.yaml").write_text(
        "name: desk\nagent: app.py:agent\narms: {calm: {env: {MODE: calm}}, loud: {env: {MODE: loud}}}\n" + CASES
    )
    proctor("test", "-k", "c0")
    assert [arm["c0"].output for arm in Run.load().arms.values()] == ["new q0 calm", "new q0 loud"]


@pytest.mark.parametrize(
    ("arms", "reason"),
    [
        ("old=nowhere,new=.", "the repository has no commit 'nowhere'"),
        ("old=broken,new=.", "could not be loaded: SyntaxError"),
        ("old=missing,new=.", "app.py has no 'agent'"),
        ("old=empty,new=.", "no file 'app.py'"),
    ],
)
def test_a_version_that_cannot_be_built_is_an_error_that_says_why(
    proctor: Command, repository: Path, arms: str, reason: str
) -> None:
    app = repository / "app.py"
    for tag, text in (("broken", "def agent(:\n"), ("missing", "def other(question):\n    return question\n")):
        app.write_text(text)
        commit()
        git("tag", tag)
    app.unlink()
    commit()
    git("tag", "empty")
    app.write_text(AGENT)
    commit()
    done = proctor("test", "--arms", arms)
    run = Run.load()
    assert (done.code, run.verdict.exit_code) == (4, 4)
    assert reason in run.reason
    assert {trial.outcome.value for trial in run.trials if trial.arm == "old"} == {"error"}
    assert all(reason in trial.reason for trial in run.trials if trial.arm == "old")
    assert run.arms["new"].passed
    assert nothing_is_left(repository)


def test_a_folder_without_git_is_an_error_too(proctor: Command, project: Path) -> None:
    (project / "suite.yaml").write_text(f"name: desk\nagent: oracle\n{CASES}")
    assert proctor("test", "--arms", "old=main,new=.").code == 4
    assert "is not in a git repository" in Run.load().reason


BACKEND = """
import zipfile
from pathlib import Path


def build_wheel(folder, *_):
    with zipfile.ZipFile(Path(folder) / "pinned-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("pinned.py", "WORD = 'new'\\n")
        wheel.writestr("pinned-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: pinned\\nVersion: 1\\n")
        wheel.writestr("pinned-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("pinned-1.dist-info/RECORD", "")
    return "pinned-1-py3-none-any.whl"
"""


def test_an_environment_of_its_own_has_what_the_version_requires(proctor: Command, repository: Path) -> None:
    (repository / "lib").mkdir()
    (repository / "lib" / "backend.py").write_text(BACKEND)
    (repository / "lib" / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        "[project]\nname = 'pinned'\nversion = '1'\n"
    )
    (repository / "requirements.txt").write_text("./lib\n")
    (repository / "app.py").write_text("import pinned\n\n\ndef agent(q):\n    return f'{pinned.WORD} {q}'\n")
    commit()
    (repository / "app.py").write_text("def agent(q):\n    return f'new {q}'\n")
    done = proctor("test", "--arms", "old=HEAD,new=.", "--arm-venv")
    assert done.code == 0
    assert Run.load().arms["old"].passed
    assert nothing_is_left(repository)


def test_a_version_that_requires_nothing_has_no_environment(proctor: Command, repository: Path) -> None:
    assert proctor("test", "--arms", "old=HEAD,new=.", "--arm-venv").code == 4
    assert "no virtual environment can be built" in Run.load().reason


def test_a_package_installed_from_the_working_folder_comes_from_the_version(proctor: Command, repository: Path) -> None:
    """As an installation in development mode does it: a folder of the repository on the module search path."""
    (repository / "src" / "shop").mkdir(parents=True)
    module = repository / "src" / "shop" / "__init__.py"
    module.write_text("def agent(question):\n    return f'old {question}'\n")
    (repository / "suite.yaml").write_text(SUITE.replace("app.py:agent", "shop:agent"))
    commit()
    module.write_text("def agent(question):\n    return f'new {question}'\n")
    sys.path.append(str(repository / "src"))
    assert proctor("test", "--arms", "old=HEAD,new=.").code == 0
    assert {name: arm["c0"].output for name, arm in Run.load().arms.items()} == {"old": "old q0", "new": "new q0"}


def test_hooks_do_not_run_and_variables_of_a_hook_do_no_harm(
    proctor: Command, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {repository}/hooked\n")
    hook.chmod(0o755)
    index = (repository / ".git" / "index").read_bytes()
    monkeypatch.setenv("GIT_INDEX_FILE", str(repository / ".git" / "index"))
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    assert proctor("test", "--arms", "old=first,new=.").code == 0
    assert not (repository / "hooked").exists()
    assert (repository / ".git" / "index").read_bytes() == index
    assert nothing_is_left(repository)


def test_an_agent_that_ends_its_process_costs_one_trial(proctor: Command, repository: Path) -> None:
    (repository / "app.py").write_text(
        "import os\n\n\ndef agent(question):\n    return os._exit(3) if question == 'q1' else f'new {question}'\n"
    )
    commit()
    proctor("test", "--arms", "old=HEAD,new=.", "-j", "1", "--retries", "0")
    for arm in Run.load().arms.values():
        assert [trial.outcome.value for trial in arm.trials] == ["passed", "error", "passed"]
        assert "it ended with exit code 3" in arm["c1"].reason


def _stored_trials() -> int:
    try:
        return len(list(Run.load().trials))
    except ProctorError:  # not yet
        return 0


def test_a_killed_run_is_resumed_on_both_arms_and_leaves_no_worktree(proctor: Command, repository: Path) -> None:
    (repository / "app.py").write_text(
        "import time\nfrom pathlib import Path\n\n\ndef agent(question):\n"
        f"    with Path({str(repository / 'asked')!r}).open('a') as asked:\n        asked.write(question + '\\n')\n"
        "    while question == 'q2':\n        time.sleep(0.02)\n    return f'new {question}'\n"
    )
    commit()
    words = ("test", "--arms", "old=HEAD,new=.", "-j", "2")
    process = subprocess.Popen([sys.executable, "-m", "proctor", *words], stdout=subprocess.DEVNULL)
    asked, end = repository / "asked", time.monotonic() + 60
    while _stored_trials() < 4 and time.monotonic() < end:
        time.sleep(0.05)
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False)
    for pid in (*map(int, children.stdout.split()), process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    assert len(worktrees()) == 2  # nobody could remove it
    stored = [(trial.arm, trial.case.id) for trial in Run.load().trials]
    assert sorted(stored) == [(arm, case) for arm in ("new", "old") for case in ("c0", "c1")]
    (repository / "app.py").write_text((repository / "app.py").read_text())
    asked.unlink()
    (repository / "suite.yaml").write_text(SUITE.replace("q2, expected", "q3, expected").replace("new q2", "new q3"))
    assert proctor(*words, "--resume").code == 0
    questions = asked.read_text().split()
    assert questions.count("q3") == 2
    assert not {"q0", "q1"} & set(questions)  # answered turns are not sent again
    assert len(list(Run.load().trials)) == 6
    assert nothing_is_left(repository)


def test_a_worktree_of_a_run_in_progress_stays(proctor: Command, repository: Path) -> None:
    from proctor.base.git import find_commit
    from proctor.running.arms.worktrees import checked_out

    with checked_out(find_commit(repository, "HEAD"), repository / ".proctor") as path:
        assert proctor("test", "-q", "--arms", "old=first,new=.").code == 0
        assert (path / "app.py").is_file()
        assert len(worktrees()) == 2
    assert nothing_is_left(repository)


def test_several_agents_still_work_as_arms_that_all_must_pass(proctor: Command, repository: Path) -> None:
    done = proctor("test", "-q", "--agent", "lazy=nop", "--agent", "good=app.py:agent")
    assert (done.code, "several --agent are now --arms lazy=nop,good=app.py:agent" in done.err) == (1, True)
    assert proctor("test", "-q", "--arms", "lazy=nop,good=app.py:agent").code == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--arms", "main"], "give each arm a name"),
        (["--arms", "a=main,a=."], "two arms are called 'a'"),
        (["--arms", "a=main,b=.", "--agent", "x=nop", "--agent", "y=nop"], "cannot be combined"),
        (["--arms", "a=first,b=.", "--isolate"], "run in their own processes"),
        (["--arms", "a=first,b=.", "--agent", "http://127.0.0.1:1/"], "is a service that runs already"),
        (["--arms", 'a={"ref": 1},b=nop'], "a"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    proctor: Command, repository: Path, words: list[str], reason: str
) -> None:
    done = proctor("test", *words)
    assert (done.code, reason in done.err) == (2, True)


def test_python_runs_versions_too(repository: Path) -> None:
    [suite] = package.load("suite.yaml")
    run = suite.run(arms={"old": "first", "new": "."}, case="c0")
    assert {name: arm["c0"].output for name, arm in run.arms.items()} == {"old": "old q0", "new": "new q0"}
    assert json.loads(json.dumps(run.suites[0].version)).startswith("first")
    assert not (repository / ".proctor").exists()
