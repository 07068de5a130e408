"""Starts programs so that they can be ended with everything they started themselves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.errors import AgentFailed
from proctor.records import record

_LONGEST_LINE = 64 * 1024 * 1024
_GRACE_SECONDS = 2.0
_LAST_LINES = 8


@record
class Program:
    """What to start, where, and with what environment."""

    argv: tuple[str, ...]
    cwd: Path | None
    env: Mapping[str, str]

    @property
    def title(self) -> str:
        return shlex.join(self.argv)[:120]

    def __repr__(self) -> str:
        return f"Program({self.title})"


async def launch(program: Program, *, stderr: Any) -> asyncio.subprocess.Process:
    """The running program, in a process group of its own; no shell is involved."""
    try:
        return await asyncio.create_subprocess_exec(
            *program.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            cwd=program.cwd,
            env=dict(program.env),
            limit=_LONGEST_LINE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise AgentFailed(f"{program.title} could not be started: {error}") from None


async def stop(process: asyncio.subprocess.Process, *, politely: bool = False) -> None:
    """End the program and its children; politely means that it may first notice the end of its input."""
    try:
        if politely and process.returncode is None:
            if process.stdin is not None:
                process.stdin.close()
            await _wait(process)
    finally:
        kill_group(process)
    if process.returncode is None:
        await _wait(process)


def kill_group(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()


async def _wait(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_SECONDS):
            await process.wait()


def ended(program: Program, status: int | None, stderr: bytes) -> str:
    """Why the program is gone, with the last it had to say."""
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()][-_LAST_LINES:]
    last_words = ": " + "\n".join(lines) if lines else ""
    return f"{program.title} {_status(status)}{last_words}"


def _status(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended with exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    return f"was killed by signal {name}"
