from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "gate.py"


def simulate(*options: str) -> str:
    command = [sys.executable, str(SCRIPT), "--suites", "2", "--jobs", "1", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


def test_the_simulation_prints_the_shipped_gate_beside_those_written_by_hand() -> None:
    printed = simulate("--cases", "20", "--recorded", "5", "--parts", "gates")

    rows = [line for line in printed.splitlines() if line.startswith("| 20 | 5 |")]
    assert [row.split(" | ")[2] for row in rows] == [
        "**proctor**",
        "any flip",
        "suite rate below last",
        "2 of 3",
        "rerun once",
    ]
    assert all(row.count("%") == 5 for row in rows)


def test_the_same_seed_gives_the_same_table() -> None:
    options = ("--cases", "20", "--recorded", "5", "--parts", "gates", "--seed", "3")

    assert simulate(*options) == simulate(*options)
