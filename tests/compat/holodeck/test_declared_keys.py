"""Each key that an agent.yaml may say about its agent has an effect, and what has none is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from declared_projects import FUNCTIONS, last_reply, project, run_project, spec_of
from hypothesis import given
from hypothesis import strategies as st
from judge_server import status
from scripted_model import Conversation, TextReply, ToolCallReply, calls, model_server, says

from proctor.base.errors import InvalidSuite
from proctor.base.installation import install_command
from proctor.cases.formats.loading import load
from proctor.cases.suite import Case, Suite, Turn
from proctor.compat.holodeck.models import DESCRIPTION_KEYS, TOOL_TYPES

KEYS = frozenset(
    """provider name endpoint api_key temperature max_tokens top_p inline file type function parameters properties
    template model source top_k chunk_size chunk_overlap vector_field embedding_model database transport command args
    env headers url timeout request_timeout is_retrieval max_turns effort permissions allowed_tools""".split()
)
NOWHERE = "http://127.0.0.1:1/v1"


def request_of(folder: Path, **more: Any) -> dict[str, Any]:
    """What the model was sent; `model` is merged with where it is."""
    with model_server(lambda talk: says("done")) as server:
        model = {"provider": "openai", "name": "gpt-4o", "endpoint": server.url, **more.pop("model", {})}
        if model["provider"] == "anthropic":
            model["endpoint"] = server.root
        last_reply(folder, "", model=model, **more)
        return server.requests[0].body


def problems(folder: Path, **more: Any) -> list[str]:
    [suite] = load([project(folder, NOWHERE, **more)])
    with pytest.raises(InvalidSuite) as caught:
        spec_of(suite)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("key", "value", "sent", "as_"),
    [
        ("name", "other", "model", "other"),
        ("temperature", 0.9, "temperature", 0.9),
        ("temperature", None, "temperature", None),
        ("max_tokens", 77, "max_completion_tokens", 77),
        ("max_tokens", None, "max_completion_tokens", None),
        ("top_p", 0.5, "top_p", 0.5),
    ],
)
def test_how_the_model_is_asked(tmp_path: Path, key: str, value: Any, sent: str, as_: Any) -> None:
    assert request_of(tmp_path, model={key: value}).get(sent) == as_


def test_the_usual_temperature_and_length_are_holodecks(tmp_path: Path) -> None:
    body = request_of(tmp_path)
    assert (body["temperature"], body["max_completion_tokens"]) == (0.3, 1000)


def test_a_model_that_takes_no_temperature_is_not_sent_one(tmp_path: Path) -> None:
    assert "temperature" not in request_of(tmp_path, model={"name": "gpt-5"})


def test_azure_gets_its_version(tmp_path: Path) -> None:
    with model_server(lambda talk: says("done")) as server:
        model = {"provider": "azure_openai", "name": "d", "endpoint": server.root, "api_version": "2030-01-01"}
        last_reply(tmp_path, "", model=model)
    assert "2030-01-01" in server.requests[0].path


def test_effort_is_sent_to_the_model(tmp_path: Path) -> None:
    body = request_of(tmp_path, model={"name": "gpt-5"}, openai={"effort": "high"})
    assert body["reasoning_effort"] == "high"


def test_extended_thinking_is_sent_to_the_model(tmp_path: Path) -> None:
    thinking = {"enabled": True, "budget_tokens": 2000}
    model = {"provider": "anthropic", "name": "claude-sonnet-4-6", "max_tokens": 5000}
    body = request_of(tmp_path, model=model, claude={"extended_thinking": thinking})
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}


def test_max_turns_ends_an_agent_that_calls_tools_for_ever(tmp_path: Path) -> None:
    with model_server(lambda talk: calls("rate", city="Oslo")) as server:
        [trial] = run_project(tmp_path, server.url, openai={"max_turns": 3}).trials
    assert trial.outcome == "failed"
    assert trial.reason == "no answer after 3 turns; raise openai.max_turns if it needs more"
    assert len(server.requests) == 3


def test_the_fallback_model_is_asked_where_the_first_fails(tmp_path: Path) -> None:
    def script(talk: Conversation) -> Any:
        return says("done") if talk.asked.body["model"] == "spare" else status(404)

    with model_server(script) as server:
        reply = last_reply(tmp_path, server.url, openai={"fallback_model": "spare"})
    assert reply.text == "done"


@pytest.mark.parametrize(
    "block", [{"disallowed_tools": ["monthly"]}, {"permissions": {"allowed_tools": ["rate"]}},
              {"permissions": {"disallowed_tools": ["monthly"]}}]
)  # fmt: skip
def test_tools_that_are_not_allowed_are_not_offered(tmp_path: Path, block: dict[str, Any]) -> None:
    body = request_of(tmp_path, openai=block)
    assert [tool["function"]["name"] for tool in body["tools"]] == ["rate"]


def test_allowed_tools_of_claude_are_the_only_ones_offered(tmp_path: Path) -> None:
    body = request_of(tmp_path, model={"provider": "anthropic", "name": "m"}, claude={"allowed_tools": ["monthly"]})
    assert [tool["name"] for tool in body["tools"]] == ["monthly"]


def test_a_tool_whose_loading_is_deferred_has_to_be_searched_for(tmp_path: Path) -> None:
    body = request_of(tmp_path, tools=[{**FUNCTIONS[0], "defer_loading": True}, FUNCTIONS[1]])
    offered = [tool["function"]["name"] for tool in body["tools"]]
    assert "rate" not in offered
    assert "monthly" in offered


def test_a_function_is_offered_as_its_signature_and_the_file_say(tmp_path: Path) -> None:
    tool = {**FUNCTIONS[0], "parameters": {"city": {"type": "string", "description": "Where"}}}
    rate, monthly = (item["function"] for item in request_of(tmp_path, tools=[tool, FUNCTIONS[1]])["tools"])
    assert rate["description"] == "The rate in a city."
    assert rate["parameters"]["properties"] == {"city": {"type": "string", "description": "Where"}}
    assert monthly["description"] == "Pays."
    assert monthly["parameters"]["required"] == ["amount"]


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [("kind_of", {"kind": "fixed"}, "it is FIXED"), ("anything", {"x": 1, "y": [2]}, {"x": 1, "y": [2]})],
)
def test_functions_get_arguments_of_their_own_types(
    tmp_path: Path, function: str, arguments: dict[str, Any], result: Any
) -> None:
    tool = {"name": "t", "type": "function", "file": "tools.py", "function": function}
    if function == "anything":
        tool["parameters"] = {"x": {"type": "integer"}, "y": {"type": "array", "required": False}}

    def script(talk: Conversation) -> TextReply | ToolCallReply:
        return says("done") if talk.results else calls("t", **arguments)

    with model_server(script) as server:
        reply = last_reply(tmp_path, server.url, tools=[tool])
    assert reply.tool_calls[0].result == result


FUNCTION = {"name": "t", "type": "function", "file": "tools.py", "function": "rate"}
OPENAI = {"provider": "openai", "name": "m", "endpoint": NOWHERE}


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"instructions": None}, "needs 'instructions'"),
        ({"instructions": "be kind"}, "instructions must be an object"),
        ({"instructions": {}}, "instructions needs either 'inline' or 'file'"),
        ({"instructions": {"inline": "a", "file": "b"}}, "instructions needs either 'inline' or 'file'"),
        ({"instructions": {"file": "no.md"}}, "instructions.file names no.md, which cannot be read"),
        ({"instructions": {"inline": "a", "tone": "b"}}, "instructions.tone is not a known key"),
        ({"model": {"provider": "openai"}}, "model needs 'name'"),
        ({"model": {"name": "m"}}, "model needs 'provider'"),
        ({"model": {"provider": "opnai", "name": "m"}}, "did you mean 'openai'?"),
        ({"model": {**OPENAI, "temperature": 3}}, "model.temperature must be at most 2"),
        ({"model": {**OPENAI, "top_p": -1}}, "model.top_p must be at least 0"),
        ({"model": {**OPENAI, "max_tokens": 0}}, "model.max_tokens must be at least 1"),
        ({"model": {**OPENAI, "endpoint": "ftp://x"}}, "model.endpoint must be a URL"),
        ({"model": {**OPENAI, "endpoint": "http://me:pw@x"}}, "model.endpoint must not contain a key"),
        ({"model": {**OPENAI, "api_key": "sk-written-out"}}, "model.api_key is a secret"),
        ({"model": {**OPENAI, "api_key": "${NO_SUCH_KEY}"}}, "model.api_key uses ${NO_SUCH_KEY}, which is not set"),
        ({"model": {**OPENAI, "api_version": "1"}}, "model.api_version does not apply to openai"),
        ({"model": {**OPENAI, "auth_provider": "x"}}, "model.auth_provider must be one of api_key"),
        ({"model": {**OPENAI, "seed": 3}}, "model.seed is not a known key"),
        ({"model": {"provider": "azure_openai", "name": "m"}}, "set endpoint"),
        ({"model": {"provider": "openai", "name": "m"}}, "model cannot be used: calling openai needs a key: set"),
        ({"model": {"provider": "groq", "name": "m"}}, f"needs more packages: {install_command('groq')}"),
        ({"claude": {"max_turns": 3}}, "claude does not apply to models of openai"),
        ({"openai": {"max_turns": 0}}, "openai.max_turns must be at least 1"),
        ({"openai": {"effort": "huge"}}, "openai.effort must be one of low, medium, high, max"),
        ({"openai": {"max_budget_usd": 0}}, "openai.max_budget_usd must be more than 0"),
        ({"openai": {"colour": 3}}, "openai.colour is not a known key"),
        ({"response_format": {"type": "array"}}, "response_format must be the JSON Schema of an object"),
        ({"response_format": {"type": "object", "properties": 3}}, "response_format is not a JSON Schema"),
        ({"response_format": "no.json"}, "no.json: does not exist"),
        ({"tools": [{**FUNCTION, "type": "hierarchical_document"}]}, "which Proctor does not support"),
        ({"tools": [{**FUNCTION, "name": "a b"}]}, "tools[0].name must consist of letters"),
        ({"tools": [FUNCTION, FUNCTION]}, "tools[1].name is used by more than one tool"),
        ({"tools": [{**FUNCTION, "file": "no.py"}]}, "tools[0].function cannot be found"),
        ({"tools": [{**FUNCTION, "function": "rat"}]}, "did you mean 'rate'?"),
        ({"tools": [{**FUNCTION, "function": "NOT_A_FUNCTION"}]}, "NOT_A_FUNCTION is not a function"),
        ({"tools": [{**FUNCTION, "file": "tools.txt"}]}, "tools[0].file must be a Python file"),
        ({"tools": [{**FUNCTION, "function": "by_place"}]}, "describe its parameters in 'parameters'"),
        ({"tools": [{**FUNCTION, "parameters": {"city": 3}}]}, "tools[0].parameters.city must be an object"),
        ({"tools": [{**FUNCTION, "parameters": {"city": {"type": "txt"}}}]}, "parameters is not a JSON Schema"),
        ({"tools": [{**FUNCTION, "colour": 3}]}, "tools[0].colour is not a known key"),
        ({"tools": [{"name": "p", "type": "prompt"}]}, "tools[0] needs either 'template' or 'file'"),
        (
            {"tools": [{"name": "p", "type": "prompt", "template": "{{a}}", "parameters": {"b": {"type": "string"}}}]},
            "has {{a}}, which 'parameters' does not describe",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_built_is_one_problem_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], complaint: str
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    found = problems(tmp_path, **more)
    assert len(found) == 1, found
    assert complaint in found[0]
    assert ".yaml" in found[0] or ".json" in found[0]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "a", "${X}", "\ud800", "tools.py"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(KEYS)), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(DESCRIPTION_KEYS), PLAIN, max_size=4), st.sampled_from(TOOL_TYPES))
def test_whatever_stands_there_is_read_or_refused(data: dict[str, Any], sort: str) -> None:
    tools = data.get("tools")
    if isinstance(tools, list):
        data["tools"] = [{"type": sort, "name": "t", **tool} if isinstance(tool, dict) else tool for tool in tools]
    suite = Suite("s", (Case(id="c", turns=(Turn("q"),)),), format="holodeck", agent={"holodeck": data})
    try:
        spec_of(suite)
    except InvalidSuite as error:
        assert error.problems


def test_all_that_is_wrong_is_reported_at_once(tmp_path: Path) -> None:
    found = problems(tmp_path, instructions=None, model={"provider": "x", "name": "m"}, tools=[{"name": "t"}])
    assert len(found) == 3
