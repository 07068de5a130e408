"""What google-genai raises if its provider refuses, alone and inside Google ADK, and whose failure it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from provider_contract import check_missing_key, check_provider_errors, check_refused, check_trial, unused_url
from refusing_provider import GOOGLE, RefusingProvider

pytest.importorskip("google.adk", reason="google-adk has an environment of its own: make frameworks")

from google import genai
from google.adk.agents import LlmAgent
from google.adk.models import Gemini
from google.genai import types

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def ask(url: str, key: str | None) -> Any:
    client = genai.Client(api_key=key, http_options=types.HttpOptions(base_url=url))
    return client.models.generate_content(model="m", contents="hello")


def ask_async(url: str, key: str) -> Any:
    async def send() -> Any:
        client = genai.Client(api_key=key, http_options=types.HttpOptions(base_url=url))
        return await client.aio.models.generate_content(model="m", contents="hello")

    return asyncio.run(send())


def test_google_genai(provider: RefusingProvider) -> None:
    check_provider_errors(provider, GOOGLE, lambda: ask(provider.url, "k"))
    check_provider_errors(provider, GOOGLE, lambda: ask_async(provider.url, "k"))
    check_refused(lambda: ask(unused_url(), "k"))
    check_missing_key(lambda: ask(provider.url, None), "the API key or login is missing")


def test_google_adk(provider: RefusingProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    check_trial(provider, GOOGLE, LlmAgent(name="rates", model=Gemini(model="m", base_url=provider.url)))
