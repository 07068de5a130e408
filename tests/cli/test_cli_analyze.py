"""`proctor analyze`: a kept run, looked at again."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.show import show_markdown

Command = Callable[..., Any]

TWO = "agent: agents.py:echo\ncases: [{id: right, input: a, expected: a}, {id: wrong, input: b, expected: c}]\n"


def test_the_last_run_is_analysed_whatever_its_verdict(proctor: Command, suite: Command) -> None:
    suite(text=TWO)
    proctor("test")
    ended = proctor("analyze")
    assert ended.code == 0
    assert "1 trial did not pass, for 1 cause." in ended.out
    assert "| ExactMatch |" in ended.out


def test_it_is_laid_out_on_a_terminal_and_markdown_in_a_pipe(
    proctor: Command, suite: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = r'"\e[2J \e]8;;http://x\a <script> ::error::no"'
    suite(text=f"agent: agents.py:echo\ncases: [{{id: evil, input: {evil}, expected: c}}]\n")
    proctor("test")
    piped = proctor("analyze").out
    assert piped.startswith("# Analysis of run ") and "\n## Totals\n" in piped and "\x1b" not in piped

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    assert show_markdown(piped, stream)
    shown = stream.getvalue()
    assert "\x1b[1" in shown and "\x1b[2J" not in shown and "\x1b]8" not in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "Analysis of run" in plain and "# " not in plain and "**" not in plain and "| --" not in plain
    monkeypatch.setenv("TERM", "dumb")
    assert not show_markdown(piped, Terminal())
    assert not show_markdown(piped, io.StringIO())


def test_json_is_a_document_with_the_same_facts(proctor: Command, suite: Command) -> None:
    suite(text=TWO)
    proctor("test", "--repeat", "2")
    run_id = json.loads(proctor("runs", "--json").out)[0]["id"]
    data = json.loads(proctor("analyze", run_id[:-1], "--json").out)
    assert data["schema"] == "proctor.analysis/1"
    assert data["run"] == run_id
    assert data["clusters"][0]["trials"] == 2
    assert data["clusters"][0]["examples"][0] == {"suite": "suite", "case_id": "wrong", "number": 1}
    assert data["evaluators"][0]["pass_rate"]["mean"] == 0.5


def test_it_can_be_written_to_a_file(proctor: Command, suite: Command, project: Path) -> None:
    suite(agent="surrogate")
    proctor("test", "--store", "kept")
    ended = proctor("analyze", "--store", "kept", "-o", "out/analysis.md")
    assert ended.out == ""
    assert (project / "out" / "analysis.md").read_text(encoding="utf-8").startswith("# Analysis of run ")
    (project / "taken").mkdir()
    assert proctor("analyze", "--store", "kept", "-o", "taken").code == 4
    assert proctor("analyze", "--store", "kept", "-o", " ").code == 2
    assert proctor("analyze", "--store", "kept", "-o", "-").out.startswith("# Analysis")


def test_a_run_that_is_not_there_is_said(proctor: Command, suite: Command) -> None:
    assert proctor("analyze").code == 2
    suite()
    proctor("test")
    ended = proctor("analyze", "nowhere")
    assert ended.code == 2
    assert "no run 'nowhere'" in ended.err
