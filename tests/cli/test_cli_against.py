"""The gate with two versions of an agent, through the command line, with git itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.process

Command = Callable[..., Any]

AGENT = """
import random
from pathlib import Path

BROKEN = {broken!r}


def agent(question):
    world = Path({world!r})
    if question in BROKEN or (world.exists() and question in world.read_text().split()):
        return random.choice(["Sorry.", "I cannot help with that.", "Please call us."])
    return f"The answer to {{question}}."
"""

SUITE = """
name: desk
agent: app.py:agent
cases:
""" + "".join(f"  - {{id: q{n}, input: q{n}, expected: The answer to q{n}.}}\n" for n in range(8))


def git(folder: Path, *words: str) -> str:
    identity = {f"GIT_{who}_{what}": "t@e.st" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def write_agent(project: Path, *broken: str) -> None:
    code = AGENT.format(broken=list(broken), world=str(project / "world.txt"))
    (project / "app.py").write_text(code, encoding="utf-8")


def commit(project: Path, message: str = "change") -> None:
    git(project, "add", "-A")
    git(project, "commit", "-q", "--allow-empty", "-m", message)


@pytest.fixture
def desk(project: Path) -> Path:
    """A repository with an agent that answers everything, and nothing else: no run, no baseline."""
    git(project, "init", "-q", "-b", "main")
    (project / ".gitignore").write_text(".proctor\nworld.txt\ngate.json\n", encoding="utf-8")
    (project / "desk.yaml").write_text(SUITE, encoding="utf-8")
    write_agent(project)
    commit(project, "first")
    return project


def gate_of(project: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project / "gate.json").read_text(encoding="utf-8"))["gate"]
    return found


def with_status(gate: dict[str, Any], status: str) -> list[str]:
    return [case["case"] for case in gate["cases"] if case["standing"] == status]


def record_baseline(project: Path, proctor: Command) -> None:
    assert proctor("test", "--repeat", "6", "-q").code == 0
    assert proctor("baseline", "accept").code == 0


def test_on_day_one_a_change_that_breaks_two_cases_is_a_regression(desk: Path, proctor_process: Command) -> None:
    write_agent(desk, "q2", "q5")
    commit(desk)
    ended = proctor_process("test", "--gate", "--against", "HEAD~1", "--json", "gate.json")
    assert ended.code == 1
    assert "gate: REGRESSION" in ended.out and "caused by this change" in ended.out
    gate = gate_of(desk)
    assert with_status(gate, "proven") == ["q2", "q5"] and gate["against"] == "HEAD~1"
    assert git(desk, "worktree", "list").count("\n") == 1, "the other version is gone"


def test_on_day_one_a_change_that_breaks_nothing_passes_at_one_trial_per_case(
    desk: Path, proctor_process: Command
) -> None:
    commit(desk)
    ended = proctor_process("test", "--gate", "--against", "HEAD~1")
    assert ended.code == 0 and "no regression in 8 cases against HEAD~1" in ended.out
    assert "8 trials" in ended.out


def test_uncommitted_work_is_what_is_tested_and_does_not_leak_into_the_other_version(
    desk: Path, proctor_process: Command
) -> None:
    write_agent(desk, "q3")
    ended = proctor_process("test", "--gate", "--against", "HEAD", "--json", "gate.json")
    assert ended.code == 1 and with_status(gate_of(desk), "proven") == ["q3"]


def test_a_world_that_changed_is_told_apart_from_a_change_of_the_agent(
    desk: Path, proctor: Command, proctor_process: Command
) -> None:
    record_baseline(desk, proctor)
    (desk / "world.txt").write_text("q1", encoding="utf-8")
    commit(desk)
    world = ("test", "--gate", "--against", "HEAD~1", "--json", "gate.json")
    ended = proctor_process(*world)
    assert ended.code == 0 and "gate: THE WORLD CHANGED" in ended.out
    assert with_status(gate_of(desk), "fails_on_both") == ["q1"]
    assert proctor_process(*world, "--strict-world").code == 3

    write_agent(desk, "q6")
    ended = proctor_process(*world)
    assert ended.code == 1 and "q6 regressed, caused by this change" in ended.out
    assert with_status(gate_of(desk), "proven") == ["q6"]
    assert with_status(gate_of(desk), "fails_on_both") == ["q1"], "the world is reported as well"


def test_a_changed_world_names_the_models_then_and_now(desk: Path, proctor: Command, proctor_process: Command) -> None:
    code = """
from pathlib import Path
from proctor import Reply, Usage

def agent(question):
    is_new = Path({world!r}).exists()
    usage = Usage(10, 5, model_calls=1, model="small-2026-09" if is_new else "small-2026-03")
    return Reply("Sorry." if is_new and question == "q1" else f"The answer to {{question}}.", usage=usage)
"""
    (desk / "app.py").write_text(code.format(world=str(desk / "world.txt")), encoding="utf-8")
    commit(desk)
    record_baseline(desk, proctor)
    (desk / "world.txt").write_text("new", encoding="utf-8")
    ended = proctor_process("test", "--gate", "--against", "HEAD")
    assert ended.code == 0 and "small-2026-09 now, small-2026-03 in the baseline" in ended.out


def test_a_version_that_cannot_be_loaded_is_an_error(desk: Path, proctor_process: Command) -> None:
    (desk / "app.py").write_text("import no_such_package\n", encoding="utf-8")
    commit(desk)
    write_agent(desk)
    ended = proctor_process("test", "--gate", "--against", "HEAD")
    assert ended.code == 4 and "no_such_package" in ended.out
    assert proctor_process("test", "--gate", "--against", "no-such-branch").code == 4


def test_a_run_that_was_killed_is_resumed_and_leaves_no_worktree(desk: Path, proctor_process: Command) -> None:
    code = (desk / "app.py").read_text(encoding="utf-8")
    (desk / "app.py").write_text(f"import time\n{code}".replace("    world =", "    time.sleep(0.3)\n    world ="))
    commit(desk)
    write_agent(desk, "q2")
    code = (desk / "app.py").read_text(encoding="utf-8")
    (desk / "app.py").write_text(f"import time\n{code}".replace("    world =", "    time.sleep(0.3)\n    world ="))
    words = [sys.executable, "-m", "proctor", "test", "--gate", "--against", "HEAD", "-j", "1"]
    running = subprocess.Popen(words, cwd=desk, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    for line in running.stdout:
        if "[old]" in line:
            break
    started = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stdout.close()
    _, left = psutil.wait_procs(started, 60)
    assert left == [], "what it started ends with it"

    ended = proctor_process("test", "--gate", "--against", "HEAD", "-j", "1", "--resume", "--json", "gate.json")
    assert ended.code == 1 and "already stored" in ended.out
    assert with_status(gate_of(desk), "proven") == ["q2"]
    assert git(desk, "worktree", "list").count("\n") == 1


def test_a_gate_against_a_version_extends_the_same_baseline(
    desk: Path, proctor: Command, proctor_process: Command
) -> None:
    record_baseline(desk, proctor)
    commit(desk)
    assert proctor_process("test", "--gate", "--against", "HEAD~1", "-q").code == 0
    assert proctor("baseline", "accept").code == 0
    assert "7/7 passed" in proctor("baseline", "show").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--against", "main"), "--against needs --gate"),
        (("--gate", "--strict-world", "--arms", "a=main,b=."), "cannot be combined with arms"),
    ],
)
def test_what_does_not_go_together_is_refused(
    desk: Path, proctor: Command, words: tuple[str, ...], message: str
) -> None:
    ended = proctor("test", *words)
    assert ended.code == 2 and message in ended.err
