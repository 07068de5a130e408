"""Reads spans from files: OTLP JSON, whole or a line for each batch, or a pixie trace; compressed or not."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import Json, canonical
from proctor.base.records import record
from proctor.base.source import refuse_endless
from proctor.tracing.otlp import from_resources, to_resource
from proctor.tracing.pixie_records import RECORDS, from_records
from proctor.tracing.spans import Span

ATTRIBUTES = {
    "run": "proctor.run.id",
    "suite": "proctor.suite",
    "case": "proctor.case.id",
    "number": "proctor.trial",
}
"""Resource attributes that say which trial spans belong to."""


@record
class FoundTrace:
    """Spans of a file that belong together."""

    spans: tuple[Span, ...]
    about: Mapping[str, Json]
    """`run`, `suite`, `case` and `number` of the trial that they were seen in, where the file says so."""


def trial_resource(spans: Iterable[Span], **about: Json) -> dict[str, Json]:
    """The spans of one trial as an entry of `resourceSpans`; `about` as in `FoundTrace`."""
    said = {attribute: about[name] for name, attribute in ATTRIBUTES.items()}
    return to_resource(spans, {"service.name": "proctor", **said})


def trial_of(attributes: Mapping[str, Any]) -> dict[str, Json]:
    """What the attributes of a resource say of the trial; nothing if it was none of ours."""
    said = {name: attributes.get(attribute) for name, attribute in ATTRIBUTES.items()}
    texts = all(isinstance(said[name], str) for name in ("run", "suite", "case"))
    return said if texts and isinstance(said["number"], int) else {}


GZIP = b"\x1f\x8b"
LARGEST_UNPACKED = 200_000_000
"""Bytes; a compressed file of a few kilobytes can hold more than any memory."""


def read_traces(path: Path) -> list[Span]:
    """The spans that `path` holds; raises `InvalidSuite` with everything that is wrong with it."""
    return [span for found in find_traces(path) for span in found.spans]


def find_traces(path: Path) -> list[FoundTrace]:
    """The spans that `path` holds, those of a trial or of one trace together; problems as in `read_traces`."""
    problems: list[Problem] = []
    groups: dict[str, tuple[dict[str, Json], list[Span]]] = {}
    records: list[tuple[int, Mapping[str, Any]]] = []
    documents = _documents(_content(path), path, problems)
    if not documents and not problems:
        problems.append(Problem("holds no trace: it is empty", path))
    for line, document in documents:
        if isinstance(document, Mapping) and document.get("type") in RECORDS:
            records.append((line, document))
            continue
        try:
            _sort_in(groups, document)
        except ValueError as error:
            problems.append(Problem(str(error), path, line))
    if problems:
        raise InvalidSuite(problems)
    found = [FoundTrace(tuple(spans), about) for about, spans in groups.values()]
    return found + ([FoundTrace(tuple(from_records(records)), {})] if records else [])


def is_otlp(path: Path) -> bool:
    """Whether a file begins like a document of OTLP JSON, or like a compressed one."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return False
        with path.open("rb") as file:
            head = file.read(200)
    except OSError:
        return False
    return head.startswith(GZIP) or b'"resourceSpans"' in head


def _sort_in(groups: dict[str, tuple[dict[str, Json], list[Span]]], document: Any) -> None:
    """Batches of a collector spread a trace over documents and resources; a trial may hold several traces."""
    for attributes, spans in from_resources(document):
        about = trial_of(attributes)
        for span in spans:
            key = canonical(about) if about else span.trace_id
            groups.setdefault(key, (about, []))[1].append(span)


def _content(path: Path) -> str:
    """The text of a file, unpacked if it is compressed."""
    try:
        refuse_endless(path)
        data = path.read_bytes()
        if data.startswith(GZIP):
            import gzip
            import io

            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(LARGEST_UNPACKED + 1)
            if len(data) > LARGEST_UNPACKED:
                raise ValueError(f"it unpacks to more than {LARGEST_UNPACKED / 1e6:,.0f} MB")
        return data.decode("utf-8-sig")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InvalidSuite([Problem(f"cannot be read: {error}", path)]) from error


def _documents(content: str, path: Path, problems: list[Problem]) -> list[tuple[int, Any]]:
    """One document over many lines, or one in each line."""
    try:
        return [(1, json.loads(content))] if content.strip() else []
    except RecursionError:
        problems.append(Problem("is nested too deeply", path))
        return []
    except ValueError as error:
        whole_error = error
    lines = [(number_, line) for number_, line in enumerate(content.split("\n"), 1) if line.strip()]
    found: list[tuple[int, Any]] = []
    for line_number, line in lines:
        try:
            found.append((line_number, json.loads(line)))
        except (ValueError, RecursionError) as error:
            problems.append(Problem(f"is not JSON: {error}", path, line_number))
    if not found:  # nothing here is a line of its own, so that the fault is the document's
        at = getattr(whole_error, "lineno", None)
        problems[:] = [Problem(f"is not JSON: {whole_error}", path, at)]
    return found
