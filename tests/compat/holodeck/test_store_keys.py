"""Each key of a vector store, as the file says it, changes what a search finds."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from declared_projects import project, spec_of
from scripted_model import model_server, says

from proctor.cases.formats.loading import load
from proctor.compat.holodeck.tools import build_tools

RECORDS = [
    {"key": "a", "title": "Refund", "body": "refund within 30 days", "lang": "en"},
    {"key": "b", "title": "Price", "body": "the price is 9", "lang": "no"},
]
FILES = {
    "faq.json": json.dumps({"data": {"items": RECORDS}}),
    "list.json": json.dumps(RECORDS),
    "faq.csv": "title;body\nRefund;refund within 30 days\n",
    "long.txt": "refund one two three four five six seven",
}


async def never(*given: Any) -> str:
    raise AssertionError("no model is asked")


def search(folder: Path, **more: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What a search for a refund finds, and what was asked of the embedding model."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    tool = {"name": "faq", "type": "vectorstore", "source": "list.json", "embedding_model": "e", **more}
    with model_server(lambda talk: says("")) as server:
        [suite] = load([project(folder, server.url, tools=[tool])])
        [made] = build_tools(spec_of(suite), never)
        assert made.name == "faq_search"
        results: Any = asyncio.run(made.call({"query": "refund"}))
        return results, [asked.body for asked in server.requests]


def first(folder: Path, **more: Any) -> dict[str, Any]:
    return search(folder, **more)[0][0]


@pytest.mark.parametrize(
    ("more", "key", "value"),
    [
        ({"source": "long.txt"}, "text", "refund one two three four five six seven"),
        ({"vector_field": "body"}, "text", "refund within 30 days"),
        ({"vector_field": ["title", "body"]}, "text", "Refund\nrefund within 30 days"),
        ({"vector_field": ["title", "body"], "field_separator": " - "}, "text", "Refund - refund within 30 days"),
        ({"id_field": "key"}, "id", "a"),
        ({"meta_fields": ["lang"]}, "lang", "en"),
        ({"meta_fields": ["lang"], "meta_prefix": "m_"}, "m_lang", "en"),
        ({"source": "faq.json", "record_path": "data.items", "vector_field": "title"}, "text", "Refund"),
        ({"source": "faq.csv", "delimiter": ";", "vector_field": "title"}, "text", "Refund"),
        ({"source": "long.txt", "chunk_size": 3, "chunk_overlap": 0}, "text", "refund one two"),
        ({"database": "in-memory", "id_field": "key"}, "id", "a"),
    ],
)
def test_what_is_found_is_as_the_file_says(tmp_path: Path, more: dict[str, Any], key: str, value: Any) -> None:
    assert first(tmp_path, **more)[key] == value


@pytest.mark.parametrize(("chunk_overlap", "pieces"), [(0, 4), (1, 7)])
def test_passages_share_as_many_words_as_chunk_overlap_says(tmp_path: Path, chunk_overlap: int, pieces: int) -> None:
    results, _ = search(tmp_path, source="long.txt", chunk_size=2, chunk_overlap=chunk_overlap, top_k=50)
    assert len(results) == pieces


@pytest.mark.parametrize(("more", "most"), [({}, 2), ({"top_k": 1}, 1), ({"min_similarity_score": 0.9}, 1)])
def test_as_much_is_found_as_top_k_and_min_similarity_score_allow(
    tmp_path: Path, more: dict[str, Any], most: int
) -> None:
    assert len(search(tmp_path, vector_field="body", **more)[0]) == most


def test_embedding_model_is_who_is_asked(tmp_path: Path) -> None:
    assert {body["model"] for body in search(tmp_path, embedding_model="other")[1]} == {"other"}


def test_of_longer_vectors_only_embedding_dimensions_count(tmp_path: Path) -> None:
    whole, short = (search(tmp_path, vector_field="body", **more)[0] for more in ({}, {"embedding_dimensions": 1}))
    assert whole[1]["score"] > 0
    assert short[1]["score"] == 0, "the price has no refund in it, and nothing else counts"


def test_a_store_is_offered_to_the_model_by_name_and_description(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("refund")
    tool = {"name": "faq", "type": "vectorstore", "source": "a.txt", "embedding_model": "e", "description": "Answers."}
    [suite] = load([project(tmp_path, "http://127.0.0.1:1/v1", tools=[tool])])
    [made] = build_tools(spec_of(suite), never)
    assert (made.name, made.description) == ("faq_search", "Answers.")
