"""Writes files whole or not at all, so that a reader never sees half of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces `path` when the block ends without an exception.

    Missing folders are created, a link stays a link, and a file keeps its permissions. A device or a pipe is written
    directly.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        yield path
        return
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name[:80]}.{os.urandom(4).hex()}.tmp")
    try:
        yield draft
        if target.exists():
            import shutil

            shutil.copymode(target, draft)
        draft.replace(target)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError) and error.filename == str(draft):
            error.filename = str(path)  # people know the file that they asked for
        raise
