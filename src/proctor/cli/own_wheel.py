"""Packs the installed Proctor into a wheel, for machines that cannot get it where it came from.

Building one from a checkout would need a build backend and often a network. A wheel is only an archive of the
package's files and of what pip knows about it, and both are here.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.metadata import Distribution
from importlib.resources.abc import Traversable

from proctor.base.errors import UsageError
from proctor.base.installation import own_distribution
from proctor.version import DISTRIBUTION

KEPT_METADATA = ("METADATA", "WHEEL", "entry_points.txt")
FIRST_TIME_OF_ZIP = (1980, 1, 1, 0, 0, 0)
"""The time of every file, so that the same Proctor gives the same archive."""


@cache
def own_wheel() -> tuple[str, bytes]:
    """The name and the contents of a wheel of this Proctor; raises `UsageError` if it is not installed as a package."""
    own = own_distribution()
    if own is None:
        raise UsageError("Proctor runs from its source here; install it first: pip install PATH_OF_THE_CHECKOUT")
    stem = f"{DISTRIBUTION.replace('-', '_')}-{own.version}"
    files = dict(_package_files()) | dict(_metadata_files(own, f"{stem}.dist-info"))
    record = f"{stem}.dist-info/RECORD"
    lines = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items()]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    return f"{stem}-py3-none-any.whl", _archive(files)


def _package_files() -> Iterator[tuple[str, bytes]]:
    yield from _below(resources.files("proctor"), "proctor")


def _below(folder: Traversable, place: str) -> Iterator[tuple[str, bytes]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        name = f"{place}/{item.name}"
        if item.is_dir() and item.name != "__pycache__":
            yield from _below(item, name)
        elif item.is_file() and not item.name.endswith(".pyc"):
            yield name, item.read_bytes()


def _metadata_files(own: Distribution, folder: str) -> Iterator[tuple[str, bytes]]:
    for name in KEPT_METADATA:
        if (text := own.read_text(name)) is not None:
            yield f"{folder}/{name}", text.encode()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, FIRST_TIME_OF_ZIP), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
