"""Code that ends, crashes, holds or forks the process: never exit code 0 without a verdict, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND

from proctor.results.store.store import Store

Command = Callable[..., Any]


def running_with(words: str) -> list[str]:
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=False).stdout.splitlines()
    return [line for line in found if words in line and not line.startswith("ps ")]


def kept(project: Path) -> int:
    store = Store(project / ".proctor", create=False)
    return len(store.stored_trials(store.runs(1)[0].no))


@pytest.mark.parametrize("agent", ["exits", "closes_everything", "segfaults", "killed"])
def test_an_agent_that_ends_the_process_is_no_pass(
    proctor: Command, proctor_process: Command, suite: Command, agent: str
) -> None:
    suite(agent)
    ended = proctor_process("test", "suite.yaml")
    assert ended.code == 4
    assert "before a verdict" in ended.err
    assert "PASSED" not in ended.out
    assert "died" in proctor("runs").out
    resumed = proctor_process("test", "suite.yaml", "--resume", "--isolate")
    assert resumed.code == 1
    assert "3 of 4 cases passed" in resumed.out


def test_an_evaluator_that_ends_the_process_does_not_pass(proctor_process: Command, suite: Command) -> None:
    suite("echo", evaluators="['agents.py:exiting_check']")
    assert proctor_process("test", "suite.yaml").code == 4


def test_rescoring_with_an_evaluator_that_ends_the_process_does_not_pass(
    proctor: Command, proctor_process: Command, suite: Command
) -> None:
    suite("echo")
    assert proctor("test", "suite.yaml").code == 0
    ended = proctor_process("rescore", "-e", "agents.py:exiting_check")
    assert ended.code == 4
    assert "before a verdict" in ended.err


def test_a_thread_that_exits_ends_itself_alone(proctor_process: Command, suite: Command) -> None:
    suite("thread_exits")
    assert proctor_process("test", "suite.yaml").code == 0


def test_a_verdict_stays_whatever_happens_when_python_ends(proctor_process: Command, suite: Command) -> None:
    suite("exits_at_the_end")
    ended = proctor_process("test", "suite.yaml")
    assert ended.code == 1
    assert "FAILED" in ended.out


def test_threads_that_do_not_end_do_not_keep_the_command_from_ending(proctor_process: Command, suite: Command) -> None:
    suite("hangs_at_the_end")
    assert proctor_process("test", "suite.yaml").code == 0


def test_code_that_holds_the_interpreter_is_ended_from_outside_and_its_case_named(
    proctor_process: Command, suite: Command
) -> None:
    suite("holds_the_interpreter")
    ended = proctor_process("test", "suite.yaml", "--timeout", "0.5")
    assert ended.code == 4
    assert "case c3 blocked the interpreter" in ended.err
    assert "--isolate" in ended.err


@pytest.mark.parametrize("agent", ["holds_the_interpreter", "exits", "segfaults", "killed", "forks", "forks_async"])
def test_isolated_trials_fail_alone(proctor_process: Command, suite: Command, agent: str) -> None:
    suite(agent)
    ended = proctor_process("test", "suite.yaml", "--isolate", "--timeout", "6")
    harmless = agent.startswith("forks")
    assert ended.code == (0 if harmless else 1)
    assert f"{4 if harmless else 3} of 4 cases passed" in ended.out


@pytest.mark.parametrize("agent", ["forks", "forks_async"])
def test_a_fork_of_the_run_itself_ends_without_a_trace(
    proctor_process: Command, suite: Command, project: Path, agent: str
) -> None:
    suite(agent)
    ended = proctor_process("test", "suite.yaml")
    assert ended.code == 0
    assert ended.out.count("desk/c4 ") == 1
    assert kept(project) == 4


def test_descendants_that_left_the_process_group_end_with_their_trial(
    proctor_process: Command, suite: Command, project: Path
) -> None:
    suite("leaves_descendants")
    assert proctor_process("test", "suite.yaml", "--isolate", "--timeout", "1").code == 1
    assert running_with("sleep 77.25") == []


def test_descendants_of_a_command_end_with_their_trial(proctor_process: Command, suite: Command, project: Path) -> None:
    suite("echo", count=1)
    wanted = f"sleep 78.{os.getpid()}"
    (project / "daemon.sh").write_text(f"setsid {wanted} >/dev/null 2>&1 &\necho q1\n")
    assert proctor_process("test", "suite.yaml", "--agent", "cmd:sh daemon.sh").code == 0
    assert running_with(wanted) == []


def test_a_command_that_answered_has_answered_even_if_another_process_holds_its_output(
    proctor_process: Command, suite: Command, project: Path
) -> None:
    suite("echo", count=1)
    (project / "holder.sh").write_text("sleep 79.25 &\necho q1\n")
    assert proctor_process("test", "suite.yaml", "--agent", "cmd:sh holder.sh", "--timeout", "20").code == 0


def started(project: Path, environment: dict[str, str], *more: str) -> subprocess.Popen[bytes]:
    command = [*COMMAND, "test", "suite.yaml", *more]
    process = subprocess.Popen(
        command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    while not (project / "asked.txt").exists():
        assert process.poll() is None
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("group", [False, True])
def test_a_signal_stops_the_run_cleanly_once_however_it_is_sent(
    project: Path, suite: Command, environment: dict[str, str], number: signal.Signals, group: bool
) -> None:
    suite("slow", count=20)
    process = started(project, environment)
    (os.killpg if group else os.kill)(process.pid, number)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"--resume to continue" in out


def test_a_command_that_was_stopped_continues_when_it_is_resumed(
    project: Path, suite: Command, environment: dict[str, str]
) -> None:
    suite("slow", count=8, settings="{parallel: 1}")
    process = started(project, environment)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(1.1)  # longer than the command waits for signals at a time
    os.kill(process.pid, signal.SIGCONT)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, b"")


def test_killing_the_command_leaves_no_process_and_resume_continues(
    project: Path, suite: Command, proctor_process: Command, environment: dict[str, str]
) -> None:
    suite("slow", count=6, settings="{parallel: 2}")
    process = started(project, environment)
    process.kill()
    process.communicate(timeout=120)
    ended = proctor_process("test", "suite.yaml", "--resume")
    assert ended.code == 0
    asked = (project / "asked.txt").read_text().split()
    assert kept(project) == 6
    assert set(asked) == {f"q{n}" for n in range(1, 7)}


def test_resuming_when_every_trial_is_stored_calls_no_agent(
    project: Path, suite: Command, proctor: Command, proctor_process: Command
) -> None:
    suite("echo")
    assert proctor("test", "suite.yaml").code == 0
    store = Store(project / ".proctor", create=False)
    store.reopen_run(store.runs(1)[0].no)  # as if it had been killed just before its verdict
    store.close()
    before = (project / "asked.txt").read_text()
    ended = proctor_process("test", "suite.yaml", "--resume", "--json", "report.json")
    assert ended.code == 0
    assert (project / "asked.txt").read_text() == before
    assert (project / "report.json").exists()


def test_record_with_an_agent_that_ends_the_process_writes_nothing_and_does_not_succeed(
    proctor_process: Command, suite: Command
) -> None:
    path = suite("exits")
    before = path.read_bytes()
    ended = proctor_process("record", "suite.yaml", "--accept-all")
    assert ended.code == 4
    assert "before a verdict" in ended.err
    assert path.read_bytes() == before


SABOTAGE = """
import json
import os
import sys


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["ENDS_AT"]:
            os._exit(0)


sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize(
    ("command", "module"),
    [
        (("grade", "last", "--from", "grades.json"), "proctor.running.review.grading"),
        (("rescore",), "proctor.running.scoring"),
        (("compare", "last", "last"), "proctor.results.comparison.compare"),
        (("show", "last", "--html", "r.html"), "proctor.reporting.html.report_page"),
    ],
)
def test_no_command_ends_with_0_if_code_in_it_ends_the_process(
    proctor: Command, proctor_process: Command, suite: Command, project: Path, command: tuple[str, ...], module: str
) -> None:
    suite("echo", count=1)
    (project / "grades.json").write_text("[]")
    assert proctor("test", "suite.yaml").code == 0
    (project / "sitecustomize.py").write_text(SABOTAGE)
    ended = proctor_process(*command, PYTHONPATH=str(project), ENDS_AT=module)
    assert ended.code == 4
    assert "before a verdict" in ended.err


def test_a_store_that_is_still_open_when_python_ends_says_nothing(project: Path, environment: dict[str, str]) -> None:
    script = (
        "import contextlib, sqlite3, sys\n"
        "from pathlib import Path\n"
        "from proctor.results.store.store import Store\n"
        "kept = [Store(Path('kept'))]\n"
        "kept.append(kept)\n"
        "sys.modules['kept'] = kept\n"
        "contextlib.suppress = sqlite3.Error = None\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=project, env=environment, capture_output=True, check=False, timeout=30
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
