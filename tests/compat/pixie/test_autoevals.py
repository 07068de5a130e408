"""Scorers of the real autoevals package, heuristic ones and ones that ask a model on this machine."""

from __future__ import annotations

import asyncio
import contextvars
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import autoevals
import openai
import pytest
from autoevals.ragas import AnswerCorrectness, AnswerRelevancy, ContextRelevancy, Faithfulness
from autoevals.score import Score, Scorer

import proctor
from proctor.base.errors import JudgeFailed, UsageError
from proctor.base.json_data import UNSET
from proctor.cases.suite import Case, EvaluatorSpec, NamedData, Suite
from proctor.compat.pixie.autoevals import AutoevalsAdapter
from proctor.evaluators.calling import evaluate
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, InvalidScore, NothingToCompare
from proctor.evaluators.registry import resolve_evaluator


class Judge(BaseHTTPRequestHandler):
    """ChoiceEvaluator what `choice` says; a choice of `broken` answers with words instead of the tool call."""

    choice = "C"
    asked: list[dict[str, Any]]
    keys: list[str]

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).asked.append(request)
        type(self).keys.append(self.headers["Authorization"])
        arguments = json.dumps({"reasons": "because they agree", "choice": type(self).choice})
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if type(self).choice == "broken":
            message["content"] = "I would rather not say."
        else:
            function = {"name": "select_choice", "arguments": arguments}
            message["tool_calls"] = [{"id": "1", "type": "function", "function": function}]
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def judge() -> Iterator[tuple[type[Judge], str]]:
    class Own(Judge):
        pass

    Own.asked, Own.keys = [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Own, f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "BRAINTRUST_AI_GATEWAY_URL", "BRAINTRUST_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")


def make_evaluable(output: Any, expectation: Any = UNSET, **more: Any) -> Evaluable:
    return Evaluable(
        eval_input=[NamedData("input", "What is the capital of France?")],
        eval_output=[NamedData("output", output)],
        expectation=expectation,
        **more,
    )


def run_evaluator(evaluator: AutoevalsAdapter, evaluable: Evaluable) -> Evaluation:
    found = asyncio.run(evaluate(evaluator, evaluable))
    assert found is not None
    return found


def in_own_context(work: Callable[[], Any]) -> Any:
    """`autoevals.init` sets a context variable; it must not outlive a test."""
    return contextvars.copy_context().run(work)


class Returns(Scorer):
    """A scorer of one's own."""

    def __init__(self, result: Any) -> None:
        self.result = result
        self.seen: dict[str, Any] = {}

    def _run_eval_sync(self, output: Any, expected: Any = None, **kwargs: Any) -> Any:
        self.seen = {"output": output, "expected": expected, **kwargs}
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.mark.parametrize(
    ("scorer", "output", "expected", "score"),
    [
        (autoevals.Levenshtein(), "sitting", "kitten", 1 - 3 / 7),
        (autoevals.Levenshtein, "same", "same", 1.0),
        (autoevals.ExactMatch(), {"a": 1}, {"a": 1}, 1.0),
        (autoevals.NumericDiff(), 105, 100, 1 - 5 / 205),
        (autoevals.JSONDiff(), {"a": 1, "b": 2}, {"a": 1, "b": 2}, 1.0),
    ],
)
def test_a_scorer_of_autoevals_scores_as_it_does_by_itself(
    scorer: Any, output: Any, expected: Any, score: float
) -> None:
    found = run_evaluator(AutoevalsAdapter(scorer), make_evaluable(output, expected))

    assert found.score == pytest.approx(score)
    assert found.details["scorer_name"] in found.reasoning


def test_the_expectation_of_the_case_comes_first_then_the_given_one_then_the_metadata() -> None:
    scorer = Returns(Score("x", 1.0))
    adapter = AutoevalsAdapter(scorer, expected="given", expected_key="truth")

    for evaluable, expected in [
        (make_evaluable("o", "case", eval_metadata={"truth": "metadata"}), "case"),
        (make_evaluable("o", None, eval_metadata={"truth": "metadata"}), "given"),
        (make_evaluable("o", eval_metadata={"truth": "metadata"}), "given"),
    ]:
        run_evaluator(adapter, evaluable)
        assert scorer.seen["expected"] == expected
    run_evaluator(
        AutoevalsAdapter(scorer, expected_key="truth"), make_evaluable("o", eval_metadata={"truth": "metadata"})
    )
    assert scorer.seen["expected"] == "metadata"


def test_a_scorer_gets_the_input_the_named_metadata_and_its_own_arguments_which_win() -> None:
    scorer = Returns(Score("x", 1.0))
    adapter = AutoevalsAdapter(
        scorer, input_key="question", extra_metadata_keys=["criteria", "context", "absent"], criteria="mine"
    )

    run_evaluator(
        adapter, make_evaluable("o", eval_metadata={"criteria": "theirs", "other": 1}, retrieval_context=("a", "b"))
    )

    assert scorer.seen == {
        "output": "o",
        "expected": None,
        "question": "What is the capital of France?",
        "context": ["a", "b"],
        "criteria": "mine",
    }


def test_no_score_is_a_skip_and_never_a_zero() -> None:
    with pytest.raises(NothingToCompare, match="returned no score"):
        run_evaluator(AutoevalsAdapter(Returns(Score("x", None))), make_evaluable("o"))


@pytest.mark.parametrize("scorer", [autoevals.Levenshtein, autoevals.ExactMatch, autoevals.NumericDiff])
def test_without_an_expectation_a_comparing_scorer_has_nothing_to_compare(scorer: Any) -> None:
    with pytest.raises(NothingToCompare, match="needs an expected output"):
        run_evaluator(AutoevalsAdapter(scorer), make_evaluable(None))


def test_an_expectation_that_is_bound_to_the_scorer_counts() -> None:
    adapter = AutoevalsAdapter(autoevals.Levenshtein.partial(expected="kitten")())

    assert run_evaluator(adapter, make_evaluable("kitten")).score == 1.0


@pytest.mark.parametrize("broken", [ValueError("no luck"), ConnectionError("gone")])
def test_what_a_scorer_raises_is_raised_and_never_a_zero(broken: Exception) -> None:
    with pytest.raises(type(broken), match=str(broken)):
        run_evaluator(AutoevalsAdapter(Returns(broken)), make_evaluable("o"))


@pytest.mark.parametrize("result", [Score("x", float("nan")), "good", None, 0.5])
def test_what_is_not_a_score_is_an_error(result: Any) -> None:
    with pytest.raises(InvalidScore):
        run_evaluator(AutoevalsAdapter(Returns(result)), make_evaluable("o"))


def test_an_out_of_range_score_is_clamped_with_a_warning() -> None:
    score = Score("x", 1.0)
    score.score = 7
    with pytest.warns(RuntimeWarning, match="clamped"):
        assert run_evaluator(AutoevalsAdapter(Returns(score)), make_evaluable("o")).score == 1.0


def test_a_rationale_is_the_reason_and_all_metadata_are_kept() -> None:
    found = run_evaluator(
        AutoevalsAdapter(Returns(Score("x", 0.5, {"rationale": "half true", "n": 2}))), make_evaluable("o")
    )

    assert found == Evaluation(0.5, "half true", {"rationale": "half true", "n": 2, "scorer_name": "x"})


@pytest.mark.parametrize("wrong", ["Levenshtein", 7, None, len, object(), dict])
def test_what_is_not_a_scorer_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(UsageError, match="needs an autoevals scorer"):
        AutoevalsAdapter(wrong)


def test_one_name_instead_of_a_list_of_metadata_keys_is_refused() -> None:
    with pytest.raises(UsageError, match="extra_metadata_keys"):
        AutoevalsAdapter(autoevals.Levenshtein, extra_metadata_keys="criteria")


@pytest.mark.parametrize(
    ("scorer", "asks"),
    [
        (autoevals.Levenshtein(), False),
        (autoevals.ExactMatch(), False),
        (autoevals.NumericDiff(), False),
        (autoevals.JSONDiff(), False),
        (autoevals.ValidJSON(), False),
        (autoevals.ListContains(), False),
        (autoevals.Factuality(), True),
        (autoevals.ClosedQA(), True),
        (autoevals.Moderation(), True),
        (autoevals.EmbeddingSimilarity(), True),
        (Faithfulness(), True),
        (AnswerCorrectness(), True),
        (autoevals.JSONDiff(string_scorer=autoevals.EmbeddingSimilarity()), True),
        (autoevals.ListContains(pairwise_scorer=autoevals.EmbeddingSimilarity()), True),
        (Returns(None), False),
    ],
    ids=lambda value: value._name() if isinstance(value, Scorer) else str(value),
)
def test_an_adapter_says_honestly_whether_it_needs_a_model(scorer: Any, asks: bool) -> None:
    assert AutoevalsAdapter(scorer).needs_judge is asks


def test_a_scorer_of_ones_own_can_say_that_it_asks_a_model() -> None:
    class Asks(Returns):
        needs_judge = True

    assert AutoevalsAdapter(Asks(None)).needs_judge is True


@pytest.mark.parametrize(
    "scorer",
    [
        autoevals.Factuality,
        autoevals.Moderation,
        autoevals.EmbeddingSimilarity,
        AnswerRelevancy,
        ContextRelevancy,
        AnswerRelevancy(base_url="http://127.0.0.1:9/v1"),
        autoevals.JSONDiff(string_scorer=autoevals.EmbeddingSimilarity()),
    ],
    ids=lambda scorer: scorer.__name__ if isinstance(scorer, type) else f"an {type(scorer).__name__}",
)
def test_nothing_is_sent_anywhere_that_the_user_has_not_named(scorer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a request was made")

    monkeypatch.setattr("autoevals.oai.prepare_openai", refuse)
    with pytest.raises(JudgeFailed, match=r"gateway\.braintrust\.dev.*OPENAI_BASE_URL"):
        run_evaluator(AutoevalsAdapter(scorer), make_evaluable("Paris", "Paris"))


def clients(url: str) -> dict[str, Callable[[], AutoevalsAdapter]]:
    sync, later = openai.OpenAI, openai.AsyncOpenAI
    arguments: Any = {"api_key": "k", "base_url": url, "max_retries": 0}

    def after_init(client: Any) -> AutoevalsAdapter:
        autoevals.init(client=client, default_model="small")
        return AutoevalsAdapter(autoevals.Factuality, model="small")

    return {
        "a sync client": lambda: AutoevalsAdapter(autoevals.Factuality(client=sync(**arguments), model="small")),
        "an async client": lambda: AutoevalsAdapter(autoevals.Factuality(client=later(**arguments), model="small")),
        "a client for the class": lambda: AutoevalsAdapter(
            autoevals.Factuality, client=sync(**arguments), model="small"
        ),
        "init, sync": lambda: after_init(sync(**arguments)),
        "init, async": lambda: after_init(later(**arguments)),
    }


@pytest.mark.parametrize("way", clients(""))
def test_a_scorer_asks_the_model_that_the_user_has_named(way: str, judge: tuple[type[Judge], str]) -> None:
    handler, url = judge

    def work() -> Evaluation:
        adapter = clients(url)[way]()
        return run_evaluator(adapter, make_evaluable("Paris", "It is Paris."))

    found = in_own_context(work)

    assert (found.score, found.reasoning) == (1.0, "because they agree")
    assert found.details == {"choice": "C", "rationale": "because they agree", "scorer_name": "Factuality"}
    (request,) = handler.asked
    assert "It is Paris." in request["messages"][0]["content"]
    assert "What is the capital of France?" in request["messages"][0]["content"]


def test_a_scorer_asks_the_address_in_the_environment(
    judge: tuple[type[Judge], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, url = judge
    monkeypatch.setenv("OPENAI_BASE_URL", url)

    found = run_evaluator(AutoevalsAdapter(autoevals.Factuality(model="small")), make_evaluable("Paris", "Paris"))

    assert found.score == 1.0
    assert handler.keys == ["Bearer secret"]


def test_a_client_given_to_init_is_remembered_for_later_runs(judge: tuple[type[Judge], str]) -> None:
    _, url = judge

    def made() -> AutoevalsAdapter:
        autoevals.init(client=openai.OpenAI(api_key="k", base_url=url, max_retries=0), default_model="small")
        return AutoevalsAdapter(autoevals.Factuality())

    adapter = in_own_context(made)

    assert run_evaluator(adapter, make_evaluable("Paris", "Paris")).score == 1.0
    with pytest.raises(JudgeFailed):
        run_evaluator(AutoevalsAdapter(autoevals.Factuality()), make_evaluable("Paris", "Paris"))


@pytest.mark.parametrize("choice", ["broken", "Z"])
def test_a_reply_of_the_model_that_cannot_be_read_is_an_error(choice: str, judge: tuple[type[Judge], str]) -> None:
    handler, url = judge
    handler.choice = choice
    scorer = autoevals.Factuality(client=openai.OpenAI(api_key="k", base_url=url, max_retries=0), model="small")

    with pytest.raises((KeyError, ValueError)):
        run_evaluator(AutoevalsAdapter(scorer), make_evaluable("Paris", "Paris"))


EVALS = """
import autoevals
from proctor.compat.pixie.autoevals import AutoevalsAdapter

edits = AutoevalsAdapter(autoevals.Levenshtein())
facts = AutoevalsAdapter(autoevals.Factuality())

def make():
    return AutoevalsAdapter(autoevals.ExactMatch())
"""


def test_an_adapter_is_named_in_a_dataset_and_fast_leaves_out_those_that_ask_a_model(tmp_path: Path) -> None:
    (tmp_path / "evals.py").write_text(EVALS)
    (tmp_path / "app.py").write_text("def answer(args):\n    return args['question']\n")
    dataset = {
        "name": "faq",
        "runnable": "app.py:answer",
        "evaluators": ["evals.py:edits", "evals.py:make", "evals.py:facts"],
        "entries": [{"input_data": {"question": "Hello"}, "description": "greets", "expectation": "Hello"}],
    }
    (tmp_path / "faq.json").write_text(json.dumps(dataset))

    (fast,) = proctor.run(tmp_path / "faq.json", fast=True).trials
    (whole,) = proctor.run(tmp_path / "faq.json").trials

    assert [score.value for score in fast.scores] == [1.0, 1.0]
    assert fast.outcome is proctor.Outcome.PASSED
    assert [score.outcome for score in whole.scores] == ["passed", "passed", "error"]
    assert "OPENAI_BASE_URL" in whole.scores[2].reasoning


def test_the_fingerprint_of_an_adapter_follows_its_settings_and_nothing_else(tmp_path: Path) -> None:
    def version(*args: Any, **kwargs: Any) -> str:
        return AutoevalsAdapter(*args, **kwargs).version

    assert version(autoevals.Levenshtein) == version(autoevals.Levenshtein())
    assert version(autoevals.Levenshtein) != version(autoevals.ExactMatch)
    assert version(autoevals.Levenshtein) != version(autoevals.Levenshtein, expected="x")
    assert version(autoevals.Factuality(model="a")) != version(autoevals.Factuality(model="b"))
    clients = [openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9") for _ in range(2)]
    assert len({version(autoevals.Factuality(client=client)) for client in clients}) == 1
    (tmp_path / "evals.py").write_text(EVALS)
    bound = resolve_evaluator(EvaluatorSpec(f"{tmp_path}/evals.py:edits"))
    assert (bound.asynchronous, bound.needs_judge) == (True, False)


@pytest.mark.process
def test_proctor_never_imports_autoevals_by_itself() -> None:
    code = (
        "import sys, proctor.compat.pixie.autoevals as mine\n"
        "try: mine.AutoevalsAdapter(object())\n"
        "except Exception as error: print(type(error).__name__)\n"
        "print('autoevals' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["UsageError", "False"]


def test_a_scorer_is_an_evaluator_of_a_suite_in_python() -> None:
    scorers = [autoevals.Levenshtein(), autoevals.ExactMatch]
    suite = Suite("s", [Case("q", "shipped", id="c")], agent=lambda question: "shopped", evaluators=scorers)
    scores = suite.run()["c"].scores
    assert scores["Levenshtein"].value == pytest.approx(6 / 7)
    assert scores["ExactMatch"].value == 0.0
    [trial] = Suite("s", [Case("q")], agent=lambda question: "a", evaluators=scorers[:1]).run().trials
    assert trial.scores[0].outcome.value == "skipped"
