"""The agent of the project file, for suites that name none; and the session of a file, for legacy suites of ADK."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

Command = Any
pytestmark = pytest.mark.process

SERVER = """
import json, os
from http.server import BaseHTTPRequestHandler, HTTPServer
class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        turn = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200); self.end_headers()
        self.wfile.write(json.dumps({"text": turn["input"]}).encode())
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Service).serve_forever()
"""
ECHO = "import json, sys; print(json.load(sys.stdin)['input'])"


@pytest.fixture
def suites(project: Path) -> Path:
    (project / "src").mkdir()
    (project / "src" / "server.py").write_text(SERVER)
    (project / "src" / "echo.py").write_text(ECHO)
    (project / "src" / "app.py").write_text("def agent(question): return question\n")
    (project / "suites").mkdir()
    (project / "suites" / "a.yaml").write_text("cases: [{id: one, input: hello, expected: hello}]\n")
    return project


@pytest.mark.parametrize(
    "agent",
    [
        '"src/app.py:agent"',
        f'"cmd:{sys.executable} src/echo.py"',
        f'"serve:{sys.executable} src/server.py"',
        f'{{command = ["{sys.executable}", "echo.py"], cwd = "src"}}',
        '{python = "src/app.py:agent"}',
    ],
)
def test_a_suite_without_an_agent_gets_the_one_of_the_project(
    proctor: Command, suites: Path, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert proctor("test", "suites").code == 2
    (suites / "proctor.toml").write_text(f"agent = {agent}\n")
    monkeypatch.chdir(suites / "suites")
    ended = proctor("test", "a.yaml")
    assert ended.code == 0, ended.out + ended.err


def test_the_command_line_and_the_suite_win_over_the_project(proctor: Command, suites: Path) -> None:
    (suites / "proctor.toml").write_text('agent = "src/app.py:agent"\n')
    assert proctor("test", "suites", "--agent", "nop").code == 1
    path = suites / "suites" / "a.yaml"
    path.write_text(f"agent: nop\n{path.read_text()}")
    assert proctor("test", "suites").code == 1


def test_an_agent_of_the_project_that_does_not_exist_is_reported_where_it_is_written(
    proctor: Command, suites: Path
) -> None:
    (suites / "proctor.toml").write_text('agent = "serve:no-such-program-anywhere x"\n')
    ended = proctor("test", "suites")
    assert ended.code == 2
    assert "proctor.toml: agent: the program" in ended.err
    assert proctor("test", "suites", "--agent", "oracle").code == 0


@pytest.mark.needs("adk")
def test_a_session_of_a_file_is_the_state_of_legacy_cases_only(proctor: Command, project: Path) -> None:
    (project / "app.py").write_text("def agent(question, state): return f'Your balance is {state[\"balance\"]}.'\n")
    (project / "old.test.json").write_text(json.dumps([{"query": "Balance?", "reference": "Your balance is 1250."}]))
    (project / "session.json").write_text(json.dumps({"balance": 1250}))
    words = ("--agent", "app.py:agent", "--initial-session", "session.json")
    assert proctor("test", "old.test.json", "--agent", "app.py:agent").code == 1
    assert proctor("test", "old.test.json", *words).code == 0
    (project / "a.yaml").write_text("cases: [{id: one, input: hello, expected: hello}]\n")
    ended = proctor("test", "a.yaml", *words)
    assert ended.code == 2
    assert "write `state` into its cases" in ended.err
