"""The exceptions that the real clients of model providers raise, and whose failure they are."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import openai
import pytest
from engine_helpers import case, only, run, suite
from provider_contract import check_missing_key, check_provider_errors, check_refused, unused_url
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from refusing_provider import ANTHROPIC, OPENAI, RefusingProvider

from proctor.results.score import Outcome

MESSAGES: Any = [{"role": "user", "content": "hello"}]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def ask_openai(url: str, **key: Any) -> Any:
    with openai.OpenAI(base_url=f"{url}/v1", max_retries=0, **key) as client:
        return client.chat.completions.create(model="m", messages=MESSAGES)


def ask_openai_async(url: str) -> Any:
    async def ask() -> Any:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", max_retries=0, api_key="k") as client:
            return await client.responses.create(model="m", input="hello")

    return asyncio.run(ask())


def ask_anthropic(url: str, **key: Any) -> Any:
    with anthropic.Anthropic(base_url=url, max_retries=0, **key) as client:
        return client.messages.create(model="m", max_tokens=9, messages=MESSAGES)


def ask_pydantic_ai(url: str) -> Any:
    async def ask() -> Any:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", max_retries=0, api_key="k") as client:
            model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
            return await Agent(model).run("hello")

    return asyncio.run(ask())


def ask_pydantic_ai_with_claude(url: str) -> Any:
    async def ask() -> Any:
        async with anthropic.AsyncAnthropic(base_url=url, max_retries=0, api_key="k") as client:
            model = AnthropicModel("m", provider=AnthropicProvider(anthropic_client=client))
            return await Agent(model).run("hello")

    return asyncio.run(ask())


def test_openai(provider: RefusingProvider) -> None:
    check_provider_errors(provider, OPENAI, lambda: ask_openai(provider.url, api_key="k"))
    check_provider_errors(provider, OPENAI, lambda: ask_openai_async(provider.url))
    check_refused(lambda: ask_openai(unused_url(), api_key="k"))
    check_missing_key(lambda: ask_openai(provider.url), "OPENAI_API_KEY is not set")


def test_anthropic(provider: RefusingProvider) -> None:
    check_provider_errors(provider, ANTHROPIC, lambda: ask_anthropic(provider.url, api_key="k"))
    check_refused(lambda: ask_anthropic(unused_url(), api_key="k"))
    check_missing_key(lambda: ask_anthropic(provider.url), "the API key or login is missing")


def test_pydantic_ai(provider: RefusingProvider) -> None:
    check_provider_errors(provider, OPENAI, lambda: ask_pydantic_ai(provider.url))
    check_provider_errors(provider, ANTHROPIC, lambda: ask_pydantic_ai_with_claude(provider.url))
    check_refused(lambda: ask_pydantic_ai(unused_url()))
    check_missing_key(lambda: Agent("openai:gpt-5").run_sync("hello"), "OPENAI_API_KEY is not set")


@pytest.mark.parametrize("name", ["wrong key", "no permission", "no quota", "payment"])
def test_a_trial_that_is_refused_is_an_error_after_one_attempt(provider: RefusingProvider, name: str) -> None:
    provider.refusal = OPENAI[name]
    before = provider.requests
    found = run(suite([case("c")]), agent=lambda question: ask_openai(provider.url, api_key="k"))
    assert (only(found).outcome, found[1].exit_code, provider.requests - before) == (Outcome.ERROR, 4, 1)
