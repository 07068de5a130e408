"""The parent process of a command: its exit code is the verdict, and it never waits for what an agent left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

HEAD = """
import os, signal, subprocess, sys, time
from pathlib import Path
from proctor.base.guard import extend_deadline, is_guarded, run_guarded, run_unguarded, send_heartbeat, report_exit_code
"""


def start(body: str, folder: Path, run: str = "run_guarded") -> subprocess.Popen[str]:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    script = f"{HEAD}def main():\n{lines}\n{run}(main)\n"
    command = [sys.executable, "-c", script]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def wait_for(path: Path) -> str:
    for _ in range(2000):
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.01)
    raise AssertionError(f"{path.name} was not written")


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("code", [0, 1, 3])
def test_the_exit_code_is_the_verdict_whatever_the_process_ends_with(tmp_path: Path, code: int) -> None:
    assert end(start(f"report_exit_code({code})\nos._exit(7)", tmp_path)) == (code, "", "")


def test_a_process_that_ends_without_a_verdict_is_an_error_with_the_case_that_ran(tmp_path: Path) -> None:
    code, _, err = end(start("send_heartbeat(60, 'desk/c3\\nverdict 0')\nos._exit(0)", tmp_path))
    assert code == 4
    assert "exit code 0 during case desk/c3 verdict 0, before a verdict" in err


def test_exiting_with_0_is_not_a_success_without_a_guard_process_either(tmp_path: Path) -> None:
    code, _, err = end(start("assert not is_guarded()\nos._exit(0)", tmp_path, "run_unguarded"))
    assert (code, "before a verdict" in err) == (4, True)
    assert end(start("raise SystemExit(0)", tmp_path, "run_unguarded"))[0] == 0


def test_an_orphaned_process_does_not_delay_the_end(tmp_path: Path) -> None:
    body = "if os.fork() == 0:\n    Path('orphan').write_text(str(os.getpid()))\n    time.sleep(600)\n    os._exit(0)"
    process = start(
        f"{body}\nwhile not Path('orphan').exists(): time.sleep(0.01)\nreport_exit_code(0)\nos._exit(0)", tmp_path
    )
    try:
        assert process.wait(60) == 0
    finally:
        os.kill(int(wait_for(tmp_path / "orphan")), signal.SIGKILL)
        process.communicate()


def test_killing_the_parent_ends_the_child_at_its_next_heartbeat(tmp_path: Path) -> None:
    body = "Path('child').write_text(str(os.getpid()))\nwhile True:\n    send_heartbeat(60, 'c')\n    time.sleep(0.05)"
    process = start(body, tmp_path)
    child = int(wait_for(tmp_path / "child"))
    process.kill()
    process.communicate()
    for _ in range(1000):
        if not is_running(child):
            break
        time.sleep(0.01)
    assert not is_running(child)


def test_a_file_that_reuses_the_descriptor_of_the_pipe_is_not_written_to(tmp_path: Path) -> None:
    """An agent that closes all descriptors makes room for files, such as reports, under their numbers."""
    body = (
        "os.closerange(3, 100)\nfiles = [open(f'file{n}', 'w') for n in range(20)]\n"
        "send_heartbeat(60, 'c')\nreport_exit_code(0)\nos._exit(0)"
    )
    code, _, err = end(start(body, tmp_path))
    assert (code, "before a verdict" in err) == (4, True)
    assert {path.stat().st_size for path in tmp_path.glob("file*")} == {0}


CATCHES = """
caught = []
def handler(*arguments): caught.append(1)
signal.signal(signal.SIGINT, handler)
Path('ready').write_text('yes')
while not caught: time.sleep(0.01)
signal.signal(signal.SIGINT, signal.SIG_IGN)
time.sleep(1)
report_exit_code(130)
print(len(caught), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("group", [False, True])
def test_a_signal_reaches_the_child_once_whether_it_is_sent_to_the_command_or_to_its_group(
    tmp_path: Path, group: bool
) -> None:
    process = start(CATCHES, tmp_path)
    wait_for(tmp_path / "ready")
    (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
    assert end(process) == (130, "1\n", "")


GOES_ON = """
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *arguments: Path('signalled').write_text('yes'))
Path('child').write_text(str(os.getpid()))
while True: time.sleep(600)
"""


def test_the_second_signal_ends_a_child_that_does_not_stop(tmp_path: Path) -> None:
    process = start(GOES_ON, tmp_path)
    child = int(wait_for(tmp_path / "child"))
    os.kill(process.pid, signal.SIGINT)
    wait_for(tmp_path / "signalled")  # on a busy machine the parent sees a signal later than it was sent
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    assert end(process) == (130, "", "interrupted\n")
    assert not is_running(child)


def test_a_child_without_a_heartbeat_is_ended_after_its_deadline(tmp_path: Path) -> None:
    body = "send_heartbeat(0.1, 'c1')\nextend_deadline(2)\ntime.sleep(6.5)\nsend_heartbeat(0.1, 'c2')\ntime.sleep(600)"
    code, _, err = end(start(body, tmp_path))
    assert code == 4
    assert "case c2 blocked the interpreter" in err
