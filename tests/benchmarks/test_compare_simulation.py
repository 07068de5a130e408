"""The benchmark of `proctor compare` does its work; what it measures is never asserted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "compare.py"


def test_the_simulation_prints_a_row_for_each_setting_and_compares_stored_runs() -> None:
    command = [sys.executable, str(SCRIPT), "--pairs", "2", "--cases", "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n| ") == 6
    assert "`proctor compare` of two runs of 20 cases:" in done.stdout
