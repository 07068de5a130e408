"""CPU seconds, wall seconds and peak memory of whole processes, compared with one another in one run.

Machines differ, and other work disturbs, so seconds alone mean little. The contenders take turns, so that a disturbance
affects all of them; the best round of each counts; and limits are set on ratios.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class ContenderFailed(Exception):
    """A contender did not do its work; the message has the end of its output."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A command whose cost is compared with that of others."""

    name: str
    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one process, with the children it waited for."""

    cpu: float
    wall: float
    peak_mb: float

    def best(self, other: Cost | None) -> Cost:
        if other is None:
            return self
        return Cost(min(self.cpu, other.cpu), min(self.wall, other.wall), min(self.peak_mb, other.peak_mb))


def compare(contenders: Sequence[Contender], rounds: int, *, warm_up: bool = True) -> dict[str, Cost]:
    """The best cost of each contender, by name; a first round that only fills the file cache does not count."""
    best: dict[str, Cost] = {}
    for number in range(-1 if warm_up else 0, rounds):
        for contender in contenders:
            cost = measure(contender)
            if number >= 0:
                best[contender.name] = cost.best(best.get(contender.name))
    return best


def measure(contender: Contender) -> Cost:
    """Run a process to its end; the kernel counts what it and its children used."""
    with tempfile.TemporaryFile("w+") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            contender.command,
            cwd=contender.folder,
            env=dict(contender.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        raise ContenderFailed(f"{contender.name} ended with {process.returncode}:\n{text[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment without variables that change how Python or Proctor work."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PROCTOR_"))}
    return variables | extra
