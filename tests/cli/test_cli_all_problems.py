"""Mending one mistake must not be what it takes to learn of the next."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.mark.needs("pixie")
def test_unknown_evaluators_are_reported_beside_unknown_keys_in_one_go(project: Path, proctor: Command) -> None:
    (project / "a.yaml").write_text("agnet: x\nevaluators: [ExactMach]\ncases: [{id: one, input: hi, expected: hi}]\n")
    (project / "b.yaml").write_text("agent: gone.py:agent\nevaluators: [ROGUE]\ncases: [{input: hi, expected: hi}]\n")
    dataset = '{"runnable": "no.py:App", "evaluators": ["ExactMatsh"], "entries": [{"description": ""}]}'
    (project / "c.json").write_text(dataset)
    done = proctor("test", ".")
    assert done.code == 2
    for said in (
        "a.yaml:1: agnet is not a known key; did you mean 'agent'?",
        "a.yaml:2: no evaluator is called 'ExactMach'; did you mean 'ExactMatch'?",
        "b.yaml:2: no evaluator is called 'ROGUE'; did you mean 'ROUGE'?",
        "b.yaml:1: agent: no file 'gone.py'",
        "c.json:1: no evaluator is called 'ExactMatsh'",
        "c.json:1: agent: no file 'no.py'",
    ):
        assert said in done.err, done.err
    assert "nothing was run" in done.err


def test_a_misspelt_expectation_gets_a_hint(project: Path, proctor: Command) -> None:
    (project / "a.yaml").write_text("agent: nop\ncases: [{input: hi, expected: {contians: [hi]}}]\n")
    done = proctor("test", "a.yaml")
    assert "a.yaml:2: cases[0].expected.contians is not a known key" in done.err
    assert "did you mean 'contains'?" in done.err


def test_problems_are_told_down_the_file(project: Path, proctor: Command) -> None:
    text = "agnet: x\nevaluators: [ExactMach]\ncriteria: {pct: 2}\ncases:\n  - {input: hi, expcted: hi}\n  - 5\n"
    (project / "b.yaml").write_text(text)
    (project / "a.yaml").write_text(text)
    for verb in (["test"], ["dataset", "validate"]):
        done = proctor(*verb, "b.yaml", "a.yaml")
        told = re.findall(r"^error: (\w)\.yaml:(\d+):", done.err + done.out, re.MULTILINE)
        lines = {file: [int(line) for name, line in told if name == file] for file in "ab"}
        assert lines["a"] == lines["b"] == sorted(lines["a"])
        assert set(lines["a"]) == {1, 2, 3, 5, 6}
        assert [name for name, _ in told] == ["b"] * len(lines["b"]) + ["a"] * len(lines["a"])


def test_no_help_breaks_off_in_the_middle_of_a_sentence(proctor: Command) -> None:
    for group in ("dataset", "trace"):
        done = proctor(group, "--help")
        assert "..." not in done.out.partition("Commands:")[2]


@pytest.mark.parametrize("command", [("test",), ("doctor",), ("dataset", "validate")])
def test_a_bad_line_does_not_hide_the_problems_of_other_lines(
    project: Path,
    proctor: Callable[..., Any],
    command: tuple[str, ...],
) -> None:
    rows = ['{"id": "a", "input": "hi", "expected": "hi"}', '{"id": "a", "input": "hi", "expcted": 1}', '{"id": ', "7"]
    (project / "big.jsonl").write_text("\n".join(rows), encoding="utf-8")
    ended = proctor(*command, "big.jsonl")
    assert ended.code == 2, ended
    for said in ("big.jsonl:2: cases[1].expcted is not a known key", "big.jsonl:3: is not valid JSON", "big.jsonl:4: "):
        assert said in ended.out + ended.err
