"""An agent that closes standard output, or wraps it as scripts for Windows do, changes neither verdict nor output."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from command_line import COMMAND

pytestmark = pytest.mark.process

AGENTS = """
import codecs, gc, io, sys

def closes(message):
    sys.stdout.close()
    sys.stderr.close()

def closes_the_original(message):
    sys.__stdout__.close()

def uses_a_block(message):
    with sys.stdout:
        print("inside")

def wraps(message):
    for _ in range(2):
        sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
        gc.collect()

def detaches(message):
    sys.stdout = codecs.getwriter("utf-8")(sys.stdout.detach())
    print("é")
"""
NAMES = ["closes", "closes_the_original", "uses_a_block", "wraps", "detaches"]


@pytest.mark.parametrize("where", ["in the agent", "at the import"])
def test_the_verdict_is_printed_whatever_happens_to_the_streams(tmp_path: Path, where: str) -> None:
    for name in NAMES:
        call = f"\n{name}('')\n" if where == "at the import" else ""
        body = "    pass\n" if call else f"    {name}(message)\n"
        (tmp_path / f"{name}.py").write_text(f'{AGENTS}{call}\ndef agent(message):\n{body}    return "hello"\n')
        case = "cases: [{id: a, input: hi, expected: hello}]\n"
        (tmp_path / f"{name}.yaml").write_text(f"agent: {name}.py:agent\n{case}")
        done = subprocess.run(
            [*COMMAND, "test", f"{name}.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, "PASSED" in done.stdout) == (0, True), done.stdout + done.stderr
