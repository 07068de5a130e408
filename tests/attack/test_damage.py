"""Code under test that damages Python or the store: a clear message, the right exit code, no traceback."""

from __future__ import annotations

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


@pytest.mark.parametrize("name", ["isinstance", "len", "min", "str", "super", "next", "Exception", "vars", "print"])
@pytest.mark.parametrize("change", ["builtins.{name} = None", "del builtins.{name}", "builtins.{name} = broken"])
def test_an_agent_that_replaces_a_function_of_python_breaks_only_itself(tmp_path: Path, name: str, change: str) -> None:
    broken = "def broken(*arguments, **options):\n    raise SystemExit(0)\n"
    act = change.format(name=name)
    (tmp_path / "odd.py").write_text(
        f"import builtins\n{broken}{define} agent(question):\n    if question == 'hi':\n        {act}\n    return question\n"
    )
    (tmp_path / "s.yaml").write_text(f"{SUITE}  - {{id: b, input: ho, expected: {{contains: [ho]}}}}\n")
    command = [sys.executable, "-m", "proctor", "test", "s.yaml", "--store", "st", "-j", "1"]
    ended = subprocess.run(command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=120)

    assert ended.returncode in (0, 1), ended.stderr  # some of them, such as `isinstance`, are needed to end the call
    assert ("PASSED" if ended.returncode == 0 else "FAILED") in ended.stdout
    assert ended.stderr == f"warning: code under test replaced builtins.{name}, which Python itself uses\n"


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
