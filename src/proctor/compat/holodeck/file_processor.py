"""HoloDeck's `FileProcessor`: the text of a file that a test names, read as Proctor reads attachments."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError
from proctor.cases.files import FileReader, FileSettings, FileText, UnreadableFile
from proctor.cases.suite import Attachment
from proctor.compat.holodeck.test_results import FileInput, ProcessedFileInput

OPTIONS = ("pages", "sheet", "range", "cache")
FIRST_PAUSE_SECONDS = 0.2
"""Before a download is tried again; doubled each time."""


def file_input(item: Attachment) -> FileInput:
    """An attachment as HoloDeck's processors take it."""
    return FileInput(
        item.path, item.url, item.kind, item.description, **{key: item.options.get(key) for key in OPTIONS}
    )


class FileProcessor:
    """Reads files. What goes wrong is the `error` of what `process_file` returns; nothing is raised.

    Relative paths start from `base_dir`, else from the working folder; an executor starts from the agent's folder.
    """

    def __init__(
        self,
        cache_dir: str | None = None,
        download_timeout_ms: int = 30_000,
        max_retries: int = 3,
        processing_timeout_ms: int = 30_000,
        *,
        base_dir: str | Path | None = None,
        cache_enabled: bool = True,
    ) -> None:
        for name, value in (
            ("download_timeout_ms", download_timeout_ms),
            ("processing_timeout_ms", processing_timeout_ms),
        ):
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise UsageError(f"{name} must be a number of milliseconds, more than 0, not {value!r}")
        self.cache_dir = Path(cache_dir or ".holodeck/cache")
        self.download_timeout_ms = download_timeout_ms
        self.max_retries = max_retries
        """How often a download is tried, at least once."""
        self.processing_timeout_ms = processing_timeout_ms
        self.base_dir = None if base_dir is None else Path(base_dir)
        self.cache_enabled = cache_enabled

    def process_file(self, file_input: FileInput) -> ProcessedFileInput:
        """The text of a file under `markdown_content`, or the reason why there is none under `error`."""
        clock = time.perf_counter()
        try:
            found = self._read(_attachment(file_input))
        except UnreadableFile as error:
            return ProcessedFileInput(file_input, "", processing_time_ms=_since(clock), error=str(error))
        metadata = dict(found.metadata) | ({"warning": "; ".join(found.notes)} if found.notes else {})
        return ProcessedFileInput(file_input, found.text.strip(), metadata, processing_time_ms=_since(clock))

    def _read(self, item: Attachment) -> FileText:
        base = self.base_dir or Path.cwd()
        cache = base / self.cache_dir if self.cache_enabled else None
        settings = FileSettings(self.processing_timeout_ms / 1000, self.download_timeout_ms / 1000, cache)
        reader = FileReader(base, settings)
        for attempt in range(self.max_retries - 1 if item.url else 0):
            try:
                return reader.read(item)
            except UnreadableFile:
                time.sleep(FIRST_PAUSE_SECONDS * 2**attempt)
        return reader.read(item)


def _attachment(file: Any) -> Attachment:
    """Anything with the fields of a `FileInput`."""
    options = {key: value for key in OPTIONS if (value := getattr(file, key, None)) is not None}
    kind = getattr(file, "type", None)
    return Attachment(
        getattr(file, "path", None), getattr(file, "url", None), kind, getattr(file, "description", None), options
    )


def _since(clock: float) -> int:
    return round((time.perf_counter() - clock) * 1000)
