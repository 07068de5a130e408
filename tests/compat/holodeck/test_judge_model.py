"""HoloDeck's way to write a judge."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.base.errors import UsageError
from proctor.judging.providers import ModelSpec
from proctor.judging.specs import read_panel


def test_a_model_is_named_as_holodeck_names_it() -> None:
    (member,) = read_panel({"provider": "azure_openai", "name": "gpt-4o"}).members
    assert member.model == ModelSpec("azure", "gpt-4o")


def test_every_option_reaches_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_KEY", "azure's key")
    written = {
        "provider": "azure_openai",
        "name": "judge",
        "endpoint": "https://mine.openai.azure.com",
        "api_key": "${AZURE_KEY}",
        "api_version": "2025-04-01-preview",
        "temperature": 0.0,
        "max_tokens": 500,
    }
    (member,) = read_panel(written).members
    assert member.model == ModelSpec(
        "azure", "judge", "https://mine.openai.azure.com", "azure's key", "2025-04-01-preview", 0.0, None, 500
    )
    assert "azure's key" not in str(member.identity)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"provider": "openai"}, "needs 'name'"),
        ({"provider": "openai", "name": "gpt-5", "api_key": "***"}, "environment variable"),
        ({"provider": "openai", "name": "gpt-5", "api_key": "${NO_SUCH_KEY}"}, "api_key uses ${NO_SUCH_KEY}"),
        ({"provider": "openai", "name": "gpt-5", "modle": 1}, "judge.modle is not a known key"),
    ],
)
def test_what_is_wrong_is_said(written: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_panel(written)
    assert said in str(caught.value)
