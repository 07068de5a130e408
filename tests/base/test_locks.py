from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from proctor.base import locks
from proctor.base.errors import StoreError
from proctor.base.locks import FileLock

HOLD = "import sys; from pathlib import Path; from proctor.base import locks\n"
TRY = "print(locks.FileLock(Path(sys.argv[1])).acquire(wait=False))"


@pytest.fixture(params=["flock", "filelock"])
def platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of locking; the second is the one of platforms without `flock`."""
    if request.param == "filelock":
        pytest.importorskip("filelock")
        monkeypatch.setattr(locks, "fcntl", None)
    return str(request.param)


def _another_process_gets(path: Path, platform: str) -> bool:
    code = HOLD + ("locks.fcntl = None\n" if platform == "filelock" else "") + TRY
    process = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    return process.stdout.strip() == "True"


@pytest.mark.process
def test_a_lock_keeps_other_processes_out_until_it_is_released(tmp_path: Path, platform: str) -> None:
    lock = FileLock(tmp_path / "run.lock")

    assert lock.acquire(wait=False)
    assert not _another_process_gets(lock.path, platform)
    lock.release()
    assert _another_process_gets(lock.path, platform)


@pytest.mark.process
def test_a_lock_is_free_after_its_process_ends(tmp_path: Path, platform: str) -> None:
    path = tmp_path / "run.lock"

    assert _another_process_gets(path, platform)
    lock = FileLock(path)
    assert lock.acquire(wait=False)
    lock.release()


def test_removing_a_lock_leaves_no_file(tmp_path: Path, platform: str) -> None:
    lock = FileLock(tmp_path / "run.lock")
    lock.acquire(wait=True)

    lock.remove()

    assert list(tmp_path.iterdir()) == []


def test_a_lock_in_a_missing_folder_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        FileLock(tmp_path / "missing" / "run.lock").acquire(wait=False)
