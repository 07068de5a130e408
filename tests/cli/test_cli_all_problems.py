"""Mending one mistake must not be what it takes to learn of the next."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.cases.formats.native import json_lines


def test_unknown_evaluators_are_reported_beside_unknown_keys_in_one_go(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("agnet: x\nevaluators: [ExactMach]\ncases: [{id: one, input: hi, expected: hi}]\n")
    (tmp_path / "b.yaml").write_text("agent: gone.py:agent\nevaluators: [ROGUE]\ncases: [{input: hi, expected: hi}]\n")
    dataset = '{"runnable": "no.py:App", "evaluators": ["ExactMatsh"], "entries": [{"description": ""}]}'
    (tmp_path / "c.json").write_text(dataset)
    command = [sys.executable, "-m", "proctor", "test", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    for said in (
        "a.yaml:1: agnet is not a known key; did you mean 'agent'?",
        "a.yaml:2: no evaluator is called 'ExactMach'; did you mean 'ExactMatch'?",
        "b.yaml:2: no evaluator is called 'ROGUE'; did you mean 'ROUGE'?",
        "b.yaml:1: agent: no file 'gone.py'",
        "c.json:1: no evaluator is called 'ExactMatsh'",
        "c.json:1: agent: no file 'no.py'",
    ):
        assert said in done.stderr, done.stderr
    assert "nothing was run" in done.stderr


def test_a_misspelt_expectation_gets_a_hint(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("agent: nop\ncases: [{input: hi, expected: {contians: [hi]}}]\n")
    command = [sys.executable, "-m", "proctor", "test", "a.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "a.yaml:2: cases[0].expected.contians is not a known key" in done.stderr
    assert "did you mean 'contains'?" in done.stderr


def test_problems_are_told_down_the_file(tmp_path: Path) -> None:
    text = "agnet: x\nevaluators: [ExactMach]\ncriteria: {pct: 2}\ncases:\n  - {input: hi, expcted: hi}\n  - 5\n"
    (tmp_path / "b.yaml").write_text(text)
    (tmp_path / "a.yaml").write_text(text)
    for verb in (["test"], ["dataset", "validate"]):
        command = [sys.executable, "-m", "proctor", *verb, "b.yaml", "a.yaml"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        told = re.findall(r"^error: (\w)\.yaml:(\d+):", done.stderr + done.stdout, re.MULTILINE)
        lines = {file: [int(line) for name, line in told if name == file] for file in "ab"}
        assert lines["a"] == lines["b"] == sorted(lines["a"])
        assert set(lines["a"]) == {1, 2, 3, 5, 6}
        assert [name for name, _ in told] == ["b"] * len(lines["b"]) + ["a"] * len(lines["a"])


def test_no_help_breaks_off_in_the_middle_of_a_sentence() -> None:
    for group in ("dataset", "trace"):
        command = [sys.executable, "-m", "proctor", group, "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "..." not in done.stdout.partition("Commands:")[2]


@pytest.mark.parametrize("smallest", [0, 8_000_000], ids=["large", "small"])
@pytest.mark.parametrize("command", [("test",), ("doctor",), ("dataset", "validate")])
def test_a_bad_line_of_a_large_file_is_told_as_one_of_a_small_file_is(
    here: Path,
    proctor: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    smallest: int,
) -> None:
    monkeypatch.setattr(json_lines, "LARGE_BYTES", smallest)
    rows = ['{"id": "a", "input": "hi", "expected": "hi"}', '{"id": "a", "input": "hi", "expcted": 1}', '{"id": ', "7"]
    (here / "big.jsonl").write_text("\n".join(rows), encoding="utf-8")
    ended = proctor(*command, "big.jsonl")
    assert ended.code == 2, ended
    for said in ("big.jsonl:2: cases[1].expcted is not a known key", "big.jsonl:3: is not valid JSON", "big.jsonl:4: "):
        assert said in ended.out + ended.err
