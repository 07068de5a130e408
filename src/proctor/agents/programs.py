"""A program as a process: how it is started, read and ended.

Each program runs in its own process group, so that its child processes can be ended with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from proctor.agents.reply_limits import HEAD_BYTES, ReplyTooLarge, read_limited
from proctor.agents.trial_context import max_reply_bytes
from proctor.base.errors import AgentFailed, UsageError
from proctor.base.infrastructure import diagnose_output
from proctor.base.output_capture import current_capture
from proctor.base.process_tree import MARK_VARIABLE, kill_tree, new_mark

_CHUNK_BYTES = 65536
GRACE_SECONDS = 2.0
"""How long a program may take to end by itself."""
OUTPUT_GRACE_SECONDS = 0.25
"""How long to wait for output after a program has ended; its children may keep the pipe open forever."""
_FIRST_LINES = 6
_LAST_LINES = 8
"""How many lines of stderr are shown: Node prints the cause first, Python prints it last."""
_MAX_LINE_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Program:
    """A command line with its folder and environment."""

    argv: tuple[str, ...]
    cwd: Path | None
    env: Mapping[str, str]

    @property
    def title(self) -> str:
        return shlex.join(self.argv)[:120]

    def __repr__(self) -> str:
        return f"Program({self.title})"

    def check_exists(self) -> None:
        """Raise `UsageError` if the program does not exist."""
        name = self.argv[0]
        if os.sep in name:
            exists = ((self.cwd or Path.cwd()) / name).is_file()
        else:
            exists = shutil.which(name, path=self.env.get("PATH")) is not None
        if not exists:
            raise UsageError(f"the program {name!r} was not found; write its path, or install it in a folder of PATH")


class Process:
    """A running program; its stderr is read all the time, its stdout when a method here is called."""

    def __init__(self, program: Program, process: asyncio.subprocess.Process, mark: str) -> None:
        self.program = program
        self.stderr = HeadAndTail()
        self.stdout = bytearray()
        """The output that is being read: of the current turn, or its current line."""
        self._process = process
        self._mark = mark
        self._rest = b""
        self._stderr_reader = asyncio.create_task(self._read_stderr())
        self._next: asyncio.Task[bytes] | None = None

    @classmethod
    async def start(cls, program: Program) -> Process:
        """Start the program, in its own process group and without a shell; raises `AgentFailed` if it cannot start."""
        mark = new_mark()
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                *program.argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=program.cwd,
                env={**program.env, MARK_VARIABLE: mark},
                start_new_session=True,
            )
        )
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # Without the shield, asyncio would kill the program alone, and wait as long as its children have its pipes.
            with contextlib.suppress(OSError, ValueError):
                await cls(program, await starting, mark).end()
            raise
        except (OSError, ValueError) as error:
            raise AgentFailed(f"{program.title} could not be started: {error}") from error
        return cls(program, process, mark)

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def write(self, data: bytes) -> None:
        """Write to the program's input. That it no longer reads is noticed when its output ends."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    def close_input(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def read_all(self) -> bytes:
        """All output, until the pipe is closed or the program has ended and nothing more arrives."""
        self.stdout = bytearray()
        out = await read_limited(self.chunks(), "the program's output", self.stdout)
        await self.wait()
        return out

    async def read_line(self) -> bytes:
        """The next line of output; at the end what follows the last line break, which may be nothing."""
        limit, received = max_reply_bytes(), bytearray(self._rest)
        self.stdout = received
        chunks = self.chunks()
        while b"\n" not in received:
            chunk = await anext(chunks, b"")
            if not chunk:
                break
            received += chunk
            if len(received) > limit and b"\n" not in received[: limit + 1]:
                head = bytes(received[:HEAD_BYTES]).decode("utf-8", "replace")
                raise ReplyTooLarge("a line of the program's output", head)
        line, newline, self._rest = bytes(received).partition(b"\n")
        return line + newline

    def lines_received(self) -> list[bytes]:
        """Whole lines that have arrived and were not read yet."""
        *lines, self._rest = self._rest.split(b"\n")
        return lines

    async def chunks(self) -> AsyncIterator[bytes]:
        """The output as it arrives, until the pipe is closed or the program has ended and nothing more arrives."""
        assert self._process.stdout is not None
        while True:
            self._next = self._next or asyncio.create_task(self._process.stdout.read(_CHUNK_BYTES))
            done, _ = await asyncio.wait({self._next}, timeout=OUTPUT_GRACE_SECONDS)
            if done:
                chunk, self._next = self._next.result(), None
                if not chunk:
                    return
                yield chunk
            elif self._process.returncode is not None:
                return

    async def wait(self) -> None:
        """Wait until the program has ended, and a moment for the rest of its stderr."""
        await self._process.wait()
        await asyncio.wait({self._stderr_reader}, timeout=OUTPUT_GRACE_SECONDS)

    async def has_ended(self, seconds: float = OUTPUT_GRACE_SECONDS) -> bool:
        """Whether the program has ended, or ends within this time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
        if self._process.returncode is None:
            return False
        await self.wait()  # for the rest of its stderr, which says why
        return True

    async def end(self, *, graceful: bool = False) -> None:
        """End the program and its children; if `graceful`, first close its input and give it time to exit."""
        try:
            if graceful and self._process.returncode is None:
                self.close_input()
                await self._wait_a_while()
        finally:
            self._stderr_reader.cancel()
            if self._next is not None:
                self._next.cancel()
            self._kill()
            self._close_output()
        if self._process.returncode is None:
            await self._wait_a_while()

    def exit_reason(self) -> str:
        """How the program ended, with the first and the last lines that it wrote to stderr."""
        lines = self.stderr.lines(_FIRST_LINES, _LAST_LINES)
        cause = ": " + "\n".join(lines) if lines else ""
        return f"{self.program.title} {_exit_status_text(self._process.returncode)}{cause}"

    def exit_failure(self, where: str = "", *, infrastructure: bool = False) -> AgentFailed:
        """The failure of a program that has ended; its output may say that a key, a login or the network is missing.

        Some programs, such as Claude Code, report that on stdout. `infrastructure` is whether it is not the agent's
        failure whatever it printed.
        """
        lines = self.stderr.lines(_FIRST_LINES, _LAST_LINES)
        stdout = bytes(self.stdout[-_CHUNK_BYTES:]).decode("utf-8", "replace")
        diagnosis = diagnose_output("\n".join(lines) or stdout, self._process.returncode)
        said = "" if lines or diagnosis.is_agent else f": {stdout.strip()[-_CHUNK_BYTES:]}"
        if diagnosis.is_agent:
            return AgentFailed(f"{self.exit_reason()}{where}", infrastructure=infrastructure)
        return AgentFailed(f"{self.exit_reason()}{said}{where}", diagnosis=diagnosis)

    def _kill(self) -> None:
        if hasattr(os, "killpg"):
            kill_tree(self._process.pid, self._mark)
        elif self._process.returncode is None:
            self._process.kill()

    def _close_output(self) -> None:
        """Stop reading: asyncio waits for the end of the output, which never comes if the pipe is full."""
        for number in (1, 2):
            pipe = self._process._transport.get_pipe_transport(number)  # type: ignore[attr-defined]
            if pipe is not None:
                pipe.close()

    async def _wait_a_while(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._process.wait()

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        capture = current_capture()
        while chunk := await self._process.stderr.read(_CHUNK_BYTES):
            self.stderr.add(chunk)
            if capture is not None:
                capture.add_bytes("stderr", chunk)


class HeadAndTail:
    """The beginning and the end of a stream of any length."""

    def __init__(self, size: int = _CHUNK_BYTES) -> None:
        self._size = size
        self._head = b""
        self._tail = b""
        self._omitted = 0
        """How many line breaks are in neither part."""

    def add(self, chunk: bytes) -> None:
        space = self._size - len(self._head)
        self._head += chunk[:space]
        tail = self._tail + chunk[space:]
        self._tail = tail[-self._size :]
        self._omitted += tail[: -self._size].count(b"\n")

    def lines(self, first: int, last: int) -> list[str]:
        """The first and the last lines that are not blank, with a line between them that says how many are missing."""
        parts = [self._head, self._tail] if self._omitted else [self._head + self._tail]
        groups = [[line for line in part.decode("utf-8", "replace").splitlines() if line.strip()] for part in parts]
        lines = [line[:_MAX_LINE_CHARS] for group in groups for line in group]
        missing = len(lines) - first - last + self._omitted
        if missing <= 0:
            return lines
        return [*lines[:first], f"… ({missing:,} lines omitted) …", *lines[-last:]]


def _exit_status_text(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended with exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    return f"was killed by signal {name}"
