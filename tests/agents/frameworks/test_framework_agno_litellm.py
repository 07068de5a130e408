"""What LiteLLM raises if its provider refuses, and whose failure it is. It is tested next to Agno."""

from __future__ import annotations

from typing import Any

import pytest
from provider_contract import check_missing_key, check_provider_errors, check_refused, unused_url
from refusing_provider import ANTHROPIC, OPENAI, RefusingProvider

pytest.importorskip("litellm", reason="litellm is part of Agno's environment: make test-all")

import litellm

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def ask(model: str, url: str, **key: Any) -> Any:
    messages = [{"role": "user", "content": "hello"}]
    return litellm.completion(model, messages, base_url=url, max_retries=0, num_retries=0, **key)


def test_litellm_with_openai(provider: RefusingProvider) -> None:
    check_provider_errors(provider, OPENAI, lambda: ask("openai/m", f"{provider.url}/v1", api_key="k"))
    check_refused(lambda: ask("openai/m", f"{unused_url()}/v1", api_key="k"))
    check_missing_key(lambda: ask("openai/m", f"{provider.url}/v1"), "OPENAI_API_KEY is not set")


def test_litellm_with_anthropic(provider: RefusingProvider) -> None:
    check_provider_errors(provider, ANTHROPIC, lambda: ask("anthropic/m", provider.url, api_key="k"))
    check_refused(lambda: ask("anthropic/m", unused_url(), api_key="k"))
