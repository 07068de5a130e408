from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from proctor.agents.agent import Agent
from proctor.agents.http_agent import HttpAgent
from proctor.agents.http_config import read_http_options
from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.agents.resolve import resolve_agent
from proctor.base.errors import AgentFailed, UnreadableReply, UsageError
from proctor.cases.suite import Case, Turn

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Server:
    """An HTTP server on loopback that answers as the test says and remembers what it was asked."""

    answer: Callable[[Any], Any] = lambda body: {"text": "ok"}
    requests: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    url: str = ""


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that gave up waiting is no news."""


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.loads(raw) if raw else None
            state.requests.append(body)
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            state.paths.append(self.path)
            answer = state.answer(body)
            status, headers, content = answer if isinstance(answer, tuple) else (200, {}, json.dumps(answer).encode())
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST

        def log_message(self, *_: object) -> None:
            return

    with _QuietServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        state.url = f"http://127.0.0.1:{http.server_address[1]}/chat"
        yield state
        http.shutdown()
        thread.join(5)


def ask(options: Any, *inputs: Any, case: Case | None = None, started: bool = True) -> list[Reply]:
    conversation = case or Case(id="c1", turns=tuple(Turn(value) for value in inputs))
    agent = HttpAgent(read_http_options(options))

    async def hold() -> list[Reply]:
        if started:
            await agent.start()
        try:
            async with agent.session(conversation) as session:
                return [await session.send(turn) for turn in conversation.turns]
        finally:
            await agent.stop()

    return asyncio.run(hold())


def test_an_address_alone_is_enough(server: Server) -> None:
    server.answer = lambda body: {"answer": body["input"].upper()}
    replies = ask(server.url, "a", "b")
    assert [reply.text for reply in replies] == ["A", "B"]
    first, second = server.requests
    assert first["history"] == []
    assert second["history"] == [{"role": "user", "content": "a"}, {"role": "assistant", "content": "A"}]
    assert first["session_id"] == second["session_id"]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, False),
        ({"X-Cache": "MISS"}, False),
        ({"X-Cache": "Hit from edge"}, True),
        ({"cf-aig-cache-status": "HIT"}, True),
    ],
)
def test_an_answer_that_a_cache_repeats_is_marked(server: Server, headers: dict[str, str], expected: bool) -> None:
    server.answer = lambda body: (200, headers, b'{"text": "ok"}')
    [reply] = ask(server.url, "a")
    assert reply.from_cache is expected


def test_state_user_and_app_of_the_case_are_sent_without_a_template(server: Server) -> None:
    names = {"x-adk": {"userId": "ann", "appName": "shop"}}
    ask(server.url, case=Case(id="c", turns=(Turn("a"),), state={"balance": 5}, extra=names))
    assert server.requests[0]["state"] == {"balance": 5}
    assert (server.requests[0]["user_id"], server.requests[0]["app_name"]) == ("ann", "shop")
    ask(server.url, "a")
    assert set(server.requests[1]) == {"input", "session_id", "history"}


def test_a_placeholder_without_a_value_is_reported_before_anything_runs(server: Server) -> None:
    request = {"q": "{{input}}", "user": "{{state.user}}", "who": "{{user_id}}"}
    agent = HttpAgent(read_http_options({"url": server.url, "request": request}))
    assert "{{state.user}}" in (agent.check(Case(id="c", turns=(Turn("a"),))) or "")
    case = Case(id="c", turns=(Turn("a"), Turn("b")), state={"user": 1})
    assert "{{user_id}}" in (agent.check(case) or "")
    optional = {"q": "{{input}}", "user": "{{state.user?}}", "who": "{{user_id?}}"}
    assert HttpAgent(read_http_options({"url": server.url, "request": optional})).check(case) is None


def test_the_state_of_a_later_turn_comes_from_the_service_or_is_an_error(server: Server) -> None:
    options = {"url": server.url, "request": {"q": "{{input}}", "n": "{{state.n}}"}}
    case = Case(id="c", turns=(Turn("a"), Turn("b")), state={"n": 1})
    server.answer = lambda body: {"text": "ok", "state": {"n": body["n"] + 1}}
    ask(options, case=case)
    assert [request["n"] for request in server.requests] == [1, 2]
    server.answer = lambda body: {"text": "ok", "state": {}}
    with pytest.raises(AgentFailed) as caught:
        ask(options, case=case)
    assert caught.value.infrastructure


@pytest.mark.parametrize(
    ("body", "infrastructure", "transient"),
    [
        ({"error": "no such order"}, False, False),
        ({"error": {"message": "no such order", "infrastructure": True}}, True, False),
        ({"error": {"message": "no such order", "retry_after": 1}}, False, True),
    ],
)
def test_an_answer_can_report_an_error(server: Server, body: Any, infrastructure: bool, transient: bool) -> None:
    server.answer = lambda _: body
    with pytest.raises(AgentFailed, match=r"^no such order$") as caught:
        ask(server.url, "a")
    assert (caught.value.infrastructure, caught.value.transient) == (infrastructure, transient)
    assert ask({"url": server.url, "text": "$.error?"}, "a")[0].answer


def test_a_body_that_breaks_off_is_no_answer(server: Server) -> None:
    server.answer = lambda _: (200, {"content-type": "application/json"}, b'{"text": "The weather in Lon')
    with pytest.raises(UnreadableReply, match="breaks off"):
        ask(server.url, "a")


def test_it_works_without_being_started(server: Server) -> None:
    assert ask(server.url, "a", started=False)[0].text == "ok"


def test_sessions_have_ids_of_their_own(server: Server) -> None:
    ask(server.url, "a")
    ask(server.url, "a")
    assert len({request["session_id"] for request in server.requests}) == 2


@pytest.mark.parametrize(
    "body",
    [
        {"text": "yes"},
        {"output": "yes"},
        {"response": "yes"},
        {"answer": "yes"},
        {"content": [{"type": "text", "text": "yes"}]},
        {"message": {"content": "yes"}},
        {"choices": [{"message": {"role": "assistant", "content": "yes"}}]},
        "yes",
    ],
)
def test_the_words_are_found_in_the_usual_places(server: Server, body: Any) -> None:
    server.answer = lambda _: body
    assert ask(server.url, "a")[0].text == "yes"


def test_a_request_template_and_selectors_fit_any_interface(server: Server) -> None:
    server.answer = lambda body: {
        "data": {"reply": f"hi {body['who']}", "in": 5, "out": 6},
        "steps": [{"tool": {"id": "pay"}, "params": '{"x": 1}', "out": [1], "err": None, "no": 3}],
        "memory": {"n": body["n"] + 1},
    }
    options = {
        "url": server.url,
        "method": "put",
        "request": {"who": "{{input.name}}", "n": "{{state.n}}", "label": "case {{case.id}}, turn {{turn}}"},
        "text": "$.data.reply",
        "tool_calls": {
            "select": "steps[*]",
            "name": "tool.id",
            "arguments": "params",
            "result": "out",
            "error": "err",
            "id": "no",
        },
        "usage": {"input_tokens": "data.in", "output_tokens": "data.out", "cost_usd": "data.price"},
        "state": "memory",
    }
    case = Case(id="c7", turns=(Turn({"name": "Ada"}), Turn({"name": "Bob"})), state={"n": 1})
    first, second = ask(options, case=case)
    assert first.text == "hi Ada"
    assert first.tool_calls == (ToolCall("pay", {"x": 1}, result=[1], id="3"),)
    assert first.usage == Usage(5, 6)
    assert (first.state, second.state) == ({"n": 2}, {"n": 3})
    assert server.requests[1] == {"who": "Bob", "n": 2, "label": "case c7, turn 1"}


def test_a_whole_chat_can_be_sent_as_messages(server: Server) -> None:
    server.answer = lambda body: {"choices": [{"message": {"content": str(len(body["messages"]))}}]}
    options = {"url": server.url, "request": {"model": "m", "messages": "{{messages}}"}}
    assert [reply.text for reply in ask(options, "a", "b")] == ["1", "3"]


def test_get_sends_the_request_as_a_query(server: Server) -> None:
    ask({"url": server.url, "method": "GET", "request": {"q": "{{input}}", "n": 3}}, "a b")
    [path] = server.paths
    assert parse_qs(urlsplit(path).query) == {"q": ["a b"], "n": ["3"]}


def test_a_body_that_is_no_json_is_the_answer_itself(server: Server) -> None:
    server.answer = lambda _: (200, {"content-type": "text/plain; charset=utf-8"}, "grüß {".encode())
    assert ask(server.url, "a")[0].text == "grüß {"


def test_a_body_that_is_no_json_cannot_be_read_where_json_was_promised(server: Server) -> None:
    server.answer = lambda _: (200, {}, b"<html>login</html>")
    with pytest.raises(UnreadableReply, match=r"answer\.text.*<html>login"):
        ask({"url": server.url, "text": "answer.text"}, "a")


def test_a_selector_that_finds_nothing_says_what_it_looked_for_and_what_is_there(server: Server) -> None:
    server.answer = lambda _: {"reply": "x", "meta": 1}
    with pytest.raises(UnreadableReply, match=r"text at \$\.answer.*reply, meta"):
        ask({"url": server.url, "text": "$.answer"}, "a")
    with pytest.raises(UnreadableReply, match=r"choices\[0\].*reply, meta"):
        ask(server.url, "a")
    with pytest.raises(UnreadableReply, match="tool calls at steps"):
        ask({"url": server.url, "text": "reply", "tool_calls": "steps"}, "a")
    with pytest.raises(UnreadableReply, match="a number instead of an object"):
        ask({"url": server.url, "text": "reply", "state": "meta"}, "a")
    optional = {"url": server.url, "text": "reply", "tool_calls": "steps?", "state": "memory?", "usage": "tokens"}
    reply = ask(optional, "a")[0]
    assert (reply.text, reply.tool_calls, reply.state, reply.usage) == ("x", (), None, None)


def test_a_lone_surrogate_and_ten_megabytes_survive_the_journey(server: Server) -> None:
    text = "\ud800" + "x" * 10_000_000
    server.answer = lambda body: {"text": body["input"]}
    assert ask(server.url, text)[0].text == text


@pytest.mark.parametrize(
    ("status", "transient"), [(400, False), (401, False), (404, False), (429, True), (500, True), (503, True)]
)
def test_a_refusal_tells_whether_asking_again_may_help(server: Server, status: int, transient: bool) -> None:
    server.answer = lambda _: (status, {"retry-after": "7"}, b"sorry " * 500)
    with pytest.raises(AgentFailed) as caught:
        ask(server.url, "a")
    assert caught.value.transient is transient
    assert caught.value.retry_after == (7.0 if transient else None)  # type: ignore[attr-defined]
    assert f"answered {status}" in str(caught.value)
    assert 300 < len(str(caught.value)) < 400


@pytest.mark.parametrize("value", ["Fri, 31 Dec 1999 23:59:59 GMT", "soon", "", "²"])
def test_a_retry_after_of_the_past_or_of_nonsense_does_no_harm(server: Server, value: str) -> None:
    server.answer = lambda _: (429, {"retry-after": value.encode("utf-8").decode("latin-1")}, b"")
    with pytest.raises(AgentFailed) as caught:
        ask(server.url, "a")
    assert caught.value.retry_after in (0.0, None)  # type: ignore[attr-defined]


def test_an_address_without_a_server_is_a_transient_failure() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/x"
    with pytest.raises(AgentFailed, match="could not be reached") as caught:
        ask(url, "a")
    assert caught.value.transient


def test_an_agent_that_is_too_slow_is_a_transient_failure(server: Server) -> None:
    release = threading.Event()

    def answer(_: Any) -> Any:
        release.wait(10)
        return {"text": "late"}

    server.answer = answer
    try:
        with pytest.raises(AgentFailed, match="in time") as caught:
            ask({"url": server.url, "timeout": 0.05}, "a")
        assert caught.value.transient
    finally:
        release.set()


def test_redirects_on_the_same_host_are_followed_and_others_refused(server: Server) -> None:
    def answer(body: Any) -> Any:
        here = server.paths[-1]
        return (307, {"location": "/there"}, b"") if here == "/chat" else {"text": f"{here} {body['input']}"}

    server.answer = answer
    assert ask(server.url, "a")[0].text == "/there a"
    server.answer = lambda _: (307, {"location": "http://elsewhere.invalid/x"}, b"")
    with pytest.raises(AgentFailed, match=r"elsewhere\.invalid"):
        ask(server.url, "a")
    server.answer = lambda _: (307, {"location": "/chat"}, b"")
    with pytest.raises(AgentFailed, match="redirects more than"):
        ask(server.url, "a")


@pytest.mark.parametrize(("redirects", "is_followed"), [(5, True), (6, False)])
def test_up_to_five_redirects_are_followed(server: Server, redirects: int, is_followed: bool) -> None:
    def answer(body: Any) -> Any:
        count = len(server.paths)
        return (307, {"location": f"/hop{count}"}, b"") if count <= redirects else {"text": "arrived"}

    server.answer = answer
    if is_followed:
        assert ask(server.url, "a")[0].text == "arrived"
    else:
        with pytest.raises(AgentFailed, match="redirects more than 5 times"):
            ask(server.url, "a")


def test_headers_come_from_the_environment_and_are_never_shown(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sesame-open")
    options = {"url": server.url, "headers": {"Authorization": "Bearer ${MY_KEY}", "X-Api-Token": "literal-secret"}}
    ask(options, "a")
    assert server.headers[0]["authorization"] == "Bearer sesame-open"
    agent = HttpAgent(read_http_options(options))
    server.answer = lambda _: (401, {}, b"bad key sesame-open or literal-secret")
    with pytest.raises(AgentFailed) as caught:
        ask(options, "a")
    server.answer = lambda _: {"sesame-open": 1}
    with pytest.raises(UnreadableReply) as unread:
        ask(options, "a")
    for text in (repr(agent), repr(agent.options), str(caught.value), str(unread.value), agent.name):
        assert "sesame" not in text
        assert "literal-secret" not in text
    assert "[secret: MY_KEY, 11 characters]" in str(caught.value)


def test_a_missing_environment_variable_or_a_header_that_cannot_be_sent_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    with pytest.raises(UsageError, match="NOT_SET"):
        read_http_options({"url": "http://x", "headers": {"a": "${NOT_SET}"}})
    monkeypatch.setenv("BAD", "secret\n")
    with pytest.raises(UsageError, match="header a") as caught:
        read_http_options({"url": "http://x", "headers": {"a": "${BAD}"}})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs 'url'"),
        ({"url": "localhost:8000"}, "http://"),
        ({"url": "ftp://x"}, "http://"),
        ({"url": "http://"}, "http://"),
        ({"url": "http://[x"}, "http://"),
        ({"url": "http://x y"}, "http://"),
        ({"url": 3}, "not a number"),
        ({"url": "http://x", "methd": "GET"}, "did you mean 'method'"),
        ({"url": "http://x", "method": "FETCH"}, "must be one of"),
        ({"url": "http://x", "timeout": 0}, "more than 0"),
        ({"url": "http://x", "timeout": True}, "timeout must be a number"),
        ({"url": "http://x", "headers": {"a": 1}}, "headers.a must be text"),
        ({"url": "http://x", "text": "a..b"}, "not a selector"),
        ({"url": "http://x", "tool_calls": {"name": "x"}}, "needs 'select'"),
        ({"url": "http://x", "tool_calls": {"select": "a", "nam": "x"}}, "did you mean 'name'"),
        ({"url": "http://x", "usage": {"tokens": "x"}}, "no key 'tokens'"),
        ({"url": "http://x", "request": {"q": "{{inptu}}"}}, "unknown placeholder"),
        ({"url": "http://x", "request": "{{input}}", "method": "GET"}, "must be an object"),
        ({"url": "http://x", "stream": True}, "no key 'stream'"),
        ([], "must be an object"),
    ],
)
def test_a_wrong_description_is_refused_with_what_to_write(options: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_agent({"http": options})
    assert message in str(caught.value)


def test_a_case_without_what_the_request_needs_is_found_before_anything_is_sent(server: Server) -> None:
    options = {"url": server.url, "request": {"q": "{{input.question}}"}}
    agent = HttpAgent(read_http_options(options))
    assert agent.check(Case(id="c", turns=(Turn({"question": "x"}),))) is None
    assert "input.question" in (agent.check(Case(id="c", turns=(Turn("x"),))) or "")
    with pytest.raises(AgentFailed, match=r"input\.question"):
        ask(options, "x")
    assert server.requests == []


def test_the_fingerprint_changes_with_the_request_and_the_name_hides_the_query() -> None:
    one = HttpAgent(read_http_options({"url": "http://u:pw@h:1/p?key=secret"}))
    two = HttpAgent(read_http_options({"url": "http://u:pw@h:1/p?key=secret", "request": {"a": "{{input}}"}}))
    assert one.name == "h:1/p"
    assert one.fingerprint != two.fingerprint
    assert isinstance(one, Agent)
