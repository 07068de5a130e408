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


WAYS_IN = {
    "run_async": "asyncio.run(proctor.run_async(suite, slow))",
    "run_async in a loop of one's own": "asyncio.new_event_loop().run_until_complete(proctor.run_async(suite, slow))",
    "rescore": "run.rescore(evaluators=[EvaluatorSpec('waits.py:waits')])",
    "AgentEvaluator": (
        "from proctor.compat.adk import AgentEvaluator; "
        "asyncio.run(AgentEvaluator.evaluate('waits.py:slow', 'faq.test.json', num_runs=1))"
    ),
    "TestExecutor": (
        "from proctor.compat.holodeck import TestExecutor; asyncio.run(TestExecutor('agent.yaml').execute_tests())"
    ),
}
WAITS = """
import time

def slow(message):
    open("waits.txt", "w").close()
    time.sleep(60)

def waits(evaluable):
    open("waits.txt", "w").close()
    time.sleep(60)
"""
WAY_IN = """
import asyncio, proctor
from proctor import EvaluatorSpec
from waits import slow

case = proctor.Case(id="a", turns=(proctor.Turn("hi", expected=proctor.Expected(output="hi")),))
suite = proctor.Suite("s", cases=(case,), evaluators=(EvaluatorSpec("ExactMatch"),))
run = proctor.run(suite, lambda message: "hi")
"""
EVAL_SET = (
    '{"eval_set_id": "faq", "eval_cases": [{"eval_id": "a", "conversation": [{"user_content": {"parts": '
    '[{"text": "hi"}]}, "final_response": {"parts": [{"text": "hi"}]}}]}]}'
)
AGENT = (
    "name: desk\nmodel: {provider: openai, name: gpt-4o}\nagent: waits.py:slow\n"
    "test_cases: [{name: one, input: hi, ground_truth: hi}]\n"
    "evaluations: {metrics: [{type: standard, metric: bleu, threshold: 0.5}]}\n"
)


@pytest.mark.needs("adk", "holodeck")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_script_whichever_function_it_called(tmp_path: Path, number: signal.Signals) -> None:
    processes = {}
    for name, call in WAYS_IN.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "waits.py").write_text(WAITS)
        (folder / "faq.test.json").write_text(EVAL_SET)
        (folder / "agent.yaml").write_text(AGENT)
        (folder / "script.py").write_text(f"{WAY_IN}\n{call}\nopen('went-on.txt', 'w').close()\n")
        processes[name] = subprocess.Popen([sys.executable, "script.py"], cwd=folder, stderr=subprocess.PIPE, text=True)
    codes, errors = {}, {}
    for name, process in processes.items():
        while not (tmp_path / name / "waits.txt").exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(number)
        errors[name] = process.communicate(timeout=60)[1]
        codes[name] = process.returncode
    assert 0 not in codes.values(), errors
    assert not [name for name in WAYS_IN if (tmp_path / name / "went-on.txt").exists()]
    ends = (-signal.SIGINT, 130) if number is signal.SIGINT else (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert {name: code for name, code in codes.items() if code not in ends} == {}, errors
