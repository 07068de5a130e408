"""An HTTP service that Proctor starts from a command: once per run, ended with it, and never mistaken for another."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import only, outcomes, run, suite

from proctor.agents.resolve import check_agent, resolve_agent
from proctor.base.errors import UsageError
from proctor.cases.suite import Case, Expected, Turn
from proctor.results.run import Outcome

pytestmark = pytest.mark.process

SERVER = """
import json, os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

print("starting", flush=True)
with open("starts", "a") as starts:
    starts.write(f"{os.getpid()}\\n")
if sys.argv[1:] == ["broken"]:
    sys.exit("no API key is set")

class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        turn = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if turn["input"] == "crash":
            print("fatal: out of memory", file=sys.stderr, flush=True)
            os._exit(9)
        body = {"text": f"{self.path} {turn['input']}", "state": {"turn": len(turn["history"])}}
        if turn["input"] == "names":
            body = {"text": f"{turn['user_id']} {turn['app_name']} {turn['state']['n']}"}
        if turn["input"] == "fail":
            body = {"error": "cannot do that"}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def log_message(self, *_): pass

ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Service).serve_forever()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "server.py").write_text(SERVER)
    return tmp_path


def agent(folder: Path, *arguments: str, serve: Any = True) -> Any:
    return resolve_agent({"command": [sys.executable, "server.py", *arguments], "serve": serve}, folder)


def case(name: str, *texts: str, **fields: Any) -> Case:
    turns = tuple(Turn(input=text, expected=Expected(output=f"/ {text}")) for text in texts)
    return Case(id=name, turns=turns, **fields)


def is_running(pid: str) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return False
        time.sleep(0.01)
    return True


def test_one_process_answers_all_conversations_and_is_ended_with_the_run(folder: Path) -> None:
    cases = [case(f"c{n}", f"hello {n}", "bye") for n in range(12)]
    assert set(outcomes(run(suite(cases), agent=agent(folder))).values()) == {Outcome.PASSED}
    (pid,) = (folder / "starts").read_text().split()
    assert not is_running(pid)


def test_state_user_and_app_of_the_case_reach_the_service(folder: Path) -> None:
    names = {"x-adk": {"userId": "ann", "appName": "shop"}}
    turn = Turn(input="names", expected=Expected(output="ann shop 5"))
    trial = only(run(suite([Case(id="c", turns=(turn,), state={"n": 5}, extra=names)]), agent=agent(folder)))
    assert trial.outcome is Outcome.PASSED, trial.reason


def test_an_error_in_the_answer_is_a_failure_of_the_agent(folder: Path) -> None:
    trial = only(run(suite([case("c", "fail")]), agent=agent(folder)))
    assert (trial.outcome, trial.reason) == (Outcome.FAILED, "cannot do that")


def test_a_crash_is_an_error_of_its_conversation_and_the_next_one_starts_the_service_again(folder: Path) -> None:
    cases = [case("before", "one"), case("crashes", "crash"), case("after", "two")]
    results = run(suite(cases, parallel=1), agent=agent(folder))
    assert outcomes(results) == {"before": Outcome.PASSED, "crashes": Outcome.ERROR, "after": Outcome.PASSED}
    reason = next(trial.reason for trial in results[0].trials if trial.case.id == "crashes")
    assert "exit code 9" in reason
    assert "out of memory" in reason


def test_a_service_that_cannot_start_is_an_error_with_its_cause(folder: Path) -> None:
    trial = only(run(suite([case("c", "one")]), agent=agent(folder, "broken")))
    assert trial.outcome is Outcome.ERROR
    assert "no API key is set" in trial.reason


def test_a_program_that_listens_elsewhere_is_an_error_that_says_where_to_listen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.agents.served_agent._START_SECONDS", 0.5)
    source = "import time; print('listening at 3000', flush=True); time.sleep(60)"
    served = resolve_agent({"command": [sys.executable, "-c", source], "serve": True}, folder)
    trial = only(run(suite([case("c", "one")]), agent=served))
    assert trial.outcome is Outcome.ERROR
    assert "listen at the port in $PORT" in trial.reason
    assert "listening at 3000" in trial.reason


def test_a_service_that_runs_already_is_not_mistaken_for_the_agent(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        trial = only(run(suite([case("c", "one")]), agent=agent(folder, serve=f"http://127.0.0.1:{port}/chat")))
    assert trial.outcome is Outcome.ERROR
    assert f"port {port} is already in use" in trial.reason
    assert not (folder / "starts").exists()


def test_the_service_may_have_a_path_and_its_own_shape_of_requests(folder: Path) -> None:
    turn = Turn(input="a", expected=Expected(output="/chat?x=1 b a"))
    serve = {"url": "/chat?x=1", "request": {"input": "b {{input}}", "history": []}, "text": "$.text"}
    trial = only(run(suite([Case(id="c", turns=(turn,))]), agent=agent(folder, serve=serve)))
    assert trial.outcome is Outcome.PASSED, trial.reason


def test_the_command_line_can_name_a_service(folder: Path) -> None:
    served = resolve_agent(f"serve:{sys.executable} server.py", folder)
    assert check_agent("serve:python server.py", folder) is not None
    assert only(run(suite([case("c", "one")]), agent=served)).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"serve": True, "session": True}, "cannot have session and serve"),
        ({"serve": "http://example.com/"}, "cannot be at example.com"),
        ({"serve": {"text": 3}}, "http.text must be text"),
        ({"serve": 3}, "must be true, a path, or an object"),
    ],
)
def test_a_wrong_service_is_refused_with_what_to_write(folder: Path, keys: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_agent({"command": [sys.executable, "server.py"], **keys}, folder)
