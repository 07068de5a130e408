"""How cost grows with the number of cases: a JSON Lines suite, read, run, stored and reported by the command line."""

from __future__ import annotations

from pathlib import Path

from cases import write_jsonl
from environments import Interpreter
from limits import GROWTH, MEMORY_MB
from measuring import Contender, clean_environment, compare
from table import Row, at_most

FACTOR = 10
FULL_SIZE = 100_000
"""The number of cases that the limit on memory is about."""


def measure_growth(proctor: Interpreter, folder: Path, cases: int, rounds: int) -> list[Row]:
    """Compare `cases` with ten times as many."""
    few, many = (_contender(proctor, folder, count) for count in (cases, cases * FACTOR))
    costs = compare([few, many], rounds, warm_up=False)
    small, large = costs[few.name], costs[many.name]
    what = f"{cases * FACTOR:,} cases against {cases:,}"
    memory = Row(f"- {cases * FACTOR:,} cases: memory", f"{large.peak_mb:.0f} MB")
    if cases * FACTOR >= FULL_SIZE:
        memory = at_most(f"{cases * FACTOR:,} cases: memory", large.peak_mb, MEMORY_MB, " MB")
    return [
        at_most(f"{what}: time", large.wall / small.wall, GROWTH),
        Row(f"- {what}: CPU time", f"{large.cpu / small.cpu:.2f}x"),
        memory,
    ]


def _contender(proctor: Interpreter, folder: Path, cases: int) -> Contender:
    path = write_jsonl(folder / f"{cases}.jsonl", cases)
    command = [*proctor.module("proctor"), "test", path.name, "--store", f"store-{cases}"]
    return Contender(path.stem, command, folder, clean_environment())
