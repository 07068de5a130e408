"""The walk of a case stays short: a person who follows it reads few modules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "walk.py"
MOST = {"native case": 45}


@pytest.mark.parametrize("way", ["native case", "ADK case", "judged case", "HoloDeck TestExecutor", "pytest item"])
def test_a_case_crosses_few_modules(way: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--json", way], capture_output=True, text=True, timeout=300, check=False
    )

    assert done.returncode == 0, done.stderr
    modules = json.loads(done.stdout)["modules"]
    assert "running.engine.ask" in modules
    assert len(modules) <= MOST.get(way, 90), "\n".join(modules)
