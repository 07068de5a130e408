"""What LangChain's models raise if their provider refuses, and whose failure it is."""

from __future__ import annotations

from typing import Any

import pytest
from provider_contract import check_missing_key, check_provider_errors, check_refused, check_trial, unused_url
from refusing_provider import OPENAI, RefusingProvider

pytest.importorskip("langchain_openai", reason="langchain has an environment of its own: make frameworks")

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)


def model(url: str, **key: Any) -> Any:
    return ChatOpenAI(model="m", base_url=f"{url}/v1", max_retries=0, **key)


def test_langchain(provider: RefusingProvider) -> None:
    key: Any = {"api_key": "k"}
    check_provider_errors(provider, OPENAI, lambda: model(provider.url, **key).invoke("hello"))
    check_refused(lambda: model(unused_url(), **key).invoke("hello"))
    check_missing_key(lambda: model(provider.url).invoke("hello"), "OPENAI_API_KEY is not set")
    check_trial(provider, OPENAI, create_agent(model(provider.url, **key), tools=[]))
