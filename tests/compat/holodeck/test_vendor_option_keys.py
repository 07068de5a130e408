"""Keys of tools and of the vendors' blocks, as they show in what the model is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from declared_projects import FUNCTIONS, last_reply, run_project
from judge_server import status
from scripted_model import Conversation, TextReply, ToolCallReply, calls, model_server, says

VENDORS = [("openai", "openai", "gpt-5"), ("claude", "anthropic", "claude-sonnet-4-6")]


def run_agent(folder: Path, script: Any, vendor: tuple[str, str, str], block: dict[str, Any], **more: Any) -> Any:
    """The server that was asked by an agent of this vendor whose block says so."""
    key, provider, name = vendor
    with model_server(script) as server:
        url = server.root if provider == "anthropic" else server.url
        model = {"provider": provider, "name": name, "endpoint": url, "max_tokens": 5000}
        run_project(folder, "", model=model, **{key: block}, **more)
    return server


def names(body: dict[str, Any]) -> list[str]:
    return [tool.get("function", tool)["name"] for tool in body["tools"]]


def silent(talk: Conversation) -> TextReply:
    return says("done")


@pytest.mark.parametrize("vendor", VENDORS)
def test_effort_is_sent_to_either_vendor_and_temperature_is_not(tmp_path: Path, vendor: tuple[str, str, str]) -> None:
    body = run_agent(tmp_path, silent, vendor, {"effort": "high"}).requests[0].body
    told = body["reasoning_effort"] if vendor[0] == "openai" else body["output_config"]["effort"]
    assert told == "high"
    assert "temperature" not in body, "models that think take none"


@pytest.mark.parametrize("vendor", VENDORS)
def test_max_turns_holds_for_either_vendor(tmp_path: Path, vendor: tuple[str, str, str]) -> None:
    server = run_agent(tmp_path, lambda talk: calls("rate", city="Oslo"), vendor, {"max_turns": 2})
    assert len(server.requests) == 2


@pytest.mark.parametrize("vendor", VENDORS)
def test_fallback_model_is_asked_where_the_first_cannot_be(tmp_path: Path, vendor: tuple[str, str, str]) -> None:
    def script(talk: Conversation) -> Any:
        return says("done") if talk.asked.body["model"] == "spare" else status(404)

    server = run_agent(tmp_path, script, vendor, {"fallback_model": "spare"})
    assert server.requests[-1].body["model"] == "spare"


@pytest.mark.parametrize("vendor", VENDORS)
def test_disallowed_tools_are_not_offered_by_either_vendor(tmp_path: Path, vendor: tuple[str, str, str]) -> None:
    assert names(run_agent(tmp_path, silent, vendor, {"disallowed_tools": ["rate"]}).requests[0].body) == ["monthly"]


@pytest.mark.parametrize(("enabled", "told"), [(True, 2000), (False, None)])
def test_extended_thinking_is_sent_if_it_is_enabled(tmp_path: Path, enabled: bool, told: int | None) -> None:
    block = {"extended_thinking": {"enabled": enabled, "budget_tokens": 2000}}
    body = run_agent(tmp_path, silent, VENDORS[1], block).requests[0].body
    assert body.get("thinking", {}).get("budget_tokens") == told


def test_a_function_is_a_tool_under_the_name_that_the_file_gives_it(tmp_path: Path) -> None:
    tool = {
        "name": "price",
        "type": "function",
        "file": "tools.py",
        "function": "rate",
        "description": "What it costs.",
        "parameters": {"city": {"type": "string", "enum": ["Oslo"]}},
    }

    def script(talk: Conversation) -> TextReply | ToolCallReply:
        return says("done") if talk.results else calls("price", city="Oslo")

    with model_server(script) as server:
        reply = last_reply(tmp_path, server.url, tools=[tool])
    [offered] = server.requests[0].body["tools"]
    assert (offered["function"]["name"], offered["function"]["description"]) == ("price", "What it costs.")
    assert offered["function"]["parameters"]["properties"]["city"]["enum"] == ["Oslo"]
    assert reply.tool_calls[0].result == {"city": "Oslo", "rate": 4}


def test_a_prompt_may_stand_in_a_file_and_say_what_it_takes(tmp_path: Path) -> None:
    (tmp_path / "sum_up.txt").write_text("In one line: {{text}}")
    parameters = {"text": {"type": "string", "description": "A story"}}
    tool = {
        "name": "sum_up",
        "type": "prompt",
        "description": "Sums up.",
        "file": "sum_up.txt",
        "parameters": parameters,
    }

    def script(talk: Conversation) -> TextReply | ToolCallReply:
        if not talk.tools:
            return says(f"[{talk.user}]")
        return says(talk.results[-1]) if talk.results else calls("sum_up", text="long")

    with model_server(script) as server:
        reply = last_reply(tmp_path, server.url, tools=[tool])
    offered = server.requests[0].body["tools"][0]["function"]
    assert reply.text == "[In one line: long]"
    assert offered["description"] == "Sums up."
    assert offered["parameters"]["properties"] == parameters


def test_defer_loading_hides_a_tool_of_any_type_until_it_is_searched_for(tmp_path: Path) -> None:
    (tmp_path / "faq.md").write_text("A refund takes 30 days.")
    store = {"name": "faq", "type": "vectorstore", "source": "faq.md", "embedding_model": "e"}
    prompt = {"name": "sum_up", "type": "prompt", "template": "x"}
    tools = [{**tool, "defer_loading": True} for tool in (FUNCTIONS[0], prompt, store)]
    with model_server(silent) as server:
        last_reply(tmp_path, server.url, tools=[*tools, FUNCTIONS[1]])
    assert {"rate", "sum_up", "faq_search", "monthly"} & set(names(server.requests[0].body)) == {"monthly"}


def test_an_embedding_provider_is_asked_where_it_is_and_with_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDING_KEY", "sk-embeds")
    (tmp_path / "faq.md").write_text("A refund takes 30 days.")
    store = {"name": "faq", "type": "vectorstore", "source": "faq.md"}

    def script(talk: Conversation) -> TextReply | ToolCallReply:
        return says("done") if talk.results else calls("faq_search", query="refund")

    with model_server(script) as server, model_server(silent) as other:
        embedder = {"provider": "openai", "name": "e5", "endpoint": other.url, "api_key": "${EMBEDDING_KEY}"}
        last_reply(tmp_path, server.url, tools=[store], embedding_provider=embedder)
    assert {asked.body["model"] for asked in other.requests} == {"e5"}
    assert {asked.headers["authorization"] for asked in other.requests} == {"Bearer sk-embeds"}
