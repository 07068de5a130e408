"""HoloDeck's `FileProcessor`, and its records of the files of tests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import canonical, to_json
from proctor.cases.files.file_reader import FileReader, file_title
from proctor.cases.files.file_text import FileText, UnreadableFile
from proctor.cases.suite import AttachedFile, FileSettings
from proctor.compat.holodeck.models import FileInput
from proctor.compat.holodeck.test_results import ProcessedFileInput

READ_OPTIONS = ("pages", "sheet", "range", "cache")
"""The keys that select a part of a file, and whether a download is cached."""


def file_input(item: AttachedFile) -> FileInput:
    """A file of a turn as HoloDeck's processors expect it."""
    options = {key: item.options.get(key) for key in READ_OPTIONS}
    return FileInput.model_construct(
        path=item.path, url=item.url, type=item.kind, description=item.description, **options
    )


def file_key(item: AttachedFile) -> str:
    """A key that identifies a file of a test."""
    return canonical(to_json(item))


class FileProcessor:
    """Reads files. Problems are in `error` of the result; nothing is raised.

    Relative paths start from `base_dir`, else from the working folder; an executor uses the agent's folder.
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
                raise UsageError(f"{name} must be a positive number of milliseconds, not {value!r}")
        self.cache_dir = Path(cache_dir or ".holodeck/cache")
        self.download_timeout_ms = download_timeout_ms
        self.max_retries = max_retries
        """How many times a download is attempted, at least once."""
        self.processing_timeout_ms = processing_timeout_ms
        self.base_dir = None if base_dir is None else Path(base_dir)
        self.cache_enabled = cache_enabled

    def process_file(self, file_input: FileInput) -> ProcessedFileInput:
        """The text of a file under `markdown_content`, or why it could not be read under `error`."""
        started = time.perf_counter()
        try:
            content = self._read(_attached_file(file_input))
        except UnreadableFile as error:
            return _file_input(
                file_input, markdown_content="", processing_time_ms=_elapsed_ms(started), error=str(error)
            )
        metadata = dict(content.metadata) | ({"warning": "; ".join(content.notes)} if content.notes else {})
        text = content.text.strip()
        return _file_input(
            file_input, markdown_content=text, metadata=metadata, processing_time_ms=_elapsed_ms(started)
        )

    def _read(self, item: AttachedFile) -> FileText:
        base = self.base_dir or Path.cwd()
        cache = base / self.cache_dir if self.cache_enabled else None
        seconds = self.processing_timeout_ms / 1000, self.download_timeout_ms / 1000
        return FileReader(base, FileSettings(*seconds, cache, max(1, self.max_retries))).read(item)


def _file_input(original: Any, **fields: Any) -> ProcessedFileInput:
    return ProcessedFileInput.model_construct(original=original, **fields)


def _attached_file(file: Any) -> AttachedFile:
    """Anything with the fields of a `FileInput`."""
    options = {key: value for key in READ_OPTIONS if (value := getattr(file, key, None)) is not None}
    kind = getattr(file, "type", None)
    return AttachedFile(
        getattr(file, "path", None), getattr(file, "url", None), kind, getattr(file, "description", None), options
    )


def _elapsed_ms(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


def to_processed(result: Any, item: AttachedFile, spent_ms: float) -> ProcessedFileInput:
    """A file processor's result in HoloDeck's shape; the processor may return that or only the text."""
    original, duration = file_input(item), round(spent_ms)
    if isinstance(result, str):
        return _file_input(original, markdown_content=result, processing_time_ms=duration)
    text, error = getattr(result, "markdown_content", None), getattr(result, "error", None)
    if text is None and error is None:
        message = f"the file processor returned {type(result).__name__}, which has no text"
        return _file_input(original, processing_time_ms=duration, error=message)
    metadata, cached = to_json(getattr(result, "metadata", None)), getattr(result, "cached_path", None)
    own_time = getattr(result, "processing_time_ms", None)
    return _file_input(
        original,
        markdown_content=str(text or ""),
        metadata=metadata if isinstance(metadata, dict) else None,
        cached_path=None if cached is None else str(cached),
        processing_time_ms=duration if own_time is None else int(own_time),
        error=None if error is None else str(error),
    )


def file_text(processed: ProcessedFileInput) -> FileText:
    """A processed file as the engine needs it; raises `UnreadableFile`."""
    if processed.error:
        raise UnreadableFile(f"the file {processed.original.name} could not be read: {processed.error}")
    warning = (processed.metadata or {}).get("warning")
    return FileText(processed.markdown_content or "", notes=(str(warning),) if warning else ())


def unread_files(attachments: Sequence[AttachedFile], messages: Sequence[str]) -> list[ProcessedFileInput]:
    """The files of a turn that was not sent, or of a stored run; `messages` are those of its trial."""
    return [_file_input(file_input(item), error=_error_about(item, messages)) for item in attachments]


def _error_about(item: AttachedFile, messages: Sequence[str]) -> str | None:
    return next((message for message in messages if message and file_title(item) in message), None)
