from __future__ import annotations

from pathlib import Path

import pytest

from proctor.cases.formats.loading import load
from proctor.cases.relocate import relocate
from proctor.running.plan import check_references

SUITE = """
name: moved
agent: app.py:agent
evaluators: ["checks.py:polite", ExactMatch]
allow_files_from: [/elsewhere]
cases:
  - id: one
    input: hi
    files: [notes.txt, {path: /elsewhere/a.pdf}]
    evaluators: ["...", "checks.py:short"]
    expected:
      output: hi
      tools: [{name: t, args: {a: {$predicate: "checks.py:even"}, b: [{c: {$predicate: "checks.py:even"}}]}}]
    mocks: {t: {args: {a: {$one_of: [{$predicate: "checks.py:even"}]}}, result: 1}}
    final_state: {n: {$predicate: "checks.py:even"}}
"""


@pytest.fixture
def suite_file(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "app.py").write_text("def agent(q): return q\n")
    checks = "def polite(e): return True\ndef short(e): return True\ndef even(v): return v % 2 == 0\n"
    (folder / "checks.py").write_text(checks)
    (folder / "notes.txt").write_text("notes")
    (folder / "suite.yaml").write_text(SUITE)
    return folder / "suite.yaml"


def test_references_still_lead_to_the_same_files_from_another_folder(suite_file: Path, tmp_path: Path) -> None:
    [suite] = load([suite_file])
    there = relocate(suite, tmp_path / "there")
    assert there.agent == "../here/app.py:agent"
    assert [spec.name for spec in there.evaluators] == ["../here/checks.py:polite", "ExactMatch"]
    [case] = there.cases
    assert "../here/checks.py:short" in [spec.name for spec in case.evaluators or ()]
    assert [item.path for item in case.turns[0].files] == ["../here/notes.txt", "/elsewhere/a.pdf"]
    [call] = case.turns[0].expected.tools or ()
    assert call.args is not None
    moved_predicate = {"$predicate": "../here/checks.py:even"}
    assert call.args["a"].to_json() == moved_predicate
    assert call.args["b"].to_json() == [{"c": moved_predicate}]
    assert (case.mocks["t"][0].args or {})["a"].to_json() == {"$one_of": [moved_predicate]}
    assert case.final_state == {"n": moved_predicate}


def test_a_converted_suite_finds_its_agent_and_evaluators(suite_file: Path, tmp_path: Path) -> None:
    from proctor.cases.formats.native.writer import write_text

    target = tmp_path / "there" / "suite.yaml"
    target.parent.mkdir()
    [suite] = load([suite_file])
    target.write_text(write_text([relocate(suite, target.parent)], ".yaml").text)
    [again] = load([target])
    assert check_references(again) == []


def test_in_its_own_folder_nothing_changes(suite_file: Path) -> None:
    [suite] = load([suite_file])
    assert relocate(suite, suite_file.parent) is suite
