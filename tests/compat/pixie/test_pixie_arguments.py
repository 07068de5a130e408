"""Evaluators and data under pixie's names take what pixie's users give them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from proctor.base.errors import UsageError
from proctor.compat.pixie import (
    UNSET,
    ClosedQA,
    EmbeddingSimilarity,
    Evaluable,
    Evaluation,
    Factuality,
    Faithfulness,
    JSONDiff,
    LevenshteinMatch,
    ListContains,
    MemoryTraceHandler,
    NamedData,
    TestCase,
    assert_pass_sync,
    capture_traces,
    create_llm_evaluator,
    evaluate_sync,
    observe,
    run_and_evaluate_sync,
    wrap,
)
from proctor.evaluators.evaluation import Evaluable as Native
from proctor.judging.choosing import NO_SOURCES, choose_judge, own_judge


def make_evaluable(output: Any, expected: Any = UNSET, **more: Any) -> Any:
    given = [{"name": "question", "value": "Hi?"}]
    return Evaluable(eval_input=given, eval_output=[NamedData("answer", output)], expectation=expected, **more)


class Client:
    """Any client with OpenAI's methods; keeps what it was asked."""

    def __init__(self, *replies: str) -> None:
        self.asked: list[Any] = []
        self._replies = list(replies)
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))
        self.embeddings = SimpleNamespace(create=self._embed)

    def _create(self, **asked: Any) -> Any:
        self.asked.append(asked)
        message = SimpleNamespace(content=self._replies.pop(0))
        return SimpleNamespace(choices=[SimpleNamespace(message=message)], usage=None)

    def _embed(self, **asked: Any) -> Any:
        self.asked.append(asked)
        return SimpleNamespace(data=[SimpleNamespace(embedding=[1.0, 0.0]), SimpleNamespace(embedding=[1.0, 0.0])])


def test_an_expected_output_is_the_expectation() -> None:
    assert make_evaluable("a").expectation is UNSET
    named = Evaluable(eval_input=[NamedData("q", 1)], expected_output="b")
    assert (named.expectation, named.expected_output) == ("b", "b")
    assert Native(eval_input=[NamedData("q", 1)], expected_output=None).expected_output is None
    with pytest.raises(TypeError, match="mean the same"):
        Native(expectation="a", expected_output="b")


@pytest.mark.parametrize("given", [{"eval_input": []}, {"eval_input": ()}, {"eval_output": [NamedData("a", 1)]}])
def test_an_evaluable_without_an_input_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="eval_input must have at least one item"):
        Evaluable(**given)


@pytest.mark.parametrize("item", [{"nam": "x", "value": 1}, {"name": "x"}, {"name": 1, "value": 1}, 5, "text"])
def test_an_item_that_is_not_named_is_refused_with_its_place(item: Any) -> None:
    with pytest.raises(ValueError, match=r"eval_output\[1\] must be NamedData"):
        Evaluable(eval_input=[NamedData("q", 1)], eval_output=[NamedData("a", 1), item])


def test_what_evaluators_get_are_lists_of_named_data() -> None:
    found: list[Any] = []

    def keep(evaluable: Any) -> float:
        found.append(evaluable)
        return 1.0

    def app(question: str) -> None:
        wrap("yes", purpose="output", name="said")

    assert_pass_sync(app, ["q"], [keep], evaluables=[Evaluable(eval_input=[{"name": "q", "value": "q"}])])
    [one] = found
    assert one.eval_input == [NamedData("q", "q")]
    assert one.eval_output == [NamedData("said", "yes")]
    assert isinstance(one, Evaluable) and isinstance(one, TestCase)
    assert isinstance(Native(), Evaluable)

    class Mine(Evaluable):
        pass

    assert isinstance(Mine(eval_input=[{"name": "input", "value": "Hello"}]), (Mine, Evaluable))
    assert not isinstance(Native(), Mine)
    assert not isinstance(one, Mine)


def test_a_client_of_any_kind_is_asked_by_the_evaluator_that_has_it() -> None:
    client = Client('{"reason": "the same", "choice": "C"}', '{"reason": "greets", "choice": "Y"}')
    assert evaluate_sync(Factuality(client=client), make_evaluable("Hello", "Hello")).score == 1.0
    found = evaluate_sync(
        ClosedQA(client=client, model="gpt-x"), make_evaluable("Hi", eval_metadata={"criteria": "greets"})
    )
    assert found.score == 1.0
    assert [asked["model"] for asked in client.asked] == ["gpt-5-mini", "gpt-x"]
    assert Faithfulness(client=client).client is client


def test_a_client_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match=r"chat\.completions\.create"):
        evaluate_sync(Factuality(client=object()), make_evaluable("Hello", "Hello"))


def test_embeddings_come_from_the_client_too() -> None:
    client = Client()
    found = evaluate_sync(EmbeddingSimilarity(client=client), make_evaluable("Hello", "Good day"))
    assert found.score == 1.0
    assert client.asked[0]["input"] == ["Hello", "Good day"]


def test_a_prompt_is_put_to_the_client_and_its_score_is_read_as_pixie_reads_it() -> None:
    client = Client("Score: 0.8\nIt is polite.")
    evaluator = create_llm_evaluator("tone", "Is {eval_output} polite?", client=client)
    found = evaluate_sync(evaluator, make_evaluable("Hello"))
    assert (found.score, found.reasoning) == (0.8, "It is polite.")
    assert client.asked[0]["model"] == "gpt-4o-mini"


def test_a_reply_that_is_not_a_score_is_an_error_and_not_a_zero() -> None:
    client = Client("I cannot say.", "Still not.")
    with pytest.raises(Exception, match="openai:gpt-4o-mini"):
        evaluate_sync(create_llm_evaluator("tone", "Is {eval_output} polite?", client=client), make_evaluable("Hello"))


def test_real_clients_of_openai_and_azure_are_taken() -> None:
    openai = pytest.importorskip("openai", reason="the real client")
    plain = Factuality(client=openai.OpenAI(api_key="sk-very-secret-1", base_url="http://127.0.0.1:9/v1"))
    (judge,) = choose_judge(NO_SOURCES, own_judge(plain)).panel.members
    assert judge.identity == {"model": "openai:gpt-5-mini", "base_url": "http://127.0.0.1:9/v1"}
    assert "secret" not in repr(plain)
    azure = openai.AzureOpenAI(api_key="x", api_version="2024-10-21", azure_endpoint="https://acme.openai.azure.com")
    tone = create_llm_evaluator("t", "{eval_output}", client=azure)
    assert choose_judge(NO_SOURCES, own_judge(tone)).panel.members[0].name == "openai:gpt-4o-mini"


def near(expected: Any, got: Any) -> float:
    return float(str(expected).lower() == str(got).lower())


def lower(evaluable: Any) -> Evaluation:
    return Evaluation(near(evaluable.expectation, evaluable.output), "")


@pytest.mark.parametrize("scorer", [near, lower, lambda output, expected: near(expected, output)])
def test_lists_and_texts_are_compared_by_the_scorer_that_is_given(scorer: Any) -> None:
    lists = ListContains(pairwise_scorer=scorer)
    assert evaluate_sync(lists, make_evaluable(["B", "A"], ["a", "b"])).score == 1.0
    assert evaluate_sync(lists, make_evaluable(["B", "x"], ["a", "b"])).score == 0.5
    assert evaluate_sync(JSONDiff(string_scorer=scorer), make_evaluable({"k": "A"}, {"k": "a"})).score == 1.0


def test_scorers_of_autoevals_compare_pairs() -> None:
    autoevals = pytest.importorskip("autoevals", reason="the real scorers")
    for scorer in (autoevals.Levenshtein(), autoevals.Levenshtein, LevenshteinMatch(), LevenshteinMatch):
        assert evaluate_sync(ListContains(pairwise_scorer=scorer), make_evaluable(["ab"], ["ac"])).score == 0.5
        assert evaluate_sync(JSONDiff(string_scorer=scorer), make_evaluable({"k": "ab"}, {"k": "ac"})).score == 0.5


def test_no_scorer_means_the_usual_one() -> None:
    assert evaluate_sync(JSONDiff(string_scorer=None), make_evaluable({"k": "ab"}, {"k": "ac"})).score == 0.5
    assert evaluate_sync(ListContains(pairwise_scorer=None), make_evaluable(["ab"], ["ac"])).score == 0.5


def test_what_is_not_a_scorer_is_refused() -> None:
    with pytest.raises(Exception, match="pairwise_scorer"):
        ListContains(pairwise_scorer=5)
    with pytest.raises(Exception, match="string_scorer"):
        JSONDiff(string_scorer="nope")


def test_a_handler_may_be_sync_or_async() -> None:
    handler = MemoryTraceHandler()

    async def tell(spans: list[Any]) -> None:
        for span in spans:
            await handler.on_observe(span)
            await handler.on_llm(span)

    with capture_traces() as captured:
        observe(lambda x: x)(1)
    asyncio.run(tell(captured.spans))
    handler.on_observe(captured.spans[0])
    assert len(handler.spans) == 3


def test_a_sync_runnable_may_ask_its_thread_for_an_event_loop() -> None:
    @observe("app")
    def app(question: str) -> str:
        async def answer() -> str:
            await asyncio.sleep(0)
            return f"re: {question}"

        return asyncio.get_event_loop().run_until_complete(answer())

    def same(evaluable: Any) -> float:
        asyncio.get_event_loop().run_until_complete(asyncio.sleep(0))  # a sync evaluator may, too
        return float(evaluable.output == "re: " + evaluable.input)

    assert_pass_sync(app, ["a", "b", "c"], [same])
    asyncio.run(asyncio.sleep(0))
    assert run_and_evaluate_sync(same, app, "d").score == 1.0
