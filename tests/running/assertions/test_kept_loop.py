"""Clients of asynchronous agents belong to an event loop: synchronous calls, one after the other, share one."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

import proctor
from proctor.base.event_loops import close_session_loops, run_in_session_loop

pytest_plugins = "pytester"


class Connected:
    """As clients of models are: a connection and a task that reads it, made by the first question."""

    def __init__(self) -> None:
        self.questions: asyncio.Queue[tuple[str, asyncio.Future[str]]] | None = None
        self.reader: asyncio.Task[None] | None = None

    async def ask(self, text: str) -> str:
        if self.questions is None:
            self.questions = asyncio.Queue()
            self.reader = asyncio.create_task(self._read(self.questions))
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        await self.questions.put((text, answer))
        return await asyncio.wait_for(answer, 5)

    async def _read(self, questions: asyncio.Queue[tuple[str, asyncio.Future[str]]]) -> None:
        while True:
            text, answer = await questions.get()
            answer.set_result(f"you said {text}")


def agent_of(client: Connected) -> object:
    async def agent(text: str) -> str:
        return await client.ask(text)

    return agent


def test_an_agent_keeps_its_connection_over_several_calls_of_a_runner() -> None:
    runner = proctor.AgentRunner(agent_of(Connected()))
    assert [run["actual_output"] for run in runner.run_cases([{"id": name, "input": name} for name in "abc"])] == [
        "you said a",
        "you said b",
        "you said c",
    ]
    assert runner.run_test_case("d").actual_output == "you said d"
    assert runner.run_test_case("e").actual_output == "you said e"


def test_two_runners_of_one_agent_share_the_loop() -> None:
    agent = agent_of(Connected())
    assert proctor.AgentRunner(agent).run_test_case("a").actual_output == "you said a"
    assert proctor.AgentRunner(agent).run_test_case("b").actual_output == "you said b"


@pytest.mark.needs("deepeval")
def test_what_measures_between_two_questions_does_not_end_the_agents_tasks() -> None:
    from proctor.compat.deepeval import LLMTestCase, assert_test
    from proctor.compat.deepeval.metrics import BaseMetric

    class ByClient(BaseMetric):
        """A metric of the user's that asks something over a connection."""

        def __init__(self, client: Connected) -> None:
            self.client = client

        async def a_measure(self, test_case: LLMTestCase) -> float:
            await self.client.ask(test_case.input)
            self.score = 1.0
            return self.score

    client = Connected()
    runner = proctor.AgentRunner(agent_of(client))
    runner.run_test_case("a")
    assert_test(LLMTestCase(input="b", actual_output="c"), [ByClient(client)])
    assert runner.run_test_case("d").actual_output == "you said d"


def test_each_thread_has_its_own_loop_which_ends_with_it() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())

    def twice() -> None:
        run_in_session_loop(main())
        run_in_session_loop(main())

    thread = threading.Thread(target=twice)
    thread.start()
    thread.join()
    run_in_session_loop(main())
    gc.collect()
    assert loops[0] is loops[1] is not loops[2]
    assert loops[0].is_closed() and not loops[2].is_closed()


def test_closing_ends_what_is_left_and_the_next_call_starts_again() -> None:
    left: list[asyncio.Task[None]] = []

    async def main() -> None:
        left.append(asyncio.create_task(asyncio.sleep(3600)))

    run_in_session_loop(main())
    assert not left[0].done()
    close_session_loops()
    assert left[0].cancelled()
    run_in_session_loop(main())


def test_an_interrupted_call_leaves_a_loop_that_works() -> None:
    async def interrupted() -> None:
        raise KeyboardInterrupt

    async def fine() -> int:
        return 1

    with pytest.raises(KeyboardInterrupt):
        run_in_session_loop(interrupted())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_in_session_loop(fine()) == 1


SCRIPT = """
import asyncio, proctor
async def agent(text):
    asyncio.create_task(asyncio.sleep(3600))
    return text
print(proctor.AgentRunner(agent).run_test_case("a").actual_output)
"""


@pytest.mark.process
def test_a_script_ends_without_a_word_about_its_loop(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", SCRIPT]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "a\n", "")


SUITE = """
agent: app.py:agent
settings: {parallel: 1}
evaluators: [{Contains: {any: [said]}}]
cases: [%s]
"""
APP = """
import asyncio
made = []
async def agent(text):
    loop = asyncio.get_running_loop()
    made.append(loop)
    assert made[0] is loop, "another event loop"
    return f"you said {text}"
"""


@pytest.mark.process
def test_all_batches_of_a_pytest_session_share_the_loop(pytester: pytest.Pytester) -> None:
    cases = ", ".join(f"{{id: c{n}, input: hello {n}}}" for n in range(12))
    pytester.path.joinpath("suite.yaml").write_text(SUITE % cases, encoding="utf-8")
    pytester.makepyfile(app=APP)
    done = pytester.runpytest_subprocess("suite.yaml", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=12)
