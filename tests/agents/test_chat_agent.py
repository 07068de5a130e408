from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proctor
from proctor.agents.chat_agent import ChatAgent, Completion, make_tool, read_completion
from proctor.agents.resolve import resolve_agent
from proctor.agents.tools import tools_of
from proctor.base.errors import AgentFailed, UnreadableReply, UsageError
from proctor.base.references import load_file
from proctor.cases.suite import Case, EvaluatorSpec, Expected, ExpectedCall, Suite, ToolMock, Turn

TOOLS = '''
from __future__ import annotations

import enum
import threading
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

import proctor

TOUCHED = []

class Unit(enum.Enum):
    DAY = "day"
    YEAR = "year"

@dataclass
class Offer:
    bank: str
    rate: float

def get_rate(city: Annotated[str, Field(description="where")], unit: Unit = Unit.YEAR) -> dict:
    """The rate in a city."""
    TOUCHED.append((city, threading.current_thread() is threading.main_thread()))
    return {"rate": f"rate of {city} by {unit.value}"}

@proctor.tool
async def best(offers: list[Offer]) -> Offer:
    """The cheapest offer."""
    return min(offers, key=lambda offer: offer.rate)

def broken(city: str) -> str:
    """Never works."""
    raise ValueError("no such city")

def by_position(city, /): ...
def opaque(city: threading.Lock): ...
two = [get_rate, best]
number = 3
nameless = lambda city: city
class Kind: ...
'''
Script = Callable[[dict[str, Any]], Any]


def says(text: str | None, *calls: tuple[str, Any], usage: Any = (11, 7), **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, **more}
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)
        ]
    counted = {} if usage is None else {"usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]}}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **counted}


def asked(body: dict[str, Any]) -> list[str]:
    return [message["content"] for message in body["messages"] if message["role"] == "user"]


def one_tool(name: str = "get_rate", argument: str = "city") -> Script:
    """Calls one tool with the user's words, then tells what it said."""

    def think(body: dict[str, Any]) -> Any:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return says(f"{len(asked(body))}: {last['content']}")
        return says(None, (name, json.dumps({argument: last["content"]})))

    return think


class Service:
    def __init__(self, script: Script) -> None:
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                answer = script(body)
                status, answer = answer if isinstance(answer, tuple) else (200, answer)
                data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def chat(self, folder: Path, *tools: str, **more: Any) -> dict[str, Any]:
        chat = {"base_url": self.url, "model": "small", "tools": [f"{folder}/chat_tools_here.py:{t}" for t in tools]}
        return {"chat": chat | more}


@contextmanager
def service(script: Script) -> Iterator[Service]:
    made = Service(script)
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "chat_tools_here.py").write_text(TOOLS)
    return tmp_path


def touched(folder: Path) -> list[Any]:
    found: list[Any] = load_file((folder / "chat_tools_here.py").resolve()).TOUCHED
    return found


def case(name: str, **more: Any) -> Case:
    return Case(id=name, turns=(Turn(name, Expected(tools=(ExpectedCall("get_rate", {"city": name}),))),), **more)


def ran(agent: Any, *cases: Case) -> list[proctor.Trial]:
    suite = Suite("chat", cases, evaluators=(EvaluatorSpec("ToolTrajectory"),))
    return list(proctor.run(suite, agent=agent).trials)


def talked(agent: Any, *questions: Any) -> list[proctor.Reply]:
    async def hold() -> list[proctor.Reply]:
        turns = [Turn(question) for question in questions]
        async with resolve_agent(agent).session(Case(id="talk", turns=tuple(turns))) as session:
            return [await session.send(turn) for turn in turns]

    return asyncio.run(hold())


def test_text_calls_with_results_and_tokens_are_seen(folder: Path) -> None:
    with service(one_tool()) as made:
        (trial,) = ran(made.chat(folder, "get_rate", instructions="Use tools.", temperature=0.5), case("Oslo"))
    (reply,) = trial.replies
    (call,) = reply.tool_calls
    assert trial.outcome == "passed", trial.reason
    assert reply.text == '1: {"rate": "rate of Oslo by year"}'
    assert (call.name, dict(call.arguments), call.id) == ("get_rate", {"city": "Oslo"}, "call_0")
    assert call.result == {"rate": "rate of Oslo by year"}
    assert call.duration_ms is not None
    assert reply.usage == proctor.Usage(22, 14, model_calls=2)
    assert touched(folder) == [("Oslo", False)]


def test_a_request_has_instructions_settings_and_tools_described_by_their_signatures(folder: Path) -> None:
    with service(one_tool()) as made:
        more = {"temperature": 0.5, "request": {"top_p": 0.9, "seed": 7}}
        talked(made.chat(folder, "two", instructions="Use tools.", **more), "Oslo")
    path, _, body = made.requests[0]
    assert path == "/v1/chat/completions"
    assert {key: body[key] for key in ("model", "temperature", "top_p", "seed")} == {
        "model": "small",
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
    }
    assert body["messages"] == [{"role": "system", "content": "Use tools."}, {"role": "user", "content": "Oslo"}]
    rate, best = (tool["function"] for tool in body["tools"])
    assert (rate["name"], rate["description"]) == ("get_rate", "The rate in a city.")
    assert rate["parameters"]["properties"]["city"]["description"] == "where"
    assert rate["parameters"]["required"] == ["city"]
    assert best["parameters"]["$defs"]["Offer"]["required"] == ["bank", "rate"]


def test_many_at_once_keep_their_conversations_apart(folder: Path) -> None:
    names = [f"city{i}" for i in range(24)]
    with service(one_tool()) as made:
        for trial in ran(made.chat(folder, "get_rate"), *map(case, names)):
            assert trial.outcome == "passed", trial.reason
            assert trial.replies[0].text == f'1: {{"rate": "rate of {trial.case.id} by year"}}'


def test_the_model_is_told_earlier_turns_with_their_calls(folder: Path) -> None:
    with service(one_tool()) as made:
        first, second = talked(made.chat(folder, "get_rate"), "Oslo", "Rome")
    assert second.text == '2: {"rate": "rate of Rome by year"}'
    assert [len(reply.tool_calls) for reply in (first, second)] == [1, 1]
    roles = [message["role"] for message in made.requests[-1][2]["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant", "tool"]


def test_several_calls_at_once_are_answered_one_by_one_and_data_becomes_what_a_tool_wants(folder: Path) -> None:
    offers = [{"bank": "A", "rate": 5}, {"bank": "B", "rate": "4.5"}]

    def think(body: dict[str, Any]) -> Any:
        tools = [message for message in body["messages"] if message["role"] == "tool"]
        if tools:
            return says(" and ".join(message["content"] for message in tools))
        return says("Let me see.", ("best", {"offers": offers}), ("get_rate", '{"city": "Oslo", "unit": "day"}'))

    with service(think) as made:
        (reply,) = talked(made.chat(folder, "two"), "What is best?")
    assert reply.text == '{"bank": "B", "rate": 4.5} and {"rate": "rate of Oslo by day"}'
    assert [call.name for call in reply.tool_calls] == ["best", "get_rate"]
    assert reply.tool_calls[0].result == {"bank": "B", "rate": 4.5}


def test_ids_that_begin_anew_with_every_answer_do_not_hide_a_call(folder: Path) -> None:
    def think(body: dict[str, Any]) -> Any:
        count = sum(message["role"] == "tool" for message in body["messages"])
        return says("done") if count == 2 else says(None, ("get_rate", json.dumps({"city": f"city{count}"})))

    with service(think) as made:
        (reply,) = talked(made.chat(folder, "get_rate"), "go")
    assert [call.arguments["city"] for call in reply.tool_calls] == ["city0", "city1"]


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("broken", '{"city": "Oslo"}', "ValueError: no such city"),
        ("get_rate", '{"town": "Oslo"}', "town"),
        ("get_rate", '{"city": ', "not JSON"),
        ("get_rate", "[1]", "not a JSON object"),
        ("get_rates", "{}", "there is no tool get_rates; available tools: get_rate, broken"),
    ],
)
def test_what_goes_wrong_with_a_call_is_an_error_of_the_call_and_told_to_the_model(
    folder: Path, name: str, arguments: str, error: str
) -> None:
    def think(body: dict[str, Any]) -> Any:
        last = body["messages"][-1]
        return says(last["content"]) if last["role"] == "tool" else says(None, (name, arguments))

    with service(think) as made:
        (reply,) = talked(made.chat(folder, "get_rate", "broken"), "Oslo")
    (call,) = reply.tool_calls
    assert error in str(call.error)
    assert error in json.loads(reply.text)["error"]
    assert touched(folder) == []


def test_a_mocked_tool_is_not_called_and_need_not_exist(folder: Path) -> None:
    mocks = {"get_rate": (ToolMock(result={"rate": "mocked"}),)}
    for tools in (("get_rate",), ()):
        with service(one_tool()) as made:
            (trial,) = ran(made.chat(folder, *tools), case("Oslo", mocks=mocks))
        assert trial.replies[0].text == '1: {"rate": "mocked"}'
        assert trial.replies[0].tool_calls[0].result == {"rate": "mocked"}
    assert touched(folder) == []


def test_a_model_that_never_stops_calling_tools_has_not_answered(folder: Path) -> None:
    with service(lambda body: says(None, ("get_rate", '{"city": "Oslo"}'))) as made:
        (trial,) = ran(made.chat(folder, "get_rate", max_turns=3), case("Oslo"))
    assert trial.outcome == "failed"
    assert "after 3 model calls" in trial.reason
    assert len(made.requests) == 3


def test_an_answer_in_json_is_data_where_it_was_asked_for(folder: Path) -> None:
    with service(lambda body: says('{"rate": 4.5}')) as made:
        (plain,) = talked(made.chat(folder), "Oslo")
        (typed,) = talked(made.chat(folder, request={"response_format": {"type": "json_object"}}), "Oslo")
    assert (plain.structured, typed.structured, typed.text) == (None, {"rate": 4.5}, '{"rate": 4.5}')


def test_refusals_parts_and_missing_counts_are_read(folder: Path) -> None:
    parts = [{"type": "text", "text": "Hello "}, {"type": "text", "text": "there"}]
    answers = iter([says(None, refusal="I cannot."), says(parts, usage=None), says(None)])  # type: ignore[arg-type]
    with service(lambda body: next(answers)) as made:
        refused, joined, silent = talked(made.chat(folder), "a", "b", "c")
    assert (refused.text, joined.text, silent.text) == ("I cannot.", "Hello there", "")
    assert joined.usage == proctor.Usage(model_calls=1)


def test_lone_surrogates_and_data_can_be_asked(folder: Path) -> None:
    with service(lambda body: says(asked(body)[-1])) as made:
        odd, data = talked(made.chat(folder), "half \ud83d", {"question": "why?"})
    assert odd.text == "half \ud83d"
    assert data.text == '{"question": "why?"}'


@pytest.mark.parametrize(
    ("answer", "transient"), [((429, "{}"), True), ((503, "down"), True), ((401, "no such key"), False)]
)
def test_a_service_that_refuses_has_failed_and_only_some_refusals_are_worth_another_try(
    folder: Path, answer: Any, transient: bool
) -> None:
    with service(lambda body: answer) as made, pytest.raises(AgentFailed) as caught:
        talked(made.chat(folder), "Oslo")
    assert caught.value.transient is transient


@pytest.mark.parametrize("answer", ["<html>", "[]", "null", "{}", '{"choices": []}', '{"choices": [{"message": 3}]}'])
def test_what_is_no_completion_cannot_be_read(folder: Path, answer: str) -> None:
    with service(lambda body: (200, answer)) as made, pytest.raises(UnreadableReply, match="completions: the answer"):
        talked(made.chat(folder), "Oslo")


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["content", "function", "name", "x"]), inner),
    max_leaves=8,
)


@settings(max_examples=150)
@given(content=json_values, calls=json_values, usage=json_values)
def test_any_message_is_read_or_refused_and_never_breaks_the_reader(content: Any, calls: Any, usage: Any) -> None:
    body = {"choices": [{"message": {"content": content, "tool_calls": calls}}], "usage": usage}
    try:
        answer = read_completion(json.dumps(body))
    except UnreadableReply:
        return
    assert isinstance(answer, Completion)
    assert isinstance(answer.text, str)
    json.dumps(answer.message)


def test_the_key_goes_to_the_service_and_is_never_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    with service(lambda body: (401, "wrong key sk-very-secret")) as made:
        with pytest.raises(AgentFailed) as caught:
            talked(made.chat(folder, api_key_env="MY_KEY"), "Oslo")
        with pytest.raises(AgentFailed):
            talked(made.chat(folder), "Oslo")
    assert "sk-very-secret" not in str(caught.value)
    assert made.requests[0][1]["authorization"] == "Bearer sk-very-secret"
    assert "authorization" not in made.requests[1][1]


def test_addresses_may_come_from_the_environment_and_keep_their_query(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service(lambda body: says("hi")) as made:
        monkeypatch.setenv("MODEL_URL", made.url)
        more = {"base_url": "${MODEL_URL}/?api-version=3", "headers": {"api-key": "abc"}}
        assert talked(made.chat(folder, **more), "Oslo")[0].text == "hi"
    assert made.requests[0][0] == "/v1/chat/completions?api-version=3"
    assert made.requests[0][1]["api-key"] == "abc"


@pytest.mark.parametrize(
    ("chat", "message"),
    [
        ("gpt", "must be an object"),
        ({}, "needs 'model'"),
        ({"model": "m"}, "OPENAI_API_KEY, which is not set"),
        ({"model": "m", "base_url": "localhost"}, "chat.base_url must be an http"),
        ({"model": "m", "base_url": "http://[x"}, "chat.base_url must be an http"),
        ({"model": "m", "base_url": "${NO_SUCH}"}, "NO_SUCH, which is not set"),
        ({"model": "m", "base_url": "http://x", "api_key_env": "NO_SUCH"}, "NO_SUCH, which is not set"),
        ({"model": "m", "base_url": "http://x", "temprature": 1}, "did you mean 'temperature'"),
        ({"model": "m", "base_url": "http://x", "temperature": "hot"}, "must be a number"),
        ({"model": "m", "base_url": "http://x", "max_turns": 0}, "chat.max_turns must be at least 1"),
        ({"model": "m", "base_url": "http://x", "request": {"stream": True}}, "streaming is not supported"),
        ({"model": "m", "base_url": "http://x", "tools": "a.py:b"}, "must be a list"),
        ({"model": "m", "base_url": "http://x", "tools": [3]}, "tools.0 must be text"),
        ({"model": "m", "base_url": "http://x", "tools": ["missing.py:b"]}, "no file"),
        ({"model": "m", "base_url": "http://x", "tools": ["chat_tools_here.py:number"]}, "is not a function"),
        ({"model": "m", "base_url": "http://x", "tools": ["chat_tools_here.py:Kind"]}, "is not a function"),
        ({"model": "m", "base_url": "http://x", "tools": ["chat_tools_here.py:nameless"]}, "letters, digits and _"),
        ({"model": "m", "base_url": "http://x", "tools": ["chat_tools_here.py:by_position"]}, "positional only"),
        ({"model": "m", "base_url": "http://x", "tools": ["chat_tools_here.py:opaque"]}, "cannot be a tool"),
        ({"model": "m", "base_url": "http://x", "tools": ["chat_tools_here.py:two"] * 2}, "more than one tool"),
    ],
)
def test_what_is_wrong_in_a_description_is_said(
    folder: Path, chat: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError) as caught:
        resolve_agent({"chat": chat}, folder)
    assert message in str(caught.value)


def test_a_turn_that_is_sent_again_after_a_failure_is_in_the_conversation_once(folder: Path) -> None:
    answers = iter([says("first"), (503, "busy"), says("second")])
    with service(lambda body: next(answers)) as made:
        (trial,) = ran(made.chat(folder), Case(id="c", turns=(Turn("one"), Turn("two"))))
    assert [reply.text for reply in trial.replies] == ["first", "second"]
    assert asked(made.requests[-1][2]) == ["one", "two"]


def test_an_object_may_be_written_as_json_where_only_text_can_be(folder: Path) -> None:
    text = json.dumps({"chat": {"model": "m", "base_url": "http://x", "name": "mine"}})
    agent = resolve_agent(f" {text}", folder)
    assert isinstance(agent, ChatAgent)
    assert agent.name == "mine"
    with pytest.raises(UsageError, match="not valid JSON"):
        resolve_agent('{"chat": ')
    with pytest.raises(UsageError, match="inside 'chat'"):
        resolve_agent({"chat": {"model": "m"}, "model": "m"})


def test_the_fingerprint_changes_with_model_instructions_settings_and_tools(folder: Path) -> None:
    base = {"model": "m", "base_url": "http://x"}
    kinds: list[dict[str, Any]] = [
        base,
        base | {"model": "n"},
        base | {"instructions": "Be brief."},
        base | {"temperature": 1},
        base | {"tools": ["chat_tools_here.py:get_rate"]},
        base | {"max_turns": 2},
    ]
    prints = [resolve_agent({"chat": chat}, folder).fingerprint for chat in kinds]  # type: ignore[attr-defined]
    assert len(set(prints)) == len(kinds)
    assert resolve_agent({"chat": base}).fingerprint == prints[0]  # type: ignore[attr-defined]


def test_the_tools_can_be_found_to_be_called_again(folder: Path) -> None:
    agent = resolve_agent({"chat": {"model": "m", "base_url": "http://x", "tools": ["chat_tools_here.py:two"]}}, folder)
    assert sorted(tools_of(agent)) == ["best", "get_rate"]


def test_an_object_that_can_be_called_is_a_tool() -> None:
    class Lookup:
        """Finds things."""

        async def __call__(self, thing: str) -> str:
            return thing.upper()

    found = make_tool(Lookup())
    assert (found.name, found.description) == ("Lookup", "Finds things.")
    assert asyncio.run(found.call({"thing": "x"})) == "X"  # type: ignore[arg-type]
