"""Knows the verdict outside the process that runs users' code, so that no code in there can exit with 0 instead.

An agent may call `os._exit(0)`, crash the interpreter, or hold it in a C function that never returns. No handler inside
the process can deal with these. So `run_guarded` forks before anything heavy is imported: the child does the work, and
the parent waits for it. A pipe leads from the child to the parent, and the child writes lines:

    alive SECONDS LABEL     a heartbeat: trials called LABEL run, none for longer than SECONDS; 0 if none runs
    verdict CODE            the exit code that the work has come to
    failed REASON           the exception that ended the work, which the parent prints

The parent exits with the code of the verdict, or with 4 if the child ends without one. It ends a child that is silent
for longer than its trials may take, and one that does not exit after its verdict. It adds up its own silent polls and
does not look at a clock: a command that was stopped (Ctrl-Z) and continued has been silent for hours, but only for one
poll.

Signals: the parent forwards them, because `kill` reaches only the parent. A terminal sends Ctrl-C to both processes, so
the parent waits a moment before it forwards one; by then the child has begun to stop, and ignores it. At the second
signal the parent kills the child. If the parent is killed, the next heartbeat finds the pipe broken and the child ends.

The end of the pipe says nothing, because a process that an agent left behind may hold it open.

An exception that nothing handles may mean that code under test has damaged Python itself: replaced `builtins.min`, or
closed every stream. Then nothing in the child can print it, so the child restores what it can and sends it to the
parent, in one line.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import select
import signal
import threading
import traceback
from collections.abc import Callable, Iterable
from operator import is_
from os import fstat, getpid, kill, write  # code under test may replace those of the module
from time import monotonic
from typing import Any, NoReturn

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

NO_VERDICT = 4
INTERRUPTED = 130
MIN_OPEN_FILES = 32
"""What the store, the event loop and a few threads need. With less, a run fails somewhere in the middle."""
POLL_SECONDS = 0.5
CLOSED_POLL_SECONDS = 0.02
GRACE_SECONDS = 5.0
"""How much longer than its timeout a trial may hold the interpreter before the parent ends the run."""
EXIT_SECONDS = 10.0
"""How long the child may take to exit after its verdict: `atexit` functions, threads that do not end."""
FORWARD_SECONDS = 0.2
"""How long the parent waits before it forwards a signal."""
SECOND_SIGNAL_SECONDS = 0.3
"""Signals closer together than this count as one: a terminal or `timeout` sends one to the whole process group."""
MAX_LABEL_LENGTH = 1000
_FORWARDED = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


_BUILTINS = dict(vars(builtins))
"""What Python has, from before any code of the user's could replace it."""
ANY_EXCEPTION = BaseException
"""The same class, for `except` clauses: code under test may have deleted it from the builtins."""
_OFTEN_REPLACED = frozenset("_ input print open exit quit help breakpoint __import__ copyright credits license".split())
_ESSENTIAL = tuple(name for name in _BUILTINS if name not in _OFTEN_REPLACED)
"""Functions and classes that no program replaces on purpose."""
_ESSENTIAL_VALUES = tuple(_BUILTINS[name] for name in _ESSENTIAL)
_all, _map = all, map  # the comparison itself needs them
MAX_REPLACED_NAMES = 3
_REPLACED: dict[str, None] = {}
"""The names of functions that code under test has replaced."""


class _Child:
    """The child's end of the pipe. Without a parent, as in pytest or a notebook, nothing is written."""

    def __init__(self) -> None:
        self.pid = 0
        self.parent = 0
        self._pipe = -1
        self._inode = 0
        self.limit = 0.0
        self.label = ""
        self.command_started = False

    def open(self, pipe: int, parent: int) -> None:
        self.pid = getpid()
        self.parent = parent
        self._pipe = pipe
        self._inode = fstat(pipe).st_ino
        os.set_blocking(pipe, False)

    def write(self, line: str) -> bool:
        """Whether the line was written; the pipe may be full while the parent is stopped."""
        try:
            if fstat(self._pipe).st_ino != self._inode:  # an agent closed it, and another file has its number
                return True
            write(self._pipe, f"{line}\n".encode("utf-8", "replace"))
        except BlockingIOError:
            return False
        except BrokenPipeError:
            os._exit(NO_VERDICT)  # the parent was killed: no run may go on unseen
        except OSError:  # closed by an agent
            pass
        return True


_CHILD = _Child()


def is_guarded() -> bool:
    """Whether a parent process waits for this one's verdict; a fork of this process has none."""
    return _CHILD.pid == getpid()


def is_outermost_command() -> bool:
    """Whether this is the first command of the process; called once at the start of each.

    An agent may call Proctor's command line too. Only the verdict of the first command is that of the process.
    """
    is_first = not _CHILD.command_started
    _CHILD.command_started = True
    return is_first


def report_exit_code(code: int) -> None:
    """Report the exit code that the work has come to."""
    if is_guarded():
        with contextlib.suppress(ProcessLookupError):
            kill(_CHILD.parent, signal.SIGCONT)  # an agent may have stopped the parent
        while not _CHILD.write(f"verdict {code & 0xFF}"):
            select.select([], [], [], POLL_SECONDS / 10)


def send_heartbeat(limit: float, label: str = "") -> None:
    """Send a heartbeat: the trials called `label` run, none for longer than `limit` seconds; 0 if none runs."""
    if is_guarded():
        _CHILD.limit, _CHILD.label = limit, " ".join(label[:MAX_LABEL_LENGTH].split()) or _CHILD.label
        _CHILD.write(f"alive {limit} {_CHILD.label}")


def extend_deadline(seconds: float) -> None:
    """Announce work that may delay the next heartbeat by so many seconds, such as waiting for a locked store."""
    if is_guarded() and _CHILD.limit:
        _CHILD.write(f"alive {max(_CHILD.limit, seconds)} {_CHILD.label}")


def exit_if_few_files_can_be_open() -> None:
    """End the process with a message if its limit of open files is too low for any command."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if resource is not None else -1
    if 0 <= limit < MIN_OPEN_FILES:
        _print_error(
            f"error: cannot start: only {limit} files can be open at the same time, and at least {MIN_OPEN_FILES} are "
            "needed; raise the limit (ulimit -n)"
        )
        os._exit(NO_VERDICT)


def run_guarded(main: Callable[[], NoReturn]) -> NoReturn:
    """Run `main` in a child process and exit with its verdict; where there is no `fork`, see `run_unguarded`."""
    if not hasattr(os, "fork") or threading.active_count() > 1:
        run_unguarded(main)
    parent = getpid()
    try:
        reader, writer = os.pipe()
    except OSError as error:
        _print_error(f"error: cannot start: {error.strerror}; raise the limit of open files (ulimit -n)")
        os._exit(NO_VERDICT)
    on_child = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is ignored, there is no status to wait for
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)  # until both processes are ready for them
    child = os.fork()
    if child:
        os.close(writer)
        os._exit(_Parent(child, reader).wait(mask))
    os.close(reader)
    _CHILD.open(writer, parent)
    if on_child is not None:
        signal.signal(signal.SIGCHLD, on_child)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        main()
    except SystemExit:
        raise
    except ANY_EXCEPTION as error:
        _end_without_verdict(error)


def _end_without_verdict(error: BaseException, end: Callable[[int], NoReturn] = os._exit) -> NoReturn:
    """End the child and let the parent say why, whatever code under test has done to Python."""
    try:
        damage = restore_builtins()
        report_failure("; ".join(filter(None, [failure_text(error), damage])))
    except ANY_EXCEPTION:
        report_failure("exception, which code under test kept Python from printing")
    finally:
        end(NO_VERDICT)


def restore_builtins() -> str:
    """Give Python its own functions back, if code under test has replaced some; returns which so far, in words."""
    _restore([name for name in _BUILTINS if name not in ("_", "input")])  # we replace `input`
    names = [f"builtins.{name}" for name in _REPLACED]
    more = f" and {len(names) - MAX_REPLACED_NAMES} more" if len(names) > MAX_REPLACED_NAMES else ""
    named = ", ".join(names[:MAX_REPLACED_NAMES])
    return f"code under test replaced {named}{more}, which Python itself uses" if names else ""


def restore_essential_builtins() -> None:
    """Give Python those functions back without which it cannot go on; called after each call of code under test.

    Programs may have their own `print` or `open`, but with another `len`, threads and event loops break.
    """
    if not _all(_map(is_, _map(builtins.__dict__.get, _ESSENTIAL), _ESSENTIAL_VALUES)):
        _restore(_ESSENTIAL)


def _restore(names: Iterable[str]) -> None:
    current = builtins.__dict__
    for name in names:
        if current.get(name) is not _BUILTINS[name]:
            current[name] = _BUILTINS[name]
            _REPLACED[name] = None


def failure_text(error: BaseException) -> str:
    """An unexpected exception in one line, with the place where it was raised."""
    text = traceback.format_exception_only(error)[-1].strip()
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = "" if trace is None else trace.tb_frame.f_code.co_filename.rpartition(os.sep)[2]
    return f"{text} ({file}:{trace.tb_lineno})" if trace is not None else text


def unraisable_printer() -> Callable[[object], None]:
    """A `sys.unraisablehook` that prints one line instead of a traceback: an object of code under test that raises
    while it is deleted, maybe when Python has already deleted everything else, so all that it needs is bound here."""

    def show(
        item: Any,
        describe: Any = traceback.format_exception_only,
        write: Any = os.write,
        any_exception: type[BaseException] = BaseException,
    ) -> None:
        try:
            text = describe(item.exc_type, item.exc_value)[-1].strip()
            name = getattr(item.object, "__qualname__", None) or type(item.object).__name__
            write(2, f"warning: {name} raised {text}, which was ignored\n".encode("utf-8", "replace"))
        except any_exception:  # nothing can be done about an exception that nobody sees
            pass

    return show


def report_failure(reason: str) -> None:
    """Let the parent print why the work ended without a verdict."""
    if is_guarded():
        line = " ".join(reason[:MAX_LABEL_LENGTH].split())
        while not _CHILD.write(f"failed {line}"):
            select.select([], [], [], POLL_SECONDS / 10)


def run_unguarded(main: Callable[[], NoReturn]) -> NoReturn:
    """Run `main` in this process, for commands that run no code of the user's, and on Windows.

    At least `os._exit(0)` does not count as success. Other ways to end the process are not noticed.
    """
    pid, really_exit = getpid(), os._exit

    def exit_without_verdict(status: int) -> NoReturn:
        if status == 0 and getpid() == pid:
            _print_error("error: the process ended with exit code 0, before a verdict")
            really_exit(NO_VERDICT)
        really_exit(status)

    os._exit = exit_without_verdict
    main()


class _Parent:
    """Waits for the child. Everything here works on the lines that it wrote, never on objects."""

    def __init__(self, child: int, reader: int) -> None:
        self._child = child
        self._reader = reader
        self._is_pipe_closed = False
        self._unread = b""
        self._verdict: int | None = None
        self._failure = ""
        self._has_run_trials = False
        self._limit = 0.0
        self._label = ""
        self._silent_seconds = 0.0
        self._first_signal: float | None = None
        self._is_second_signal = False
        self._signals: list[tuple[int, float]] = []
        """Signals that have to be forwarded, and when each arrived."""

    def wait(self, mask: set[int | signal.Signals]) -> int:
        """The exit code of the command; `mask` is the signal mask from before the fork."""
        os.set_blocking(self._reader, False)
        for number in _FORWARDED:
            if signal.getsignal(number) != signal.SIG_IGN:  # `nohup` stays in force
                signal.signal(number, self._on_signal)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        while True:
            self._poll()
            ended, status = os.waitpid(self._child, os.WNOHANG)
            if ended:
                self._read()
                return self._exit_code(status)
            if self._is_second_signal:
                self._kill()
                _print_error("interrupted")
                return INTERRUPTED
            self._forward_signals()
            if self._verdict is not None:
                if self._silent_seconds > EXIT_SECONDS:
                    self._kill()
                    return self._verdict
            elif self._limit and self._silent_seconds > self._limit + GRACE_SECONDS:
                return self._end_stuck_child()

    def _poll(self) -> None:
        """Wait for a line of the child, or for a while."""
        if self._is_pipe_closed:  # usually because the child is about to exit
            pipes, seconds = [], CLOSED_POLL_SECONDS
        else:
            pipes, seconds = [self._reader], FORWARD_SECONDS if self._signals else POLL_SECONDS
        readable, _, _ = select.select(pipes, [], [], seconds)
        if not readable:
            self._silent_seconds += seconds
        elif self._read():
            self._silent_seconds = 0.0

    def _read(self) -> bool:
        """Take in what the child wrote; whether there was anything."""
        has_read = False
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._reader, 65536):
                has_read = True
                *lines, self._unread = (self._unread + data).split(b"\n")
                for line in lines:
                    self._take(line.decode("utf-8", "replace"))
            self._is_pipe_closed = True
        return has_read

    def _take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "verdict":
            self._verdict = int(rest)
        elif word == "failed":
            self._failure = rest
        elif word == "alive" and self._verdict is None:
            seconds, _, self._label = rest.partition(" ")
            self._limit = float(seconds)
            self._has_run_trials = True

    def _on_signal(self, number: int, frame: object) -> None:
        now = monotonic()
        if number != signal.SIGHUP and self._first_signal is not None:
            self._is_second_signal |= now - self._first_signal > SECOND_SIGNAL_SECONDS
        self._first_signal = self._first_signal or now
        self._signals.append((number, now))

    def _forward_signals(self) -> None:
        due = [number for number, arrived in self._signals if monotonic() - arrived >= FORWARD_SECONDS]
        self._signals = [(number, arrived) for number, arrived in self._signals if number not in due]
        for number in dict.fromkeys(due):
            self._send(number)

    def _end_stuck_child(self) -> int:
        self._kill()
        _print_error(
            f"error: {self._trials()} blocked the interpreter for longer than its timeout of {self._limit:g} s, so the "
            "run was ended. Finished trials are saved; continue with --resume, or use --isolate to end only that trial"
        )
        return NO_VERDICT

    def _exit_code(self, status: int) -> int:
        if self._verdict is not None:
            return self._verdict
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number in (*_FORWARDED, signal.SIGPIPE):
                return 128 + number
            how = f"the process was killed ({signal.Signals(number).name})"
            if number == signal.SIGBUS:
                _print_error(
                    f"error: {how}: a file that it was using was truncated, maybe the store; see `proctor runs`"
                )
                return NO_VERDICT
        elif self._failure:
            how = f"unexpected {self._failure}"
        else:
            how = f"the process ended with exit code {os.WEXITSTATUS(status)}"
        during = f" during {self._trials()}" if self._label else ""
        rest = " Finished trials are saved; continue with --resume" if self._has_run_trials else ""
        _print_error(f"error: {how}{during}, before a verdict.{rest}")
        return NO_VERDICT

    def _trials(self) -> str:
        return f"case {self._label}" if self._label else "a trial"

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            kill(self._child, number)

    def _kill(self) -> None:
        self._send(signal.SIGKILL)
        os.waitpid(self._child, 0)


def _print_error(text: str) -> None:
    printable = "".join(letter if letter.isprintable() else "?" for letter in text)
    with contextlib.suppress(OSError):
        write(2, printable.encode("utf-8", "replace") + b"\n")
