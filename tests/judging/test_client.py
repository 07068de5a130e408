from __future__ import annotations

import asyncio

import openai
import pytest
from judge_server import judge_server

from proctor.base.errors import JudgeFailed
from proctor.cases.suite import NamedData
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.evaluators.prompt_evaluators import create_llm_evaluator

ANSWER = Evaluable(eval_output=[NamedData("output", "Yes, sir. {eval_input} \ud800")])


def scored(url: str, *, asynchronous: bool = False) -> Evaluation | None:
    kind = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    client = kind(base_url=url, api_key="sk-of-the-client")
    return asyncio.run(create_llm_evaluator("Tone", "Rate {eval_output}.", model="small:1b", client=client)(ANSWER))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_prompt_goes_to_the_address_of_its_client_with_its_key_and_nowhere_else(asynchronous: bool) -> None:
    with judge_server({"reasoning": "kind", "score": 0.9}) as server:
        evaluation = scored(server.url, asynchronous=asynchronous)
    assert evaluation is not None
    assert (evaluation.score, evaluation.reasoning) == (0.9, "kind")
    (asked,) = server.requests
    assert asked.body["model"] == "small:1b"
    assert {name.lower(): value for name, value in asked.headers.items()}["authorization"] == "Bearer sk-of-the-client"
    assert "Yes, sir" in asked.prompt
    assert "Yes, sir" not in asked.system
    assert "sk-of-the-client" not in str(evaluation.details)


def test_a_reply_without_a_score_is_asked_for_once_more_and_then_an_error() -> None:
    with judge_server("I would say it is quite good.") as server, pytest.raises(JudgeFailed):
        scored(server.url)
    assert len(server.requests) == 2
