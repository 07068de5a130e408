"""Answers, scores and exceptions that are too large, endless, slow or of the wrong kind spoil their own trial alone."""

from __future__ import annotations

import gzip
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.mark.parametrize("agent", ["huge", "deep_and_large", "endless_stream", "endless_async_stream"])
def test_an_answer_that_is_too_large_fails_its_trial_and_keeps_its_beginning(
    proctor: Command, proctor_process: Command, suite: Command, agent: str
) -> None:
    suite(agent)
    ended = proctor_process("test", "suite.yaml")
    assert ended.code == 1
    assert "larger than 10 MB" in ended.out
    assert "3 of 4 cases passed" in ended.out
    shown = proctor("show", "-v").out
    assert "xxxx" in shown
    assert len(shown) < 1_000_000


def test_the_limit_of_an_answer_is_a_setting(proctor_process: Command, suite: Command) -> None:
    suite("echo", settings="{max_reply_bytes: 1}")
    assert "larger than 1 bytes" in proctor_process("test", "suite.yaml").out
    suite("echo")
    assert proctor_process("test", "suite.yaml", PROCTOR_MAX_REPLY_BYTES="1").code == 1


@pytest.fixture
def server() -> Iterator[str]:
    """`/large` answers with 200 MB, `/bomb` with as much compressed, `/error` the same as an error page."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(500 if self.path == "/error" else 200)
            if self.path == "/bomb":
                self.send_header("content-encoding", "gzip")
            self.end_headers()
            chunk = BOMB if self.path == "/bomb" else b"x" * 1_000_000
            try:
                for _ in range(1 if self.path == "/bomb" else 200):
                    self.wfile.write(chunk)
            except OSError:
                return

        def log_message(self, *args: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


BOMB = gzip.compress(b"x" * 200_000_000, 9)


@pytest.mark.parametrize("path", ["/large", "/bomb", "/error"])
def test_a_server_that_answers_without_end_fails_its_trials_in_little_memory(
    proctor_process: Command, suite: Command, server: str, path: str
) -> None:
    suite("echo", count=2)
    ended = proctor_process("test", "suite.yaml", "--agent", server + path, "--retries", "0", memory=1500)
    assert ended.code == 1
    assert "larger than 10 MB" in ended.out


@pytest.mark.parametrize(
    "script",
    [
        "head -c 200000000 /dev/zero",
        "yes",
        "head -c 200000000 /dev/zero >&2; echo q1",
    ],
)
def test_a_command_that_writes_without_end_is_read_no_further_than_the_limit(
    proctor_process: Command, suite: Command, project: Path, script: str
) -> None:
    suite("echo", count=1)
    (project / "loud.sh").write_text(f"{script}\n")
    ended = proctor_process("test", "suite.yaml", "--agent", "cmd:sh loud.sh", memory=1500)
    assert ended.code == (0 if "echo" in script else 1)


def test_a_session_command_that_writes_one_endless_line_is_refused(
    proctor_process: Command, suite: Command, project: Path
) -> None:
    path = suite("echo", count=1)
    (project / "loud.sh").write_text("tr '\\0' x </dev/zero\n")
    path.write_text(path.read_text().replace("agents.py:echo", "{command: [sh, loud.sh], session: true}"))
    ended = proctor_process("test", "suite.yaml", memory=1500)
    assert ended.code == 1
    assert "larger than 10 MB" in ended.out


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        ("generator_exit", "the agent raised GeneratorExit"),
        ("base_group", "the agent raised BaseExceptionGroup"),
        ("base_exception", "raised BaseException: bare"),
        ("slow_text", "raised SlowText"),
        ("raising_text", "raised RaisingText"),
        ("loud_error", "raised ValueError: xxx"),
    ],
)
def test_whatever_an_agent_raises_is_its_own_trials(
    proctor_process: Command, suite: Command, agent: str, reason: str
) -> None:
    suite(agent)
    ended = proctor_process("test", "suite.yaml", "-v")
    assert ended.code == 1
    assert reason in " ".join(ended.out.split())
    assert len(ended.out) < 1_000_000
    assert "3 of 4 cases passed" in ended.out


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ("generator_exit_check", "raised GeneratorExit"),
        ("infinite_check", "an infinite score"),
        ("slow_reason_check", "gave no score within 1 s"),
    ],
)
def test_whatever_an_evaluator_does_is_only_its_own_error(
    proctor_process: Command, suite: Command, check: str, reason: str
) -> None:
    suite("echo", count=3, evaluators=f"['agents.py:{check}', ExactMatch]")
    ended = proctor_process("test", "suite.yaml", "--evaluator-timeout", "1")
    assert ended.code == 4
    assert reason in " ".join(ended.out.split())
    assert "3 trials" in ended.out


def test_patched_clocks_change_no_measurement(proctor_process: Command, suite: Command) -> None:
    suite("patches_clocks")
    ended = proctor_process("test", "suite.yaml", "--timeout", "1")
    assert ended.code == 1
    assert "no answer within 1 s" in ended.out
    assert "-" not in ended.out.split("slowest: c3 ")[1][:4]


def test_a_store_that_vanishes_is_never_a_pass(proctor_process: Command, suite: Command) -> None:
    suite("removes_the_store")
    ended = proctor_process("test", "suite.yaml")
    assert ended.code == 4
    assert "PASSED" not in ended.out
    assert "removed or replaced" in ended.out


def test_workflow_commands_in_an_answer_reach_no_log(
    proctor: Command, proctor_process: Command, suite: Command
) -> None:
    suite("workflow_command", count=1)
    ended = proctor_process("test", "suite.yaml", "-v", GITHUB_ACTIONS="true")
    for kind in ("--md", "--junit", "--csv", "--json", "--html"):
        said = ended.out + proctor("test", "suite.yaml", kind, "-").out
        lines = [line.strip() for line in said.splitlines() if not line.startswith("::error file=suite.yaml,line=")]
        assert not [line for line in lines if line.startswith("::") or "##vso[" in line or "##teamcity[" in line]
        assert not [line for line in lines if "##[" in line or "\x1b" in line or "section_start:1:a\r" in line]
    assert "forged" in ended.out
