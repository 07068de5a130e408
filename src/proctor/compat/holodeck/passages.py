"""Searches files by meaning: reads a tool of type `vectorstore`, cuts its files into passages, finds the nearest."""

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
from proctor.base.json_data import Json, to_text
from proctor.base.positions import Pointer
from proctor.base.threads import run_in_thread
from proctor.compat.holodeck.agent_spec import Problems, RecordSpec, StoreSpec
from proctor.compat.holodeck.models import VectorstoreTool
from proctor.judging.embeddings import PROVIDERS, EmbeddingSpec, NoEmbeddings, Vector, cosine, find_embeddings
from proctor.judging.providers import ModelSpec
from proctor.version import install_command

TEXTS = (".txt", ".md", ".markdown")
RECORDS = (".json", ".jsonl", ".csv")
ENDINGS = (*TEXTS, *RECORDS, ".pdf")
MOST_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a file, small enough to be about one thing."""

    text: str
    source: str
    id: str = ""
    meta: Mapping[str, Json] = field(default_factory=dict)


def files_of(source: Path) -> list[Path]:
    """The file itself, or all files of a folder that can be searched, in an order that stays."""
    if source.is_file():
        return [source] if source.suffix.lower() in ENDINGS else []
    return sorted(path for path in source.rglob("*") if path.is_file() and path.suffix.lower() in ENDINGS)


def missing_package(files: Iterable[Path]) -> str | None:
    """What has to be installed before these files can be read."""
    if any(path.suffix.lower() == ".pdf" for path in files) and importlib.util.find_spec("pypdf") is None:
        return f"holds PDF files, which need more packages: {install_command('files')}"
    return None


def too_much(files: Iterable[Path]) -> str | None:
    """Why so much text cannot be searched: every passage and its vector are held in memory."""
    size = sum(path.stat().st_size for path in files)
    if size <= MOST_BYTES:
        return None
    return f"holds {size / 1e6:.0f} MB; passages are held in memory, and {MOST_BYTES / 1e6:.0f} MB are the most"


def passages_of(source: Path, size: int, overlap: int, records: RecordSpec | None = None) -> list[Passage]:
    """Every passage of every file; raises `UsageError` for a file that cannot be read."""
    root = source if source.is_dir() else source.parent
    whole = (passage for path in files_of(source) for passage in _whole(path, root, records))
    return [piece for passage in whole for piece in _cut(passage, size, overlap)]


def holds_text(source: Path, records: RecordSpec | None = None) -> bool:
    """Whether there is anything to search, as far as can be told without reading PDF files; raises as reading would."""
    root = source if source.is_dir() else source.parent
    found = False
    for path in files_of(source):
        if path.suffix.lower() == ".pdf":
            found = True
        else:
            found = any(passage.text.strip() for passage in _whole(path, root, records)) or found
    return found


def _whole(path: Path, root: Path, records: RecordSpec | None) -> list[Passage]:
    name = path.relative_to(root).as_posix()
    try:
        return list(_records(path, name, records)) or [Passage(_text(path), name)]
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise UsageError(f"{path} cannot be searched: {error}") from None


def _cut(passage: Passage, size: int, overlap: int) -> Iterator[Passage]:
    pieces = chunks(passage.text, size, overlap)
    for number, piece in enumerate(pieces, 1):
        mark = passage.id if len(pieces) == 1 else f"{passage.id}#{number}" if passage.id else str(number)
        yield Passage(piece, passage.source, mark, passage.meta)


def chunks(text: str, size: int, overlap: int) -> list[str]:
    """Runs of at most `size` words, each beginning with the last `overlap` words of the one before.

    A text that is short enough stays as it is written, line breaks and all.
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
        raise ValueError(f"is not a PDF that can be read: {error}") from None


def _records(path: Path, name: str, spec: RecordSpec | None) -> Iterator[Passage]:
    """The records of a JSON or CSV file as passages; nothing for other files, and for JSON that holds no list."""
    ending = path.suffix.lower()
    if ending not in RECORDS:
        return
    spec = spec or RecordSpec()
    text = path.read_text(encoding="utf-8-sig")
    rows: Sequence[Json]
    if ending == ".csv":
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=spec.delimiter))
    elif ending == ".jsonl":
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    else:
        rows = _list_in(json.loads(text), spec.path)
    for number, row in enumerate(rows, 1):
        yield _passage(row, name, number, spec)


def _list_in(data: Json, path: tuple[str, ...]) -> Sequence[Json]:
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
        text = spec.separator.join(_shown(row[key]) for key in spec.text_fields)
    else:
        text = spec.separator.join(f"{key}: {_shown(value)}" for key, value in row.items() if key is not None)
    mark = row.get(spec.id_field) if spec.id_field else None
    meta = {f"{spec.meta_prefix}{key}": row[key] for key in spec.meta_fields if key in row}
    return Passage(text, name, str(number if mark is None else mark), meta)


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else to_text(value)


AT_ONCE = 64
"""How many passages are embedded with one request."""


class VectorStore:
    """The passages of one tool, embedded when they are first searched and held in memory."""

    def __init__(self, spec: StoreSpec) -> None:
        self._spec = spec
        self._lock = asyncio.Lock()
        self._passages: Sequence[Passage] | None = None
        self._vectors: list[Vector] = []

    async def search(self, query: str) -> list[dict[str, Json]]:
        """The passages nearest to a query, the nearest first."""
        await self._prepare()
        [wanted] = await self._embed([query])
        scored = [(cosine(wanted, vector), index) for index, vector in enumerate(self._vectors)]
        scored.sort(key=lambda pair: (-pair[0], pair[1]))
        least = self._spec.least_score
        near = [pair for pair in scored if least is None or pair[0] >= least]
        return [self._told(score, index) for score, index in near[: self._spec.top_k]]

    async def _prepare(self) -> None:
        async with self._lock:
            if self._passages is not None:
                return
            spec = self._spec
            passages = await run_in_thread(passages_of, spec.source, spec.chunk_size, spec.chunk_overlap, spec.records)
            texts = [passage.text for passage in passages]
            vectors: list[Vector] = []
            for start in range(0, len(texts), AT_ONCE):
                vectors += await self._embed(texts[start : start + AT_ONCE])
            self._passages, self._vectors = passages, vectors

    async def _embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors = await find_embeddings(self._spec.embeddings).embed(texts)
        size = self._spec.dimensions
        if size is None:
            return list(vectors)
        if any(len(vector) < size for vector in vectors):
            raise AgentFailed(f"{self._spec.name} wants {size} dimensions, and the embeddings have {len(vectors[0])}")
        return [vector[:size] for vector in vectors]

    def _told(self, score: float, index: int) -> dict[str, Json]:
        passage = (self._passages or ())[index]
        known: dict[str, Any] = {"text": passage.text, "source": passage.source, "score": round(score, 4)}
        if passage.id:
            known["id"] = passage.id
        return {**known, **passage.meta}


def read_store(
    tool: VectorstoreTool,
    place: Pointer,
    base: Path,
    nearby: ModelSpec | None,
    embedder: ModelSpec | None,
    problems: Problems,
) -> StoreSpec | None:
    """The files and how they are searched; `nearby` says whose embedding model is meant where only one is named."""
    if tool.record_prefix is not None:
        problems.add((*place, "record_prefix"), "is not used here; name fields as they are in the file")
    records = _record_spec(tool)
    embeddings = _embeddings(tool, place, nearby, embedder, problems)
    source = base / tool.source
    if not _is_readable(tool, place, source, problems) or not _holds_text(place, source, records, problems):
        return None
    overlap = min(50, tool.chunk_size - 1) if tool.chunk_overlap is None else tool.chunk_overlap
    return StoreSpec(
        tool.name,
        tool.description or f"Searches {Path(tool.source).name} for passages that are about the query.",
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
        files = files_of(path)
    except (OSError, ValueError):
        files = []
    wrong = missing_package(files) or too_much(files)
    if not files:
        kinds = ", ".join(ENDINGS)
        wrong = f"names {tool.source}, where there is no file to search ({kinds}); looked for {path}"
    if wrong:
        problems.add((*place, "source"), wrong)
    return not wrong


def _holds_text(place: Pointer, path: Path, records: RecordSpec | None, problems: Problems) -> bool:
    """Looks before anything runs; only PDF files are believed unread, which takes too long to be done twice."""
    try:
        found = holds_text(path, records)
    except UsageError as error:
        problems.add((*place, "source"), f"is of no use: {error}")
        return False
    if not found:
        problems.add((*place, "source"), f"names {path.name}, which holds no text to search")
    return found


def _record_spec(tool: VectorstoreTool) -> RecordSpec | None:
    """How records are read; `None` if nothing says that the files hold any."""
    given: dict[str, Any] = {
        "text_fields": tuple(tool.vector_field) or None,
        "path": tuple(tool.record_path.split(".")) if tool.record_path else None,
        "id_field": tool.id_field,
        "meta_fields": None if tool.meta_fields is None else tuple(tool.meta_fields),
        "meta_prefix": tool.meta_prefix,
        "separator": tool.field_separator,
        "delimiter": tool.delimiter,
    }
    given = {key: value for key, value in given.items() if value is not None}
    return RecordSpec(**given) if given else None


def _embeddings(
    tool: VectorstoreTool,
    place: Pointer,
    nearby: ModelSpec | None,
    embedder: ModelSpec | None,
    problems: Problems,
) -> Any:
    """A tool's own `embedding_model` before the file's `embedding_provider`, before the usual embedding model."""
    own = tool.embedding_model
    named: Any = None
    if own is not None and (":" in own or own == "embedded"):
        named = own
    elif own is not None or embedder is not None:
        if nearby is None:
            return None
        named = _of_provider(nearby, own or nearby.model)
        if named is None:
            _refuse_embedder(place, nearby, embedder, problems)
            return None
    try:
        find_embeddings(named)
    except (NoEmbeddings, UsageError) as error:
        problems.add(place, str(error))
    return named


def _refuse_embedder(place: Pointer, nearby: ModelSpec, embedder: ModelSpec | None, problems: Problems) -> None:
    if embedder is None:
        wrong = f"cannot be asked of {nearby.provider}; name it with embedding_provider"
        problems.add((*place, "embedding_model"), wrong)
        return
    known = ", ".join(PROVIDERS)
    wrong = f"cannot embed: {nearby.provider} is none of {known}, and has no endpoint that speaks as OpenAI's does"
    if all(problem.message != wrong for problem in problems.found):
        problems.add(("embedding_provider",), wrong)


def _of_provider(model: ModelSpec, name: str) -> EmbeddingSpec | None:
    """Azure speaks as OpenAI does only at an address that ends in `/v1`."""
    azure = model.provider.startswith("azure")
    if model.provider not in PROVIDERS and (model.base_url is None or (azure and not model.base_url.endswith("/v1"))):
        return None
    provider = model.provider if model.provider in PROVIDERS else "openai"
    return EmbeddingSpec(f"{provider}:{name}", model.base_url, model.api_key)
