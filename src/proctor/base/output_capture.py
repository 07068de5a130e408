"""Captures what each trial prints: standard output, standard error and log records.

Trials run at the same time, in tasks and threads of one process, and `sys.stdout` is one for all of them. So it cannot
be replaced for a trial, as pytest does for a test. Instead `route_output` changes the streams for as long as a run
takes: whatever is written in the context of a trial goes to the `OutputCapture` of that trial, and everything else
passes. The context of a trial is a context variable, which tasks, `asyncio.to_thread` and thread pools take along. A
thread that the agent starts itself begins with an empty context, so it is noted who starts it (`note_thread_starter`).

The obvious version assigns another object to `sys.stdout`. It misses everything that took the stream before the
run: log handlers made when a module was imported, loguru, a rich console. So the methods of the streams themselves are
replaced (`write`, `flush`, `isatty`, and `write` of the binary stream below), and restored at the end.

Log records are captured by a handler of the root logger, unless another handler writes them to a captured stream, where
they would appear again. `input()` cannot be answered during a test, so reading standard input raises an exception that
says where. `input` itself is replaced too, since notebooks have their own, and so are `getpass`, which reads from the
terminal whatever standard input is, and `breakpoint()`. With `live` everything is shown as well, and input is allowed.

What goes past Python is not captured: C code that writes to file descriptor 1, and programs that the agent starts
without a pipe. Only a process per trial (`--isolate`) can tell to which trial that belongs.
"""

from __future__ import annotations

import builtins
import codecs
import functools
import getpass
import io
import linecache
import logging
import os
import re
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from threading import current_thread  # an agent may replace that of the module
from typing import Any, Literal, NoReturn

from proctor.base.diagnosis import Diagnosis, FailureKind
from proctor.base.errors import AgentRaised, is_user_file

HEAD_CHARS = 5_000
TAIL_CHARS = 15_000
"""How much of the beginning and of the end of each stream is stored. What explains a failure is mostly at the end."""
LOG_FORMAT = "%(levelname)-8s %(name)s:%(filename)s:%(lineno)d %(message)s"

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True, slots=True)
class CapturedOutput:
    """What a trial printed, each part bounded."""

    stdout: str = ""
    stderr: str = ""
    log: str = ""
    evaluators: str = ""
    """What evaluators printed while they scored the trial."""

    def __bool__(self) -> bool:
        return bool(self.stdout or self.stderr or self.log or self.evaluators)

    def sections(self) -> list[tuple[str, str]]:
        """The parts that are not empty, each with its title."""
        parts = (self.stdout, self.stderr, self.log, self.evaluators)
        titles = ("stdout", "stderr", "log", "evaluators")
        return [(title, text) for title, text in zip(titles, parts, strict=True) if text]


NOTHING_CAPTURED = CapturedOutput()


class InputUnavailable(AgentRaised):
    """Code under test waits for a person at the keyboard. The message has no subject, like that of `AgentRaised`."""

    def __init__(self, action: str, place: str) -> None:
        super().__init__(
            f"{action}{place}, and nobody can answer during a test; pass the value in the case, or run with -s "
            "(in Python: capture=False) to answer it yourself",
            diagnosis=Diagnosis(FailureKind.INFRASTRUCTURE, f"the agent {action}{place}", lasting=True, decided=True),
        )


class BoundedText:
    """The beginning and the end of a text of any length."""

    def __init__(self) -> None:
        self._head: list[str] = []
        self._head_size = 0
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._size = 0
        self._line_breaks = 0

    def add(self, text: str) -> None:
        self._size += len(text)
        self._line_breaks += text.count("\n")
        if (space := HEAD_CHARS - self._head_size) > 0:
            self._head.append(text[:space])
            self._head_size += len(self._head[-1])
            text = text[space:]
        if not text:
            return
        self._tail.append(text[-TAIL_CHARS:])
        self._tail_size += len(self._tail[-1])
        while self._tail_size - len(self._tail[0]) >= TAIL_CHARS:
            self._tail_size -= len(self._tail.popleft())

    def result(self) -> str:
        """The text as a terminal would show it; if it is too long, with a line that says how much is missing.

        It is cut between lines, or at least between words: half of a secret would not be recognized as one.
        """
        head, tail = "".join(self._head), "".join(self._tail)
        if self._size <= HEAD_CHARS + TAIL_CHARS:
            return _as_shown(head + tail)
        head, tail = head[: _last_break(head)], tail[-TAIL_CHARS:]
        tail = tail[_first_break(tail) :]
        lines = self._line_breaks - head.count("\n") - tail.count("\n")
        missing = f"{lines:,} lines" if lines > 1 else f"{self._size - len(head) - len(tail):,} characters"
        return _as_shown(f"{head.rstrip()}\n… ({missing} omitted) …\n{tail}")


def _last_break(text: str) -> int:
    return (text.rfind("\n") + 1) or (text.rfind(" ") + 1) or len(text)


def _first_break(text: str) -> int:
    return (text.find("\n") + 1) or (text.find(" ") + 1)


def _as_shown(text: str) -> str:
    """The text without colors, and without what a progress bar has overwritten."""
    plain = _ESCAPE_SEQUENCE.sub("", text)
    if "\r" in plain:
        plain = "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in plain.split("\n"))
    return plain.encode("utf-8", "replace").decode("utf-8")


Forward = Callable[[str, str], None]
"""Called with the name of a stream and a text."""


class OutputCapture:
    """What is printed in one context, from any task and thread. Once it is closed, text is dropped."""

    def __init__(self, *, live: bool = False, forward: Forward | None = None) -> None:
        """`live` also shows the text and allows input; `forward` gets the text instead of storing it."""
        self.live = live
        self.closed = False
        self.refused_reads: list[str] = []
        """The problems of code that tried to read from the keyboard."""
        self._forward = forward
        self._pid = os.getpid()
        self._lock = threading.RLock()  # a destructor or a signal handler may print while this thread holds it
        self._restart()

    def _restart(self) -> None:
        self._parts = {name: BoundedText() for name in ("stdout", "stderr", "log")}
        self._all = BoundedText()
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}

    def add(self, stream: str, text: str) -> None:
        """Add text to `stdout`, `stderr` or `log`."""
        if self.closed or not text:
            return
        if self._forward is not None:
            self._forward(stream, text)
            return
        if os.getpid() != self._pid:  # a process that the agent forked: nobody here reads what it captures
            _show("stderr" if stream == "log" else stream, text)
            return
        with self._lock:
            self._parts[stream].add(text)
            self._all.add(text)
        if self.live:
            _show("stderr" if stream == "log" else stream, text)

    def add_bytes(self, stream: str, data: bytes) -> None:
        """Add bytes, which may end in the middle of a character."""
        with self._lock:
            decoder = self._decoders.setdefault(stream, codecs.getincrementaldecoder("utf-8")("replace"))
            text = decoder.decode(data)
        self.add(stream, text)

    def add_output(self, output: CapturedOutput) -> None:
        """Add what was captured in another process."""
        for stream, text in output.sections():
            self.add(stream, text)

    def result(self) -> CapturedOutput:
        with self._lock:
            return CapturedOutput(**{name: text.result() for name, text in self._parts.items()})

    def take(self) -> CapturedOutput:
        """The result up to now, which the next one does not contain again."""
        with self._lock:
            result = CapturedOutput(**{name: text.result() for name, text in self._parts.items()})
            self._restart()
        return result

    def combined(self) -> str:
        """Everything in the order in which it was written."""
        with self._lock:
            return self._all.result()

    def refuse(self, action: str) -> NoReturn:
        """Raise the exception for code that waits for a person."""
        error = InputUnavailable(action, _place_in_user_code())
        self.refused_reads.append(str(error))
        raise error


_CAPTURE: ContextVar[OutputCapture | Literal["show"] | None] = ContextVar("proctor_output", default=None)
"""The capture of the current task; `show` if text passes although the thread belongs to a trial."""
_THREADS: weakref.WeakKeyDictionary[threading.Thread, OutputCapture] = weakref.WeakKeyDictionary()
"""The capture in whose context a thread was started."""


def current_capture() -> OutputCapture | None:
    """The capture that text written here belongs to, or `None` if it is not captured."""
    capture = _CAPTURE.get() or _THREADS.get(current_thread())
    return None if capture == "show" else capture


def note_thread_starter(thread: threading.Thread) -> None:
    """Note that a thread is started here: what it prints belongs here too."""
    if (capture := current_capture()) is not None:
        _THREADS[thread] = capture


@contextmanager
def capture_output(*, live: bool = False, forward: Forward | None = None) -> Iterator[OutputCapture]:
    """Capture what is printed in the block, and in the tasks and threads that start in it; see `OutputCapture`."""
    capture = OutputCapture(live=live, forward=forward)
    token = _CAPTURE.set(capture)
    try:
        yield capture
    finally:
        capture.closed = True
        with suppress(ValueError):  # an abandoned conversation is closed in another context than it was opened in
            _CAPTURE.reset(token)


# The streams of the process

_LOCK = threading.RLock()
_USERS = 0
_CHANGES = ExitStack()
_ROUTED: dict[int, Any] = {}
"""By id: the streams whose methods are replaced. They must stay alive, or another object could get the id."""
_WRITERS: dict[str, tuple[Callable[[str], Any], Callable[[], Any]]] = {}
"""By name: the original `write` and `flush` of `sys.stdout` and `sys.stderr`."""


@contextmanager
def route_output(*, live: bool = False) -> Iterator[None]:
    """Send what is written in the context of an `OutputCapture` there, for all threads, until the last block ends.

    `live` leaves debuggers alone.
    """
    global _USERS
    with _LOCK:
        _USERS += 1
        _route_streams()
        if _USERS == 1:
            _CHANGES.enter_context(_refused_stdin())
            _CHANGES.enter_context(_replaced_methods(builtins, {"input": functools.partial(_input, builtins.input)}))
            _CHANGES.enter_context(_replaced_methods(getpass, {"getpass": functools.partial(_input, getpass.getpass)}))
            if not live:  # a debugger stops in the function that called the hook, which would be ours
                _CHANGES.enter_context(_refused_breakpoints())
            _CHANGES.enter_context(_captured_logs())
    try:
        yield
    finally:
        with _LOCK:
            _USERS -= 1
            if _USERS == 0:
                _CHANGES.close()
                _ROUTED.clear()
                _WRITERS.clear()


def _route_streams() -> None:
    streams = [("stdout", sys.stdout), ("stderr", sys.stderr), ("stdout", sys.__stdout__), ("stderr", sys.__stderr__)]
    for name, stream in streams:
        if stream is None or id(stream) in _ROUTED:
            continue
        write, flush, isatty = stream.write, stream.flush, stream.isatty
        _WRITERS.setdefault(name, (write, flush))
        methods: dict[str, Callable[..., Any]] = {
            "write": functools.partial(_write, name, write),
            "flush": functools.partial(_flush, flush),
            "isatty": functools.partial(_isatty, isatty),
            "close": _stay_open,
        }
        if hasattr(stream, "buffer"):
            methods["detach"] = functools.partial(getattr, stream, "buffer")
        with suppress(AttributeError, TypeError):  # an object that allows no attributes is left as it is
            _CHANGES.enter_context(_replaced_methods(stream, methods))
            _ROUTED[id(stream)] = stream
            binary = stream.buffer
            write_bytes = functools.partial(_write_bytes, name, binary.write)
            _CHANGES.enter_context(_replaced_methods(binary, {"write": write_bytes, "close": _stay_open}))


@contextmanager
def _replaced_methods(owner: Any, methods: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Replace methods of one object; in the end each is restored, unless somebody else has replaced it meanwhile."""
    before = {name: vars(owner)[name] for name in methods if name in vars(owner)}
    for name, method in methods.items():
        setattr(owner, name, method)
    try:
        yield
    finally:
        for name, method in methods.items():
            if vars(owner).get(name) is method:
                delattr(owner, name)
                if name in before:
                    setattr(owner, name, before[name])


def keep_open(stream: Any) -> None:
    """Let nothing close a stream, for a process that ends with it."""
    with suppress(AttributeError, TypeError):  # an object that allows no attributes is left as it is
        stream.close, stream.detach = _stay_open, functools.partial(getattr, stream, "buffer")
        stream.buffer.close = _stay_open


def _stay_open() -> None:
    """Instead of closing a standard stream: the rest of the run needs it.

    `sys.stdout = io.TextIOWrapper(sys.stdout.buffer)` closes the old one as soon as the new one is not used any more.
    """


def _write(name: str, original: Callable[[str], Any], text: str) -> Any:
    capture = current_capture()
    if capture is None or not isinstance(text, str):
        return original(text)
    capture.add(name, text)
    return len(text)


def _write_bytes(name: str, original: Callable[[Any], Any], data: Any) -> Any:
    capture = current_capture()
    if capture is None:
        return original(data)
    content = bytes(data)
    capture.add_bytes(name, content)
    return len(content)


def _flush(original: Callable[[], Any]) -> None:
    """Flush the stream; not for captured text, or text from outside the trial would be written in its context."""
    if current_capture() is None:
        original()


def _isatty(original: Callable[[], bool]) -> bool:
    capture = current_capture()
    return original() if capture is None or capture.live else False


def _show(name: str, text: str) -> None:
    """Write to the terminal although the text is captured. It must not fail: the agent does not know of it."""
    if name in _WRITERS:
        write, flush = _WRITERS[name]
        with suppress(OSError, ValueError), _not_captured():
            write(text)
            flush()


@contextmanager
def _not_captured() -> Iterator[None]:
    """Let what is written here pass: a stream may use another one that is routed too."""
    token = _CAPTURE.set("show")
    try:
        yield
    finally:
        _CAPTURE.reset(token)


# Reading


def _input(original: Callable[..., str], *arguments: Any, **options: Any) -> str:
    capture = current_capture()
    if capture is not None and not capture.live:
        if arguments:
            capture.add("stdout", str(arguments[0]))
        capture.refuse("asked for keyboard input")
    return original(*arguments, **options)


class _Stdin:
    """`sys.stdin` during a run: the original, except that a trial cannot read it."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._readable())

    def __next__(self) -> str:
        line: str = next(self._readable())
        return line

    def read(self, *size: int) -> Any:
        return self._readable().read(*size)

    def readline(self, *size: int) -> Any:
        return self._readable().readline(*size)

    def readlines(self, *hint: int) -> Any:
        return self._readable().readlines(*hint)

    @property
    def buffer(self) -> Any:
        return self._readable().buffer

    def isatty(self) -> bool:
        return False if self._is_refused() else bool(self._original.isatty())

    def fileno(self) -> int:
        """The file descriptor. `input()` would read it directly if it had one, and wait on a terminal."""
        if self._is_refused():
            raise io.UnsupportedOperation("standard input cannot be read during a test")
        return int(self._original.fileno())

    def _readable(self) -> Any:
        capture = current_capture()
        if capture is not None and not capture.live:
            capture.refuse("asked for keyboard input")
        return self._original

    def _is_refused(self) -> bool:
        capture = current_capture()
        return capture is not None and not capture.live


@contextmanager
def _refused_stdin() -> Iterator[None]:
    stdin = sys.stdin
    replacement: Any = None if stdin is None else _Stdin(stdin)
    if replacement is not None:
        sys.stdin = replacement
    try:
        yield
    finally:
        if replacement is not None and sys.stdin is replacement:
            sys.stdin = stdin


@contextmanager
def _refused_breakpoints() -> Iterator[None]:
    hook = sys.breakpointhook

    def breakpoint_hook(*arguments: Any, **options: Any) -> Any:
        capture = current_capture()
        if capture is not None and not capture.live:
            capture.refuse("called breakpoint()")
        return hook(*arguments, **options)

    sys.breakpointhook = breakpoint_hook
    try:
        yield
    finally:
        if sys.breakpointhook is breakpoint_hook:
            sys.breakpointhook = hook


def _place_in_user_code() -> str:
    """The line of the user's code that runs now, as ` at app.py:12 (name = input())`, or nothing."""
    frame = sys._getframe(1)
    while not is_user_file(frame.f_code.co_filename):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(file, line).strip()
    return f" at {Path(file).name}:{line}" + (f" ({source})" if source else "")


# Log records


class _LogHandler(logging.Handler):
    """Adds records to the capture of their context."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if _is_written_to_stream(record, self):
                return
            capture = current_capture()
            if capture is not None:
                capture.add("log", self.format(record) + "\n")
            elif not any(True for _ in _other_handlers(record, self)):
                _log_without_handler(record)
        except RecursionError:
            raise
        except Exception:
            self.handleError(record)


def _other_handlers(record: logging.LogRecord, handler: logging.Handler) -> Iterator[logging.Handler]:
    """The other handlers that get a record."""
    logger: logging.Logger | None = logging.getLogger(record.name)
    while logger is not None:
        yield from (other for other in logger.handlers if other is not handler)
        logger = logger.parent if logger.propagate else None


def _log_without_handler(record: logging.LogRecord) -> None:
    """What Python does with a record for which there is no handler."""
    last = logging.lastResort
    if last is not None and record.levelno >= last.level:
        last.handle(record)


def _is_written_to_stream(record: logging.LogRecord, handler: logging.Handler) -> bool:
    """Whether another handler writes the record to a stream that is captured."""
    return any(
        isinstance(other, logging.StreamHandler) and id(other.stream) in _ROUTED and record.levelno >= other.level
        for other in _other_handlers(record, handler)
    )


@contextmanager
def _captured_logs() -> Iterator[None]:
    """Add a handler to the root logger. `logging.basicConfig` in a trial works as if it were not there."""
    handler = _LogHandler()
    handler.setFormatter(logging.Formatter(LOG_FORMAT))
    original = logging.basicConfig

    @functools.wraps(original)
    def basic_config(**options: Any) -> None:
        logging.root.removeHandler(handler)
        try:
            original(**options)
        finally:
            logging.root.addHandler(handler)

    logging.root.addHandler(handler)
    logging.basicConfig = basic_config
    try:
        yield
    finally:
        if logging.basicConfig is basic_config:
            logging.basicConfig = original
        logging.root.removeHandler(handler)
