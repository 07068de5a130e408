"""What the OpenAI Agents SDK raises if its provider refuses, and whose failure it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from provider_contract import check_missing_key, check_provider_errors, check_refused, check_trial, unused_url
from refusing_provider import OPENAI, RefusingProvider

pytest.importorskip("agents.run", reason="openai-agents has an environment of its own: make frameworks")

import openai

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)


def agent(url: str) -> Any:
    set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=f"{url}/v1", max_retries=0, api_key="k")
    return Agent("rates", model=OpenAIChatCompletionsModel("m", client))


def ask(agent: Any) -> Any:
    return asyncio.run(Runner.run(agent, "hello"))


def test_openai_agents(provider: RefusingProvider) -> None:
    check_provider_errors(provider, OPENAI, lambda: ask(agent(provider.url)))
    check_refused(lambda: ask(agent(unused_url())))
    check_missing_key(lambda: ask(Agent("rates")), "OPENAI_API_KEY is not set")
    check_trial(provider, OPENAI, agent(provider.url))
