"""`proctor.compare` takes runs and whatever else names one, and gives what a script goes on with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.cli import main

SUITE = (
    "name: s\ncases: [{id: a, input: q, expected: {contains: good}}, {id: b, input: q, expected: {contains: fine}}]\n"
)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[proctor.Run, proctor.Run]:
    """Two runs that are kept here, of which the second fails one case."""
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(SUITE, encoding="utf-8")
    before = proctor.run("s.yaml", agent=lambda question: "good and fine", store=".proctor")
    after = proctor.run("s.yaml", agent=lambda question: "good", store=".proctor")
    return before, after


def exported(name: str) -> str:
    sys.argv = ["proctor", "export", name, "--output", "run.jsonl"]
    with pytest.raises(SystemExit):
        main()
    return "run.jsonl"


def broken(comparison: proctor.Comparison) -> list[Any]:
    return [row["case"] for row in comparison.to_dicts() if row["group"] == "broken"]


def test_runs_ids_names_and_files_name_the_same_run(
    runs: tuple[proctor.Run, proctor.Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = runs
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    for first in (before, before.id, before.id[:-2], "last~1", exported("last~1"), Path("run.jsonl")):
        assert broken(proctor.compare(first, after)) == ["b"]
        assert broken(proctor.compare(first)) == ["b"]


def test_one_agent_of_a_run_is_held_against_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(SUITE, encoding="utf-8")
    agents = {"careful": lambda question: "good and fine", "quick": lambda question: "good"}
    proctor.run("s.yaml", arms=agents, store=".proctor")

    assert broken(proctor.compare("last@careful", "last@quick")) == ["b"]


def test_pandas_is_asked_for_only_where_it_is_used(
    runs: tuple[proctor.Run, proctor.Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)

    assert len(runs[0].to_dicts()) == 2
    with pytest.raises(proctor.UsageError, match="pip install pandas"):
        runs[0].to_pandas()


def test_a_script_is_told_of_progress_on_standard_error_if_it_asks(
    runs: tuple[proctor.Run, proctor.Run], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    proctor.run("s.yaml", agent="oracle")
    assert capsys.readouterr() == ("", "")

    proctor.run("s.yaml", agent="oracle", progress=True)
    told = capsys.readouterr()
    assert told.out == ""
    assert "2 of 2 cases passed" in told.err


def test_what_is_shown_of_a_run_holds_no_markup_of_the_agents(tmp_path: Path) -> None:
    hostile = '</style><img src=x onerror="alert(1)">'
    case = proctor.Case(id=hostile, turns=(proctor.Turn(hostile, proctor.Expected(output="other")),), tags=(hostile,))
    run = proctor.run(proctor.Suite(hostile, (case,)), agent=lambda question: hostile)
    pages = [run._repr_html_(), proctor.compare(run, run)._repr_html_()]

    for page in pages:
        assert "<img" not in page
        assert page.count("</style>") == 1
    assert "&lt;img" in pages[0]
