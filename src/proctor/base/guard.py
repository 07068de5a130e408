"""Keeps the verdict outside the interpreter that runs the agent, so that no code in there can end it with exit code 0.

`run_guarded` forks before anything heavy is imported: the child does the work, the parent waits for it. The two share
one page of memory, in which the child writes the exit code of its verdict and, while trials run, a heartbeat. The
parent passes signals on, ends a child that is stuck, and exits with 4 if the child ended without a verdict.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any, NoReturn

NO_VERDICT = 4
INTERRUPTED = 130
POLL_SECONDS = 1.0
GRACE_SECONDS = 5.0
"""How much longer than its timeout a trial may hold the interpreter before the parent ends the run."""
EXIT_SECONDS = 10.0
"""How long the child may take to end once its verdict is known: `atexit` functions, threads that do not end."""
SECOND_SIGNAL_SECONDS = 0.3
"""Signals closer together than this are one: a terminal or `timeout` sends one to the whole process group."""

_PAGE_BYTES = 4096
_VERDICT = struct.Struct("<BB")
_HEARTBEAT = struct.Struct("<Qd")
_HEARTBEAT_AT, _LABEL_AT = 8, 32
_FROM_KERNEL = 0x80
_OUTPUT_FROM = 200
"""The least number of the descriptors that are printed through."""
_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


class _Child:
    """The child's side: what it tells the parent. Without a parent it tells nothing."""

    def __init__(self) -> None:
        self.page: Any = None
        self.pid = 0
        self.beats = 0


CHILD = _Child()


def is_guarded() -> bool:
    """Whether a parent process waits for this one's verdict; a fork of this process has none."""
    return CHILD.page is not None and os.getpid() == CHILD.pid


def tell_verdict(code: int) -> None:
    """The exit code that the work really came to."""
    if is_guarded():
        _VERDICT.pack_into(CHILD.page, 0, 1, code & 0xFF)
        os.kill(os.getppid(), signal.SIGCONT)  # code in here may have stopped the parent


def tell_alive(limit: float, label: str = "") -> None:
    """A heartbeat: trials run, named by `label`, none for longer than `limit` seconds; 0 if none is running."""
    if CHILD.page is not None:
        CHILD.beats += 1
        _HEARTBEAT.pack_into(CHILD.page, _HEARTBEAT_AT, CHILD.beats, limit)
        if label:
            text = label.encode("utf-8", "replace")[: _PAGE_BYTES - _LABEL_AT - 1] + b"\0"
            CHILD.page[_LABEL_AT : _LABEL_AT + len(text)] = text


def allow_at_least(seconds: float) -> None:
    """What comes may keep the heart from beating for this long, until the next beat: a store that waits for a lock."""
    if CHILD.page is not None:
        beats, limit = _HEARTBEAT.unpack_from(CHILD.page, _HEARTBEAT_AT)
        if limit:
            _HEARTBEAT.pack_into(CHILD.page, _HEARTBEAT_AT, beats, max(limit, seconds))


def run_guarded(main: Callable[[], NoReturn]) -> NoReturn:
    """Run `main` in a child process and end with the code it told; where there is no fork, run it here."""
    threading = sys.modules.get("threading")
    if not hasattr(os, "fork") or (threading is not None and threading.active_count() > 1):
        _without_parent(main)
    import mmap

    page = mmap.mmap(-1, _PAGE_BYTES)
    alive, held = os.pipe()
    passed_on = {getattr(signal, name) for name in _PASSED_ON}
    children = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*passed_on, signal.SIGCHLD})
    parent = os.getpid()
    child = os.fork()
    if child:
        os.close(alive)
        os._exit(_Parent(child, page, passed_on).wait())
    os.close(held)
    CHILD.page, CHILD.pid = page, os.getpid()
    if children is not None:
        signal.signal(signal.SIGCHLD, children)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    _end_with(parent, alive)
    _keep_output()
    main()


def _end_with(parent: int, alive: int) -> None:
    """A parent that is killed takes this process along, so that no run goes on unseen: the pipe it held is closed."""
    import fcntl

    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(alive, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(alive, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(alive, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    else:
        import threading

        threading.Thread(target=_wait_for_end, args=(alive,), name="proctor-guard", daemon=True).start()
    if os.getppid() != parent:
        os._exit(NO_VERDICT)


def _keep_output() -> None:
    """Print through descriptors of one's own: an agent may close 1 and 2, and the next file would get their numbers."""
    import fcntl
    import io

    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        try:
            copy = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _OUTPUT_FROM)
        except OSError:
            continue
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            raw = io.FileIO(copy, "w")
            binary: Any = raw if stream.write_through else io.BufferedWriter(raw)
            setattr(
                sys,
                name,
                io.TextIOWrapper(
                    binary,
                    stream.encoding,
                    stream.errors,
                    line_buffering=stream.line_buffering,
                    write_through=stream.write_through,
                ),
            )


def _wait_for_end(alive: int) -> None:
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def _without_parent(main: Callable[[], NoReturn]) -> NoReturn:
    """The next best: `os._exit` with 0 becomes 4. Code that ends the process in other ways is not held."""
    really_exit = os._exit

    def exit_with_no_verdict(status: int) -> NoReturn:
        really_exit(status or NO_VERDICT)

    os._exit = exit_with_no_verdict
    main()


class _Parent:
    """Waits for the child; everything here works on what the child wrote, never on objects."""

    def __init__(self, child: int, page: Any, passed_on: set[signal.Signals]) -> None:
        self._child = child
        self._page = page
        self._passed_on = passed_on
        self._first_signal: float | None = None
        self._beats = 0
        self._silent = 0.0
        self._told_for = 0.0

    def wait(self) -> int:
        wait_for = _signal_waiter({*self._passed_on, signal.SIGCHLD})
        while True:
            ended, status = os.waitpid(self._child, os.WNOHANG)
            if ended:
                return self._code(status)
            seconds = self._poll_seconds()
            arrived = wait_for(seconds)
            if arrived is None:
                if (code := self._looked_after(seconds)) is not None:
                    return code
            elif arrived[0] != signal.SIGCHLD and self._pass_on(*arrived):
                return INTERRUPTED

    def _poll_seconds(self) -> float:
        _, limit = _HEARTBEAT.unpack_from(self._page, _HEARTBEAT_AT)
        return min(POLL_SECONDS, max(0.05, limit / 4)) if limit else POLL_SECONDS

    def _looked_after(self, seconds: float) -> int | None:
        """End a child that does not end by itself; time in which this process was stopped too does not count."""
        told, code = _VERDICT.unpack_from(self._page, 0)
        if told:
            self._told_for += seconds
            if self._told_for > EXIT_SECONDS:
                self._kill()
                return int(code)
            return None
        beats, limit = _HEARTBEAT.unpack_from(self._page, _HEARTBEAT_AT)
        self._silent = 0.0 if beats != self._beats or not limit else self._silent + seconds
        self._beats = beats
        if not limit or self._silent <= limit + GRACE_SECONDS:
            return None
        self._kill()
        _say(
            f"error: {self._label()} held the interpreter for more than its timeout of {limit:g} s, so that nothing "
            "else could run; the run was ended. What was finished before is kept: --resume goes on with the rest, "
            "--isolate ends such a trial alone"
        )
        return NO_VERDICT

    def _pass_on(self, number: int, from_kernel: bool) -> bool:
        """Whether this was the second request to end. A terminal's signal has reached the child already."""
        import time

        if number in (signal.SIGINT, signal.SIGTERM):
            now = time.monotonic()
            if self._first_signal is not None and now - self._first_signal > SECOND_SIGNAL_SECONDS:
                self._kill()
                _say("interrupted")
                return True
            self._first_signal = self._first_signal or now
        if not from_kernel:
            self._send(number)
        return False

    def _code(self, status: int) -> int:
        told, code = _VERDICT.unpack_from(self._page, 0)
        if told:
            return int(code)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
                return 128 + number
            how = f"was killed by {signal.Signals(number).name}"
        else:
            how = f"ended with exit code {os.WEXITSTATUS(status)}"
        during = f" during {self._label()}" if self._page[_LABEL_AT] else ""
        _say(
            f"error: the process {how}{during}, before there was a result. What was finished before is kept: "
            "the same command with --resume goes on"
        )
        return NO_VERDICT

    def _label(self) -> str:
        text = bytes(self._page[_LABEL_AT:]).partition(b"\0")[0].decode("utf-8", "replace")
        return f"case {text}" if text else "a trial"

    def _send(self, number: int) -> None:
        try:
            os.kill(self._child, number)
        except ProcessLookupError:
            pass

    def _kill(self) -> None:
        self._send(signal.SIGKILL)
        os.waitpid(self._child, 0)


def _signal_waiter(numbers: set[signal.Signals]) -> Callable[[float], tuple[int, bool] | None]:
    """A function that waits for a signal, and says whether the kernel sent it: to the whole group, for a terminal."""
    if sys.platform != "darwin" and hasattr(signal, "sigtimedwait"):

        def wait(seconds: float) -> tuple[int, bool] | None:
            found = signal.sigtimedwait(numbers, seconds)
            # A process that was stopped and continued in the meantime gets any number at all from Python.
            if found is None or found.si_signo not in numbers:
                return None
            return found.si_signo, found.si_code == _FROM_KERNEL

        return wait

    def poll(seconds: float) -> tuple[int, bool] | None:
        import time

        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if pending := signal.sigpending() & numbers:
                return signal.sigwait(pending), False
            time.sleep(0.01)
        return None

    return poll


def _say(text: str) -> None:
    printable = "".join(letter if letter.isprintable() else "?" for letter in text)
    try:
        os.write(2, printable.encode("utf-8", "replace") + b"\n")
    except OSError:
        pass
