"""An agent that is asked for a piece of mischief by name, and does it; a question that begins with `q` it answers."""

import asyncio
import gc
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path


class Raises:
    """Raises what is no `Exception` wherever it is touched."""

    def __repr__(self):
        raise SystemExit(0)

    __str__ = __repr__

    def __eq__(self, other):
        raise SystemExit(0)

    def __hash__(self):
        raise SystemExit(0)


class RaisesForAttributes:
    def __getattribute__(self, name):
        raise KeyboardInterrupt


class RaisesForClass:
    @property
    def __class__(self):
        raise SystemExit(0)


class NeverSaysWhatItIs:
    def __repr__(self):
        while True:
            time.sleep(0.05)


class Text(str):
    def __len__(self):
        raise SystemExit(0)

    def encode(self, *arguments):
        raise SystemExit(0)


class Table(dict):
    def items(self):
        raise SystemExit(0)


class EndlessTable(dict):
    def items(self):
        number = 0
        while True:
            number += 1
            yield str(number), number


class Own(BaseException):
    pass


class OwnWithoutText(BaseException):
    def __str__(self):
        raise Own


def _deep():
    nested = []
    for _ in range(100_000):
        nested = [nested]
    return nested


def _cyclic():
    table = {}
    table["table"] = table
    return table


def _raise(error):
    raise error


def _chain():
    error = None
    for number in range(5_000):
        following = ValueError(number)
        following.__cause__ = error
        error = following
    raise error


def _circle():
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    raise first


def _endless_recursion():
    return _endless_recursion()


def _no_output():
    sys.stdout = sys.stderr = None


def _go_elsewhere():
    Path("elsewhere").mkdir()
    os.chdir("elsewhere")


def _ignore_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        try:
            signal.signal(number, signal.SIG_IGN)
        except ValueError:  # not from a thread
            return


def _forget_modules():
    for name in list(sys.modules):
        if name.startswith("proctor"):
            del sys.modules[name]


def _no_exit():
    os._exit = sys.exit = None


def _no_chance():
    random.random = random.seed = None


def _tasks(act):
    for item in gc.get_objects():
        if isinstance(item, asyncio.Task):
            act(item)


def _start_a_broken_thread():
    threading.excepthook = lambda *arguments: None
    threading.Thread(target=lambda: 1 / 0).start()


ANSWERS = {
    "raises": Raises,
    "raises-for-attributes": RaisesForAttributes,
    "raises-for-class": RaisesForClass,
    "never-says": NeverSaysWhatItIs,
    "text": lambda: Text("x"),
    "table": lambda: Table(a=1),
    "endless-table": EndlessTable,
    "deep": _deep,
    "cyclic": _cyclic,
    "numbers": lambda: {"a": float("nan"), "b": float("inf"), "c": 10**5000},
    "long-number": lambda: 10**5000,
    "half-pairs": lambda: {"\ud800": "\udfff"},
    "nul": lambda: "a\0b",
    "bytes": lambda: b"\xff\xfe",
    "odd-keys": lambda: {1: 2, None: 3, (1, 2): 4},
    "own": lambda: _raise(Own()),
    "own-without-text": lambda: _raise(OwnWithoutText()),
    "generator-exit": lambda: _raise(GeneratorExit()),
    "system-exit": lambda: _raise(SystemExit(0)),
    "keyboard": lambda: _raise(KeyboardInterrupt()),
    "stop": lambda: _raise(StopIteration()),
    "cancelled": lambda: _raise(asyncio.CancelledError()),
    "memory": lambda: _raise(MemoryError()),
    "chain": _chain,
    "circle": _circle,
    "recursion": _endless_recursion,
    "long-name": lambda: _raise(type("E" * 1_000_000, (Exception,), {})("x")),
    "forged": lambda: _raise(type("E\x1b[2J\n::error::x", (Exception,), {})("x\n::error::forged%0A\x1b]8;;http://x\a")),
}
"""Each is that trial's failure or error, and no other's."""

HARMLESS = {
    "no-output": _no_output,
    "another-folder": _go_elsewhere,
    "signals": _ignore_signals,
    "modules": _forget_modules,
    "exit": _no_exit,
    "chance": _no_chance,
    "mask": lambda: os.umask(0o777),
    "variables": os.environ.clear,
    "garbage": lambda: (gc.freeze(), gc.disable()),
    "thread": _start_a_broken_thread,
    "stopped-parent": lambda: os.kill(os.getppid(), signal.SIGSTOP),
}
"""What the run must not notice."""

FATAL = {
    "cancels": lambda: _tasks(lambda task: task.get_loop().call_soon_threadsafe(task.cancel)),
    "stops-the-loop": lambda: _tasks(lambda task: task.get_loop().call_soon_threadsafe(task.get_loop().stop)),
    "aborts": os.abort,
    "replaces-itself": lambda: os.execv("/bin/true", ["true"]),
    "closes-all": lambda: os.closerange(0, 4096),
    "exits-in-a-thread": lambda: (threading.Thread(target=os._exit, args=(0,)).start(), time.sleep(5)),
}
"""What ends the run: with 4, one line, and what was finished before."""


def odd_calls(question):
    """Calls a tool with what JSON has no word for."""
    import proctor

    @proctor.tool
    def note(**given):
        return given

    note(a=float("nan"), b=float("-inf"), c=10**5000, d="\ud800", e={(1, 2): 3}, f=object(), g=b"x", h=_cyclic())
    return question


def agent(question):
    if question in ANSWERS:
        return ANSWERS[question]()
    if question == "no-stack":
        sys.setrecursionlimit(50)
    act = HARMLESS.get(question) or FATAL.get(question)
    if act is not None:
        act()
    return question


def check(evaluable):
    """The same mischief in an evaluator."""
    return ANSWERS[evaluable.output.removeprefix("q-")]()
