"""Answers that a service streams as events, read by a real client from a real server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

import proctor
from proctor.agents.event_stream import StreamedReply
from proctor.agents.reply import ToolCall
from proctor.results.score import Outcome
from proctor.results.trial import Trial


class StreamServer:
    """Sends the pieces of a stream, one by one; `cut` ends it in the middle, `hang` keeps it open."""

    pieces: ClassVar[list[bytes]] = []
    content_type = "text/event-stream; charset=utf-8"
    ending = "close"
    url = ""
    release = threading.Event()


@pytest.fixture(scope="module")
def http_server() -> Iterator[type[StreamServer]]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(200)
            self.send_header("content-type", StreamServer.content_type)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for piece in StreamServer.pieces:
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.flush()
            if StreamServer.ending == "hang":
                StreamServer.release.wait(20)
            if StreamServer.ending == "close":
                self.wfile.write(b"0\r\n\r\n")
            else:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            return

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that has read enough closes the connection."""

    with Quiet(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        StreamServer.url = f"http://127.0.0.1:{server.server_address[1]}/chat"
        yield StreamServer
        StreamServer.release.set()
        server.shutdown()


@pytest.fixture
def server(http_server: type[StreamServer]) -> type[StreamServer]:
    http_server.pieces, http_server.ending = [], "close"
    http_server.content_type = "text/event-stream; charset=utf-8"
    return http_server


def ask(server: type[StreamServer], stream: str | bytes, timeout: float = 10, **options: Any) -> Trial:
    raw = stream.encode() if isinstance(stream, str) else stream
    server.pieces = [raw[start : start + 7] for start in range(0, len(raw), 7)]  # also in the middle of a character
    agent = {"http": {"url": server.url, **options}}
    case = {"id": "a", "input": "hi", "evaluators": [{"Contains": {"all": ["H"]}}]}
    return proctor.run([case], agent, retries=0, timeout=timeout).trials[0]


def events(*data: Any) -> str:
    texts = (item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in data)
    return "".join(f"data: {text}\n\n" for text in texts)


def chunk(content: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {} if content is None else {"content": content}, **more}]}


OPENAI = events(
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
    chunk("Hé"),
    chunk("llo"),
    chunk(finish_reason="stop"),
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    "[DONE]",
)
TEXT_BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
TOOL_BLOCK = {"type": "tool_use", "id": "t1", "name": "look_up", "input": {}}


def block_delta(index: int, **delta: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def named_events(*data: dict[str, Any]) -> str:
    return "".join(f"event: {item['type']}\n{events(item)}" for item in data)


ANTHROPIC = named_events(
    {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
    TEXT_BLOCK,
    {"type": "ping"},
    block_delta(0, type="text_delta", text="Hé"),
    block_delta(0, type="text_delta", text="llo"),
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": TOOL_BLOCK},
    block_delta(1, type="input_json_delta", partial_json='{"key": '),
    block_delta(1, type="input_json_delta", partial_json='"A-17"}'),
    {"type": "message_delta", "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
)
RESPONSES = events(
    {"type": "response.created", "response": {"id": "r"}},
    {"type": "response.output_text.delta", "delta": "Hé"},
    {"type": "response.reasoning_summary_text.delta", "delta": "never shown"},
    {"type": "response.output_text.delta", "delta": "llo"},
    {"type": "response.output_text.done", "text": "Héllo"},
    {
        "type": "response.output_item.done",
        "item": {"type": "function_call", "name": "look_up", "arguments": '{"key": "A-17"}', "call_id": "t1"},
    },
    {"type": "response.completed", "response": {"usage": {"input_tokens": 5, "output_tokens": 9}}},
)


@pytest.mark.parametrize(
    "stream",
    [
        OPENAI,
        ANTHROPIC,
        RESPONSES,
        events("Hé", "llo"),
        events('"Hé"', '"llo"'),
        events({"text": "Hé"}, {"text": "llo"}),
        events({"delta": "Hé"}, {"delta": "llo"}, "[DONE]"),
        events({"type": "text-delta", "delta": "Hé"}, {"type": "reasoning-delta", "delta": "hm"}, {"token": "llo"}),
        events(
            {"candidates": [{"content": {"parts": [{"text": "Hé"}, {"text": "hm", "thought": True}]}}]}, {"text": "llo"}
        ),
        "﻿: keep-alive\r\n\r\ndata: Hé\r\n\r\n: again\r\nid: 7\r\nretry: 10\r\ndata:llo\r\n\r\n",
        "data: Hé\r\rdata: llo\r\r",
        "data: Hé\n\ndata: llo",
        "event: ping\ndata: 1\n\ndata: Hé\n\ndata: llo\n\nevent: end\ndata: bye\n\n",
    ],
)
def test_the_answer_is_the_text_of_all_events(server: type[StreamServer], stream: str) -> None:
    trial = ask(server, stream)
    assert trial.outcome is Outcome.PASSED, trial.end_reason
    assert trial.output == "Héllo"


def test_lines_of_one_event_are_lines_of_the_answer(server: type[StreamServer]) -> None:
    assert ask(server, "data: He said\ndata:   42\n\ndata:  times\n\n").output == "He said\n  42 times"
    assert ask(server, events("H", "42", "true", "null", '"quoted"', "[1]")).output == 'H42truenull"quoted"[1]'


def test_a_path_finds_the_text_of_each_event(server: type[StreamServer]) -> None:
    stream = events({"meta": 1}, {"out": {"t": "Hé"}, "text": "not this"}, {"out": {"t": "llo"}}, "not JSON")
    assert ask(server, stream, text="$.out.t").output == "Héllo"

    missing = ask(server, stream, text="$.elsewhere")
    assert missing.outcome is Outcome.ERROR
    assert "no text at $.elsewhere in any of the 4 events" in missing.end_reason


def test_tool_calls_arrive_in_pieces(server: type[StreamServer]) -> None:
    def calls(*deltas: dict[str, Any]) -> dict[str, Any]:
        return {"choices": [{"delta": {"tool_calls": list(deltas)}}]}

    stream = events(
        calls({"index": 0, "id": "t1", "function": {"name": "look_up", "arguments": ""}}),
        calls({"index": 0, "function": {"arguments": '{"key": '}}),
        calls({"index": 1, "id": "t2", "function": {"name": "close", "arguments": "{}"}}),
        calls({"index": 0, "function": {"arguments": '"A-17"}'}}),
        chunk("Hi", finish_reason="tool_calls"),
    )
    assert ask(server, stream).tool_calls == (
        ToolCall("look_up", {"key": "A-17"}, id="t1"),
        ToolCall("close", {}, id="t2"),
    )
    for other in (ANTHROPIC, RESPONSES):
        trial = ask(server, other)
        assert trial.tool_calls == (ToolCall("look_up", {"key": "A-17"}, id="t1"),)
        assert trial.usage is not None and (trial.usage.input_tokens, trial.usage.output_tokens) == (5, 9)


def test_reply_parts_of_other_services_are_read(server: type[StreamServer]) -> None:
    parts = {"tool_calls": [{"name": "look_up", "args": {"key": 1}}], "usage": {"input_tokens": 4}, "state": {"n": 1}}
    trial = ask(server, events({"text": "H"}, {"text": "i", **parts}))
    assert trial.output == "Hi"
    assert [call.name for call in trial.tool_calls] == ["look_up"]
    assert trial.replies[0].state == {"n": 1}

    calls = {"select": "steps[*]", "name": "tool"}
    trial = ask(
        server, events({"t": "Hi"}, {"steps": [{"tool": "a"}]}, {"steps": [{"tool": "b"}]}), text="t?", tool_calls=calls
    )
    assert [call.name for call in trial.tool_calls] == ["a", "b"]


@pytest.mark.parametrize(
    "stream",
    [
        events(chunk("Hé"), chunk("llo")),
        ANTHROPIC.partition("event: message_delta")[0],
        RESPONSES.partition('data: {"type": "response.completed"')[0],
        'data: {"text": "H',
        ": nothing but comments\n\n",
        "",
    ],
)
def test_a_stream_that_is_cut_off_is_an_infrastructure_error(server: type[StreamServer], stream: str) -> None:
    trial = ask(server, stream)
    assert trial.outcome is Outcome.ERROR, trial.output
    assert "the stream was cut off" in trial.end_reason


def test_a_connection_that_breaks_is_an_infrastructure_error_with_the_part_that_arrived(
    server: type[StreamServer],
) -> None:
    server.ending = "cut"
    trial = ask(server, events("Hé", "ll"))
    assert trial.outcome is Outcome.ERROR
    assert "cut its stream off" in trial.end_reason
    assert trial.output == "Héll"


def test_a_stream_that_never_ends_takes_until_the_timeout(server: type[StreamServer]) -> None:
    server.ending = "hang"
    trial = ask(server, events("Hé", "llo"), timeout=0.5)
    assert trial.outcome is Outcome.FAILED
    assert "no answer within 0.5 s" in trial.end_reason
    assert trial.output == "Héllo"  # as far as it arrived


def test_a_marked_end_needs_no_closed_connection(server: type[StreamServer]) -> None:
    server.ending = "hang"
    assert ask(server, OPENAI).output == "Héllo"


def test_a_huge_stream_is_bounded(server: type[StreamServer]) -> None:
    server.pieces = [b"data: " + b"x" * 100_000 + b"\n\n"] * 120
    [trial] = proctor.run([{"id": "a", "input": "hi", "expected": "x"}], server.url, retries=0).trials
    assert trial.outcome is Outcome.FAILED
    assert "the stream is larger than 10 MB" in trial.end_reason


@pytest.mark.parametrize(
    ("stream", "outcome", "words"),
    [
        ('event: error\ndata: {"message": "no flights found"}\n\n', Outcome.FAILED, "no flights found"),
        ("data: H\n\nevent: error\ndata: out of tea\n\n", Outcome.FAILED, "out of tea"),
        (events({"error": {"message": "bad key", "code": "invalid_api_key"}}), Outcome.ERROR, "bad key"),
        (events({"type": "error", "error": {"type": "authentication_error", "message": "no"}}), Outcome.ERROR, "no"),
        (
            events(
                {"type": "response.failed", "response": {"error": {"code": "insufficient_quota", "message": "broke"}}}
            ),
            Outcome.ERROR,
            "broke",
        ),
    ],
)
def test_an_error_in_the_stream_is_the_reason(
    server: type[StreamServer], stream: str, outcome: Outcome, words: str
) -> None:
    trial = ask(server, stream)
    assert (trial.outcome, words in trial.end_reason) == (outcome, True), trial.end_reason


def test_a_stream_without_text_says_where_to_look(server: type[StreamServer]) -> None:
    trial = ask(server, events({"kind": 1}, {"kind": 2}))
    assert trial.outcome is Outcome.ERROR
    assert "set 'text' to its path in each event" in trial.end_reason


def test_every_split_of_a_stream_gives_the_same_answer() -> None:
    raw = (ANTHROPIC.replace("\n", "\r\n") + OPENAI).encode()
    whole = StreamedReply()
    whole.feed(raw)
    for size in range(1, 40):
        pieces = StreamedReply()
        for start in range(0, len(raw), size):
            pieces.feed(raw[start : start + size])
        assert pieces.reply() == whole.reply()
