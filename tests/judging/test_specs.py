"""How judges are named, and that the same name means the same judge."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from judge_server import judge_server, status
from pydantic import BaseModel

from proctor.base.errors import JudgeFailed, UsageError
from proctor.judging.budget import Budget
from proctor.judging.judge import Question
from proctor.judging.judges import Judges
from proctor.judging.panel import Panel
from proctor.judging.providers import ModelSpec
from proctor.judging.specs import JudgeSpec, PanelSpec, read_panel


class Verdict(BaseModel):
    verdict: str


QUESTION = Question("test", 1, "Judge.", {"answer": "Paris."}, Verdict)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_API_KEY",
        "GOOGLE_API_KEY",
        "GEMINI_API_KEY",
        "VLLM_BASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)


def model(named: Any) -> ModelSpec:
    (member,) = read_panel(named).members
    assert isinstance(member.model, ModelSpec)
    return member.model


def wrong(named: Any) -> str:
    with pytest.raises(UsageError) as caught:
        Judges().panel(named)
    return str(caught.value)


@pytest.mark.parametrize(
    ("named", "provider", "name"),
    [
        ("openai:gpt-5-mini", "openai", "gpt-5-mini"),
        (" OpenAI:gpt-5-mini ", "openai", "gpt-5-mini"),
        ("gemini:gemini-2.5-flash", "google", "gemini-2.5-flash"),
        ("ollama:qwen3:4b", "ollama", "qwen3:4b"),
        ("openrouter:openai/gpt-5-mini", "openrouter", "openai/gpt-5-mini"),
        ("bedrock:us.anthropic.claude-v1:0", "bedrock", "us.anthropic.claude-v1:0"),
        ({"model": "azure:my-deployment"}, "azure", "my-deployment"),
        ("azure_openai:gpt-4o", "azure", "gpt-4o"),
    ],
)
def test_a_model_is_named_as_people_name_it(named: Any, provider: str, name: str) -> None:
    spec = model(named)
    assert (spec.provider, spec.model) == (provider, name)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("", "provider:model"),
        ("gpt-5-mini", "provider:model"),
        ("openai:", "provider:model"),
        ("opanai:gpt-5", "did you mean 'openai'?"),
        ("gateway/openai:gpt-5", "openai:gpt-5"),
        ("local:/nowhere/model.gguf", "ollama:MODEL"),
        (7, "not a number"),
        (None, "not nothing"),
        (["openai:gpt-5"], "not a list"),
        ({"model": "openai:gpt-5", "tempature": 1}, "did you mean 'temperature'?"),
        ({"model": 5}, "judge.model must be text"),
        ({"model": "openai:gpt-5", "samples": 0}, "judge.samples must be at least 1"),
        ({"model": "openai:gpt-5", "samples": True}, "judge.samples must be a whole number"),
        ({"model": "openai:gpt-5", "temperature": float("nan")}, "judge.temperature must be a finite number"),
        ({"model": "openai:gpt-5", "timeout": 0}, "judge.timeout must be more than 0"),
        ({"model": "openai:gpt-5", "jury": ["rules"]}, "judge.jury cannot be combined with model"),
        ({"model": "rules", "temperature": 1}, "judge.temperature does not apply to the judge rules"),
        ({"jury": []}, "judge.jury is empty"),
        ({"jury": ["rules", "opanai:x"]}, "judge.jury[1]"),
        ({"jury": [{"jury": ["rules"], "samples": 3}]}, "judge.jury[0] must name one judge"),
        ({"jury": ["rules"], "band": 0.1}, "judge.band is not a known key"),
        ({"cascade": ["rules"], "band": 2}, "judge.band must be at most 1"),
        ({"model": "openai:gpt-5", "base_url": "localhost:1"}, "judge.base_url must start with http"),
        ({"model": "openai:gpt-5", "base_url": "http://me:secret@host/v1"}, "must not contain a key or password"),
        ({"model": "deepseek:deepseek-chat", "base_url": "http://127.0.0.1:9/v1"}, "write openai:MODEL"),
        ({"model": "openai:gpt-5", "api_key_env": "sk-1234-secret"}, "not the key itself"),
        ({"model": "openai:gpt-5", "api_key_env": "NO_SUCH_KEY"}, "NO_SUCH_KEY, which is not set"),
        ({"model": "openai:gpt-5", "api_key": "x"}, "did you mean 'api_key_env'?"),
        ({"temperature": 1}, "judge.temperature needs a model"),
        ("openai:gpt-5", "set OPENAI_API_KEY"),
        ("litellm:gpt-4o", "set base_url"),
        ("vllm:qwen", "set base_url, or set VLLM_BASE_URL"),
        ("google:gemini-2.5-flash", "[google]"),
    ],
)
def test_an_unusable_name_is_told_what_is_wrong(named: Any, said: str) -> None:
    complaint = wrong(named)
    assert said in complaint
    assert "secret" not in complaint


def test_all_that_is_wrong_is_said_at_once() -> None:
    complaint = wrong({"model": "opanai:x", "samples": "three", "timout": 5})
    assert len(complaint.splitlines()) == 3


def test_options_reach_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "the key in my variable")
    named = {
        "model": "openai:qwen",
        "base_url": "http://127.0.0.1:9/v1/",
        "api_key_env": "MY_KEY",
        "temperature": 0.2,
        "top_p": 0.9,
        "max_tokens": 99,
        "timeout": 5,
        "requests_per_minute": 10,
        "tokens_per_minute": 1000,
        "concurrency": 2,
        "samples": 3,
    }
    panel = read_panel(named)
    (member,) = panel.members
    assert panel.samples == 3
    assert member.model == ModelSpec(
        "openai", "qwen", "http://127.0.0.1:9/v1", "the key in my variable", None, 0.2, 0.9, 99
    )
    assert "the key" not in repr(member)
    limits = member.limits
    assert (limits.requests_per_minute, limits.tokens_per_minute, limits.maximum, limits.initial) == (10, 1000, 2, 2)
    assert member.timeout == 5


def test_the_same_name_means_the_same_judge() -> None:
    judges = Judges()
    named = {"model": "openai:a", "base_url": "http://127.0.0.1:9/v1"}
    (one,) = judges.panel(named).judges
    (other,) = judges.panel(dict(reversed(named.items()))).judges
    (juror, _) = judges.panel({"jury": [named, "rules"]}).judges
    (different,) = judges.panel({**named, "temperature": 0.5}).judges
    assert one is other is juror
    assert different is not one


def test_judges_at_one_address_share_one_limit() -> None:
    async def ask(*names: Any) -> None:
        panels = [judges.panel(name) for name in names]
        await asyncio.gather(*(panel.judges[0].ask(QUESTION) for panel in panels))

    with judge_server({"verdict": "yes"}) as server:
        judges = Judges()
        names = [{"model": f"openai:m{n}", "base_url": server.url, "concurrency": 1} for n in range(5)]
        asyncio.run(ask(*names))
    assert len(server.requests) == 5
    assert server.peak == 1


def test_a_jury_and_a_cascade_are_what_they_say() -> None:
    judges = Judges()
    model = {"model": "openai:a", "base_url": "http://127.0.0.1:9/v1"}
    cascade = judges.panel({"cascade": ["rules", model], "band": 0.3, "samples": 3})
    assert cascade.name == "rules then openai:a"
    assert (cascade.mode, cascade.band, cascade.samples) == ("cascade", 0.3, 3)
    assert judges.panel({"jury": ["rules", model]}).name == "rules + openai:a"


def test_a_judge_or_a_panel_is_taken_as_it_is() -> None:
    judges = Judges()
    (judge,) = judges.panel("rules").judges
    panel = Panel((judge,), samples=3)
    assert judges.panel(panel) == panel
    assert judges.panel(judge) == Panel((judge,))


def test_options_without_a_model_are_no_judge() -> None:
    assert read_panel({"samples": 3}) == PanelSpec(samples=3)
    with pytest.raises(UsageError, match="no model"):
        Judges().panel({"samples": 3})


def test_the_former_name_of_the_rules_works_with_a_notice() -> None:
    with pytest.warns(FutureWarning, match="'embedded' is now called 'rules'"):
        assert read_panel("embedded") == read_panel("rules")


def test_a_budget_is_shared_by_all_judges() -> None:
    budget = Budget(0.0001)
    with judge_server({"verdict": "yes"}) as server:
        judges = Judges(budget=budget)
        first = judges.panel({"model": "openai:gpt-4o", "base_url": server.url}).judges[0]
        second = judges.panel({"model": "openai:gpt-4o-mini", "base_url": server.url}).judges[0]
        asyncio.run(first.ask(QUESTION))
        with pytest.raises(JudgeFailed, match="budget"):
            asyncio.run(second.ask(QUESTION))
    assert budget.spent > 0


def test_ollama_is_found_where_it_usually_is_and_where_it_is_said_to_be() -> None:
    with judge_server(status(404, "model 'qwen3' not found")) as server:
        judges = Judges()
        judge = judges.panel({"model": "ollama:qwen3", "base_url": server.root}).judges[0]
        with pytest.raises(JudgeFailed, match="'qwen3' not found"):
            asyncio.run(judge.ask(QUESTION))
    assert server.requests[0].path == "/v1/chat/completions"
    assert read_panel("ollama:qwen3").members == (JudgeSpec(ModelSpec("ollama", "qwen3")),)
