"""Terminals as they are: not UTF-8, without colour, closed half-way."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND
from pseudo_terminal import run_in_terminal

Command = Callable[..., Any]

FOREIGN = (
    "name: Prüfung — 東京\nagent: agents.py:unicode\ncases: [{id: größe, input: ⚑, evaluators: [checks.py:bad]}]\n"
)


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "cp1252:strict"}])
def test_a_terminal_that_is_not_utf_8_never_breaks_a_command(
    proctor_process: Command, suite: Command, environment: dict[str, str]
) -> None:
    suite(text=FOREIGN)
    quiet = {"PYTHONUTF8": "0", "LC_ALL": "C", **environment}
    ended = proctor_process("test", "-v", **quiet)
    assert ended.code == 1
    assert ended.out.isascii() or environment["PYTHONIOENCODING"] != "ascii"
    for command in (("runs",), ("show",), ("dataset", "list", "--cases"), ("doctor", "suite.yaml")):
        assert proctor_process(*command, **quiet).code == 0


def test_problems_are_told_on_a_terminal_that_is_not_utf_8(proctor_process: Command, suite: Command) -> None:
    suite("größe.yaml", text="cases: [{input: a, expected: a, größer: 1}]\n")
    ended = proctor_process("dataset", "validate", PYTHONIOENCODING="ascii")
    assert ended.code == 2
    assert "is not a known key" in ended.out
    assert ended.out.isascii()


@pytest.mark.process
@pytest.mark.parametrize("arguments", [("test",), ("runs",), ("show",), ("dataset", "list"), ("doctor",)])
def test_a_reader_that_goes_away_is_no_disaster(
    proctor: Command, suite: Command, project: Path, arguments: tuple[str, ...]
) -> None:
    cases = "".join(f"  - {{id: case-{n}, input: a, expected: b}}\n" for n in range(200))
    suite(text="agent: agents.py:echo\ncases:\n" + cases)
    if arguments[0] in ("runs", "show"):
        proctor("test", "-q")
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, *arguments]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=project, timeout=60, check=False)
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode in (0, 1, 141)


def test_a_run_whose_output_is_closed_is_still_kept(project: Path, proctor_process: Command, suite: Command) -> None:
    suite()
    script = f'"{sys.executable}" -m proctor test >&- 2>&-'
    assert subprocess.run(["sh", "-c", script], cwd=project, timeout=60, check=False).returncode == 0
    assert "passed" in proctor_process("runs").out


def test_colours_go_to_terminals_alone_unless_they_are_asked_for(proctor_process: Command, suite: Command) -> None:
    suite(check="bad")
    assert "\x1b[" not in proctor_process("test", FORCE_COLOR="").out
    forced = proctor_process("test", FORCE_COLOR="1").out
    assert "\x1b[1;31mFAIL" in forced
    assert set(re.findall("\x1b\\[[0-9;]*([A-Za-z])", forced)) == {"m"}
    assert "loading" not in forced


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_is_coloured_unless_somebody_minds(
    project: Path, suite: Command, environment: dict[str, str], coloured: bool
) -> None:
    suite(check="bad")
    base = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")} | {"TERM": "xterm"}
    code, said = run_in_terminal([*COMMAND, "test"], project, environment=base | environment)
    assert code == 1
    assert "Traceback" not in said
    assert ("[31m" in said or "[1;31m" in said) is coloured


def test_escape_sequences_in_a_file_never_reach_the_terminal(proctor: Command, suite: Command) -> None:
    suite(
        "a.yaml", text='name: "a\\e[2Jb"\nagent: agents.py:echo\ncases: [{id: "\\e]0;x\\a", input: q, expected: q}]\n'
    )
    suite("b.yaml", text='cases: [{input: q, expected: q, "\\e[31m": 1}]\n')
    for command in (("test", "a.yaml"), ("runs",), ("show", "-v"), ("dataset", "list", "--cases", "a.yaml"),
                    ("dataset", "validate", "b.yaml"), ("test", "b.yaml"), ("doctor", "a.yaml", "b.yaml")):  # fmt: skip
        ended = proctor(*command)
        assert "\x1b" not in ended.out + ended.err


@pytest.mark.process
def test_an_argument_that_is_not_utf_8_is_named_in_escapes(project: Path) -> None:
    command = [os.fsencode(sys.executable), b"-m", b"proctor", b"test", b"\xff.yaml"]
    done = subprocess.run(command, capture_output=True, cwd=project, timeout=60, check=False)
    assert done.returncode == 2
    assert b"\\udcff.yaml: does not exist" in done.stderr
