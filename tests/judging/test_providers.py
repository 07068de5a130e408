"""Real clients of real providers against a server that misbehaves: each fault ends in one known way."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from judge_server import (
    JudgeServer,
    ModelRequest,
    RawResponse,
    Script,
    TextResponse,
    cut,
    filtered,
    garbles,
    half_json,
    hangs,
    judge_server,
    limited,
    no_choices,
    refuses,
    says,
    status,
    unauthorized,
    web_page,
)

from proctor.base.errors import UsageError
from proctor.base.installation import install_command
from proctor.judging.judge import Completion, EndpointFailed, Prompt
from proctor.judging.providers import ModelSpec, ProviderEndpoint

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"verdict": {"type": "string"}, "reason": {"type": "string", "default": ""}},
    "required": ["verdict"],
}
PROMPT = Prompt("Judge.", "The material.")


def openai(server: JudgeServer, model: str = "gpt-4o", **rest: Any) -> ProviderEndpoint:
    return ProviderEndpoint(ModelSpec("openai", model, base_url=server.url, **rest))


def anthropic(server: JudgeServer) -> ProviderEndpoint:
    return ProviderEndpoint(ModelSpec("anthropic", "claude-sonnet-5", base_url=server.root))


BOTH = pytest.mark.parametrize("client", [openai, anthropic])


def complete(endpoint: ProviderEndpoint, timeout: float = 30.0, prompt: Prompt = PROMPT) -> Completion:
    return asyncio.run(endpoint.complete(prompt, SCHEMA, timeout=timeout))


def failure(script: Script, client: Any = openai, timeout: float = 30.0) -> tuple[EndpointFailed, JudgeServer]:
    with judge_server(script) as server, pytest.raises(EndpointFailed) as caught:
        complete(client(server), timeout)
    assert len(server.requests) == 1, "the SDK must not retry by itself"
    return caught.value, server


@BOTH
def test_a_completion_comes_with_what_it_used(client: Any) -> None:
    with judge_server({"verdict": "yes"}) as server:
        completion = complete(client(server))
    assert json.loads(completion.text) == {"verdict": "yes"}
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == (100, 20)
    assert completion.usage.model_calls == 1
    assert completion.usage.cost_usd is not None
    assert 0 < completion.usage.cost_usd < 0.01
    asked = server.requests[0]
    assert (asked.system, asked.prompt) == ("Judge.", "The material.")


def test_what_a_model_costs_is_not_known_rather_than_nothing() -> None:
    with judge_server("{}") as server:
        assert complete(openai(server, "some-finetune")).usage.cost_usd is None
    with judge_server(says("{}", usage=None)) as server:
        used = complete(openai(server)).usage
    assert (used.input_tokens, used.output_tokens, used.cost_usd, used.model_calls) == (None, None, None, 1)


@BOTH
@pytest.mark.parametrize(
    "fault",
    [status(500), status(502), status(503), status(529), cut(), garbles(), half_json()],
    ids=["500", "502", "503", "529", "cut", "garbled", "half"],
)
def test_a_fault_of_the_server_is_worth_another_try(client: Any, fault: Any) -> None:
    failed, _ = failure(fault, client)
    assert failed.transient
    assert not failed.limited


def test_an_answer_without_choices_is_worth_another_try() -> None:
    assert failure(no_choices())[0].transient


@BOTH
def test_a_server_that_hangs_is_given_up_in_time(client: Any) -> None:
    failed, _ = failure(hangs(), client, timeout=0.3)
    assert failed.transient
    assert "in time" in str(failed)


@BOTH
def test_a_limit_is_told_apart_with_the_wait_it_asks_for(client: Any) -> None:
    assert failure(limited(), client)[0].limited
    assert failure(limited("7"), client)[0].retry_after == 7
    in_a_minute, _ = failure(limited(formatdate(time.time() + 60, usegmt=True)), client)
    assert in_a_minute.limited
    assert in_a_minute.retry_after is not None
    assert 0 < in_a_minute.retry_after <= 60


def test_an_empty_account_is_no_limit_to_wait_for() -> None:
    body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    failed, _ = failure(RawResponse(429, json.dumps(body).encode()))
    assert not failed.transient
    assert not failed.limited
    assert "quota" in str(failed)


@BOTH
@pytest.mark.parametrize(
    "fault",
    [unauthorized(), status(403, "not allowed"), status(404, "no such model"), status(400, "bad request")],
    ids=["401", "403", "404", "400"],
)
def test_a_mistake_of_ours_is_not_tried_again(client: Any, fault: Any) -> None:
    failed, _ = failure(fault, client)
    assert not failed.transient


def test_a_page_that_is_no_answer_says_to_check_the_address() -> None:
    failed, _ = failure(web_page())
    assert not failed.transient
    assert "check the address" in str(failed)


def test_a_refused_connection_is_a_transient_failure() -> None:
    with judge_server("{}") as server:
        endpoint = openai(server)
    with pytest.raises(EndpointFailed, match="cannot be reached") as caught:
        complete(endpoint)
    assert caught.value.transient


def test_no_key_is_in_the_message_of_a_refused_one() -> None:
    with (
        judge_server(unauthorized("Incorrect API key: my own secret key and sk-proj-***1234")) as server,
        pytest.raises(EndpointFailed) as caught,
    ):
        complete(openai(server, api_key="my own secret key"))
    assert server.requests[0].headers["authorization"] == "Bearer my own secret key"
    assert "my own" not in str(caught.value)
    assert "1234" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("where", ["here", "environment"])
def test_a_key_that_the_server_repeats_is_not_in_the_completion(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    key = "a key of no known make"

    def repeats(asked: ModelRequest) -> TextResponse:
        sent = asked.headers["authorization"].removeprefix("Bearer ")
        return says(json.dumps({"verdict": "yes", "reason": f"you sent {sent}"}), model=f"model of {sent}")

    with judge_server(repeats) as server:
        if where == "here":
            completion = complete(openai(server, api_key=key))
        else:
            monkeypatch.setenv("OPENAI_API_KEY", key)
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            completion = complete(ProviderEndpoint(ModelSpec("openai", "gpt-4o")))
    masked = "[secret: 22 characters]" if where == "here" else "[secret: OPENAI_API_KEY, 22 characters]"
    assert json.loads(completion.text) == {"verdict": "yes", "reason": f"you sent {masked}"}
    assert completion.model == f"model of {masked}"


@pytest.mark.parametrize("choices", ['"none"', "[1]", "[{}]", '[{"message": 3}]'])
def test_an_answer_made_of_other_things_says_to_check_the_address(choices: str) -> None:
    body = f'{{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": {choices}}}'
    failed, _ = failure(RawResponse(200, body.encode()))
    assert "not a completion; check the address" in str(failed)
    assert not failed.transient


def test_a_key_of_the_environment_goes_only_to_its_own_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-belongs-to-openai-1")
    with judge_server("{}") as server:
        complete(openai(server))
        sent_to_named_address = server.requests[0].headers["authorization"]
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        complete(ProviderEndpoint(ModelSpec("openai", "gpt-4o")))
        sent_where_the_environment_says = server.requests[1].headers["authorization"]
    assert "sk-belongs" not in sent_to_named_address
    assert sent_where_the_environment_says == "Bearer sk-belongs-to-openai-1"


@BOTH
def test_refusals_and_filters_are_told_by_the_reason_the_model_stopped(client: Any) -> None:
    with judge_server([refuses("I will not."), filtered("half a")]) as server:
        endpoint = client(server)
        refused, stopped = complete(endpoint), complete(endpoint)
    assert (refused.text, refused.finish_reason) == ("I will not.", "content_filter")
    assert stopped.finish_reason == "content_filter"


def test_the_reply_is_held_to_the_schema_where_the_model_can() -> None:
    with judge_server("{}") as server:
        complete(openai(server))
    held_to = server.requests[0].body["response_format"]
    assert held_to["type"] == "json_schema"
    assert held_to["json_schema"]["strict"] is True
    assert set(held_to["json_schema"]["schema"]["required"]) == {"verdict", "reason"}


def test_temperature_is_zero_except_where_a_model_reasons_or_samples_are_to_differ() -> None:
    with judge_server("{}") as server:
        complete(openai(server))
        complete(openai(server, "gpt-5-mini"))
        complete(openai(server, temperature=0.7))
        complete(ProviderEndpoint(ModelSpec("openai", "gpt-4o", base_url=server.url), for_sampling=True))
    assert [asked.body.get("temperature") for asked in server.requests] == [0, None, 0.7, None]


def test_a_model_that_refuses_a_setting_is_asked_without_it_and_remembered() -> None:
    def particular(asked: Any) -> Any:
        if "temperature" in asked.body:
            return status(400, "Unsupported value: 'temperature' does not support 0 with this model.")
        if asked.body.get("response_format", {}).get("type") == "json_schema":
            return status(400, "response_format of type json_schema is not supported")
        return {"verdict": "yes"}

    with judge_server(particular) as server:
        endpoint = openai(server, "unheard-of")
        complete(endpoint)
        assert len(server.requests) == 3
        complete(endpoint)
    assert len(server.requests) == 4
    assert server.requests[3].body["response_format"] == {"type": "json_object"}


def test_corrections_are_shown_as_a_conversation() -> None:
    with judge_server("{}") as server:
        complete(openai(server), prompt=Prompt("Judge.", "Material.", (("my reply", "not JSON"),)))
    said = [(each["role"], each["content"]) for each in server.requests[0].messages]
    assert said == [("system", "Judge."), ("user", "Material."), ("assistant", "my reply"), ("user", "not JSON")]


def test_one_endpoint_serves_many_requests_at_once_and_several_event_loops() -> None:
    async def many(endpoint: ProviderEndpoint) -> list[Completion]:
        return await asyncio.gather(*(endpoint.complete(PROMPT, SCHEMA, timeout=30) for _ in range(20)))

    with judge_server('{"verdict": "yes"}') as server:
        endpoint = openai(server)
        answers = [*asyncio.run(many(endpoint)), *asyncio.run(many(endpoint))]
    assert len(answers) == len(server.requests) == 40


def test_a_cancelled_request_is_cancelled() -> None:
    async def cancel() -> None:
        with judge_server(hangs()) as server:
            asking = asyncio.create_task(openai(server).complete(PROMPT, SCHEMA, timeout=60))
            while not server.requests:
                await asyncio.sleep(0.01)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    asyncio.run(cancel())


def test_missing_packages_and_keys_are_told_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="set OPENAI_API_KEY"):
        ProviderEndpoint(ModelSpec("openai", "gpt-4o"))
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(UsageError, match=re.escape(install_command("anthropic"))):
        ProviderEndpoint(ModelSpec("anthropic", "claude-sonnet-5"))
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(UsageError, match=re.escape(install_command("judge"))):
        ProviderEndpoint(ModelSpec("openai", "gpt-4o"))


_TRACED = """
import asyncio, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
from openinference.instrumentation.openai import OpenAIInstrumentor
OpenAIInstrumentor().instrument()
from pydantic_ai import Agent
Agent.instrument_all()
from proctor.judging.judge import Prompt
from proctor.judging.providers import ModelSpec, ProviderEndpoint
endpoint = ProviderEndpoint(ModelSpec("openai", "gpt-4o", base_url=sys.argv[1]))
asyncio.run(endpoint.complete(Prompt("a", "b"), {"type": "object", "properties": {}}, timeout=30))
print([span.name for span in exporter.get_finished_spans()])
"""


@pytest.mark.process
def test_a_judge_leaves_no_spans_in_the_traces_of_the_application(tmp_path: Path) -> None:
    with judge_server("{}") as server:
        run = subprocess.run(
            [sys.executable, "-c", _TRACED, server.url], capture_output=True, text=True, cwd=tmp_path, timeout=120
        )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"
    assert len(server.requests) == 1
