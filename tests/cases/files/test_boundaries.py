"""Attached files stay in the suite's folder, unless the suite allows another one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import proctor
from proctor.base.errors import InvalidSuite
from proctor.cases.files import boundaries
from proctor.cases.files.boundaries import OutsideFile, open_file
from proctor.cases.relocate import relocate
from proctor.cases.suite import Case, Suite, Turn

SECRET = "hunter2-of-another-folder"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for suites, with a file of its own and a secret next to it."""
    folder = tmp_path / "suites"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "own.txt").write_text("inside")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.txt").write_text(SECRET)
    (folder / "link.txt").symlink_to(tmp_path / "elsewhere" / "secret.txt")
    (folder / "linked").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (folder / "linked_twice.txt").symlink_to(folder / "linked" / "secret.txt")
    (folder / "inner.txt").symlink_to(folder / "docs" / "own.txt")
    return folder


def write(folder: Path, file: str, more: str = "") -> Path:
    path = folder / "suite.yaml"
    path.write_text(
        f"agent: echo\n{more}cases:\n  - {{id: a, input: hi, files: ['{file}'], expected: {{contains: [hi]}}}}\n"
    )
    return path


def answer(path: Path) -> str:
    run = proctor.run(path, agent=lambda text: text, progress=False)
    return str(run["a"].trials[0].replies[0].answer)


@pytest.mark.parametrize(
    "file",
    [
        "{outside}/secret.txt",
        "../elsewhere/secret.txt",
        "docs/../../elsewhere/secret.txt",
        "link.txt",
        "linked/secret.txt",
        "linked_twice.txt",
        "/etc/passwd",
        "/dev/zero",
        "C:\\Windows\\win.ini",
        "\\\\server\\share\\x.txt",
    ],
)
def test_a_file_outside_of_the_suites_folder_is_refused_before_anything_runs(folder: Path, file: str) -> None:
    path = write(folder, file.format(outside=folder.parent / "elsewhere"))
    asked: list[str] = []
    with pytest.raises(InvalidSuite) as error:
        proctor.run(path, agent=asked.append, progress=False)
    message = str(error.value)
    assert f"{path}:3: case 'a': the file" in message
    assert "is outside of the suite's folder; move it there, or add `allow_files_from: [" in message
    assert (asked, SECRET in message) == ([], False)


@pytest.mark.parametrize("file", ["docs/own.txt", "docs/../docs/own.txt", "inner.txt", "{folder}/docs/own.txt"])
def test_files_inside_are_read_also_through_links(folder: Path, file: str) -> None:
    assert "inside" in answer(write(folder, file.format(folder=folder)))


@pytest.mark.parametrize("file", ["../elsewhere/secret.txt", "link.txt", "linked_twice.txt"])
def test_a_suite_can_allow_another_folder(folder: Path, file: str) -> None:
    assert SECRET in answer(write(folder, file, "allow_files_from: [../elsewhere]\n"))


def test_a_url_of_a_file_is_not_read(folder: Path) -> None:
    for file in (f"file://{folder.parent}/elsewhere/secret.txt", "file:///etc/passwd"):
        path = write(folder, file)
        path.write_text(path.read_text().replace(f"'{file}'", f"{{url: '{file}'}}"))
        run = proctor.run(path, agent=lambda text: text, progress=False)
        assert run.outcome.value == "error"
        assert "only http and https" in run["a"].reason


def test_a_file_that_is_replaced_by_a_link_while_it_is_opened_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is right when it is checked, and leads elsewhere when the file is opened."""
    own, open_ = folder / "docs" / "own.txt", os.open

    def swap_and_open(path: Path, flags: int) -> int:
        own.unlink()
        own.symlink_to(folder.parent / "elsewhere" / "secret.txt")
        return open_(path, flags)

    monkeypatch.setattr(boundaries.os, "open", swap_and_open)
    with pytest.raises(OutsideFile):
        open_file(folder, "docs/own.txt", [folder])


def test_a_pipe_that_takes_the_place_of_a_file_does_not_block(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, open_ = folder / "docs" / "own.txt", os.open

    def swap_and_open(path: Path, flags: int) -> int:
        own.unlink()
        os.mkfifo(own)
        return open_(path, flags)

    monkeypatch.setattr(boundaries.os, "open", swap_and_open)
    ended: list[type[BaseException]] = []

    def read() -> None:
        try:
            open_file(folder, "docs/own.txt", [folder])
        except OutsideFile as error:
            ended.append(type(error))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(30)
    assert ended == [OutsideFile]


def test_a_suite_in_python_may_attach_any_file(folder: Path) -> None:
    turn = Turn("hi", expected={"contains": ["hi"]}, files=[str(folder.parent / "elsewhere" / "secret.txt")])
    case = Case(id="a", turns=(turn,))
    run = proctor.run(Suite("shop", [case]), agent=lambda text: text, progress=False)
    assert SECRET in str(run["a"].trials[0].replies[0].answer)


def test_a_suite_that_is_written_to_another_folder_still_finds_its_files(folder: Path) -> None:
    [suite] = proctor.load(write(folder, "docs/own.txt"))
    moved = relocate(suite, folder.parent / "moved")
    assert moved.allow_files_from == ("../suites",)


def test_both_keys_survive_writing(folder: Path) -> None:
    keys = "allow_files_from: [../elsewhere]\ndepends_on: ['prompts/*.md']\n"
    [suite] = proctor.load(write(folder, "docs/own.txt", keys))
    assert (suite.to_dict()["allow_files_from"], suite.to_dict()["depends_on"]) == (["../elsewhere"], ["prompts/*.md"])
