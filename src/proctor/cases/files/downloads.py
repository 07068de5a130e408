"""Fetches files that a suite names by address, and keeps them for as long as their server says they stay the same.

What is kept is the file as it was sent: which pages or cells of it are read is decided anew each time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from proctor.base.json_data import Json
from proctor.cases.files.file_text import MAX_BYTES, UnreadableFile

ATTEMPTS = 2
FIRST_PAUSE_SECONDS = 0.2
"""Before a download is tried again; doubled each time."""
DEFAULT_FRESH_SECONDS = 3600.0
"""How long a file is taken to be the same where its server says nothing."""


def fetch(url: str, seconds: float, cache: Path | None, attempts: int = ATTEMPTS) -> bytes:
    """The file at an address; raises `UnreadableFile`."""
    if not url.lower().startswith(("http://", "https://")):
        raise UnreadableFile(f"{url} cannot be fetched: only http and https addresses can")
    known = None if cache is None else _CachedDownload(cache, url)
    if known is None:
        return _get(url, seconds, {}, attempts)[2]
    if known.is_fresh and known.content is not None:
        return known.content
    status, headers, body = _get(url, seconds, known.conditions, attempts)
    if status == 304 and known.content is not None:
        known.keep(known.content, headers)
        return known.content
    known.keep(body, headers)
    return body


def _get(url: str, seconds: float, conditions: dict[str, str], attempts: int) -> tuple[int, dict[str, str], bytes]:
    """A broken connection is tried again; what the server refuses is refused."""
    deadline = time.monotonic() + seconds
    for attempt in range(1, max(1, attempts) + 1):
        try:
            return _attempt(url, seconds, deadline, conditions)
        except UnreadableFile:
            raise
        except Exception as error:  # addresses can be wrong in more ways than a client has names for
            if time.monotonic() >= deadline:
                raise UnreadableFile(f"{url} was not fetched within {seconds:g} s") from None
            if attempt >= attempts:
                raise UnreadableFile(f"{url} cannot be fetched: {type(error).__name__}: {error}") from None
            pause = FIRST_PAUSE_SECONDS * 2 ** (attempt - 1)
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
    raise AssertionError  # the last attempt returns or raises


def _attempt(
    url: str, seconds: float, deadline: float, conditions: dict[str, str]
) -> tuple[int, dict[str, str], bytes]:
    import httpx2

    with (
        httpx2.Client(follow_redirects=True, timeout=max(0.001, deadline - time.monotonic())) as client,
        client.stream("GET", url, headers=conditions) as response,
    ):
        unchanged = response.status_code == 304 and conditions
        if not unchanged and not response.is_success:
            raise UnreadableFile(f"{url} cannot be fetched: the server says {response.status_code}")
        headers = {name.lower(): value for name, value in response.headers.items()}
        return response.status_code, headers, _body(url, response, deadline, seconds)


def _body(url: str, response: Any, deadline: float, seconds: float) -> bytes:
    parts, size = [], 0
    for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            raise UnreadableFile(f"{url} has more than {MAX_BYTES // 2**20} MB")
        if time.monotonic() > deadline:
            raise UnreadableFile(f"{url} was not fetched within {seconds:g} s")
    return b"".join(parts)


class _CachedDownload:
    """What is kept of one address: the file, and beside it what its server said of it."""

    def __init__(self, folder: Path, url: str) -> None:
        name = _digest(url.encode("utf-8", "surrogatepass"))
        self._file, self._about = folder / f"{name}.bin", folder / f"{name}.json"
        self._url = url
        self._known, self.content = self._read()

    @property
    def is_fresh(self) -> bool:
        return bool(time.time() < self._known.get("until", 0.0))

    @property
    def conditions(self) -> dict[str, str]:
        """Asks for the file only if it is no longer the one that is kept."""
        names = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
        return {names[key]: self._known[key] for key in names if key in self._known}

    def keep(self, body: bytes, headers: dict[str, str]) -> None:
        """A cache that cannot be written costs time and nothing else."""
        with contextlib.suppress(OSError):
            if "no-store" in headers.get("cache-control", "").lower():
                self._about.unlink(missing_ok=True)
                return
            self._file.parent.mkdir(parents=True, exist_ok=True)
            if body is not self.content:
                _replace(self._file, body)
            _replace(self._about, json.dumps(self._account(body, headers)).encode())

    def _account(self, body: bytes, headers: dict[str, str]) -> dict[str, Json]:
        marks = {key: headers.get(key) for key in _VALIDATORS}
        if body is self.content:
            marks = {key: mark or self._known.get(key) for key, mark in marks.items()}
        told: dict[str, Json] = {key: mark for key, mark in marks.items() if mark and mark.isascii()}
        return told | {"url": self._url, "until": time.time() + _seconds_fresh(headers), "digest": _digest(body)}

    def _read(self) -> tuple[dict[str, Any], bytes | None]:
        """Only what belongs together: another run may be replacing one of the two files."""
        try:
            known, content = json.loads(self._about.read_bytes()), self._file.read_bytes()
            whole = known["url"] == self._url and known["digest"] == _digest(content)
            marks = all(isinstance(known.get(key, ""), str) for key in _VALIDATORS)
            return (known, content) if whole and marks and isinstance(known["until"], (int, float)) else ({}, None)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return {}, None


_VALIDATORS = ("etag", "last-modified")


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _seconds_fresh(headers: dict[str, str]) -> float:
    """As long as the server says."""
    control = headers.get("cache-control", "").lower()
    if "no-cache" in control:
        return 0.0
    for part in control.split(","):
        name, _, value = part.strip().partition("=")
        if name == "max-age":
            return max(0.0, _number(value) - _number(headers.get("age", "")))
    if "expires" in headers:
        try:
            return max(0.0, parsedate_to_datetime(headers["expires"]).timestamp() - time.time())
        except (TypeError, ValueError, OverflowError):
            return 0.0
    return DEFAULT_FRESH_SECONDS


def _number(text: str) -> float:
    text = text.strip().strip('"')
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _replace(path: Path, content: bytes) -> None:
    """Written apart and put in place whole, since other trials may read it meanwhile."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
