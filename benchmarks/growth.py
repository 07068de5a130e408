"""How cost grows with the number of cases: a JSON Lines suite, read, run, stored and reported by the command line."""

from __future__ import annotations

from pathlib import Path

from environments import Interpreter
from material import write_jsonl
from measuring import Contender, clean_environment, compare
from table import Row, at_most

FACTOR = 10


def measure_growth(proctor: Interpreter, folder: Path, cases: int, rounds: int) -> list[Row]:
    few, many = (_contender(proctor, folder, count) for count in (cases, cases * FACTOR))
    costs = compare([few, many], rounds, warm_up=False)
    small, large = costs[few.name], costs[many.name]
    per_case = (large.peak_kb - small.peak_kb) / (cases * (FACTOR - 1))
    what = f"{cases * FACTOR:,} cases against {cases:,}"
    return [
        at_most(f"{what}: time", large.wall / small.wall, FACTOR + 0.5),
        Row(f"- {what}: CPU time", f"{large.cpu / small.cpu:.2f}x"),
        Row(f"{what}: memory", f"{per_case:.2f} KB a case", "below 1 KB a case", per_case < 1),
    ]


def _contender(proctor: Interpreter, folder: Path, cases: int) -> Contender:
    path = write_jsonl(folder / f"{cases}.jsonl", cases, "echo")
    command = [*proctor.module("proctor"), "test", path.name, "--store", f"store-{cases}"]
    return Contender(path.stem, command, folder, clean_environment())
