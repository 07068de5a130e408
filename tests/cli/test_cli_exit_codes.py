"""What a script learns from `proctor` without reading a word: its exit code."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND

from proctor.config import NEEDED_PACKAGES

Command = Callable[..., Any]


@pytest.mark.parametrize(
    ("check", "code"), [("good", 0), ("bad", 1), ("pending", 3), ("raises", 4), ("nan", 4), ("words", 4)]
)
def test_the_verdict_is_the_exit_code(proctor: Command, suite: Command, check: str, code: int) -> None:
    suite(check=check)
    assert proctor("test").code == code


def test_a_score_beyond_its_range_counts_as_its_end_and_is_remarked_upon(proctor: Command, suite: Command) -> None:
    suite(check="seven")
    ended = proctor("test")
    assert ended.code == 0
    assert "7" in next(line for line in ended.out.splitlines() if "warning" in line.lower())


def test_an_agent_that_raises_fails_and_an_agent_that_cannot_be_read_is_an_error(
    proctor: Command, suite: Command
) -> None:
    suite(agent="raises")
    failed = proctor("test")
    assert failed.code == 1
    assert "ValueError: the agent has a bug" in failed.out
    suite(agent="wrong")
    assert proctor("test").code == 4


def test_a_process_ends_with_the_same_codes(proctor_process: Command, suite: Command) -> None:
    suite("good.yaml")
    suite("bad.yaml", check="bad")
    assert proctor_process("test", "good.yaml").code == 0
    assert proctor_process("test", "bad.yaml").code == 1
    assert proctor_process("test", "nowhere.yaml").code == 2


def test_an_agent_that_hangs_is_given_up_and_does_not_keep_the_process(
    proctor_process: Command, suite: Command
) -> None:
    suite(agent="hangs")
    ended = proctor_process("test", "--timeout", "0.2")
    assert ended.code == 1
    assert "no answer within 0.2 s" in ended.out


def test_an_evaluator_that_hangs_is_an_error_and_does_not_keep_the_process(
    proctor_process: Command, suite: Command
) -> None:
    suite(check="hangs")
    ended = proctor_process("test", "--evaluator-timeout", "0.2")
    assert ended.code == 4
    assert "no score within 0.2 s" in ended.out


def test_an_interrupted_run_says_so_keeps_what_was_done_and_ends_with_130(
    project: Path, proctor_process: Command
) -> None:
    (project / "slow.py").write_text(
        "import pathlib, time\n"
        "def agent(question):\n"
        "    if question == 'wait':\n"
        "        pathlib.Path('waiting').touch()\n"
        "        time.sleep(3600)\n"
        "    return question\n"
    )
    (project / "s.yaml").write_text(
        "agent: slow.py:agent\nsettings: {parallel: 1}\n"
        "cases: [{id: quick, input: a, expected: a}, {id: slow, input: wait, expected: wait}]\n"
    )
    running = subprocess.Popen(
        [*COMMAND, "test", "s.yaml"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    for _ in range(2000):
        if (project / "waiting").exists() or running.poll() is not None:
            break
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    said, _ = running.communicate(timeout=30)
    assert running.returncode == 130
    assert b"Traceback" not in said
    assert "quick" in proctor_process("show", "last").out
    assert "interrupted 1 of 2 trials s" in " ".join(proctor_process("runs").out.split())


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("tset",), "did you mean 'test'?"),
        (("test", "--agnet", "x"), "--agent"),
        (("test", "--repeat", "0"), "--repeat"),
        (("test", "--repeat", "many"), "--repeat"),
        (("test", "-j", "-1"), "--parallel"),
        (("test", "--timeout", "0"), "--timeout"),
        (("test", "--timeout", "nan"), "nan is not a number of seconds"),
        (("test", "--timeout", "inf"), "inf is not a number of seconds"),
        (("test", "--evaluator-timeout", "1e999"), "not a number of seconds"),
        (("test", "--maxfail", "0"), "--maxfail"),
        (("test", "--md", ""), "--md needs a file"),
        (("test", "--md", "-", "--json", "-"), "would both go to standard output"),
        (("test", "-e", "ROUGE={"), "JSON object"),
        (("test", "-e", "ROUGE=[1]"), "must be an object"),
        (("test", "-e", ""), "must not be blank"),
        (("test", "-e", 'ROUGE={"threshold": 2}'), "at most 1"),
        (("runs", "-n", "0"), "--limit"),
        (("show", "a", "b"), "unexpected extra argument"),
        (("dataset", "nope"), "No such command"),
    ],
)
def test_a_wrong_command_is_explained_and_ends_with_2(
    proctor: Command, suite: Command, arguments: tuple[str, ...], hint: str
) -> None:
    suite()
    ended = proctor(*arguments)
    assert ended.code == 2
    assert hint in ended.err
    assert ended.out == ""


def test_no_command_at_all_shows_the_help_and_is_not_called_an_error(proctor: Command) -> None:
    ended = proctor()
    assert ended.code == 2
    assert "\nCommands:\n  init " in ended.err
    assert "error" not in ended.err.splitlines()[0]


@pytest.mark.parametrize("command", ["test", "init", "runs", "show", "rescore", "dataset", "doctor"])
def test_every_command_has_a_help(proctor: Command, command: str) -> None:
    ended = proctor(command, "--help")
    assert ended.code == 0
    assert "Usage: " in ended.out


@pytest.mark.process
def test_a_working_folder_that_is_gone_is_said_plainly(
    project: Path, suite: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = suite()
    gone = tmp_path_factory.mktemp("gone")
    command = [*COMMAND, "test", str(path)]
    script = f"import os; os.rmdir({str(gone)!r}); os.execv({sys.executable!r}, {command!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], cwd=gone, capture_output=True, env=environment, check=False)
    assert done.returncode == 4
    assert done.stderr.decode().strip() == "error: the working folder was deleted"


@pytest.mark.process
def test_a_project_file_with_the_name_of_a_package_that_proctor_needs_is_named(
    proctor_process: Command, suite: Command, project: Path
) -> None:
    suite()
    (project / "yaml").mkdir()
    assert proctor_process("test").code == 0  # a folder of data hides nothing
    (project / "yaml" / "__init__.py").touch()
    ended = proctor_process("test")
    assert ended.code == 4
    assert ended.err.count("\n") == 1
    assert f"{project / 'yaml'} hides the package PyYAML, which Proctor needs; rename it" in ended.err


def test_every_package_that_proctor_needs_is_looked_for_among_the_projects_files() -> None:
    needed = [line for line in requires("agent-proctor") or () if "extra ==" not in line and "win32" not in line]
    names = {re.split(r"[^\w.-]", line)[0].lower() for line in needed}
    assert names == {package.lower() for package in NEEDED_PACKAGES.values()}
