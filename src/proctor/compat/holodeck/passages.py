"""Search files by meaning: read a tool of type `vectorstore`, split its files into passages, find the nearest."""

from __future__ import annotations

import asyncio
import csv
import importlib.util
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.base.errors import AgentFailed, UsageError
from proctor.base.installation import install_command
from proctor.base.json_data import Json, to_text
from proctor.base.positions import Pointer
from proctor.base.threads import run_in_thread
from proctor.compat.holodeck.agent_spec import Problems, RecordSpec, StoreSpec
from proctor.compat.holodeck.models import VectorstoreTool
from proctor.judging.embeddings import (
    PROVIDERS,
    EmbeddingSpec,
    NoEmbeddings,
    Vector,
    cosine,
    find_embeddings,
    is_local_name,
)
from proctor.judging.providers import ModelSpec

TEXT_SUFFIXES = (".txt", ".md", ".markdown")
RECORD_SUFFIXES = (".json", ".jsonl", ".csv")
SUFFIXES = (*TEXT_SUFFIXES, *RECORD_SUFFIXES, ".pdf")
MAX_BYTES = 50_000_000
"""The maximum total size of the files, because passages and vectors are in memory."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a file, small enough to be about one topic."""

    text: str
    source: str
    id: str = ""
    meta: Mapping[str, Json] = field(default_factory=dict)


def searchable_files(source: Path) -> list[Path]:
    """The file itself, or all files of a folder that can be searched, in a stable order."""
    if source.is_file():
        return [source] if source.suffix.lower() in SUFFIXES else []
    return sorted(path for path in source.rglob("*") if path.is_file() and path.suffix.lower() in SUFFIXES)


def missing_package(files: Iterable[Path]) -> str | None:
    """The packages that must be installed to read these files, or None."""
    if any(path.suffix.lower() == ".pdf" for path in files) and importlib.util.find_spec("pypdf") is None:
        return f"has PDF files, which need more packages: {install_command('files')}"
    return None


def size_problem(files: Iterable[Path]) -> str | None:
    """Why these files are too large to search, or None."""
    size = sum(path.stat().st_size for path in files)
    if size <= MAX_BYTES:
        return None
    return f"has {size / 1e6:.0f} MB of files; the maximum is {MAX_BYTES / 1e6:.0f} MB, because passages are in memory"


def read_passages(source: Path, size: int, overlap: int, records: RecordSpec | None = None) -> list[Passage]:
    """Every passage of every file; raises `UsageError` if a file cannot be read.

    `size` and `overlap` are in words.
    """
    root = source if source.is_dir() else source.parent
    whole = (passage for path in searchable_files(source) for passage in _file_passages(path, root, records))
    return [piece for passage in whole for piece in _split(passage, size, overlap)]


def holds_text(source: Path, records: RecordSpec | None = None) -> bool:
    """Whether there is text to search; PDF files are assumed to have some. Raises as reading would."""
    root = source if source.is_dir() else source.parent
    has_text = False
    for path in searchable_files(source):
        if path.suffix.lower() == ".pdf":
            has_text = True
        else:
            has_text = any(passage.text.strip() for passage in _file_passages(path, root, records)) or has_text
    return has_text


def _file_passages(path: Path, root: Path, records: RecordSpec | None) -> list[Passage]:
    name = path.relative_to(root).as_posix()
    try:
        return list(_records(path, name, records)) or [Passage(_text(path), name)]
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise UsageError(f"{path} cannot be searched: {error}") from None


def _split(passage: Passage, size: int, overlap: int) -> Iterator[Passage]:
    pieces = chunks(passage.text, size, overlap)
    for number, piece in enumerate(pieces, 1):
        passage_id = passage.id if len(pieces) == 1 else f"{passage.id}#{number}" if passage.id else str(number)
        yield Passage(piece, passage.source, passage_id, passage.meta)


def chunks(text: str, size: int, overlap: int) -> list[str]:
    """Pieces of at most `size` words, each starting with the last `overlap` words of the one before.

    A text that is short enough is unchanged, including its line breaks.
    """
    words = text.split()
    if not words:
        return []
    if len(words) <= size:
        return [text.strip()]
    step = size - overlap
    starts = range(0, max(len(words) - overlap, 1), step)
    return [" ".join(words[start : start + size]) for start in starts]


def _text(path: Path) -> str:
    if path.suffix.lower() != ".pdf":
        return path.read_text(encoding="utf-8-sig")
    import pypdf

    try:
        return "\n\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages)
    except pypdf.errors.PyPdfError as error:
        raise ValueError(f"cannot be read as a PDF: {error}") from None


def _records(path: Path, name: str, spec: RecordSpec | None) -> Iterator[Passage]:
    """The records of a JSON or CSV file as passages; none for other files and for JSON that is not a list."""
    ending = path.suffix.lower()
    if ending not in RECORD_SUFFIXES:
        return
    spec = spec or RecordSpec()
    text = path.read_text(encoding="utf-8-sig")
    rows: Sequence[Json]
    if ending == ".csv":
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=spec.delimiter))
    elif ending == ".jsonl":
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    else:
        rows = _records_at(json.loads(text), spec.path)
    for number, row in enumerate(rows, 1):
        yield _passage(row, name, number, spec)


def _records_at(data: Json, path: tuple[str, ...]) -> Sequence[Json]:
    """The list at a path of keys."""
    for key in path:
        if not isinstance(data, dict) or key not in data:
            raise ValueError(f"has nothing at {'.'.join(path)}")
        data = data[key]
    if isinstance(data, list):
        return data
    return [data]


def _passage(row: Json, name: str, number: int, spec: RecordSpec) -> Passage:
    if not isinstance(row, dict):
        return Passage(row if isinstance(row, str) else to_text(row), name, str(number))
    missing = [key for key in spec.text_fields if key not in row]
    if missing:
        raise ValueError(f"has no field {missing[0]!r} in record {number}")
    if spec.text_fields:
        text = spec.separator.join(_field_text(row[key]) for key in spec.text_fields)
    else:
        text = spec.separator.join(f"{key}: {_field_text(value)}" for key, value in row.items() if key is not None)
    record_id = row.get(spec.id_field) if spec.id_field else None
    meta = {f"{spec.meta_prefix}{key}": row[key] for key in spec.meta_fields if key in row}
    return Passage(text, name, str(number if record_id is None else record_id), meta)


def _field_text(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else to_text(value)


BATCH_SIZE = 64
"""How many passages are embedded per request."""


class VectorStore:
    """The passages of one tool, embedded on the first search and stored in memory."""

    def __init__(self, spec: StoreSpec) -> None:
        self._spec = spec
        self._lock = asyncio.Lock()
        self._passages: Sequence[Passage] | None = None
        self._vectors: list[Vector] = []

    async def search(self, query: str) -> list[dict[str, Json]]:
        """The passages nearest to a query, the nearest first."""
        await self._prepare()
        [query_vector] = await self._embed([query])
        scored = [(cosine(query_vector, vector), index) for index, vector in enumerate(self._vectors)]
        scored.sort(key=lambda pair: (-pair[0], pair[1]))
        min_score = self._spec.min_score
        matches = [pair for pair in scored if min_score is None or pair[0] >= min_score]
        return [self._search_result(score, index) for score, index in matches[: self._spec.top_k]]

    async def _prepare(self) -> None:
        async with self._lock:
            if self._passages is not None:
                return
            spec = self._spec
            passages = await run_in_thread(
                read_passages, spec.source, spec.chunk_size, spec.chunk_overlap, spec.records
            )
            texts = [passage.text for passage in passages]
            vectors: list[Vector] = []
            for start in range(0, len(texts), BATCH_SIZE):
                vectors += await self._embed(texts[start : start + BATCH_SIZE])
            self._passages = passages
            self._vectors = vectors

    async def _embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors = await find_embeddings(self._spec.embeddings).embed(texts)
        size = self._spec.dimensions
        if size is None:
            return list(vectors)
        if any(len(vector) < size for vector in vectors):
            raise AgentFailed(f"{self._spec.name} needs {size} dimensions, but the embeddings have {len(vectors[0])}")
        return [vector[:size] for vector in vectors]

    def _search_result(self, score: float, index: int) -> dict[str, Json]:
        passage = (self._passages or ())[index]
        result: dict[str, Any] = {"text": passage.text, "source": passage.source, "score": round(score, 4)}
        if passage.id:
            result["id"] = passage.id
        return {**result, **passage.meta}


def read_store(
    tool: VectorstoreTool,
    place: Pointer,
    base: Path,
    default_model: ModelSpec | None,
    embedder: ModelSpec | None,
    problems: Problems,
) -> StoreSpec | None:
    """Check the files and settings of a tool; None if there are problems.

    `default_model` is the model whose provider embeds if the tool names only a model; `embedder` is the model in the
    file's `embedding_provider`.
    """
    if tool.record_prefix is not None:
        problems.add((*place, "record_prefix"), "is not supported; use the field names in the file")
    records = _record_spec(tool)
    embeddings = _embeddings(tool, place, default_model, embedder, problems)
    source = base / tool.source
    if not _is_readable(tool, place, source, problems) or not _holds_text(place, source, records, problems):
        return None
    overlap = min(50, tool.chunk_size - 1) if tool.chunk_overlap is None else tool.chunk_overlap
    return StoreSpec(
        tool.name,
        tool.description or f"Searches {Path(tool.source).name} for passages about the query.",
        source,
        embeddings,
        tool.top_k,
        tool.min_similarity_score,
        tool.chunk_size,
        overlap,
        tool.embedding_dimensions,
        records,
        tool.defer_loading,
    )


def _is_readable(tool: VectorstoreTool, place: Pointer, path: Path, problems: Problems) -> bool:
    try:
        files = searchable_files(path)
    except (OSError, ValueError):
        files = []
    problem = missing_package(files) or size_problem(files)
    if not files:
        kinds = ", ".join(SUFFIXES)
        problem = f"names {tool.source}, which has no file to search ({kinds}); looked for {path}"
    if problem:
        problems.add((*place, "source"), problem)
    return not problem


def _holds_text(place: Pointer, path: Path, records: RecordSpec | None, problems: Problems) -> bool:
    """Report files without text before anything runs; PDF files are not read, because that takes too long."""
    try:
        has_text = holds_text(path, records)
    except UsageError as error:
        problems.add((*place, "source"), f"cannot be used: {error}")
        return False
    if not has_text:
        problems.add((*place, "source"), f"names {path.name}, which has no text to search")
    return has_text


def _record_spec(tool: VectorstoreTool) -> RecordSpec | None:
    """How records are read; None if the tool has no setting about records."""
    fields: dict[str, Any] = {
        "text_fields": tuple(tool.vector_field) or None,
        "path": tuple(tool.record_path.split(".")) if tool.record_path else None,
        "id_field": tool.id_field,
        "meta_fields": None if tool.meta_fields is None else tuple(tool.meta_fields),
        "meta_prefix": tool.meta_prefix,
        "separator": tool.field_separator,
        "delimiter": tool.delimiter,
    }
    fields = {key: value for key, value in fields.items() if value is not None}
    return RecordSpec(**fields) if fields else None


def _embeddings(
    tool: VectorstoreTool,
    place: Pointer,
    default_model: ModelSpec | None,
    embedder: ModelSpec | None,
    problems: Problems,
) -> Any:
    """The tool's `embedding_model`, else the file's `embedding_provider`, else the default embedding model."""
    model_name = tool.embedding_model
    embeddings: Any = None
    if model_name is not None and (":" in model_name or is_local_name(model_name)):
        embeddings = model_name
    elif model_name is not None or embedder is not None:
        if default_model is None:
            return None
        embeddings = _embedder_for(default_model, model_name or default_model.model)
        if embeddings is None:
            _report_embedder(place, default_model, embedder, problems)
            return None
    try:
        find_embeddings(embeddings)
    except (NoEmbeddings, UsageError) as error:
        problems.add(place, str(error))
    return embeddings


def _report_embedder(place: Pointer, model: ModelSpec, embedder: ModelSpec | None, problems: Problems) -> None:
    if embedder is None:
        message = f"is not available from {model.provider}; set embedding_provider"
        problems.add((*place, "embedding_model"), message)
        return
    providers = ", ".join(PROVIDERS)
    message = f"cannot embed: {model.provider} is not one of {providers}, and has no OpenAI-compatible endpoint"
    if all(problem.message != message for problem in problems.items):
        problems.add(("embedding_provider",), message)


def _embedder_for(model: ModelSpec, name: str) -> EmbeddingSpec | None:
    """The embedding model `name` at a provider, or None if the provider has no OpenAI-compatible endpoint.

    Azure's is compatible only at an address that ends in `/v1`.
    """
    azure = model.provider.startswith("azure")
    if model.provider not in PROVIDERS and (model.base_url is None or (azure and not model.base_url.endswith("/v1"))):
        return None
    provider = model.provider if model.provider in PROVIDERS else "openai"
    return EmbeddingSpec(f"{provider}:{name}", model.base_url, model.api_key)
