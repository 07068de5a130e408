"""A key that an agent, a server or an exception gives away is in no log, store or report."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

KEY = "sk-proj-Zx81kQmT4vLp9RwYb2Nc7Hd5"
PLAIN = "correct-horse-battery-staple-9"


@pytest.fixture
def echoing_server() -> Iterator[str]:
    """Answers with the authorization header that it was sent."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(500 if self.path == "/error" else 200)
            self.end_headers()
            self.wfile.write(f"you sent {self.headers['authorization']} and {self.headers['x-token']}".encode())

        def log_message(self, *args: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def assert_kept_nowhere(project: Path, said: str, *secrets: str) -> None:
    for secret in secrets:
        assert secret not in said
        for path in (*project.glob(".proctor/**/*"), *project.glob("out.*")):
            assert not path.is_file() or secret.encode() not in path.read_bytes(), path


REPORTS = ("--md", "out.md", "--json", "out.json", "--junit", "out.xml", "--html", "out.html", "--csv", "out.csv")


def test_a_key_in_an_exception_is_stored_nowhere(proctor_process: Command, suite: Command, project: Path) -> None:
    suite("echo", count=1)
    (project / "leak.py").write_text(f"def agent(q):\n    raise ValueError('refused: api_key={KEY} for {KEY}')\n")
    ended = proctor_process("test", "suite.yaml", "-v", "--agent", "leak.py:agent", *REPORTS)
    assert ended.code == 1
    assert_kept_nowhere(project, ended.out + ended.err, KEY)


@pytest.mark.parametrize("path", ["/", "/error"])
def test_a_server_that_echoes_the_token_header_gives_it_to_no_report(
    proctor_process: Command, suite: Command, project: Path, echoing_server: str, path: str
) -> None:
    headers = "{authorization: 'Bearer ${MY_KEY}', x-token: '${MY_TOKEN}'}"
    agent = f"{{http: {{url: '{echoing_server}{path}', headers: {headers}}}}}"
    file = suite("echo", count=1, settings="{retries: 0}")
    file.write_text(file.read_text().replace("agents.py:echo", agent))
    ended = proctor_process("test", "suite.yaml", "-v", *REPORTS, MY_KEY=KEY, MY_TOKEN=PLAIN)
    assert ended.code in (1, 4), ended
    assert_kept_nowhere(project, ended.out + ended.err, KEY, PLAIN)


def test_a_judges_key_that_comes_back_in_an_error_is_stored_nowhere(
    proctor_process: Command, suite: Command, project: Path
) -> None:
    suite("echo", count=1, evaluators="[{GEval: {criteria: it is polite}}]")
    more = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    ended = proctor_process(
        "test", "suite.yaml", "-v", "--judge", "openai:gpt-5-mini", "--retries", "0", *REPORTS, **more
    )
    assert ended.code != 0
    assert_kept_nowhere(project, ended.out + ended.err, KEY)


def test_a_token_on_the_command_line_is_stored_and_shown_nowhere(
    proctor_process: Command, suite: Command, project: Path
) -> None:
    suite("echo", count=1)
    agent = f"cmd:echo {KEY}"
    tested = proctor_process("test", "suite.yaml", "-v", "--agent", agent, "--name", f"with {KEY}", *REPORTS)
    armed = proctor_process("test", "suite.yaml", "--arms", f"a={agent},b=agents.py:echo")
    (project / "suite.yaml").write_text(
        f"name: s\nagent: '{agent}'\nevaluators: [ExactMatch]\ncases: [{{id: a, input: q, expected: q}}]\n"
    )
    examined = proctor_process("doctor", "suite.yaml"), proctor_process("doctor", "suite.yaml", "--json")
    listed = proctor_process("runs"), proctor_process("show", "last")
    said = "".join(result.out + result.err for result in (tested, armed, *examined, *listed))
    assert tested.code == 1
    assert_kept_nowhere(project, said, KEY)
