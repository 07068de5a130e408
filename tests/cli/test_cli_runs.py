"""`proctor runs`: deleting runs, and the space that they take."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def rows(project: Path) -> dict[str, int]:
    with sqlite3.connect(project / ".proctor" / "results.db") as connection:
        tables = ("runs", "trials", "traces", "cases")
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}


def test_a_deleted_run_is_gone_with_all_that_only_it_had(proctor: Command, suite: Command, project: Path) -> None:
    suite()
    proctor("test", "--name", "first")
    alone = rows(project)
    suite("other.yaml", text="name: other\nagent: agents.py:echo\ncases: [{id: x, input: a, expected: a}]\n")
    proctor("test", "--name", "second")
    assert proctor("runs", "delete", "second", "--yes").out.startswith("deleted run ")
    assert rows(project) == alone
    assert [row["name"] for row in json.loads(proctor("runs", "--json").out)] == ["first"]
    assert "no run 'second'" in proctor("show", "second").err
    assert proctor("show", "first").code == 0
    assert proctor("test", "--name", "third").code == 0


def test_several_runs_are_deleted_at_once_and_the_file_shrinks(proctor: Command, suite: Command, project: Path) -> None:
    suite(text="agent: agents.py:huge\ncases: [{id: one, input: a, expected: a}]\n")
    for _ in range(2):
        proctor("test")
    before = sum(path.stat().st_size for path in (project / ".proctor").iterdir())
    assert proctor("runs", "delete", "last", "last~1", "last", "-y").out.count("deleted") == 2
    assert sum(path.stat().st_size for path in (project / ".proctor").iterdir()) < before / 4
    assert "no runs" in proctor("runs").out


def test_nothing_is_deleted_without_a_yes(proctor: Command, suite: Command, project: Path) -> None:
    suite()
    proctor("test")
    ended = proctor("runs", "delete", "last")
    assert ended.code == 2
    assert "add --yes" in ended.err
    assert rows(project)["runs"] == 1


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("n\n", 1)])
def test_a_person_is_asked(
    proctor: Command, suite: Command, project: Path, monkeypatch: pytest.MonkeyPatch, answer: str, left: int
) -> None:
    suite()
    proctor("test")
    monkeypatch.setattr("proctor.cli.runs.is_interactive", lambda: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: answer.strip())
    ended = proctor("runs", "delete", "last")
    assert ended.code == (0 if left == 0 else 130)
    assert rows(project)["runs"] == left


def test_the_size_of_the_store_is_shown(proctor: Command, suite: Command) -> None:
    suite()
    proctor("test")
    assert proctor("runs", "--size").out.startswith(".proctor: 1 run, ")
    assert "kB" in proctor("runs", "--size").out or "MB" in proctor("runs", "--size").out
