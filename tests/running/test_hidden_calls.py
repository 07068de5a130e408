"""An agent whose tool calls nobody observes gets an error and not a failure, and never passes by silence."""

from __future__ import annotations

import asyncio
import contextvars
import json
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx2
import pytest
from loopback_server import serve

import proctor
from proctor.agents import tools as tool_registry
from proctor.results.score import Outcome
from proctor.results.store.store import Store

anthropic = pytest.importorskip("anthropic", reason="a client without an instrumentation in this environment")
openai = pytest.importorskip("openai")
pytest.importorskip("openinference.instrumentation.openai", reason="it observes the calls of OpenAI's client")


class Model(BaseHTTPRequestHandler):
    """Asks for the tool `add`, and answers 5 when it has the result; "just answer" is answered at once."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        is_done = "tool_result" in text or '"role":"tool"' in text.replace(" ", "") or "just answer" in text
        if self.path.endswith("/messages"):
            call = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 2, "b": 3}}
            content = [{"type": "text", "text": "5"}] if is_done else [call]
            reason = "end_turn" if is_done else "tool_use"
            usage = {"input_tokens": 5, "output_tokens": 2}
            data: Any = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": content}
            data |= {"stop_reason": reason, "stop_sequence": None, "usage": usage}
        elif self.path.endswith("/chat/completions"):
            function = {"name": "add", "arguments": '{"a": 2, "b": 3}'}
            calls = {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
            message = {"role": "assistant", **({"content": "5"} if is_done else calls)}
            choice = {"index": 0, "message": message, "finish_reason": "stop" if is_done else "tool_calls"}
            data = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        else:
            data = {"answer": "5", **({"tool_calls": []} if self.path == "/reporting" else {})}
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve(Model) as address:
        yield address


@pytest.fixture(autouse=True)
def no_marked_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools that other tests have marked are none of these agents'."""
    monkeypatch.setattr(tool_registry, "_REGISTERED", {})


def add(a: int, b: int) -> int:
    return a + b


CLAUDE: Any = {"model": "claude", "max_tokens": 9, "tools": [{"name": "add", "input_schema": {"type": "object"}}]}


def claude_answer(url: str, question: str, function: Callable[..., Any] = add) -> str:
    with anthropic.Anthropic(base_url=url, api_key="k") as client:
        messages: list[Any] = [{"role": "user", "content": question}]
        while True:
            message = client.messages.create(messages=messages, **CLAUDE)
            if message.stop_reason != "tool_use":
                return str(message.content[0].text)
            [call] = message.content
            result = {"type": "tool_result", "tool_use_id": call.id, "content": str(function(**call.input))}
            messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]


async def async_claude_answer(url: str, question: str) -> str:
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k") as client:
        message = await client.messages.create(messages=[{"role": "user", "content": question}], **CLAUDE)
        return str(add(**message.content[0].input))


def gpt_answer(url: str, question: str) -> str:
    tools: Any = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k") as client:
        messages: list[Any] = [{"role": "user", "content": question}]
        while True:
            message = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
            if not message.tool_calls:
                return str(message.content)
            messages.append(message.model_dump(exclude_none=True))
            messages += [{"role": "tool", "tool_call_id": call.id, "content": "5"} for call in message.tool_calls]


def in_thread(function: Callable[[], Any]) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def run(agent: Any, expected: Any = None, question: str = "2 + 3?", **options: Any) -> proctor.Run:
    expected = {"tools": ["add"]} if expected is None else expected
    evaluators = options.pop("evaluators", [])
    cases = [proctor.Case(question, id=f"c{number}", expected=expected) for number in range(2)]
    suite = proctor.Suite("s", cases, evaluators=evaluators)
    return proctor.run(suite, agent=agent, **{"store": None, **options})


def check_error(finished: proctor.Run, *words: str) -> None:
    for trial in finished.trials:
        assert trial.outcome is Outcome.ERROR, trial.reason
        [reason] = [score.reasoning for score in trial.scores if score.outcome is Outcome.ERROR]
        for word in words:
            assert word in reason
    assert proctor.verdict(finished).exit_code == 4


def check_passed(finished: proctor.Run) -> None:
    assert [trial.outcome for trial in finished.trials] == [Outcome.PASSED] * 2


@pytest.mark.parametrize("isolate", [False, True])
def test_an_expected_call_through_an_unobserved_client_is_an_error_that_names_the_package(
    server: str, isolate: bool
) -> None:
    finished = run(lambda question: claude_answer(server, question), isolate=isolate)
    check_error(finished, "anthropic", "pip install openinference-instrumentation-anthropic", "@proctor.tool")


def test_it_is_an_error_for_async_agents_and_in_threads_of_the_agent(server: str) -> None:
    async def asynchronous(question: str) -> str:
        return await async_claude_answer(server, question)

    def threaded(question: str) -> str:
        return str(in_thread(lambda: claude_answer(server, question)))

    def with_context(question: str) -> str:
        context = contextvars.copy_context()
        return str(in_thread(lambda: context.run(claude_answer, server, question)))

    async def in_another_loop(question: str) -> str:
        return str(await asyncio.to_thread(lambda: asyncio.run(async_claude_answer(server, question))))

    for agent in (asynchronous, threaded, with_context, in_another_loop):
        check_error(run(agent), "anthropic")


def test_requests_without_a_client_are_noticed_too(server: str) -> None:
    body = {"model": "m", "messages": [], "tools": []}

    def with_urllib(question: str) -> str:
        request = urllib.request.Request(f"{server}/v1/chat/completions", json.dumps(body).encode())
        with urllib.request.urlopen(request) as response:
            return str(len(response.read()))

    def with_httpx(question: str) -> str:
        return httpx2.post(f"{server}/v1/chat/completions", json=body).text

    for agent in (with_urllib, with_httpx):
        check_error(run(agent), "127.0.0.1/v1/chat/completions", "@proctor.tool")


@pytest.mark.parametrize(
    "options",
    [
        {"expected": {"tools": []}},
        {"evaluators": [{"ForbiddenTools": {"tools": ["delete"]}}]},
        {"evaluators": [{"MaxSteps": {"steps": 3}}]},
        {"evaluators": [{"ToolCount": {"at_most": 3}}]},
    ],
)
def test_silence_does_not_pass_as_good_behaviour(server: str, options: dict[str, Any]) -> None:
    finished = run(lambda question: claude_answer(server, question), **{"expected": {"contains": ["5"]}, **options})
    check_error(finished, "anthropic")


def test_evaluators_of_other_things_are_not_affected(server: str) -> None:
    check_passed(run(lambda question: claude_answer(server, question), {"contains": ["5"]}))


def test_marked_tools_are_seen_whatever_client_calls_them(server: str) -> None:
    marked = proctor.tool(add)
    check_passed(run(lambda question: claude_answer(server, question, marked)))
    finished = run(lambda question: claude_answer(server, question, marked), question="just answer")
    assert {trial.outcome for trial in finished.trials} == {Outcome.FAILED}
    check_passed(run(lambda question: claude_answer(server, question, marked), {"tools": []}, "just answer"))


def test_marking_some_other_tool_is_not_enough(server: str) -> None:
    @proctor.tool
    def search(text: str) -> str:
        return text

    check_error(run(lambda question: claude_answer(server, question)), "anthropic")


def test_an_observed_client_that_calls_no_tool_fails(server: str) -> None:
    def agent(question: str) -> str:
        return gpt_answer(server, question)

    check_passed(run(agent))
    check_passed(run(agent, {"tools": []}, "just answer"))
    assert {trial.outcome for trial in run(agent, question="just answer").trials} == {Outcome.FAILED}


def test_calls_that_the_agent_returns_are_all_of_them(server: str) -> None:
    def agent(question: str) -> dict[str, Any]:
        return {"answer": claude_answer(server, question), "tool_calls": []}

    assert {trial.outcome for trial in run(agent).trials} == {Outcome.FAILED}


def test_a_plain_function_fails_and_the_run_says_once_how_calls_become_visible(server: str) -> None:
    def calls_another_service(question: str) -> str:
        return httpx2.post(f"{server}/orders", json={"question": question}).json()["answer"]

    for agent in (lambda question: str(add(2, 3)), calls_another_service):
        finished = run(agent)
        assert {trial.outcome for trial in finished.trials} == {Outcome.FAILED}
        [warning] = [warning for trial in finished.trials for warning in trial.warnings]
        assert "@proctor.tool" in warning


def test_a_marked_tool_that_a_foreign_thread_calls_is_not_missing(server: str) -> None:
    marked = proctor.tool(add)
    finished = run(lambda question: str(in_thread(lambda: marked(2, 3))))
    check_error(finished, "'add' was called from a thread", "copy_context")


def test_a_service_that_does_not_say_what_it_called_is_an_error_and_one_that_does_is_believed(server: str) -> None:
    silent = {"http": {"url": f"{server}/silent"}}
    check_error(run(silent), "does not say which tools were called", '"tool_calls"', "[]")
    check_error(run(silent, {"tools": []}), "does not say")
    check_passed(run({"http": {"url": f"{server}/reporting"}}, {"tools": []}))
    told = {"http": {"url": f"{server}/silent", "tool_calls": "$.calls?"}}
    assert {trial.outcome for trial in run(told).trials} == {Outcome.FAILED}
    check_passed(run(silent, {"contains": ["5"]}))


@pytest.mark.process
def test_a_program_that_does_not_say_what_it_called_is_an_error(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text("print('5')")
    check_error(run({"command": [sys.executable, str(program)]}), "does not say", '"tool_calls"')
    program.write_text("""print('{"answer": "5", "tool_calls": []}')""")
    check_passed(run({"command": [sys.executable, str(program)]}, {"tools": []}))


def test_the_reason_is_stored(server: str, tmp_path: Path) -> None:
    finished = run(lambda question: claude_answer(server, question), store=tmp_path)
    stored = Store(tmp_path).find_run(finished.id)
    assert [trial.replies for trial in stored.trials] == [trial.replies for trial in finished.trials]
    assert all(trial.replies[0].hidden_calls is not None for trial in stored.trials)
