"""Instrumentation of other libraries never breaks a trial, in whatever order it and ours are installed and removed."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.instrumentation.threading", reason="the instrumentation that patches threads")

from opentelemetry.instrumentation.threading import ThreadingInstrumentor

import proctor
from proctor.cases.suite import Case, Expected, ExpectedCall, Turn
from proctor.results.score import Outcome
from proctor.tracing.thread_context import carry_context_into_pools


@proctor.tool
def add(a: int, b: int) -> int:
    return a + b


def in_a_function(question: str) -> str:
    return str(add(2, 3))


async def in_a_coroutine(question: str) -> str:
    return str(add(2, 3))


def in_a_pool(question: str) -> str:
    with ThreadPoolExecutor(2) as pool:
        return str(pool.submit(add, 2, 3).result())


async def in_an_executor(question: str) -> str:
    with ThreadPoolExecutor(2) as pool:
        return str(await asyncio.get_running_loop().run_in_executor(pool, add, 2, 3))


async def in_another_thread(question: str) -> str:
    return str(await asyncio.to_thread(add, 2, 3))


def in_its_own_thread(question: str) -> str:
    sums: list[int] = []
    thread = threading.Thread(target=contextvars.copy_context().run, args=(lambda: sums.append(add(2, 3)),))
    thread.start()
    thread.join()
    return str(sums[0])


AGENTS = [in_a_function, in_a_coroutine, in_a_pool, in_an_executor, in_another_thread, in_its_own_thread]


@pytest.fixture
def instrumentor() -> Iterator[Any]:
    instrumentor = ThreadingInstrumentor()  # type: ignore[no-untyped-call]
    yield instrumentor
    if instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()


def check(agent: Callable[..., Any], **options: Any) -> None:
    expected = Expected(contains=proctor.Keywords(any=("5",)), tools=(ExpectedCall("add"),))
    cases = [Case(id=f"c{number}", turns=(Turn("hello", expected=expected),)) for number in range(2)]
    for trial in proctor.run(proctor.Suite("s", tuple(cases)), agent=agent, store=None, **options).trials:
        assert trial.outcome is Outcome.PASSED, trial.reason
        assert [call.name for call in trial.replies[0].tool_calls] == ["add"]


@pytest.mark.parametrize("agent", AGENTS)
def test_trials_pass_while_threads_are_instrumented(instrumentor: Any, agent: Callable[..., Any]) -> None:
    instrumentor.instrument()
    check(agent)


@pytest.mark.parametrize("agent", [in_a_function, in_a_pool, in_an_executor])
def test_a_process_per_trial_records_calls_in_pools_with_instrumented_threads_and_without(
    monkeypatch: pytest.MonkeyPatch, instrumentor: Any, agent: Callable[..., Any]
) -> None:
    monkeypatch.setattr(ThreadPoolExecutor, "submit", _plain_submit())  # as in a new process
    check(agent, isolate=True)
    instrumentor.instrument()
    check(agent, isolate=True)


def _plain_submit() -> Any:
    function = ThreadPoolExecutor.__dict__["submit"]
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def test_instrumentation_may_come_and_go_before_and_after_ours(instrumentor: Any) -> None:
    carry_context_into_pools()
    for _ in range(3):
        instrumentor.instrument()
        check(in_a_pool)
        instrumentor.uninstrument()
        check(in_a_pool)


EVERYTHING = """
import ddtrace.auto
import sentry_sdk
from importlib.metadata import entry_points

sentry_sdk.init(dsn="http://key@127.0.0.1:1/1", traces_sample_rate=1.0, shutdown_timeout=0)
for entry in entry_points(group="opentelemetry_instrumentor"):
    if not entry.value.startswith("openinference"):
        instrumentor = entry.load()()
        if not instrumentor.is_instrumented_by_opentelemetry:
            instrumentor.instrument()

from test_other_instrumentation import in_a_coroutine, in_a_function, in_a_pool, in_an_executor
from test_other_instrumentation import in_another_thread, in_its_own_thread
"""
"""An application in which every instrumentation of the environment is active."""


@pytest.mark.process
@pytest.mark.parametrize("options", [[], ["--isolate"], ["--workers", "2"]], ids=["here", "isolated", "workers"])
def test_all_instrumentation_together_does_not_disturb_a_run(tmp_path: Path, options: list[str]) -> None:
    for name in ("ddtrace", "sentry_sdk", "distributed"):
        pytest.importorskip(name)
    (tmp_path / "app.py").write_text(EVERYTHING)
    for agent in AGENTS:
        case = "{id: one, input: hi, expected: {contains: ['5'], tools: [{name: add, args: {a: 2, b: 3}}]}}"
        suite = f"agent: app.py:{agent.__name__}\ncases:\n  - {case}\n"
        (tmp_path / f"{agent.__name__}.yaml").write_text(suite)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "DD_TRACE_AGENT_URL": "http://127.0.0.1:1"}
    command = [sys.executable, "-m", "proctor", "test", ".", *options]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(AGENTS)} trials" in done.stdout
