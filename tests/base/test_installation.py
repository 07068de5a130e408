"""Where Proctor came from, and advice that works there."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from proctor.base import installation as module
from proctor.base.installation import Installation, install_command, pip_command, read_direct_url


@pytest.mark.parametrize(
    ("record", "requirement", "portable"),
    [
        (
            {"url": "https://git.example/p.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            "agent-proctor[view] @ git+https://git.example/p.git@c0ffee",
            "agent-proctor @ git+https://git.example/p.git@c0ffee",
        ),
        (
            {"url": "https://files.example/p.whl", "archive_info": {}},
            "agent-proctor[view] @ https://files.example/p.whl",
            "agent-proctor @ https://files.example/p.whl",
        ),
        ({"url": "file:///no/such/folder", "dir_info": {}}, "agent-proctor[view]", None),
        ({"url": "file:///tmp/p.whl", "archive_info": {}}, "agent-proctor[view]", None),
        ({"url": "file:///no/clone", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}, "agent-proctor[view]", None),
    ],
)
def test_each_source_has_its_requirement(record: dict[str, Any], requirement: str, portable: str | None) -> None:
    read = read_direct_url(record)
    assert read.requirement("view") == requirement
    assert read.portable_requirement() == portable


def test_what_came_from_an_index_is_named_by_its_version() -> None:
    assert Installation().requirement("view") == "agent-proctor[view]"
    assert Installation().portable_requirement() == "agent-proctor==0.1.0"


def test_a_checkout_is_installed_from_its_folder_and_stays_editable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "my checkout"
    folder.mkdir()
    for editable, words in ((True, ["--editable"]), (False, [])):
        own = read_direct_url({"url": folder.as_uri(), "dir_info": {"editable": editable}})
        monkeypatch.setattr(module, "installation", lambda own=own: own)
        assert shlex.split(install_command("view"))[-1 - len(words) :] == [*words, f"{folder}[view]"]
        assert own.portable_requirement() is None


def test_an_environment_without_pip_gets_the_command_of_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pip_command("a", "b[c]").endswith("pip install a 'b[c]'")
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert pip_command("a") == "uv pip install a"
