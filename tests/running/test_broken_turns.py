"""An agent that raises, or runs out of time, keeps what it had done by then."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import case, only, run, suite
from reporting_samples import report

import proctor
from proctor.agents.command_agent import CommandAgent
from proctor.agents.resolve import resolve_agent
from proctor.cases.suite import Case, Expected, ExpectedCall, Turn
from proctor.reporting.explain import explain
from proctor.reporting.html import report_page as html
from proctor.reporting.markdown import report as markdown
from proctor.results.score import Outcome
from proctor.results.trial import Trial
from proctor.running.rescore import rescore
from proctor.running.settings import RunOptions

NEVER = threading.Event()


@proctor.tool
def find_order(order: str) -> str:
    return "lost"


@proctor.tool
def slow_search(words: str) -> str:
    NEVER.wait()
    return ""


@proctor.tool
async def find_later(order: str) -> str:
    return "lost"


def raises(question: str) -> str:
    find_order("A-17")
    proctor.wrap({"step": 1}, purpose="output", name="plan")
    return _inner(question)


def _inner(question: str) -> str:
    raise KeyError("no such customer")


async def raises_later(question: str) -> str:
    await find_later("A-17")
    return _inner(question)


def streams(question: str) -> Iterator[str]:
    find_order("A-17")
    yield "Your order "
    yield "is "
    raise KeyError("no such customer")


async def streams_later(question: str) -> AsyncIterator[str]:
    await find_later("A-17")
    yield "Your order "
    yield "is "
    raise KeyError("no such customer")


def hangs(question: str) -> str:
    find_order("A-17")
    return slow_search(question)


async def hangs_later(question: str) -> str:
    await find_later("A-17")
    await asyncio.Event().wait()
    return ""


def streams_and_hangs(question: str) -> Iterator[str]:
    find_order("A-17")
    yield "Your order "
    NEVER.wait()


def exits(question: str) -> str:
    find_order("A-17")
    raise SystemExit(3)


def tried(agent: Any, **limits: Any) -> Trial:
    return only(run(suite([case("one")], **limits), agent=agent))


@pytest.mark.parametrize("agent", [raises, raises_later, streams, streams_later, exits])
def test_an_agent_that_raises_keeps_its_tool_calls_and_where_it_raised(agent: Any) -> None:
    trial = tried(agent)

    (reply,) = trial.replies
    assert trial.outcome is Outcome.FAILED
    assert trial.scores == ()
    assert [(call.arguments, call.result) for call in reply.tool_calls] == [({"order": "A-17"}, "lost")]
    assert reply.error is not None
    assert reply.error.startswith(trial.reason)
    assert "\n  at test_broken_turns.py:" in reply.error
    assert "raise KeyError" in reply.error or "raise SystemExit" in reply.error


def test_every_place_in_the_users_files_is_kept_the_outermost_first() -> None:
    (reply,) = tried(raises).replies

    places = (reply.error or "").split("\n  at ")[1:]
    assert [place.partition(" in ")[2] for place in places] == [
        "raises: return _inner(question)",
        '_inner: raise KeyError("no such customer")',
    ]


def test_named_outputs_of_an_agent_that_raises_are_kept() -> None:
    (reply,) = tried(raises).replies

    assert [(item.name, item.value) for item in reply.outputs] == [("plan", {"step": 1})]


@pytest.mark.parametrize("agent", [streams, streams_later])
def test_the_part_of_a_stream_that_came_before_it_broke_is_kept(agent: Any) -> None:
    (reply,) = tried(agent).replies

    assert reply.text == "Your order is "


@pytest.mark.parametrize("agent", [hangs, hangs_later, streams_and_hangs])
def test_an_agent_that_runs_out_of_time_keeps_its_tool_calls_and_where_it_was(agent: Any) -> None:
    trial = tried(agent, timeout=0.3)

    (reply,) = trial.replies
    assert trial.reason == "the agent gave no answer within 0.3 s"
    assert (reply.tool_calls[0].arguments, reply.tool_calls[0].result) == ({"order": "A-17"}, "lost")
    assert f" in {agent.__name__}: " in (reply.error or "")
    assert reply.text == ("Your order " if agent is streams_and_hangs else "")


def test_a_call_that_had_not_come_back_is_among_the_calls() -> None:
    (reply,) = tried(hangs, timeout=0.3).replies

    assert [(call.name, call.error) for call in reply.tool_calls] == [
        ("find_order", None),
        ("slow_search", "had not come back when the turn broke off"),
    ]


def test_what_was_answered_before_comes_before_the_turn_that_broke() -> None:
    def agent(question: str) -> str:
        return question if question == "one" else raises(question)

    talk = Case(id="c", turns=tuple(Turn(text, Expected(output=text)) for text in ("one", "two", "three")))
    trial = only(run(suite([talk]), agent=agent))

    assert [(reply.text, reply.error is None) for reply in trial.replies] == [("one", True), ("", False)]
    assert not trial.is_answered


def test_only_the_last_attempt_is_kept_of_an_agent_that_was_called_again() -> None:
    def agent(question: str) -> str:
        find_order("A-17")
        raise ConnectionError("the line is down")

    trial = tried(agent, retries=1)

    assert trial.outcome is Outcome.ERROR
    assert trial.attempts == 2
    assert len(trial.replies) == 1
    assert len(trial.replies[0].tool_calls) == 1


def test_reports_show_the_calls_that_were_made_and_claim_no_other() -> None:
    expected = Expected(output="x", tools=(ExpectedCall("find_order"),))
    found, _ = run(suite([Case(id="c", turns=(Turn("q", expected),))]), agent=raises)
    (trial,) = found.trials

    told = "\n".join(f"{fact.label} {fact.text}" for fact in explain(trial))
    assert 'find_order(order="A-17") -> "lost"' in told
    assert "failed at test_broken_turns.py:" in told
    for module in (markdown, html):
        text = report(module, found)
        assert "_inner: raise KeyError" in text
        assert "not called" not in text
        assert "Missing" not in text


def test_a_turn_of_which_nothing_is_known_is_not_said_to_lack_calls() -> None:
    class Unreachable:
        name = "far"

        def session(self, case: Case) -> Any:
            raise ConnectionRefusedError("no such host")

    expected = Expected(output="x", tools=(ExpectedCall("find_order"),))
    found, _ = run(suite([Case(id="c", turns=(Turn("q", expected),))], retries=0), agent=Unreachable())

    assert "not called" not in report(html, found)
    assert only((found, None)).replies == ()


def kills_itself(question: str) -> str:
    find_order("A-17")
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


@pytest.mark.process
@pytest.mark.parametrize("agent", [raises, streams, hangs, streams_and_hangs, kills_itself])
def test_an_isolated_trial_keeps_what_its_process_had_done(agent: Any) -> None:
    found = run(suite([case("one")], timeout=1.5), agent=agent, isolate=True)

    (reply,) = only(found).replies
    assert (reply.tool_calls[0].name, reply.tool_calls[0].result) == ("find_order", "lost")
    assert reply.text == {streams: "Your order is ", streams_and_hangs: "Your order "}.get(agent, "")
    if agent in (raises, streams):
        assert "\n  at test_broken_turns.py:" in (reply.error or "")
    if agent is hangs:
        assert [call.name for call in reply.tool_calls] == ["find_order", "slow_search"]


@pytest.mark.process
@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("end", ["sys.exit(3)", "__import__('time').sleep(60)"])
def test_a_program_that_breaks_or_hangs_keeps_what_it_had_printed(tmp_path: Path, session: bool, end: str) -> None:
    printed = '{"text": "Your order", "tool_calls": [{"name": "find_order", "arguments": {"order": "A-17"}}]}'
    source = f"import sys\nsys.stdin.readline()\nprint('{printed}', end='', flush=True)\n{end}\n"
    (tmp_path / "agent.py").write_text(source, encoding="utf-8")
    agent = CommandAgent([sys.executable, "agent.py"], cwd=tmp_path, session=session)

    trial = tried(agent, timeout=3)

    assert trial.reason
    assert trial.replies[0].error is not None
    assert trial.replies[0].text == "Your order"
    assert [call.name for call in trial.replies[0].tool_calls] == ["find_order"]


@contextmanager
def served(answer: Callable[[Any], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            answer(self)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_address[1]}/chat"
        http.shutdown()


def test_a_service_that_stalls_keeps_the_part_of_the_body_that_came() -> None:
    over = threading.Event()

    def answer(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "1000")
        handler.end_headers()
        handler.wfile.write(b"Your order is ")
        handler.wfile.flush()
        over.wait(30)

    with served(answer) as url:
        trial = tried(url, timeout=1)
        over.set()

    assert trial.reason == "the agent gave no answer within 1 s"
    assert trial.replies[0].text == "Your order is "


def test_a_body_in_which_no_answer_can_be_read_is_kept() -> None:
    def answer(handler: Any) -> None:
        body = b'{"reply_in_another_place": "Your order is lost."}'
        handler.send_response(200)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with served(answer) as url:
        trial = tried(url)

    assert trial.outcome is Outcome.ERROR
    assert "Your order is lost." in trial.replies[0].text


def test_a_refusal_is_in_the_reason_and_not_in_the_answer() -> None:
    def answer(handler: Any) -> None:
        handler.send_response(400)
        handler.send_header("content-length", "7")
        handler.end_headers()
        handler.wfile.write(b"go away")

    with served(answer) as url:
        trial = tried(url)

    assert "go away" in trial.reason
    assert trial.replies == ()


def test_a_chat_model_that_breaks_after_a_tool_call_keeps_the_call_and_the_tokens(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text("def get_rate(city: str) -> str:\n    return f'rate of {city}'\n", "utf-8")
    asked: list[int] = []

    def answer(handler: Any) -> None:
        asked.append(1)
        call = {"id": "1", "type": "function", "function": {"name": "get_rate", "arguments": '{"city": "Oslo"}'}}
        message = {"role": "assistant", "content": "I look it up.", "tool_calls": [call]}
        usage = {"prompt_tokens": 11, "completion_tokens": 7}
        body = json.dumps({"choices": [{"message": message}], "usage": usage}).encode()
        handler.send_response(200 if len(asked) == 1 else 400)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with served(answer) as url:
        agent = resolve_agent({"chat": {"base_url": url, "model": "m", "tools": ["tools.py:get_rate"]}}, tmp_path)
        trial = tried(agent)

    (reply,) = trial.replies
    assert [(call.name, call.arguments, call.result) for call in reply.tool_calls] == [
        ("get_rate", {"city": "Oslo"}, "rate of Oslo")
    ]
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 7)
    assert reply.text == "I look it up."


def test_a_broken_turn_is_stored_with_its_secrets_masked(tmp_path: Path) -> None:
    key = "sk-" + "a1B2" * 12

    @proctor.tool
    def login(token: str) -> str:
        return token

    def agent(question: str) -> str:
        login(key)
        raise ValueError(f"refused {key}")

    found, _ = run(suite([case("one")]), agent=agent, store=tmp_path / "store")
    (trial,) = found.trials

    assert trial.replies[0].tool_calls[0].name == "login"
    assert key not in repr(trial)
    assert "\n  at test_broken_turns.py:" in (trial.replies[0].error or "")


def test_rescoring_leaves_a_broken_trial_as_it_is(tmp_path: Path) -> None:
    run(suite([case("one")]), agent=raises, store=tmp_path)

    again, verdict = rescore(tmp_path, "last", options=RunOptions())
    (trial,) = again.trials

    assert verdict.outcome is Outcome.FAILED
    assert trial.scores == ()
    assert trial.replies[0].tool_calls[0].name == "find_order"
