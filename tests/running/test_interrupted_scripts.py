"""Ctrl-C in a script that calls `proctor.run` ends the script, after the run has cleaned up."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proctor.results.store.store import Store

pytestmark = pytest.mark.process

SCRIPT = """
import pathlib, time
import proctor

STOPPED = pathlib.Path("stopped.txt")

class Slow:
    name = "slow"
    async def stop(self):
        STOPPED.write_text("stopped")
    def session(self, case):
        return self
    async def __aenter__(self):
        return self
    async def __aexit__(self, *_):
        pass
    async def send(self, turn):
        import asyncio
        with open("asked.txt", "a") as log:
            log.write("asked\\n")
        await asyncio.sleep(60)

case = proctor.Case(id="a", turns=(proctor.Turn("hi"),))
suite = proctor.Suite("s", (case,), evaluators=(proctor.EvaluatorSpec("ExactMatch"),))
for model in range(3):
    proctor.run(suite, Slow(), store=".proctor")
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_a_signal_ends_the_script_and_not_only_the_run(tmp_path: Path, number: signal.Signals, code: int) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    asked = tmp_path / "asked.txt"
    while not asked.exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)

    assert process.returncode == code, errors
    assert asked.read_text().split() == ["asked"]
    assert (tmp_path / "stopped.txt").exists()
    [row] = Store(tmp_path / ".proctor").runs()
    assert row.status == "interrupted"


POOLS = """
import multiprocessing, os, signal, time
import proctor

def square(number):
    return number * number

def pooled(message):
    with multiprocessing.get_context("fork").Pool(1) as pool:  # ends its process with SIGTERM
        return str(pool.apply(square, (3,)))

def ended_child(message):
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    time.sleep(0.05)
    os.kill(child, signal.SIGTERM)
    return str(9 if os.waitpid(child, 0)[1] else 0)

cases = tuple(
    proctor.Case(id=f"c{n}", turns=(proctor.Turn("hi", expected=proctor.Expected(output="9")),)) for n in range(10)
)
suite = proctor.Suite("s", cases=cases, evaluators=(proctor.EvaluatorSpec("ExactMatch"),))
for agent in (pooled, ended_child):
    run = proctor.run(suite, agent, store=".proctor")
    print(run.status, len(run.trials), {trial.outcome.value for trial in run.trials})
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_signal_to_a_process_that_the_agent_forked_does_not_interrupt_the_run(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(POOLS)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == ["finished 10 {'passed'}"] * 2, done.stderr
