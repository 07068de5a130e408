"""What starting costs: no command loads what it does not use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"rich", "pydantic", "asyncio", "yaml", "sqlite3", "httpx2", "rapidfuzz", "jsonschema_rs", "nltk"}


def _modules(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(' '.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stderr.split())


def _command(*arguments: str) -> str:
    return (
        f"sys.argv = ['proctor', *{arguments!r}]\nfrom proctor.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass"
    )


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("tset",)])
def test_help_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert _modules(_command(*arguments)).isdisjoint(HEAVY)


def test_importing_proctor_loads_few_modules() -> None:
    assert len(_modules("import proctor") - _modules("pass")) < 60


def test_naming_one_thing_loads_only_where_it_lives() -> None:
    assert _modules("from proctor import Suite, Case, Turn, Expected").isdisjoint(HEAVY)


def test_garbage_is_collected_while_an_agent_runs(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("import gc\n\n\ndef agent(question):\n    return str(gc.isenabled())\n")
    suite = {"agent": "agent.py:agent", "evaluators": ["ExactMatch"], "cases": [{"input": "On?", "expected": "True"}]}
    (tmp_path / "suite.json").write_text(json.dumps(suite))

    command = [sys.executable, "-m", "proctor", "test", "suite.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
