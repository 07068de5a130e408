from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from proctor.tracing.capture import MemoryTraceHandler, add_handler, capture_traces, flush, remove_handler, untraced
from proctor.tracing.observing import observe
from proctor.tracing.spans import ObserveSpan


@observe
def greet(who: str) -> str:
    return f"hello {who}"


@observe("slow greeting")
async def greet_later(who: str) -> str:
    await asyncio.sleep(0)
    return greet(who)


def outputs(handler: MemoryTraceHandler) -> list[Any]:
    return [span.output for span in handler.spans if isinstance(span, ObserveSpan)]


def test_a_capture_has_the_spans_of_its_block_and_no_others() -> None:
    greet("nobody")
    with capture_traces() as handler:
        greet("Ann")
    greet("nobody")
    assert outputs(handler) == ["hello Ann"]


def test_concurrent_captures_never_see_each_others_spans() -> None:
    async def one(who: str) -> list[Any]:
        with capture_traces() as handler:
            await asyncio.gather(*(asyncio.create_task(greet_later(f"{who}{i}")) for i in range(5)))
        return sorted(set(outputs(handler)))

    async def all_of_them() -> list[list[Any]]:
        return await asyncio.gather(*(one(chr(65 + i)) for i in range(20)))

    found = asyncio.run(all_of_them())
    assert found == [[f"hello {chr(65 + i)}{j}" for j in range(5)] for i in range(20)]


def test_a_capture_inside_a_capture_is_seen_by_both() -> None:
    with capture_traces() as outer:
        with capture_traces() as inner:
            greet("both")
        greet("outer")
    assert outputs(inner) == ["hello both"]
    assert outputs(outer) == ["hello both", "hello outer"]


def test_a_span_that_ends_after_the_capture_is_not_part_of_it() -> None:
    async def late() -> list[Any]:
        with capture_traces() as handler:
            task = asyncio.create_task(greet_later("late"))
        await task
        return outputs(handler)

    assert asyncio.run(late()) == []


def test_a_capture_may_be_left_in_another_context_than_it_was_entered_in() -> None:
    import contextvars

    capture = capture_traces()
    handler = contextvars.copy_context().run(capture.__enter__)
    capture.__exit__(None, None, None)
    assert handler.spans == []


def test_a_capture_that_is_left_by_an_exception_is_left() -> None:
    with pytest.raises(ZeroDivisionError), capture_traces() as handler:
        greet("before")
        raise ZeroDivisionError
    greet("after")
    assert outputs(handler) == ["hello before"]


def test_traces_are_given_as_trees_by_their_id() -> None:
    with capture_traces() as handler:
        asyncio.run(greet_later("Ann"))
        greet("Bob")
    traces = handler.get_all_traces()
    assert [[root.name for root in roots] for roots in traces.values()] == [["slow greeting"], ["greet"]]
    first = next(iter(traces))
    [root] = handler.get_trace(first)
    assert [child.name for child in root.children] == ["greet"]
    assert handler.get_trace("unknown") == []
    handler.clear()
    assert handler.spans == []


def test_untraced_calls_are_in_no_capture_and_reach_no_handler(handler: Keeping) -> None:
    with capture_traces() as capture:
        with untraced():
            greet("judge")
            with capture_traces() as inner:
                greet("inner")
        greet("agent")
    assert flush()
    assert outputs(capture) == ["hello agent"]
    assert outputs(inner) == ["hello inner"]
    assert [span.output for span in handler.seen] == ["hello agent"]


class Keeping:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def on_observe(self, span: Any) -> None:
        self.seen.append(span)


@pytest.fixture
def handler() -> Iterator[Keeping]:
    keeping = Keeping()
    add_handler(keeping)
    yield keeping
    flush()
    remove_handler(keeping)


def test_an_added_handler_sees_everything(handler: Keeping) -> None:
    greet("outside")
    with capture_traces():
        greet("inside")
    thread = threading.Thread(target=greet, args=("thread",))
    thread.start()
    thread.join()
    assert flush()
    assert sorted(span.output for span in handler.seen) == ["hello inside", "hello outside", "hello thread"]


def test_a_removed_handler_sees_nothing_more() -> None:
    keeping = Keeping()
    add_handler(keeping)
    greet("one")
    remove_handler(keeping)
    greet("two")
    assert flush()
    assert [span.output for span in keeping.seen] == ["hello one"]
    with pytest.raises(ValueError, match="was not added"):
        remove_handler(keeping)


def test_a_handler_without_the_method_and_one_that_raises_do_no_harm(
    handler: Keeping, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def on_observe(self, span: Any) -> None:
            raise ZeroDivisionError("no")

    broken, bare = Broken(), object()
    add_handler(broken)
    add_handler(bare)
    with caplog.at_level(logging.WARNING, "proctor.tracing"):
        greet("Ann")
        assert flush()
    remove_handler(broken)
    remove_handler(bare)
    assert [span.output for span in handler.seen] == ["hello Ann"]
    assert "Broken failed on a span: ZeroDivisionError: no" in caplog.text


def test_a_handler_that_is_observed_itself_does_not_go_round_in_circles(handler: Keeping) -> None:
    class Greeting:
        def on_observe(self, span: Any) -> None:
            greet("again")

    greeting = Greeting()
    add_handler(greeting)
    greet("once")
    assert flush()
    remove_handler(greeting)
    assert [span.output for span in handler.seen] == ["hello once"]


def test_flush_gives_up_when_its_time_is_over_and_says_so() -> None:
    go_on = threading.Event()

    class Stuck:
        def on_observe(self, span: Any) -> None:
            go_on.wait(30)

    stuck = Stuck()
    add_handler(stuck)
    greet("Ann")
    assert flush(0.05) is False
    go_on.set()
    assert flush(30) is True
    remove_handler(stuck)


def test_spans_still_on_their_way_are_shown_before_the_process_ends() -> None:
    program = """
from proctor.tracing.capture import add_handler
from proctor.tracing.observing import observe
class Printing:
    async def on_observe(self, span):
        import asyncio
        await asyncio.sleep(0.05)
        print(span.name)
add_handler(Printing())
observe("seen")(lambda: None)()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("seen\n", "")


def test_capturing_does_not_load_opentelemetry_for_its_own_sake() -> None:
    program = """
import sys
from proctor.tracing.capture import capturing
from proctor.tracing.observing import observe
with capturing() as handler:
    observe("seen")(lambda: None)()
print(len(handler.spans), "opentelemetry" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("1 False\n", "")
