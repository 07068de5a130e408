"""What commands say about files in a folder that are not suites, or were meant to be one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

GOOD = "agent: oracle\ncases:\n  - {id: a, input: hi, expected: hello}\n"


@pytest.fixture
def folder(project: Path) -> Path:
    folder = project / "suites"
    folder.mkdir()
    (folder / "good.yaml").write_text(GOOD)
    for name in ("a", "b", "c", "d"):
        (folder / f"{name}.json").write_text("[1]")
    (folder / "linked").symlink_to(project, target_is_directory=True)
    return folder


def test_skipped_files_are_counted_listed_and_in_the_reports(proctor: Command, folder: Path, project: Path) -> None:
    done = proctor("test", "suites", "--json", "r.json", "--md", "r.md", "--html", "r.html")
    assert done.code == 0
    assert "note: skipped 5 files that are not suites: suites/a.json (" in done.err
    assert "and 2 more; -v lists them" in done.err
    listed = json.loads((project / "r.json").read_text())["run"]["skipped_files"]
    assert [entry["path"] for entry in listed] == [*(f"suites/{name}.json" for name in "abcd"), "suites/linked"]
    assert "link to a folder" in listed[-1]["reason"]
    for report in ("r.md", "r.html"):
        assert "5 files that are not suites" in (project / report).read_text(encoding="utf-8")
    assert "skipped" not in proctor("test", "suites", "-q").err
    verbose = proctor("test", "suites", "-v").err
    assert [name for name in "abcd" if f"suites/{name}.json: is not a suite" not in verbose] == []
    assert "and 2 more" not in verbose


@pytest.mark.parametrize(
    "words",
    [
        ("test", "suites"),
        ("test", "suites", "--lf"),
        ("test", "--gate", "--plan", "suites"),
        ("plan", "suites"),
        ("dataset", "validate", "suites"),
        ("dataset", "list", "suites"),
        ("doctor", "suites"),
        ("flaky", "suites"),
        ("quarantine", "a", "suites"),
    ],
    ids=" ".join,
)
def test_a_broken_suite_in_a_folder_is_an_error_of_every_command(
    proctor: Command, folder: Path, words: tuple[str, ...]
) -> None:
    (folder / "lost.yaml").write_text("agent: oracle\ncasess:\n  - {id: a, input: hi, expected: hello}\n")
    done = proctor(*words)
    assert done.code == 2
    assert "suites/lost.yaml:2" in done.err + done.out
    assert "did you mean 'cases'?" in done.err + done.out


def test_other_commands_name_the_skipped_files_too(proctor: Command, folder: Path) -> None:
    for words in (("dataset", "list", "suites"), ("dataset", "validate", "suites"), ("plan", "suites")):
        assert "note: skipped 5 files" in proctor(*words).err, words
    assert "skipped suites/a.json: is not a suite" in proctor("doctor", "suites").out


def test_the_summary_of_a_build_names_the_skipped_files(
    proctor: Command, folder: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "summary.md"))
    assert proctor("test", "suites").code == 0
    assert "Skipped 5 files that are not suites" in (project / "summary.md").read_text(encoding="utf-8")
