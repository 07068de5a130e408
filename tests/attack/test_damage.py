"""Code under test that damages Python or the store: a clear message, the right exit code, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

SUITE = "name: s\nagent: odd.py:agent\ncases:\n  - {id: a, input: hi, expected: {contains: [hi]}}\n"
AGENTS = {
    "import": ("raise GeneratorExit('bye')\nagent = None\n", 2, "could not be loaded: GeneratorExit: bye"),
    "deleted": (
        "import sys\nclass Odd:\n    def __del__(self): sys.exit(0)\n"
        "def agent(question):\n    Odd()\n    return 'wrong'\n",
        1,
        "Odd.__del__ raised SystemExit: 0, which was ignored",
    ),
    "store": (
        "import os\ndef agent(question):\n"
        "    for end in ('', '-wal'):\n"
        "        os.replace('st/results.db' + end, 'st/gone' + end)\n"
        "    return question\n",
        4,
        "was removed or replaced",
    ),
}


REPLACED = ("isinstance", "len", "min", "str", "super", "next", "Exception", "vars", "print")


@pytest.mark.parametrize(
    ("change", "define"),
    [
        ("setattr(builtins, name, None)", "async def"),
        ("delattr(builtins, name)", "def"),
        ("setattr(builtins, name, broken)", "def"),
    ],
)
def test_an_agent_that_replaces_functions_of_python_breaks_only_itself(
    tmp_path: Path, change: str, define: str
) -> None:
    (tmp_path / "odd.py").write_text(
        "import builtins\ndef broken(*arguments, **options):\n    raise SystemExit(0)\n"
        f"{define} agent(name):\n    if hasattr(builtins, name):\n        {change}\n    return name\n"
    )
    cases = "".join(f"  - {{id: {name}, input: {name}, expected: {name}}}\n" for name in (*REPLACED, "last"))
    (tmp_path / "s.yaml").write_text(f"name: s\nagent: odd.py:agent\nevaluators: [ExactMatch]\ncases:\n{cases}")
    command = [sys.executable, "-m", "proctor", "test", "s.yaml", "--store", "st", "-j", "1", "--json", "r.json"]
    ended = subprocess.run(command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=120)

    outcomes = {
        trial["case"]["id"]: trial["outcome"] for trial in json.loads((tmp_path / "r.json").read_text())["trials"]
    }
    assert list(outcomes) == [*REPLACED, "last"]
    # Without some, such as `isinstance`, Python cannot even return from the call.
    assert {name for name, outcome in outcomes.items() if outcome != "passed"} <= {"isinstance", "len", "super", "next"}
    assert ended.returncode == (0 if set(outcomes.values()) == {"passed"} else 1)
    assert ended.stderr.startswith("warning: code under test replaced builtins.")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("name", AGENTS)
def test_damage_ends_with_a_message(tmp_path: Path, name: str) -> None:
    code, exit_code, message = AGENTS[name]
    (tmp_path / "odd.py").write_text(code)
    (tmp_path / "s.yaml").write_text(SUITE)
    command = [sys.executable, "-m", "proctor", "test", "s.yaml", "--store", "st"]
    ended = subprocess.run(command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=120)
    output = ended.stdout + ended.stderr

    assert ended.returncode == exit_code, output
    assert message in output
    assert "Traceback" not in output
    if name == "store":
        assert "saved to" not in output
