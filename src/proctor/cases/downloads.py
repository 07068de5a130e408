"""Fetches files that a suite names by address, and keeps them for as long as their server says they stay the same.

What is kept is the file as it was sent: which pages or cells of it are read is decided anew each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from proctor.cases.attachments import MOST_BYTES, UnreadableFile
from proctor.plain import Json

ATTEMPTS = 2
UNSAID_SECONDS = 3600.0
"""How long a file is taken to be the same where its server says nothing."""


def fetch(url: str, seconds: float, cache: Path | None) -> bytes:
    """The file at an address; raises `UnreadableFile`."""
    if not url.lower().startswith(("http://", "https://")):
        raise UnreadableFile(f"{url} cannot be fetched: only http and https addresses can")
    known = None if cache is None else _Kept(cache, url)
    if known is not None and known.is_fresh:
        return known.content
    conditions = {} if known is None else known.conditions
    status, headers, body = _get(url, seconds, conditions)
    if known is None:
        return body
    if status == 304:
        known.renew(headers)
        return known.content
    known.keep(body, headers)
    return body


def _get(url: str, seconds: float, conditions: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    """A broken connection is tried once more; what the server refuses is refused."""
    import httpx2

    deadline = time.monotonic() + seconds
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with (
                httpx2.Client(follow_redirects=True, timeout=seconds) as client,
                client.stream("GET", url, headers=conditions) as response,
            ):
                if response.status_code != 304 and not response.is_success:
                    raise UnreadableFile(f"{url} cannot be fetched: the server says {response.status_code}")
                headers = {name.lower(): value for name, value in response.headers.items()}
                return response.status_code, headers, _body(url, response, deadline, seconds)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            if attempt == ATTEMPTS or time.monotonic() >= deadline:
                raise UnreadableFile(f"{url} cannot be fetched: {type(error).__name__}: {error}") from None
    raise AssertionError  # the last attempt returns or raises


def _body(url: str, response: Any, deadline: float, seconds: float) -> bytes:
    parts, size = [], 0
    for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise UnreadableFile(f"{url} has more than {MOST_BYTES // 2**20} MB")
        if time.monotonic() > deadline:
            raise UnreadableFile(f"{url} was not fetched within {seconds:g} s")
    return b"".join(parts)


class _Kept:
    """What is kept of one address: the file, and beside it what its server said of it."""

    def __init__(self, folder: Path, url: str) -> None:
        name = hashlib.blake2b(url.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        self._file, self._about = folder / f"{name}.bin", folder / f"{name}.json"
        self._url = url
        self._known = self._read()

    @property
    def is_fresh(self) -> bool:
        return bool(time.time() < self._known.get("until", 0.0))

    @property
    def content(self) -> bytes:
        return self._file.read_bytes()

    @property
    def conditions(self) -> dict[str, str]:
        """Asks for the file only if it is no longer the one that is kept."""
        names = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
        return {names[key]: self._known[key] for key in names if key in self._known}

    def keep(self, body: bytes, headers: dict[str, str]) -> None:
        if "no-store" in headers.get("cache-control", ""):
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            _replace(self._file, body)
            self.renew(headers)
        except OSError:  # a cache that cannot be written costs time and nothing else
            self._about.unlink(missing_ok=True)

    def renew(self, headers: dict[str, str]) -> None:
        marks = {key: headers.get(key, self._known.get(key)) for key in ("etag", "last-modified")}
        about: dict[str, Json] = {key: value for key, value in marks.items() if value}
        about |= {"url": self._url, "until": time.time() + _seconds_fresh(headers), "size": self._file.stat().st_size}
        _replace(self._about, json.dumps(about).encode())

    def _read(self) -> dict[str, Any]:
        try:
            known = json.loads(self._about.read_bytes())
            whole = known["url"] == self._url and known["size"] == self._file.stat().st_size
            return known if whole and isinstance(known["until"], (int, float)) else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}


def _seconds_fresh(headers: dict[str, str]) -> float:
    """As long as the server says."""
    control = headers.get("cache-control", "").lower()
    if "no-cache" in control:
        return 0.0
    for part in control.split(","):
        name, _, value = part.strip().partition("=")
        if name == "max-age" and value.strip().isdigit():
            return float(value)
    if "expires" in headers:
        from email.utils import parsedate_to_datetime

        try:
            return max(0.0, parsedate_to_datetime(headers["expires"]).timestamp() - time.time())
        except (TypeError, ValueError):
            return 0.0
    return UNSAID_SECONDS


def _replace(path: Path, content: bytes) -> None:
    """Written apart and put in place whole, since other trials may read it meanwhile."""
    import tempfile

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(name).replace(path)
