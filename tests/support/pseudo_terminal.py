"""Runs a command at a pseudo-terminal, as a person would."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

SILENCE = 60.0
"""Seconds without output after which the command is taken to wait for something that nobody types."""


def run_in_terminal(
    command: Sequence[str],
    folder: Path,
    *,
    typed: str = "",
    environment: Mapping[str, str] | None = None,
    interrupt_at: str | None = None,
) -> tuple[int, str]:
    """The exit code and the output. The command gets an interrupt when `interrupt_at` was printed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    os.write(ours, typed.encode())
    output = b""
    while True:
        if not select.select([ours], [], [], SILENCE)[0]:
            process.kill()
            process.wait()
            os.close(ours)
            pytest.fail(f"{' '.join(command)} waits at the terminal after {output.decode(errors='replace')!r}")
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end of a pseudo-terminal is closed
            break
        if not chunk:
            break
        output += chunk
        if interrupt_at is not None and interrupt_at.encode() in output:
            process.send_signal(signal.SIGINT)
            interrupt_at = None
    os.close(ours)
    return process.wait(SILENCE), output.decode("utf-8", "replace")
