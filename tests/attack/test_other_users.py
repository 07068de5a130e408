"""Other users of the same machine, and folders that cannot be used as a store."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.base.atomic_write import atomic_write
from proctor.base.errors import StoreError
from proctor.base.locks import FileLock
from proctor.results.store.store import Store


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("usual_umask")
def test_a_new_store_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    Store(tmp_path / "some" / "where").close()

    assert permissions(tmp_path / "some" / "where") == 0o700
    assert permissions(tmp_path / "some") == 0o755


@pytest.mark.usefixtures("usual_umask")
def test_a_folder_that_a_team_shares_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o755)

    Store(tmp_path / "shared").close()

    assert permissions(tmp_path / "shared") == 0o755


def test_a_file_in_the_place_of_the_store_is_named(
    project: Path, suite: Callable[..., Any], proctor_process: Callable[..., Any]
) -> None:
    suite("echo")
    (project / ".proctor").write_text("notes", encoding="utf-8")

    ended = proctor_process("test", "suite.yaml")

    assert ended.code == 4
    assert "error: .proctor is a file, not a folder; name another folder with --store" in ended.err
    assert (project / ".proctor").read_text(encoding="utf-8") == "notes"


def test_a_link_to_nothing_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "store").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StoreError, match="store is a link to nothing"):
        Store(tmp_path / "store")

    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_does_not_create_what_a_planted_link_points_to(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "precious")

    with pytest.raises(StoreError, match="lock cannot be written"):
        FileLock(tmp_path / "lock").acquire(wait=False)

    assert not (tmp_path / "precious").exists()


def test_a_file_that_cannot_be_written_is_named_instead_of_the_draft(tmp_path: Path) -> None:
    target = tmp_path / "report.html"

    with pytest.raises(OSError) as caught, atomic_write(target) as draft:
        draft.parent.rmdir()
        draft.write_text("x", encoding="utf-8")

    assert caught.value.filename == str(target)
