"""CPU seconds, wall seconds and peak memory of whole processes, compared with one another in one run.

Machines differ and other work disturbs, so nothing here is a verdict by itself: contenders take turns, the best round
of each counts, and only ratios are reported.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class Broken(Exception):
    """A contender did not do its work; says what it printed instead."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A command whose cost is compared with others'."""

    name: str
    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took, its own children included."""

    cpu: float
    wall: float
    peak_kb: float
    printed: str = ""

    def best(self, other: Cost | None) -> Cost:
        if other is None:
            return self
        least = self if self.cpu <= other.cpu else other
        return Cost(least.cpu, min(self.wall, other.wall), min(self.peak_kb, other.peak_kb), least.printed)


def compare(contenders: Sequence[Contender], rounds: int, *, warm_up: bool = True) -> dict[str, Cost]:
    """The best cost of each contender by name; they alternate, so that a disturbance hits all of them."""
    best: dict[str, Cost] = {}
    for number in range(-1 if warm_up else 0, rounds):
        for contender in contenders:
            cost = measure(contender)
            if number >= 0:
                best[contender.name] = cost.best(best.get(contender.name))
    return best


def measure(contender: Contender) -> Cost:
    """Run a process to its end: user and system time of it and all it waited for, as the kernel counts them."""
    with tempfile.TemporaryFile("w+") as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            contender.command,
            cwd=contender.folder,
            env=dict(contender.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read()
    if process.returncode != 0:
        raise Broken(f"{contender.name} ended with {process.returncode}:\n{printed[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss, printed)


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment without what would change how Python or Proctor work, such as a ban on compiled files."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PROCTOR_"))}
    return kept | extra
