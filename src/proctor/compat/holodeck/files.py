"""The files of HoloDeck's tests: what a test names, what the agent was told of it, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.cases.attachments import FileText, title
from proctor.cases.model import Attachment
from proctor.compat.holodeck.results import FileInput, ProcessedFileInput
from proctor.plain import plain


def file_input(item: Attachment) -> FileInput:
    options = {key: item.options.get(key) for key in ("pages", "sheet", "range", "cache")}
    return FileInput(item.path, item.url, item.kind, item.description, **options)


def read_by(processed: Any, item: Attachment, spent_ms: float) -> ProcessedFileInput:
    """What a processor of somebody else's made of a file: HoloDeck's shape, or the text alone."""
    if isinstance(processed, str):
        return ProcessedFileInput(file_input(item), processed, processing_time_ms=round(spent_ms))
    if getattr(processed, "markdown_content", None) is None and getattr(processed, "error", None) is None:
        problem = f"the file processor returned {type(processed).__name__}, which has no text"
        return ProcessedFileInput(file_input(item), processing_time_ms=round(spent_ms), error=problem)
    metadata = plain(getattr(processed, "metadata", None))
    cached, spent = getattr(processed, "cached_path", None), getattr(processed, "processing_time_ms", None)
    return ProcessedFileInput(
        file_input(item),
        str(getattr(processed, "markdown_content", "") or ""),
        metadata if isinstance(metadata, dict) else None,
        None if cached is None else str(cached),
        round(spent_ms) if spent is None else int(spent),
        None if getattr(processed, "error", None) is None else str(processed.error),
    )


def read_here(attachments: Sequence[Attachment], found: Sequence[FileText]) -> tuple[ProcessedFileInput, ...]:
    """The files of a turn that Proctor read itself; none where the agent sees to them."""
    return tuple(_read_here(item, read) for item, read in zip(attachments, found, strict=True)) if found else ()


def _read_here(item: Attachment, read: FileText) -> ProcessedFileInput:
    metadata = dict(read.metadata) | ({"warning": "; ".join(read.notes)} if read.notes else {})
    spent = round(read.seconds * 1000)
    return ProcessedFileInput(file_input(item), read.text.strip(), metadata, processing_time_ms=spent)


def unread(attachments: Sequence[Attachment], told: Sequence[str]) -> tuple[ProcessedFileInput, ...]:
    """The files of a turn that was not asked, or of a run that is long over; `told` is what its trial says."""
    return tuple(ProcessedFileInput(file_input(item), error=_complaint(item, told)) for item in attachments)


def _complaint(item: Attachment, told: Sequence[str]) -> str | None:
    return next((words for words in told if words and title(item) in words), None)
