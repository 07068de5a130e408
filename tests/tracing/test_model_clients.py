"""Tool calls through the real clients of models: observed with an instrumentation, and an error without.

Most of these clients are only in the environment of `nox -s instrumentation`; here their tests are skipped.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from loopback_server import serve

import proctor
from proctor.agents import tools as tool_registry
from proctor.results.score import Outcome

RESULT_MARKS = ('"tool_result"', '"role":"tool"', '"functionResponse"', '"toolResult"')
"""What a request has in it if the tool was called."""
PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
TOOLS: Any = [{"type": "function", "function": {"name": "add", "description": "Add.", "parameters": PARAMETERS}}]
ARGUMENTS = {"a": 2, "b": 3}


class Model(BaseHTTPRequestHandler):
    """Speaks with the clients of several providers; asks for `add` once, then answers 5."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        text = self._body().replace(" ", "")
        is_done = any(mark in text for mark in RESULT_MARKS)
        path = self.path.partition("?")[0]
        provider = next(answer for end, answer in ANSWERS.items() if path.endswith(end))
        body = json.dumps(provider(is_done)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _body(self) -> str:
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"])).decode()
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body.decode()

    def log_message(self, *_: Any) -> None:
        pass


def _chat(is_done: bool) -> dict[str, Any]:
    call = {"id": "call12345", "type": "function", "function": {"name": "add", "arguments": json.dumps(ARGUMENTS)}}
    message = {"content": "5"} if is_done else {"content": None, "tool_calls": [call]}
    finish = "stop" if is_done else "tool_calls"
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def _messages(is_done: bool) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "t1", "name": "add", "input": ARGUMENTS}
    content = [{"type": "text", "text": "5"}] if is_done else [call]
    head = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": content}
    stop = {"stop_reason": "end_turn" if is_done else "tool_use", "stop_sequence": None}
    return {**head, **stop, "usage": {"input_tokens": 5, "output_tokens": 2}}


def _gemini(is_done: bool) -> dict[str, Any]:
    part = {"text": "5"} if is_done else {"functionCall": {"name": "add", "args": ARGUMENTS}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "g"}


def _ollama(is_done: bool) -> dict[str, Any]:
    calls = {"content": "", "tool_calls": [{"function": {"name": "add", "arguments": ARGUMENTS}}]}
    message = {"role": "assistant", **({"content": "5"} if is_done else calls)}
    return {"model": "l", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": True}


def _cohere(is_done: bool) -> dict[str, Any]:
    function = {"name": "add", "arguments": json.dumps(ARGUMENTS)}
    calls = {"tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    message = {"role": "assistant", **({"content": [{"type": "text", "text": "5"}]} if is_done else calls)}
    return {"id": "c", "finish_reason": "COMPLETE" if is_done else "TOOL_CALL", "message": message}


def _bedrock(is_done: bool) -> dict[str, Any]:
    content = {"text": "5"} if is_done else {"toolUse": {"toolUseId": "t1", "name": "add", "input": ARGUMENTS}}
    usage = {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7}
    output = {"output": {"message": {"role": "assistant", "content": [content]}}}
    return {**output, "stopReason": "end_turn" if is_done else "tool_use", "usage": usage, "metrics": {"latencyMs": 1}}


ANSWERS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "/chat/completions": _chat,
    "/messages": _messages,
    ":generateContent": _gemini,
    "/api/chat": _ollama,
    "/v2/chat": _cohere,
    "/converse": _bedrock,
}
"""By the end of the path: the answer, given whether the tool was called."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve(Model) as address:
        yield address


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_registry, "_REGISTERED", {})
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def with_openai(url: str) -> str:
    import openai

    with openai.OpenAI(base_url=f"{url}/v1", api_key="k") as client:
        return _loop(lambda messages: client.chat.completions.create(model="m", messages=messages, tools=TOOLS))


async def with_async_openai(url: str) -> str:
    import openai

    messages: list[Any] = [{"role": "user", "content": "2 + 3?"}]
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k") as client:
        first = await client.chat.completions.create(model="m", messages=messages, tools=TOOLS)
        messages += _tool_messages(first.choices[0].message)
        return str((await client.chat.completions.create(model="m", messages=messages)).choices[0].message.content)


def with_litellm(url: str) -> str:
    import litellm

    def ask(messages: list[Any]) -> Any:
        return litellm.completion(
            "openai/m", messages=messages, tools=TOOLS, api_base=f"{url}/v1", api_key="k", num_retries=0
        )

    return _loop(ask)


def with_mistralai(url: str) -> str:
    client_module = importlib.import_module("mistralai.client")
    client = client_module.Mistral(api_key="k", server_url=url)
    return _loop(lambda messages: client.chat.complete(model="m", messages=messages, tools=TOOLS))


def with_groq(url: str) -> str:
    import groq

    client = groq.Groq(base_url=url, api_key="k")
    return _loop(lambda messages: client.chat.completions.create(model="m", messages=messages, tools=TOOLS))


def with_anthropic(url: str) -> str:
    import anthropic

    tools: Any = [{"name": "add", "input_schema": PARAMETERS}]
    messages: list[Any] = [{"role": "user", "content": "2 + 3?"}]
    with anthropic.Anthropic(base_url=url, api_key="k") as client:
        first = client.messages.create(model="claude", max_tokens=9, messages=messages, tools=tools)
        call: Any = first.content[0]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": str(add(**call.input))}
        said = [block.model_dump(exclude_none=True) for block in first.content]
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": [result]}]
        last: Any = client.messages.create(model="claude", max_tokens=9, messages=messages, tools=tools)
        return str(last.content[0].text)


def with_cohere(url: str) -> str:
    import cohere

    client = cohere.ClientV2(api_key="k", base_url=url)
    messages: list[Any] = [{"role": "user", "content": "2 + 3?"}]
    client.chat(model="m", messages=messages, tools=TOOLS)
    messages += [{"role": "tool", "tool_call_id": "c1", "content": str(add(2, 3))}]
    return str(client.chat(model="m", messages=messages, tools=TOOLS).message.content[0].text)


def with_ollama(url: str) -> str:
    import ollama

    client = ollama.Client(host=url)
    messages: list[Any] = [{"role": "user", "content": "2 + 3?"}]
    client.chat(model="l", messages=messages, tools=TOOLS)
    messages += [{"role": "tool", "content": str(add(2, 3))}]
    return str(client.chat(model="l", messages=messages, tools=TOOLS).message.content)


def with_boto3(url: str) -> str:
    import boto3

    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    client = boto3.client("bedrock-runtime", region_name="us-east-1", endpoint_url=url, **keys)
    config = {"tools": [{"toolSpec": {"name": "add", "inputSchema": {"json": PARAMETERS}}}]}
    messages: list[Any] = [{"role": "user", "content": [{"text": "2 + 3?"}]}]
    said = client.converse(modelId="m", messages=messages, toolConfig=config)["output"]["message"]
    result = {"toolResult": {"toolUseId": "t1", "content": [{"text": str(add(2, 3))}]}}
    messages += [said, {"role": "user", "content": [result]}]
    return str(client.converse(modelId="m", messages=messages, toolConfig=config)["output"]["message"]["content"][0])


def _loop(ask: Callable[[list[Any]], Any]) -> str:
    messages: list[Any] = [{"role": "user", "content": "2 + 3?"}]
    while True:
        message = ask(messages).choices[0].message
        if not message.tool_calls:
            return str(message.content)
        messages += _tool_messages(message)


def _tool_messages(message: Any) -> list[Any]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": "add", "arguments": call.function.arguments}}
        for call in message.tool_calls
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": str(add(2, 3))} for call in calls]
    return [{"role": "assistant", "content": "", "tool_calls": calls}, *results]


CLIENTS: list[tuple[str, str, Callable[[str], Any]]] = [
    ("openai", "openai", with_openai),
    ("openai", "openai", with_async_openai),
    ("anthropic", "anthropic", with_anthropic),
    ("litellm", "openai", with_litellm),
    ("mistralai", "mistralai", with_mistralai),
    ("groq", "groq", with_groq),
    ("cohere", "", with_cohere),
    ("ollama", "", with_ollama),
    ("boto3", "bedrock", with_boto3),
]
"""The client, the instrumentation that is named for it, and an agent that uses it."""


def trial_of(agent: Callable[..., Any], case: dict[str, Any] | None = None) -> Any:
    suite = proctor.Suite("s", [proctor.Case("2 + 3?", id="c", expected={"tools": ["add"]}, **(case or {}))])
    [trial] = proctor.run(suite, agent=agent, store=None).trials
    return trial


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("client", "package", "ask"), CLIENTS)
def test_calls_through_a_client_are_observed_or_an_error_that_names_the_package(
    server: str, client: str, package: str, ask: Callable[[str], Any]
) -> None:
    pytest.importorskip(client)

    def agent(question: str) -> Any:
        return ask(server)

    trial = trial_of(agent)
    if trial.outcome is Outcome.PASSED:
        assert is_installed("openinference")
        assert [call.name for call in trial.replies[0].tool_calls] == ["add"]
        return
    assert trial.outcome is Outcome.ERROR, trial.reason
    [score] = trial.scores
    assert "called a model through" in score.reasoning
    assert "@proctor.tool" in score.reasoning
    if package and not is_installed(f"openinference.instrumentation.{package}"):
        assert f"openinference-instrumentation-{package}" in score.reasoning


def is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def gemini(url: str) -> Any:
    return importlib.import_module("google.genai").Client(api_key="k", http_options={"base_url": url})


GEMINI: dict[str, Any] = {"model": "gemini-2.0-flash", "config": {"tools": [add]}}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["models", "async models", "chat", "async chat"])
def test_functions_that_google_genai_calls_itself_are_recorded_and_can_be_mocked(server: str, way: str) -> None:
    pytest.importorskip("google.genai")

    async def agent(question: str) -> str:
        client = gemini(server)  # a client that is not kept is closed
        if way == "models":
            return str(client.models.generate_content(contents=question, **GEMINI).text)
        if way == "async models":
            return str((await client.aio.models.generate_content(contents=question, **GEMINI)).text)
        if way == "chat":
            return str(client.chats.create(**GEMINI).send_message(question).text)
        return str((await client.aio.chats.create(**GEMINI).send_message(question)).text)

    trial = trial_of(agent)
    assert trial.outcome is Outcome.PASSED, trial.reason
    [call] = trial.replies[0].tool_calls
    assert (call.name, call.arguments, call.result) == ("add", ARGUMENTS, 5)
    [mocked] = trial_of(agent, {"mocks": {"add": {"result": 50}}}).replies[0].tool_calls
    assert mocked.result == 50
