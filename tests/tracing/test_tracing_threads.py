"""Jobs of thread pools belong to the trial or capture they are submitted in, whatever else wraps the pool."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import proctor
from proctor.agents.tool_mocks import ToolMocks
from proctor.agents.trial_context import MockBypassed, TrialContext, running_trial, take_stray_calls
from proctor.agents.turn_recorder import TurnRecorder
from proctor.cases.suite import Case, ToolMock, Turn
from proctor.results.score import Outcome
from proctor.tracing.capture import capture_traces, suppress_tracing
from proctor.tracing.observe import observe
from proctor.tracing.thread_context import carry_context_into_pools
from proctor.tracing.tool import tool

wrapt = pytest.importorskip("wrapt")


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


def test_a_tool_that_is_called_in_a_pool_is_recorded_in_its_trial_and_its_mock_answers() -> None:
    carry_context_into_pools()
    mocks = ToolMocks({"look_up": (ToolMock(result="mocked"),)})
    turn = TurnRecorder(mocks=mocks)

    async def through_the_loop() -> Any:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as pool:
            return [await asyncio.to_thread(look_up, 3), await loop.run_in_executor(pool, look_up, 4)]

    with running_trial(TrialContext(mocks=mocks, turn=turn)):
        with ThreadPoolExecutor(1) as pool:
            assert list(pool.map(look_up, [1, 2])) == ["mocked"] * 2
        assert asyncio.run(through_the_loop()) == ["mocked"] * 2
    assert [call.arguments["x"] for call in turn.tool_calls] == [1, 2, 3, 4]


def test_the_worker_of_a_pool_belongs_to_no_trial() -> None:
    with ThreadPoolExecutor(1) as pool, capture_traces() as first:
        assert pool.submit(work, 1).result() == 1
        elsewhere = contextvars.Context().run(pool.submit, work, 2)
        assert elsewhere.result() == 2
        with suppress_tracing(), capture_traces() as second:
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

    assert asyncio.run(all_of_them()) == [[i] for i in range(30)]


def test_untraced_code_stays_untraced_in_a_pool() -> None:
    with capture_traces() as handler, suppress_tracing(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(work, 1).result() == 1
    assert outputs(handler) == []


def test_a_capture_without_a_trial_includes_pools_and_executors() -> None:
    async def through_the_loop() -> None:
        await asyncio.get_running_loop().run_in_executor(None, work, "loop")

    shared = ThreadPoolExecutor(1)
    assert shared.submit(work, "before").result() == "before"  # its worker is older than the capture
    with capture_traces() as handler:
        assert shared.submit(work, "pool").result() == "pool"
        asyncio.run(through_the_loop())
    shared.shutdown()
    assert outputs(handler) == ["pool", "loop"]


def test_a_thread_that_is_started_with_a_copy_of_the_context_belongs_to_the_capture() -> None:
    with capture_traces() as handler:
        in_thread(contextvars.copy_context().run, work, 1)
        in_thread(work, 2)
    assert outputs(handler) == [1]


def test_starting_threads_works_as_before() -> None:
    before = threading.Thread.__dict__["start"]
    with capture_traces():
        assert threading.Thread.__dict__["start"] is before


ORDERS = ["ours first", "ours last"]


def with_wrapt(original: Any) -> Any:
    """As OpenTelemetry's ThreadingInstrumentor wraps a method."""

    def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        instance._otel_context = "context"
        return wrapped(*args, **kwargs)

    return wrapt.FunctionWrapper(original, wrapper)


def with_closure(original: Any) -> Any:
    """As Sentry's threading integration wraps a method."""

    @functools.wraps(original)
    def submit(self: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
        return original(self, functools.partial(fn), *args, **kwargs)

    return submit


@pytest.mark.parametrize("wrap", [with_wrapt, with_closure])
@pytest.mark.parametrize("order", ORDERS)
def test_a_pool_that_another_library_has_wrapped_belongs_to_the_trial(
    monkeypatch: pytest.MonkeyPatch, wrap: Any, order: str
) -> None:
    monkeypatch.setattr(ThreadPoolExecutor, "submit", _plain_submit())
    if order == "ours first":
        carry_context_into_pools()
    monkeypatch.setattr(ThreadPoolExecutor, "submit", wrap(ThreadPoolExecutor.__dict__["submit"]))
    carry_context_into_pools()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work, "outside").result() == "outside"
        with capture_traces() as handler:
            assert pool.submit(work, "inside").result() == "inside"
    assert outputs(handler) == ["inside"]


def _plain_submit() -> Any:
    function = ThreadPoolExecutor.__dict__["submit"]
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


@pytest.mark.parametrize("wrap", [with_wrapt, with_closure])
def test_a_run_passes_while_another_library_has_wrapped_the_start_of_threads(
    monkeypatch: pytest.MonkeyPatch, wrap: Any
) -> None:
    def start_with_wrapt(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        instance._otel_context = "context"
        return wrapped(*args, **kwargs)

    def start_with_closure(self: Any) -> Any:
        run = type(self).run

        def traced(*args: Any) -> Any:
            return run(self, *args)

        self.run = traced
        return original(self)

    original = threading.Thread.start
    replacement = wrapt.FunctionWrapper(original, start_with_wrapt) if wrap is with_wrapt else start_with_closure
    monkeypatch.setattr(threading.Thread, "start", replacement)
    seen: list[str] = []

    def agent(question: str) -> str:
        in_thread(seen.append, question)
        return look_up(question)

    run = proctor.run(suite(Case(id="c", turns=(Turn("hello"),))), agent=agent, store=None)
    (trial,) = run.trials
    assert trial.outcome is Outcome.PASSED
    assert [call.name for call in trial.replies[0].tool_calls] == ["look_up"]
    assert seen == ["hello"]


def suite(*cases: Case) -> proctor.Suite:
    return proctor.Suite("s", cases, evaluators=(proctor.EvaluatorSpec("ToolCount", {"at_least": 0}),))


SENT: list[str] = []


@proctor.tool
def post_letter(to: str) -> str:
    SENT.append(to)
    return "sent"


def background_agent(question: str) -> str:
    """Hands its work to a thread that does not know the trial, and swallows whatever goes wrong there."""
    results: list[str] = []

    def serve() -> None:
        try:
            results.append(post_letter("ann"))
        except Exception as error:
            results.append(f"could not: {error}")

    in_thread(serve)
    return results[0]


def test_a_mocked_tool_in_a_foreign_thread_is_an_error_and_is_never_executed() -> None:
    SENT.clear()
    case = Case(id="c", turns=(Turn("hello"),), mocks={"post_letter": (ToolMock(result="ok"),)})
    run = proctor.run(suite(case), agent=background_agent, store=None)
    (trial,) = run.trials
    assert SENT == []
    assert trial.outcome is Outcome.ERROR
    assert "post_letter" in trial.reason


def test_a_mocked_tool_in_a_foreign_thread_is_an_error_even_if_the_agent_raises_or_hangs() -> None:
    SENT.clear()

    def raises(question: str) -> str:
        background_agent(question)
        raise RuntimeError("something else")

    def hangs(question: str) -> str:
        background_agent(question)
        threading.Event().wait(30)
        return ""

    case = Case(id="c", turns=(Turn("hello"),), mocks={"post_letter": (ToolMock(result="ok"),)}, timeout=1)
    for agent in (raises, hangs):
        (trial,) = proctor.run(suite(case), agent=agent, store=None).trials
        assert trial.outcome is Outcome.ERROR
    assert SENT == []


def test_a_thread_that_outlives_its_turn_still_gets_the_mock() -> None:
    SENT.clear()
    answered, tool_called = threading.Event(), threading.Event()
    results: list[str] = []

    def agent(question: str) -> str:
        def later() -> None:
            answered.wait(30)
            results.append(post_letter("bob"))
            tool_called.set()

        threading.Thread(target=contextvars.copy_context().run, args=(later,)).start()
        return "soon"

    case = Case(id="c", turns=(Turn("hello"),), mocks={"post_letter": (ToolMock(result="ok"),)})
    proctor.run(suite(case), agent=agent, store=None)
    answered.set()
    assert tool_called.wait(30)
    assert (SENT, results) == ([], ["ok"])


def test_a_tool_in_a_foreign_thread_is_called_and_counted() -> None:
    SENT.clear()
    take_stray_calls()
    (trial,) = proctor.run(suite(Case(id="c", turns=(Turn("hello"),))), agent=background_agent, store=None).trials
    assert SENT == ["ann"]
    assert trial.replies[0].tool_calls == ()
    (warning,) = trial.warnings
    assert "post_letter" in warning


def test_a_tool_outside_every_trial_is_a_plain_function() -> None:
    SENT.clear()
    take_stray_calls()
    assert post_letter("eve") == "sent"
    assert take_stray_calls() == {}
    with running_trial(TrialContext(mocks=ToolMocks({"post_letter": ()}))), pytest.raises(MockBypassed):
        contextvars.Context().run(post_letter, "eve")
    assert SENT == ["eve"]


@pytest.mark.process
def test_importing_proctor_patches_nothing() -> None:
    program = """
from concurrent.futures import ThreadPoolExecutor
before = ThreadPoolExecutor.submit
import proctor.tracing.tool, proctor.tracing.observe, proctor.tracing.wrap
assert ThreadPoolExecutor.submit is before
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
