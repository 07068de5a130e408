"""Reads a tool of type `vectorstore`: which files are searched, how they are cut, and which model embeds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.fields import Fields
from proctor.declared.description import RecordSpec, StoreSpec
from proctor.declared.passage_search import ENDINGS, files_of, holds_text, missing_package, too_much
from proctor.judging.embedding_sources import PROVIDERS
from proctor.judging.embeddings import Embedder, NoEmbeddings, embeddings_of
from proctor.judging.providers import ModelSpec


def read_store(
    fields: Fields,
    name: str,
    description: str,
    base: Path,
    nearby: ModelSpec | None,
    embedder: ModelSpec | None,
    deferred: bool,
) -> StoreSpec | None:
    """The files and how they are searched; `nearby` says whose embedding model is meant where only one is named."""
    source = fields.text("source", required=True, blank=False)
    size = fields.integer("chunk_size", 512, least=1)
    overlap = fields.integer("chunk_overlap", min(50, size - 1), least=0)
    if overlap >= size:
        fields.problem("chunk_overlap", f"must be less than chunk_size, which is {size}")
    top_k = fields.integer("top_k", 5, least=1)
    if top_k > 100:
        fields.problem("top_k", f"must be at most 100, not {top_k}")
    least = fields.number("min_similarity_score", least=-1, most=1)
    dimensions = fields.integer("embedding_dimensions", least=1)
    _check_database(fields)
    records = _records(fields)
    embeddings = _embeddings(fields, nearby, embedder)
    if source is None or not _is_readable(fields, base / source, source):
        return None
    if not _holds_text(fields, base / source, records):
        return None
    return StoreSpec(
        name,
        description or f"Searches {Path(source).name} for passages that are about the query.",
        base / source,
        embeddings,
        top_k,
        least,
        size,
        overlap,
        dimensions,
        records,
        deferred,
    )


def _is_readable(fields: Fields, path: Path, source: str) -> bool:
    try:
        files = files_of(path)
    except (OSError, ValueError):
        files = []
    if not files:
        kinds = ", ".join(ENDINGS)
        fields.problem("source", f"names {source}, where there is no file to search ({kinds}); looked for {path}")
        return False
    wrong = missing_package(files) or too_much(files)
    if wrong:
        fields.problem("source", wrong)
    return not wrong


def _holds_text(fields: Fields, path: Path, records: RecordSpec | None) -> bool:
    """Looks before anything runs; only PDF files are believed unread, which takes too long to be done twice."""
    try:
        found = holds_text(path, records)
    except UsageError as error:
        fields.problem("source", f"is of no use: {error}")
        return False
    if not found:
        fields.problem("source", f"names {path.name}, which holds no text to search")
    return found


def _check_database(fields: Fields) -> None:
    """Whatever database is named, passages are searched in memory; the reader of the file warns of another."""
    if not isinstance(fields.take("database"), str | dict | None):
        fields.problem("database", "must be a name, or an object with 'provider'")


def _records(fields: Fields) -> RecordSpec | None:
    """How records are read; `None` where nothing says that the files hold any."""
    texts = _one_or_more(fields, "vector_field")
    path = fields.text("record_path", blank=False)
    if fields.take("record_prefix") is not None:
        fields.problem("record_prefix", "is not used here; name fields as they are in the file")
    given: dict[str, Any] = {
        "id_field": fields.text("id_field", blank=False),
        "meta_fields": fields.texts("meta_fields"),
        "meta_prefix": fields.text("meta_prefix"),
        "separator": fields.text("field_separator"),
        "delimiter": fields.text("delimiter", blank=True),
    }
    given = {key: value for key, value in given.items() if value is not None}
    if "delimiter" in given and len(given["delimiter"]) != 1:
        fields.problem("delimiter", "must be one character")
        del given["delimiter"]
    if not texts and not path and not given:
        return None
    return RecordSpec(texts, path=tuple(path.split(".")) if path else (), **given)


def _one_or_more(fields: Fields, name: str) -> tuple[str, ...]:
    if isinstance(fields.take(name), str):
        return (fields.text(name, blank=False),) if fields.text(name).strip() else ()
    return fields.texts(name, ())  # type: ignore[no-any-return]


def _embeddings(fields: Fields, nearby: ModelSpec | None, embedder: ModelSpec | None) -> Any:
    """A tool's own `embedding_model` before the file's `embedding_provider`, before the usual embedding model."""
    own = fields.text("embedding_model", blank=False)
    named: Any = None
    if own is not None and (":" in own or own == "embedded"):
        named = own
    elif own is not None or embedder is not None:
        if nearby is None:
            return None
        named = _of_provider(nearby, own or nearby.model)
        if named is None:
            _refuse_embedder(fields, nearby, embedder)
            return None
    try:
        embeddings_of(named)
    except (NoEmbeddings, UsageError) as error:
        fields.document.problem(fields.pointer, str(error))
    return named


def _refuse_embedder(fields: Fields, nearby: ModelSpec, embedder: ModelSpec | None) -> None:
    if embedder is None:
        fields.problem("embedding_model", f"cannot be asked of {nearby.provider}; name it with embedding_provider")
        return
    known = ", ".join(PROVIDERS)
    message = f"cannot embed: {nearby.provider} is none of {known}, and has no endpoint that speaks as OpenAI's does"
    if all(problem.message != message for problem in fields.document.problems):
        fields.document.problem(("embedding_provider",), message)


def _of_provider(model: ModelSpec, name: str) -> Embedder | None:
    """Azure speaks as OpenAI does only at an address that ends in `/v1`."""
    azure = model.provider.startswith("azure")
    if model.provider not in PROVIDERS and (model.base_url is None or (azure and not model.base_url.endswith("/v1"))):
        return None
    provider = model.provider if model.provider in PROVIDERS else "openai"
    return Embedder(f"{provider}:{name}", model.base_url, model.api_key)
