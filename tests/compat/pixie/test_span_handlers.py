"""Handlers that were added for the whole process see every span, and harm nothing."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from proctor.compat.pixie.span_handlers import add_handler, flush, remove_handler
from proctor.tracing.capture import MemoryTraceHandler, capture_traces, suppress_tracing
from proctor.tracing.observe import observe
from proctor.tracing.spans import ObserveSpan


@observe
def greet(who: str) -> str:
    return f"hello {who}"


def outputs(handler: MemoryTraceHandler) -> list[Any]:
    return [span.output for span in handler.spans if isinstance(span, ObserveSpan)]


def test_untraced_calls_are_in_no_capture_and_reach_no_handler(handler: Keeping) -> None:
    with capture_traces() as capture:
        with suppress_tracing():
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


@pytest.mark.process
def test_spans_still_on_their_way_are_shown_before_the_process_ends() -> None:
    program = """
from proctor.compat.pixie.span_handlers import add_handler
from proctor.tracing.observe import observe
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
