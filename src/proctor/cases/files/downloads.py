"""Downloads files that a suite names by URL, and caches them for as long as their server allows.

The cache has the file as it was sent, because another case may read other pages or cells of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
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
"""The pause before a download is tried again; it doubles each time."""
DEFAULT_FRESH_SECONDS = 3600.0
"""How long a cached file is used if its server does not say."""


def fetch(url: str, seconds: float, cache: Path | None, attempts: int = ATTEMPTS) -> bytes:
    """The contents of the file at a URL; `cache` is the folder for downloads, `None` for no cache.

    Raises `UnreadableFile`.
    """
    if not url.lower().startswith(("http://", "https://")):
        raise UnreadableFile(f"{url} cannot be downloaded: only http and https URLs are supported")
    cached = None if cache is None else _CachedDownload(cache, url)
    if cached is None:
        return _get(url, seconds, {}, attempts)[2]
    if cached.is_fresh and cached.content is not None:
        return cached.content
    status, headers, body = _get(url, seconds, cached.conditions, attempts)
    if status == 304 and cached.content is not None:
        cached.save(cached.content, headers)
        return cached.content
    cached.save(body, headers)
    return body


def _get(url: str, seconds: float, conditions: dict[str, str], attempts: int) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body. A failed connection is tried again; an error response of the server is not."""
    deadline = time.monotonic() + seconds
    for attempt in range(1, max(1, attempts) + 1):
        try:
            return _attempt(url, seconds, deadline, conditions)
        except UnreadableFile:
            raise
        except Exception as error:  # a URL can be wrong in more ways than the client has exceptions for
            if time.monotonic() >= deadline:
                raise UnreadableFile(f"{url} was not downloaded within {seconds:g} s") from None
            if attempt >= attempts:
                raise UnreadableFile(f"{url} cannot be downloaded: {type(error).__name__}: {error}") from None
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
            raise UnreadableFile(f"{url} cannot be downloaded: the server responded with {response.status_code}")
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
            raise UnreadableFile(f"{url} was not downloaded within {seconds:g} s")
    return b"".join(parts)


class _CachedDownload:
    """The cache entry of one URL: the file, and a JSON file with the headers that matter."""

    def __init__(self, folder: Path, url: str) -> None:
        name = _digest(url.encode("utf-8", "surrogatepass"))
        self._file = folder / f"{name}.bin"
        self._metadata_file = folder / f"{name}.json"
        self._url = url
        self._metadata, self.content = self._read()

    @property
    def is_fresh(self) -> bool:
        """Whether the entry may be used; not if it is from the future: the clock was wrong when it was saved."""
        return bool(self._metadata.get("at", math.inf) <= time.time() < self._metadata.get("until", 0.0))

    @property
    def conditions(self) -> dict[str, str]:
        """Request headers that ask for the file only if it changed."""
        names = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
        return {names[key]: self._metadata[key] for key in names if key in self._metadata}

    def save(self, body: bytes, headers: dict[str, str]) -> None:
        """Write the entry. A cache that cannot be written only costs time, so errors are ignored."""
        with contextlib.suppress(OSError):
            if "no-store" in headers.get("cache-control", "").lower():
                self._metadata_file.unlink(missing_ok=True)
                return
            self._file.parent.mkdir(parents=True, exist_ok=True)
            if body is not self.content:
                _replace(self._file, body)
            _replace(self._metadata_file, json.dumps(self._metadata_for(body, headers)).encode())

    def _metadata_for(self, body: bytes, headers: dict[str, str]) -> dict[str, Json]:
        validators = {key: headers.get(key) for key in _VALIDATORS}
        if body is self.content:
            validators = {key: value or self._metadata.get(key) for key, value in validators.items()}
        metadata: dict[str, Json] = {key: value for key, value in validators.items() if value and value.isascii()}
        now = time.time()
        return metadata | {"url": self._url, "at": now, "until": now + _seconds_fresh(headers), "digest": _digest(body)}

    def _read(self) -> tuple[dict[str, Any], bytes | None]:
        """Metadata and content, if they belong together: another run may be replacing one of the two files."""
        try:
            data, content = json.loads(self._metadata_file.read_bytes()), self._file.read_bytes()
            is_complete = data["url"] == self._url and data["digest"] == _digest(content)
            is_valid = all(isinstance(data.get(key, ""), str) for key in _VALIDATORS)
            is_valid = is_valid and all(isinstance(data[key], (int, float)) for key in ("at", "until"))
            return (data, content) if is_complete and is_valid else ({}, None)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return {}, None


_VALIDATORS = ("etag", "last-modified")


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _seconds_fresh(headers: dict[str, str]) -> float:
    """How many seconds a response may be cached."""
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
    """Replace a file at once, because other trials may be reading it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
