"""Models on this machine: what a server's logits do to scores, and what is said when something is missing."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from judge_server import JudgeServer, cut, judge_server
from logit_server import choice, failure, verdicts, with_logits

from proctor.base.errors import JudgeFailed, UsageError
from proctor.cases.suite import NamedData
from proctor.evaluators.choice import Factuality
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.evaluators.rag import Hallucination
from proctor.judging.context import JudgeContext, judge_context
from proctor.judging.judge_factory import SharedJudges
from proctor.judging.judge_specs import read_panel
from proctor.judging.local_model import LocalEndpoint, LocalSpec, default_threads
from proctor.judging.model_judge import ModelJudge
from proctor.judging.questions import claims

CASE = Evaluable(
    eval_input=[NamedData("input", "How long do refunds take?")],
    eval_output=[NamedData("output", "Refunds take 5 days.")],
    expectation="5 days",
    retrieval_context=("Refunds take 5 days.", "Shipping is free."),
)


def evaluated(evaluator: Any, server: JudgeServer, **options: Any) -> Evaluation:
    judges = SharedJudges()

    async def work() -> Evaluation:
        with judge_context(JudgeContext(judges, {"model": f"local:{server.root}", **options})):
            found = await evaluator(CASE)
        assert isinstance(found, Evaluation)
        return found

    return asyncio.run(work())


def asked(server: JudgeServer, endpoint: LocalEndpoint | None = None) -> Any:
    judge = ModelJudge(endpoint or LocalEndpoint(LocalSpec(server.root)), retries=0)
    return asyncio.run(judge.ask(claims(["Refunds take 5 days."], ["Refunds take 5 days."])))


def test_the_probability_of_a_verdict_is_the_credit_of_its_item() -> None:
    with judge_server(verdicts({"yes": 0.9, "no": 0.1}, {"no": 0.6, "yes": 0.4})) as server:
        found = evaluated(Hallucination(), server)
    assert found.score == pytest.approx((0.9 + 0.4) / 2)
    assert [item["verdict"] for item in found.details["findings"]] == ["agrees", "contradicts"]


def test_a_choice_scores_the_mean_of_all_choices_by_their_probabilities() -> None:
    with judge_server(choice({"C": 0.5, "D": 0.25, "B": 0.25})) as server:
        found = evaluated(Factuality(), server)
    assert found.score == pytest.approx(0.5 * 1.0 + 0.25 * 0.0 + 0.25 * 0.6)
    assert found.details["choice"] == "C"


def test_an_answer_from_the_cache_has_the_same_partial_credit() -> None:
    with judge_server(verdicts({"supported": 0.8, "un": 0.2})) as server:
        judge = ModelJudge(LocalEndpoint(LocalSpec(server.root)))
        question = claims(["Refunds take 5 days."], ["Refunds take 5 days."])
        first, second = (asyncio.run(judge.ask(question)) for _ in range(2))
        assert len(server.requests) == 1
    assert first.verdicts[0].partial_credit == second.verdicts[0].partial_credit == pytest.approx(0.8)


def test_partial_credit_that_a_model_writes_itself_is_not_believed() -> None:
    verdict = {"partial_credit": 1.0, "number": 1, "reason": "so", "verdict": "unmentioned"}
    text = json.dumps({"partial_credit": 1.0, "verdicts": [verdict]})
    with judge_server(text) as server:
        found = asked(server)
    assert (found.partial_credit, found.verdicts[0].partial_credit) == (None, None)


def test_a_server_without_logits_judges_all_or_nothing() -> None:
    with judge_server({"verdicts": [{"number": 1, "reason": "so", "verdict": "supported"}]}) as server:
        found = asked(server)
    assert (found.verdicts[0].verdict, found.verdicts[0].partial_credit) == ("supported", None)


def test_the_thoughts_of_a_model_are_not_taken_for_its_verdict() -> None:
    reply = [
        '{"verdicts": [{"number": 1, "reason": "so", "verdict": "',
        ("supported", {"supported": 0.7, "un": 0.3}),
        '"}]}',
    ]
    sent: Any = with_logits("The statement is supported. ", *reply)
    body = json.loads(sent.body)
    body["choices"][0]["message"]["content"] = body["choices"][0]["message"]["content"].removeprefix(
        "The statement is supported. "
    )
    with judge_server(type(sent)(200, json.dumps(body).encode())) as server:
        assert asked(server).verdicts[0].partial_credit == pytest.approx(0.7)


def test_a_character_that_is_two_tokens_does_not_move_the_verdict() -> None:
    sent: Any = verdicts({"supported": 0.7, "un": 0.3})
    body = json.loads(sent.body)
    choice_sent = body["choices"][0]
    tokens = choice_sent["logprobs"]["content"]
    before, after = tokens[2]["token"].split('"so"')
    first, last = "é".encode()
    pieces = [list(f'{before}"'.encode()), [first], [last], list(f'"{after}'.encode())]
    tokens[2:3] = [{"token": "?", "bytes": piece, "logprob": 0.0, "top_logprobs": []} for piece in pieces]
    choice_sent["message"]["content"] = choice_sent["message"]["content"].replace('"so"', '"é"')
    with judge_server(type(sent)(200, json.dumps(body).encode())) as server:
        found = asked(server).verdicts[0]
    assert (found.reason, found.partial_credit) == ("é", pytest.approx(0.7))


def test_the_model_is_held_to_the_schema_and_to_brief_reasons() -> None:
    with judge_server(verdicts({"supported": 1.0})) as server:
        asked(server)
        body = server.requests[0].body
    assert body["temperature"] == 0
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["$defs"]["ClaimVerdict"]["properties"]["reason"]["maxLength"] == 200
    assert "maxLength" not in server.requests[0].prompt


def test_samples_after_the_first_are_free_to_differ() -> None:
    with judge_server(choice({"C": 1.0})) as server:
        evaluated(Factuality(samples=3), server)
        temperatures = [request.body.get("temperature") for request in server.requests]
    assert sorted(temperatures, key=str) == [0, None]  # two agree, so that the third need not be asked


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (failure(400, "request (9000 tokens) exceeds", "exceed_context_size_error"), "give it a larger `context`"),
        (failure(401, "Invalid API Key tellnobody"), "refuses the key"),
        (failure(404, "File Not Found"), "answers to no chat at this address"),
        (failure(500, "out of memory"), "HTTP 500, out of memory"),
        (failure(503, "Loading model"), "Loading model"),
        (cut(), "cannot be reached, or broke off"),
        ("not JSON at all", "gave no usable reply"),
        (type(cut())(200, b'{"choices": []}'), "not a completion"),
        (type(cut())(200, b"<html>"), "not a completion"),
        (
            type(cut())(200, b'{"choices": [{"message": {"content": "{}"}, "logprobs": {"content": [3]}}]}'),
            "not a completion",
        ),
    ],
)
def test_whatever_goes_wrong_is_an_error_with_the_judges_name(answer: Any, said: str) -> None:
    with judge_server(answer) as server, pytest.raises(JudgeFailed) as raised:
        asked(server, LocalEndpoint(LocalSpec(server.root, api_key="tellnobody")))
    assert said in str(raised.value)
    assert str(raised.value).startswith(f"local:{server.root}")
    assert "tellnobody" not in str(raised.value)


def test_a_server_that_is_not_there_is_an_error() -> None:
    with judge_server() as server:
        pass
    with pytest.raises(JudgeFailed, match="cannot be reached"):
        asked(server)


@contextmanager
def model_list(answer: bytes) -> Iterator[str]:
    """A server that only says which model it has."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_answers_of_another_model_at_the_same_address_are_others() -> None:
    meta = {"n_params": 494, "size": 491, "n_vocab": 151}
    with model_list(json.dumps({"data": [{"id": "qwen.gguf", "meta": meta}]}).encode()) as address:
        assert LocalEndpoint(LocalSpec(address)).parameters["model"] == ["qwen.gguf", 494, 491, 151]


@pytest.mark.parametrize("answer", [b"", b"{}", b'{"data": []}', b'{"data": [3]}', b"[]", b'{"data": 5}'])
def test_a_server_that_does_not_say_what_its_model_is_can_be_asked(answer: bytes) -> None:
    with model_list(answer) as address:
        assert "model" not in LocalEndpoint(LocalSpec(address)).parameters


def refused(named: Any) -> str:
    with pytest.raises(UsageError) as raised:
        SharedJudges().panel(named)
    return str(raised.value)


def test_a_file_that_is_missing_or_no_model_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    no_model = tmp_path / "notes.gguf"
    no_model.write_bytes(b"GGU")
    assert "does not exist" in refused(f"local:{tmp_path}/none.gguf")
    assert "is not a GGUF file" in refused(f"local:{no_model}")
    assert "cannot be read" in refused(f"local:{tmp_path}")
    assert "needs a model file" in refused("local:")
    assert "must be an address" in refused("local:http://")
    assert "must hold no key" in refused("local:http://me:secret@127.0.0.1/")


def test_a_missing_package_is_named_by_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF and more")
    assert "pip install 'proctor[local]'" in refused(f"local:{model}")


def test_the_content_of_a_model_file_counts_and_not_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    for name, content in (("a.gguf", b"GGUF one"), ("b.gguf", b"GGUF one"), ("c.gguf", b"GGUF two")):
        (tmp_path / name).write_bytes(content)
    one, same, other = (LocalEndpoint(LocalSpec(tmp_path / name)).parameters for name in ("a.gguf", "b.gguf", "c.gguf"))
    assert one == same != other


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"model": "openai:gpt-5", "threads": 2}, "judge.threads has no meaning for the judge openai:gpt-5"),
        ({"model": "embedded", "context": 4096}, "judge.context has no meaning"),
        ({"model": "local:m.gguf", "base_url": "http://127.0.0.1:1"}, "judge.base_url has no meaning"),
        ({"model": "local:http://127.0.0.1:1", "threads": 2}, "judge.threads has no meaning"),
        ({"model": "local:m.gguf", "threads": 0}, "judge.threads must be at least 1"),
        ({"model": "local:m.gguf", "context": 3}, "judge.context must be at least 256"),
    ],
)
def test_options_that_mean_nothing_for_a_judge_are_refused(named: Any, said: str) -> None:
    assert said in refused(named)


def test_options_reach_the_model_file() -> None:
    options = {"threads": 3, "context": 2048, "max_tokens": 99, "temperature": 0.1, "timeout": 5, "concurrency": 2}
    (member,) = read_panel({"model": "local:m.gguf", **options}).members
    assert member.model == LocalSpec(Path("m.gguf"), 3, 2048, slots=2, temperature=0.1, max_tokens=99)
    assert (member.timeout, member.limits.first, member.limits.most) == (5, 2, 2)
    (usual,) = read_panel("local:m.gguf").members
    assert (usual.timeout, usual.limits.first, usual.limits.most) == (600, 1, 1)


def test_threads_are_one_on_a_build_server_and_as_many_as_the_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv("PROCTOR_LOCAL_THREADS", raising=False)
    assert default_threads() == 1
    monkeypatch.setenv("PROCTOR_LOCAL_THREADS", "7")
    assert default_threads() == 7
    monkeypatch.delenv("CI")
    monkeypatch.delenv("PROCTOR_LOCAL_THREADS")
    assert default_threads() >= 1


@pytest.mark.parametrize("given", ["0", "-1", "two", "1.5", "²"])
def test_a_number_of_threads_that_is_none_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_LOCAL_THREADS", given)
    with pytest.raises(UsageError, match="PROCTOR_LOCAL_THREADS"):
        default_threads()
