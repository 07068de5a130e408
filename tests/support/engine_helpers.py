"""Agents and suites that the tests of the engine run, in this process and in others."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from builders import EXACT, case, cases, suite  # noqa: F401  the tests of the engine import them from here

import proctor
from proctor.cases.suite import Suite
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions

HERE = Path(__file__).parent


def run(
    *suites: Suite,
    agent: Any = None,
    store: Path | None = None,
    listener: Any = None,
    resume: bool = False,
    reuse: bool = False,
    **options: Any,
) -> tuple[Run, RunVerdict]:
    """A run without waits between retries."""
    chosen = RunOptions(**({"backoff": 0.0} | options))
    return run_suites(RunRequest(suites, chosen, agent=agent, store=store, resume=resume, reuse=reuse), listener)


def trials_of(found: tuple[Run, RunVerdict]) -> list[Trial]:
    return list(found[0].trials)


def only(found: tuple[Run, RunVerdict]) -> Trial:
    (trial,) = found[0].trials
    return trial


def outcomes(found: tuple[Run, RunVerdict]) -> dict[str, Outcome]:
    return {trial.case.id: trial.outcome for trial in found[0].trials}


def spawn(script: str, *arguments: str | Path, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    """Another Python that can import this module."""
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": path} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], seconds: float = 60) -> tuple[int, str, str]:
    """How a process ended; one that does not end by itself in time is a failure."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"the process did not end by itself\n{out}\n{err}") from None
    return process.returncode, out, err


def echo(question: str) -> str:
    return question


async def echo_async(question: str) -> str:
    return question


@proctor.tool
async def look_up(key: str) -> str:
    await asyncio.sleep(0)
    return f"value of {key}"


@proctor.tool
def look_up_at_once(key: str) -> str:
    return f"value of {key}"


async def forgetful_async(question: str) -> str:
    """Uses a tool for its own question, with many chances in between to be mixed up with others."""
    seen = []
    for step in range(3):
        await asyncio.sleep(0)
        seen.append(await look_up(f"{question}/{step}"))
    return seen[0].removeprefix("value of ").removesuffix("/0")


EVERYBODY = threading.Barrier(20)


def forgetful_sync(question: str) -> str:
    """Twenty are inside at once, each with its tool calls before and after they meet."""
    look_up_at_once(f"{question}/0")
    EVERYBODY.wait(timeout=60)
    look_up_at_once(f"{question}/1")
    return look_up_at_once(f"{question}/2").removeprefix("value of ").removesuffix("/2")


async def awaits_forever(question: str) -> str:
    if question.startswith("bad"):
        await asyncio.Event().wait()
    return question


def blocks_its_thread(question: str) -> str:
    if question.startswith("bad"):
        threading.Event().wait()
    return question


async def blocks_a_thread_of_its_own(question: str) -> str:
    if question.startswith("bad"):
        await asyncio.to_thread(threading.Event().wait)
    return await asyncio.to_thread(str, question)


async def blocks_the_loop(question: str) -> str:
    if question.startswith("bad"):
        time.sleep(3600)
    for _ in range(20):
        await asyncio.sleep(0.001)
    return question


async def refuses_to_be_cancelled(question: str) -> str:
    while question.startswith("bad"):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue
    return question
