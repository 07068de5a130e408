"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from proctor.base.atomic_write import atomic_write


def test_missing_folders_are_created(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "new" / "a.txt") as draft:
        draft.write_text("all of it", encoding="utf-8")

    assert (tmp_path / "new" / "a.txt").read_text(encoding="utf-8") == "all of it"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.txt"]


def test_a_failed_write_leaves_the_old_file_and_no_temporary_file(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old", encoding="utf-8")

    with pytest.raises(KeyboardInterrupt), atomic_write(target) as draft:
        draft.write_text("hal", encoding="utf-8")
        raise KeyboardInterrupt

    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(os.name == "nt", reason="links and permissions of POSIX")
def test_a_link_stays_a_link_and_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    target, link = tmp_path / "a.txt", tmp_path / "link.txt"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o640)
    link.symlink_to(target)

    with atomic_write(link) as draft:
        draft.write_text("new", encoding="utf-8")

    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name == "nt", reason="devices of POSIX")
def test_a_device_is_written_directly() -> None:
    with atomic_write(Path(os.devnull)) as draft:
        assert draft == Path(os.devnull)
