"""A real model server on the loopback interface that says what a test scripts, and fails as real ones do.

    with judge_server({"verdict": "yes"}) as server:      # a dict is sent as JSON text, a str as it is
        ...                                               # point an OpenAI client at server.url, or use server.openai
    assert len(server.requests) == 1 and server.peak == 1

A script is one answer for every request, a list of answers (the last one repeats), or a function of the `Asked`.
Answers are texts, dicts, or made by the functions below: `says`, `limited`, `status`, `hangs`, `cut`, ...
The server speaks OpenAI chat completions and, at `/v1/messages`, Anthropic messages.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class ModelRequest:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: Any
    number: int
    """How many came before."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body["messages"]

    @property
    def system(self) -> str:
        """All system text."""
        if "system" in self.body:
            return _text(self.body["system"])
        return "\n".join(_text(said["content"]) for said in self.messages if said["role"] in ("system", "developer"))

    @property
    def prompt(self) -> str:
        """The first thing the user said: the material."""
        return next(_text(said["content"]) for said in self.messages if said["role"] == "user")

    @property
    def last(self) -> str:
        """The last thing the user said: after a reply that did not fit, the complaint."""
        return _text(self.messages[-1]["content"])


@dataclass(frozen=True)
class TextResponse:
    """A completion."""

    text: str | None
    finish_reason: str = "stop"
    usage: tuple[int, int] | None = (100, 20)
    refusal: str | None = None
    choices: int = 1
    model: str | None = None


@dataclass(frozen=True)
class RawResponse:
    """Bytes, whatever they are."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    cut_after: int | None = None
    """How many bytes of the body are sent before the connection is closed."""


@dataclass(frozen=True)
class NoResponse:
    """No answer until the server closes."""


@dataclass(frozen=True)
class NotHttp:
    """Bytes that are not HTTP."""

    sent: bytes = b"\x00\x01 this is not HTTP \xff\r\n\r\n"


Response = TextResponse | RawResponse | NoResponse | NotHttp
Scripted = str | dict[str, Any] | Response
Script = Scripted | Sequence[Scripted] | Callable[[ModelRequest], Scripted]


def says(text: str | None, **rest: Any) -> TextResponse:
    """A completion, with `finish_reason`, `usage`, `model` as wished."""
    return TextResponse(text, **rest)


def refuses(words: str = "I'm sorry, but I can't help with that.") -> TextResponse:
    """A refusal in its own field."""
    return TextResponse(None, refusal=words)


def filtered(text: str = "") -> TextResponse:
    """Stopped by the provider's content filter."""
    return TextResponse(text, finish_reason="content_filter")


def no_choices() -> TextResponse:
    return TextResponse(None, choices=0)


def status(code: int, message: str = "the server is having a bad day", **headers: str) -> RawResponse:
    """An error in OpenAI's shape; `Retry_After="2"` becomes the header `Retry-After: 2`."""
    body = {"error": {"message": message, "type": "error", "code": None, "param": None}}
    return RawResponse(
        code, json.dumps(body).encode(), {name.replace("_", "-"): value for name, value in headers.items()}
    )


def limited(retry_after: str | None = None) -> RawResponse:
    """429, with what the Retry-After header is to say: seconds, or an HTTP date."""
    return status(429, "Rate limit reached", **({} if retry_after is None else {"Retry_After": retry_after}))


def unauthorized(message: str = "Incorrect API key provided: sk-proj-********************abcd.") -> RawResponse:
    return status(401, message)


def hangs() -> NoResponse:
    return NoResponse()


def cut(after: int = 40) -> RawResponse:
    """A good answer, whose connection is lost in the middle."""
    body = json.dumps(_openai(TextResponse('{"verdict": "yes"}'), "m")).encode()
    return RawResponse(200, body, cut_after=after)


def web_page() -> RawResponse:
    """What a proxy or a captive portal sends instead."""
    return RawResponse(200, b"<html><body>Please log in</body></html>", content_type="text/html")


def half_json() -> RawResponse:
    """A body that claims to be whole and is not JSON."""
    return RawResponse(200, b'{"id": "x", "object": "chat.completion", "choices": [')


def garbles() -> NotHttp:
    return NotHttp()


class JudgeServer:
    """What a test sees: where it is, what it was asked, and how many requests it had at once."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[ModelRequest] = []
        self.peak = 0
        self.closing = threading.Event()
        self._in_flight = 0
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.judge = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def root(self) -> str:
        """Where Anthropic's client finds it."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def url(self) -> str:
        """Where OpenAI's client finds it."""
        return f"{self.root}/v1"

    def arrived(self, path: str, headers: Mapping[str, str], body: Any) -> ModelRequest:
        with self._lock:
            asked = ModelRequest(path, headers, body, len(self.requests))
            self.requests.append(asked)
            self._in_flight += 1
            self.peak = max(self.peak, self._in_flight)
        return asked

    def left(self) -> None:
        with self._lock:
            self._in_flight -= 1

    def answer(self, asked: ModelRequest) -> Response:
        scripted: Any = self.script
        if callable(scripted):
            scripted = scripted(asked)
        elif isinstance(scripted, Sequence) and not isinstance(scripted, str):
            scripted = scripted[min(asked.number, len(scripted) - 1)]
        if isinstance(scripted, str):
            return TextResponse(scripted)
        return TextResponse(json.dumps(scripted)) if isinstance(scripted, dict) else scripted

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.drop_connections()
        self._http.server_close()
        self._thread.join()


@contextmanager
def judge_server(script: Script = "{}") -> Iterator[JudgeServer]:
    """A server that answers as scripted until the block ends."""
    server = JudgeServer(script)
    try:
        yield server
    finally:
        server.close()


class _Http(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True
    judge: JudgeServer

    def __init__(self, *given: Any) -> None:
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        with self._guard:
            still = list(self._open)
        for connection in still:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that give up are part of what is tested."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def do_POST(self) -> None:
        read = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        judge = self.server.judge
        asked = judge.arrived(self.path, headers, json.loads(read or b"null"))
        try:
            self._send(judge.answer(asked), asked)
        finally:
            judge.left()

    def _send(self, answer: Response, asked: ModelRequest) -> None:
        if isinstance(answer, NoResponse):
            self.server.judge.closing.wait()
            self.close_connection = True
        elif isinstance(answer, NotHttp):
            self.wfile.write(answer.sent)
            self.close_connection = True
        elif isinstance(answer, TextResponse):
            shape = _anthropic if asked.path.endswith("/messages") else _openai
            model = answer.model or asked.body.get("model", "")
            self._bytes(RawResponse(200, json.dumps(shape(answer, model)).encode()))
        else:
            self._bytes(answer)

    def _bytes(self, sends: RawResponse) -> None:
        self.send_response(sends.status)
        self.send_header("Content-Type", sends.content_type)
        self.send_header("Content-Length", str(len(sends.body)))
        for name, value in sends.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(sends.body if sends.cut_after is None else sends.body[: sends.cut_after])
        if sends.cut_after is not None:
            self.close_connection = True

    def log_message(self, *args: Any) -> None:
        """Nothing is printed."""


def _openai(answer: TextResponse, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason, "logprobs": None}
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [choice] * answer.choices,
    }
    if answer.usage is not None:
        given, written = answer.usage
        body["usage"] = {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}
    return body


def _anthropic(answer: TextResponse, model: str) -> dict[str, Any]:
    reasons = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
    given, written = answer.usage or (0, 0)
    text = answer.refusal if answer.text is None else answer.text
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}] if text is not None and answer.choices else [],
        "stop_reason": "refusal" if answer.refusal else reasons.get(answer.finish_reason, answer.finish_reason),
        "stop_sequence": None,
        "usage": {"input_tokens": given, "output_tokens": written},
    }


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])
