from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from proctor.tracing.capture import capture_traces, capturing, untraced
from proctor.tracing.observing import observe
from proctor.tracing.trial_recording import CURRENT, Recording, tool
from proctor.tracing.watching import carry_context_into_threads


@observe
def work(x: Any) -> Any:
    return x


@tool
def look_up(x: Any) -> Any:
    return x


def in_thread(function: Any, *args: Any) -> None:
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


def outputs(handler: Any) -> list[Any]:
    return [span.output for span in handler.spans]


def test_a_thread_that_is_started_in_a_capture_belongs_to_it() -> None:
    with carry_context_into_threads(), capture_traces() as handler:
        in_thread(work, 1)
    assert outputs(handler) == [1]


def test_a_tool_that_is_called_in_a_thread_is_recorded_in_its_trial() -> None:
    recording = Recording()
    token = CURRENT.set(recording)
    try:
        with carry_context_into_threads():
            in_thread(look_up, 1)
            with ThreadPoolExecutor(1) as pool:
                assert list(pool.map(look_up, [2, 3])) == [2, 3]
    finally:
        CURRENT.reset(token)
    assert [call.arguments for call in recording.tool_calls] == [{"x": 1}, {"x": 2}, {"x": 3}]


def test_subclasses_and_timers_are_carried_too() -> None:
    class Own(threading.Thread):
        def run(self) -> None:
            work("own")

    with carry_context_into_threads(), capture_traces() as handler:
        for thread in (Own(), threading.Timer(0, work, ["timer"])):
            thread.start()
            thread.join()
            assert "run" not in vars(thread)
    assert outputs(handler) == ["own", "timer"]


def test_the_worker_of_a_pool_belongs_to_no_trial() -> None:
    with carry_context_into_threads(), ThreadPoolExecutor(1) as pool, capture_traces() as first:
        assert pool.submit(work, 1).result() == 1
        elsewhere = contextvars.Context().run(pool.submit, work, 2)
        assert elsewhere.result() == 2
        with untraced(), capture_traces() as second:
            assert pool.submit(work, 3).result() == 3
    assert (outputs(first), outputs(second)) == ([1], [3])


def test_concurrent_captures_stay_apart_in_a_pool_they_share() -> None:
    async def one(pool: ThreadPoolExecutor, i: int) -> list[Any]:
        with capture_traces() as handler:
            await asyncio.get_running_loop().run_in_executor(pool, work, i)
        return outputs(handler)

    async def all_of_them() -> list[Any]:
        with ThreadPoolExecutor(3) as pool:
            return await asyncio.gather(*(one(pool, i) for i in range(30)))

    with carry_context_into_threads():
        assert asyncio.run(all_of_them()) == [[i] for i in range(30)]


def test_what_is_untraced_stays_so_in_a_thread() -> None:
    with carry_context_into_threads(), capture_traces() as handler, untraced():
        in_thread(work, 1)
    assert outputs(handler) == []


def test_the_standard_library_is_put_back_exactly_as_it_was() -> None:
    before = threading.Thread.__dict__["start"], ThreadPoolExecutor.__dict__["submit"]
    with carry_context_into_threads():
        with carry_context_into_threads():
            assert threading.Thread.__dict__["start"] is not before[0]
        assert threading.Thread.__dict__["start"] is not before[0]
    assert (threading.Thread.__dict__["start"], ThreadPoolExecutor.__dict__["submit"]) == before


def test_a_function_that_another_library_put_in_place_later_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", threading.Thread.start)
    with carry_context_into_threads():
        ours = threading.Thread.start

        def theirs(thread: Any) -> None:
            ours(thread)

        threading.Thread.start = theirs  # type: ignore[method-assign]
    assert threading.Thread.start is theirs
    with capturing() as handler:
        in_thread(work, 1)
    with carry_context_into_threads(), capturing() as carried:
        in_thread(work, 2)
    assert (outputs(handler), outputs(carried)) == ([], [2])


def test_a_thread_outside_a_trial_is_started_as_ever() -> None:
    done: list[bool] = []
    with carry_context_into_threads():
        thread = threading.Thread(target=done.append, args=(True,))
        thread.start()
        thread.join()
    assert done == [True]


def test_a_thread_cannot_be_started_twice_as_ever() -> None:
    with carry_context_into_threads(), capture_traces():
        thread = threading.Thread(target=work, args=(1,))
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError):
            thread.start()


def test_a_capture_alone_sees_threads_pools_and_executors() -> None:
    async def through_the_loop() -> None:
        await asyncio.get_running_loop().run_in_executor(None, work, "loop")

    shared = ThreadPoolExecutor(1)
    assert shared.submit(work, "before").result() == "before"  # its worker is older than the capture
    with capture_traces() as handler:
        in_thread(work, "thread")
        assert shared.submit(work, "pool").result() == "pool"
        asyncio.run(through_the_loop())
    shared.shutdown()
    in_thread(work, "after")
    assert outputs(handler) == ["thread", "pool", "loop"]


def test_a_multiprocessing_thread_pool_serves_one_capture_after_the_other() -> None:
    from multiprocessing.pool import ThreadPool

    with ThreadPool(2) as pool:
        with capture_traces() as first:
            assert pool.map(work, [1, 2]) == [1, 2]
            assert pool.apply(work, (3,)) == 3
        with capture_traces() as second:
            assert list(pool.imap(work, [4])) == [4]
            assert pool.starmap(work, [(5,)]) == [5]
        assert pool.apply(work, (6,)) == 6
    assert (sorted(outputs(first)), sorted(outputs(second))) == ([1, 2, 3], [4, 5])
    assert "apply_async" not in vars(ThreadPool)


def test_a_thread_pool_made_in_one_capture_does_not_belong_to_it() -> None:
    from multiprocessing.pool import ThreadPool

    with capture_traces() as first:
        pool = ThreadPool(1)
        assert pool.apply(work, (1,)) == 1
    with pool, capture_traces() as second:
        assert pool.apply(work, (2,)) == 2
    assert (outputs(first), outputs(second)) == ([1], [2])
