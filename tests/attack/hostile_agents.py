"""Agents and evaluators that do what no agent should: each does it when asked `q3`, and answers otherwise."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path


def echo(question):
    with Path("asked.txt").open("a") as file:
        file.write(f"{question}\n")
    return question


def _hostile(act):
    def agent(question):
        if question == "q3":
            act()
        return question

    return agent


def _hold():
    """Nothing else in this process runs any more, as in a pattern that backtracks, but without its computing."""
    libc, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(256)
    libc.pthread_mutex_init(mutex, None)
    for _ in range(2):  # the second time waits for ever, and no signal ends it
        libc.pthread_mutex_lock(mutex)


exits = _hostile(lambda: os._exit(0))
segfaults = _hostile(lambda: ctypes.string_at(0))
killed = _hostile(lambda: os.kill(os.getpid(), signal.SIGKILL))
thread_exits = _hostile(lambda: threading.Thread(target=sys.exit, args=(0,)).start())
holds_the_interpreter = _hostile(_hold)
forks = _hostile(lambda: os.fork())
base_exception = _hostile(lambda: (_ for _ in ()).throw(BaseException("bare")))


def closes_everything(question):
    if question == "q3":
        os.closerange(3, 64)
        os._exit(0)
    return question


async def generator_exit(question):
    if question == "q3":
        raise GeneratorExit
    return question


async def base_group(question):
    if question == "q3":
        raise BaseExceptionGroup("several", [GeneratorExit(), KeyboardInterrupt()])
    return question


async def forks_async(question):
    if question == "q3":
        os.fork()
    return question


def exits_at_the_end(question):
    import atexit

    if question == "q1":
        atexit.register(os._exit, 0)
    return "wrong"


def hangs_at_the_end(question):
    if question == "q1":
        threading.Thread(target=time.sleep, args=(600,)).start()
    return question


def patches_clocks(question):
    if question == "q1":
        time.time = time.monotonic = time.perf_counter = lambda: 0.0
    if question == "q3":
        threading.Event().wait(60)
    return question


def slow(question):
    time.sleep(0.4)
    return echo(question)


def huge(question):
    return "x" * 50_000_000 if question == "q3" else question


def deep_and_large(question):
    return {"answer": {"rows": ["x" * 1000] * 50_000}} if question == "q3" else question


def endless_stream(question):
    if question == "q3":
        while True:
            yield "x" * 1000
    yield question


async def endless_async_stream(question):
    while question == "q3":
        yield "x" * 1000
        await asyncio.sleep(0)
    yield question


class SlowText(Exception):
    def __str__(self):
        time.sleep(60)
        return "late"


class RaisingText(Exception):
    def __str__(self):
        raise SystemExit(0)


def slow_text(question):
    if question == "q3":
        raise SlowText
    return question


def raising_text(question):
    if question == "q3":
        raise RaisingText
    return question


def loud_error(question):
    if question == "q3":
        raise ValueError("x" * 30_000_000)
    return question


def removes_the_store(question):
    import shutil

    if question == "q3":
        shutil.rmtree(".proctor")
    return question


def leaves_descendants(question):
    if question == "q3":
        subprocess.Popen(["sleep", "77.25"], start_new_session=True, stdout=subprocess.DEVNULL)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execvp("sleep", ["sleep", "77.25"])
            os._exit(0)
        time.sleep(30)
    return question


def workflow_command(question):
    commands = "fine\n::error::forged\n   ::stop-commands::x\n##vso[task.complete]\n##teamcity[a]\n##[error]x\n"
    return f"{commands}\x1b[0Ksection_start:1:a\r\x1b[0K"


def exiting_check(evaluable):
    if evaluable.output == "q3":
        os._exit(0)
    return 1.0


async def generator_exit_check(evaluable):
    if evaluable.output == "q3":
        raise GeneratorExit
    return 1.0


def infinite_check(evaluable):
    return float("inf")


def slow_reason_check(evaluable):
    from proctor import Evaluation

    return Evaluation(1.0, SlowText())
