"""The files of HoloDeck's tests: what a test names, what the agent was told of it, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proctor.cases.attachments import title, with_files
from proctor.cases.model import Attachment
from proctor.compat.holodeck_results import FileInput, ProcessedFileInput
from proctor.plain import Json, plain

EMPTY = "(no text)"
"""What stands for a file without words."""


def file_input(item: Attachment) -> FileInput:
    options = {key: item.options.get(key) for key in ("pages", "sheet", "range", "cache")}
    return FileInput(item.path, item.url, item.kind, item.description, **options)


def texts_in(said: Json, attachments: Sequence[Attachment]) -> list[str]:
    """What a message that was set out with its files says of each; the message itself is not among it."""
    texts: list[str] = []
    rest = said if isinstance(said, str) else ""
    for item in reversed(attachments):
        head, _, end = str(with_files("", [(item, "")])).partition(EMPTY)
        rest, found, text = rest.removesuffix(end).rpartition(head)
        if not found:
            return []
        texts.append("" if text == EMPTY else text)
    return texts[::-1]


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


def read_here(
    attachments: Sequence[Attachment], texts: Sequence[str], told: Sequence[str], base: Path | None
) -> tuple[ProcessedFileInput, ...]:
    """The files of a turn that Proctor read itself; `told` are the warnings and the reason of the trial."""
    known: list[str | None] = [*texts] if texts else [None] * len(attachments)
    return tuple(_read_here(item, text, told, base) for item, text in zip(attachments, known, strict=True))


def _read_here(item: Attachment, text: str | None, told: Sequence[str], base: Path | None) -> ProcessedFileInput:
    complaint = next((words for words in told if words and title(item) in words), None)
    metadata: dict[str, Json] = {"path" if item.path else "url": title(item), "type": item.kind}
    if item.path and (size := _size((base or Path()) / item.path)) is not None:
        metadata["size_bytes"] = size
    metadata |= {f"{key}_extracted": item.options[key] for key in ("pages", "sheet", "range") if key in item.options}
    if text is not None and complaint:
        metadata["warning"] = complaint
    return ProcessedFileInput(file_input(item), text, metadata, error=complaint if text is None else None)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return None
