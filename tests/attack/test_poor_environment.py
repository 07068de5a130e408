"""Limits, folders and streams that are too small, missing or closed: one line that says what is wrong, and no pass."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND

import proctor.cli

Suite = Callable[..., Path]


def ended(project: Path, shell: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell that has changed its own environment first."""
    line = f'{shell}; exec "$@"'
    return subprocess.run(
        ["bash", "-c", line, "bash", *COMMAND, *arguments], cwd=project, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("files", [5, 8, 12, 31])
def test_too_few_open_files_are_one_line(project: Path, suite: Suite, files: int) -> None:
    suite("echo")
    result = ended(project, f"ulimit -n {files}", "test", "suite.yaml")
    assert (result.returncode, result.stdout) == (4, "")
    assert result.stderr.startswith(f"error: cannot start: only {files} files can be open")
    assert result.stderr.count("\n") == 1
    assert not (project / ".proctor").exists()


@pytest.mark.parametrize(("files", "parallel"), [(32, 1), (64, 10)])
def test_enough_open_files_pass_or_say_which_trials_had_too_few(
    project: Path, suite: Suite, files: int, parallel: int
) -> None:
    suite("echo", settings=f"{{parallel: {parallel}}}")
    result = ended(project, f"ulimit -n {files}", "test", "suite.yaml")
    assert result.returncode == 0
    assert "PASSED  4 of 4 cases passed" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("command", [("test", "suite.yaml"), ("show", "last"), ("compare", "last", "last"), ("runs",)])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_result_that_cannot_be_written_is_no_success(
    project: Path, proctor: Callable[..., Any], suite: Suite, command: tuple[str, ...], unbuffered: str
) -> None:
    suite("echo")
    assert proctor("test", "suite.yaml").code == 0
    result = ended(project, f"export PYTHONUNBUFFERED={unbuffered}; exec >/dev/full", *command)
    assert result.returncode == 4
    assert "No space left on device" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_reader_that_closes_its_pipe_changes_nothing(project: Path, suite: Suite) -> None:
    suite("echo")
    result = ended(project, "exec > >(exec true)", "test", "suite.yaml")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("streams", ["<&-", "2>&-", "<&- 2>&-"])
def test_a_closed_stream_does_not_change_the_verdict(project: Path, suite: Suite, streams: str) -> None:
    suite("echo")
    result = ended(project, f"exec {streams}", "test", "suite.yaml")
    assert result.returncode == 0
    assert "PASSED  4 of 4 cases passed" in result.stdout


@pytest.mark.parametrize("command", [("test", "suite.yaml"), ("runs",), ("doctor",)])
def test_a_working_folder_that_was_deleted_is_named(project: Path, command: tuple[str, ...]) -> None:
    result = ended(project, "mkdir gone; cd gone; rmdir ../gone", *command)
    assert (result.returncode, result.stderr) == (4, "error: the working folder was deleted\n")


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def use_memory(**options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(proctor.cli, "group", use_memory)
    with pytest.raises(SystemExit) as ending:
        proctor.cli.main()
    assert ending.value.code == 4
    assert capfd.readouterr().err == "error: this machine has too little memory for this\n"


@pytest.mark.parametrize(
    "variables", [{}, {"HOME": "/nowhere"}, {"TMPDIR": "/nowhere"}, {"LC_ALL": "xx_YY", "PYTHONIOENCODING": "ascii"}]
)
def test_missing_and_odd_variables_do_not_matter(project: Path, suite: Suite, variables: dict[str, str]) -> None:
    suite("echo")
    environment = {**variables, "PATH": os.environ["PATH"]}
    result = subprocess.run(
        [*COMMAND, "test", "suite.yaml"], cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
