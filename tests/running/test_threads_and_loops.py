from __future__ import annotations

import asyncio
import contextvars
import errno
import gc
import inspect
import signal
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import case, cases, echo, echo_async, suite

import proctor
from proctor.base.event_loops import run_blocking, run_sync
from proctor.base.threads import run_in_thread
from proctor.results.store.store import Store


def test_a_run_from_ordinary_code() -> None:
    assert proctor.verdict(proctor.run(suite(cases(3)), echo)).exit_code == 0


def test_a_run_inside_an_event_loop() -> None:
    async def main() -> Any:
        return await proctor.run_async(suite(cases(3)), echo_async)

    assert proctor.verdict(asyncio.run(main())).exit_code == 0


@pytest.mark.parametrize("agent", [echo, echo_async])
def test_the_synchronous_form_works_inside_an_event_loop_as_notebooks_have_one(agent: Any) -> None:
    async def main() -> Any:
        return proctor.run(suite(cases(3)), agent)

    assert proctor.verdict(asyncio.run(main())).exit_code == 0


def test_what_goes_wrong_in_a_run_inside_an_event_loop_reaches_its_caller() -> None:
    async def main() -> Any:
        return proctor.run("missing.yaml", echo)

    with pytest.raises(proctor.InvalidSuite, match=r"missing\.yaml"):
        asyncio.run(main())


def test_an_interrupted_run_inside_an_event_loop_is_stored_as_interrupted(tmp_path: Path) -> None:
    hung, answered = threading.Event(), []

    def agent(question: str) -> str:
        answered.append(question)
        if len(answered) == 2:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            hung.wait(60)
        return question

    async def main() -> Any:
        return proctor.run(suite(cases(3)), agent, parallel=1, store=tmp_path)

    loop = asyncio.new_event_loop()
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(main())
    hung.set()
    loop.close()

    [row] = Store(tmp_path).runs()
    assert row.status == "interrupted"
    assert len(list(Store(tmp_path).trials(row.no))) == 1


def test_runs_in_threads() -> None:
    def in_thread(number: int) -> int:
        return proctor.verdict(proctor.run(suite(cases(20), name=f"suite-{number}"), echo)).exit_code

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(in_thread, range(4))) == [0] * 4


def test_a_run_in_a_thread_while_an_event_loop_runs_here() -> None:
    async def main() -> Any:
        return await asyncio.to_thread(proctor.run, suite(cases(3)), echo)

    assert proctor.verdict(asyncio.run(main())).exit_code == 0


def test_a_run_inside_an_event_loop_leaves_other_tasks_alone() -> None:
    async def main() -> str:
        async def other() -> str:
            await asyncio.sleep(0)
            return "untouched"

        task = asyncio.create_task(other())
        await proctor.run_async(suite(cases(3)), echo_async)
        return await task

    assert asyncio.run(main()) == "untouched"


def test_several_threads_may_write_to_one_store(tmp_path: Path) -> None:
    def in_thread(number: int) -> Any:
        return proctor.run(suite(cases(30), name=f"suite-{number}"), echo, store=tmp_path)

    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(in_thread, range(4)))

    assert [len(list(found.trials)) for found in runs] == [30] * 4


def test_run_sync_gives_back_what_the_coroutine_returns_or_raises() -> None:
    async def returns() -> int:
        return 7

    async def raises() -> int:
        raise KeyError("x")

    async def leaves() -> int:
        raise SystemExit(3)

    assert run_sync(returns()) == 7
    with pytest.raises(KeyError):
        run_sync(raises())
    with pytest.raises(SystemExit):
        run_sync(leaves())


def test_run_sync_does_not_wait_for_tasks_that_never_end() -> None:
    async def endless() -> None:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue

    async def main() -> str:
        main.task = asyncio.create_task(endless())  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        return "done"

    assert run_sync(main()) == "done"


def test_event_loops_are_forgotten_when_they_end() -> None:
    loops: list[weakref.ref[Any]] = []

    async def main() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await run_in_thread(lambda: None)

    for _ in range(3):
        run_sync(main())
    gc.collect()

    assert [loop() for loop in loops] == [None] * 3


def test_threads_see_the_context_of_their_caller_and_do_not_change_it() -> None:
    variable = contextvars.ContextVar("variable", default="nobody")

    def function() -> str:
        seen = variable.get()
        variable.set("the thread")
        return seen

    async def main() -> tuple[str, str]:
        variable.set("the caller")
        return await run_in_thread(function), variable.get()

    assert run_sync(main()) == ("the caller", "the caller")


def test_idle_threads_are_used_again() -> None:
    async def main() -> set[str]:
        return {await run_in_thread(lambda: threading.current_thread().name) for _ in range(50)}

    before = threading.active_count()
    run_sync(main())

    assert threading.active_count() <= before + 2


@pytest.mark.parametrize("error", [StopIteration("x"), KeyError("x"), SystemExit(3), KeyboardInterrupt()])
def test_whatever_a_thread_raises_arrives(error: BaseException) -> None:
    def function() -> None:
        raise error

    async def main() -> None:
        await run_in_thread(function)

    with pytest.raises(Exception, match=r"x|SystemExit|KeyboardInterrupt"):
        run_sync(main())


def test_sync_code_may_ask_its_thread_for_an_event_loop_again_and_again() -> None:
    """As the sync wrappers of frameworks do; `asyncio.run` in between takes the loop of its thread away."""

    async def answer() -> str:
        return "from a loop"

    def old_style() -> str:
        return asyncio.get_event_loop().run_until_complete(answer())

    def closes() -> None:
        asyncio.get_event_loop().close()

    async def main() -> list[Any]:
        calls = [old_style, lambda: asyncio.run(answer()), old_style, closes, old_style]
        return [await run_in_thread(call) for call in calls]

    assert run_sync(main()) == ["from a loop", "from a loop", "from a loop", None, "from a loop"]


def test_exiting_in_a_thread_of_the_agents_own_code_does_not_stop_the_loop() -> None:
    async def main() -> str:
        with pytest.raises(proctor.AgentFailed, match="SystemExit"):
            await asyncio.to_thread(sys.exit, 0)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await asyncio.to_thread(next, iter(()))
        return "still here"

    assert run_sync(main()) == "still here"


ABANDONS = """
import asyncio, sys, time
from proctor.base.event_loops import run_blocking, run_sync
from proctor.base.threads import run_in_thread

async def main():
    for call in (run_in_thread(time.sleep, 3600), asyncio.to_thread(time.sleep, 3600)):
        try:
            await asyncio.wait_for(call, 0.1)
        except TimeoutError:
            print("abandoned")

run_sync(main())
"""


@pytest.mark.process
def test_calls_that_were_abandoned_do_not_keep_the_process_alive() -> None:
    """Nor does anything complain about what is left open, such as the event loops of their threads."""
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", ABANDONS]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "abandoned\nabandoned\n", "")


class Mute(BaseException):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_that_cannot_be_shown_arrives_too() -> None:
    def function() -> None:
        raise Mute

    async def main() -> None:
        await asyncio.wait_for(run_in_thread(function), 10)

    with pytest.raises(proctor.AgentFailed, match="Mute"):
        run_sync(main())


def test_an_answer_that_comes_after_the_loop_has_ended_has_no_effect() -> None:
    begun, release, over = threading.Event(), threading.Event(), threading.Event()

    def function() -> None:
        begun.set()
        release.wait(30)
        over.set()

    async def main() -> None:
        task = asyncio.create_task(run_in_thread(function))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        task.cancel()

    run_sync(main())
    release.set()
    assert over.wait(30)
    assert proctor.verdict(proctor.run(suite([case("c")]), echo)).exit_code == 0


@pytest.mark.parametrize("run", [run_sync, run_blocking])
def test_a_coroutine_that_gets_no_loop_is_not_left_waiting(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        return

    def no_descriptors() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(asyncio, "new_event_loop", no_descriptors)
    main = work()
    with pytest.raises(OSError, match="Too many open files"):
        run(main)
    assert inspect.getcoroutinestate(main) == inspect.CORO_CLOSED
