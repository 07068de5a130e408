"""`action.yml`, step by step in a shell as a runner runs it; GitHub itself is a server on loopback."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from repository import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
SUITE = """name: desk
agent: desk.py:agent
cases:
  - {id: opening, input: When do you open?, expected: {contains: [nine]}}
  - {id: refund, input: A refund?, expected: {contains: [five days]}}
  - {id: never, input: Can you fly?, expected: {contains: [of course]}}
"""
GOOD = "def agent(question):\n    return 'five days' if 'refund' in question else 'at nine'\n"
BAD = GOOD.replace("five days", "ask @octocat")
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("bash") is None, reason="the steps of the action need bash"),
]


class GitHub(ThreadingHTTPServer):
    """The comments of one pull request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.forbidden = False

    def add(self, body: str, login: str = "github-actions[bot]") -> None:
        taken = [comment["id"] for comment in self.comments]
        self.comments.append({"id": max(taken, default=0) + 1, "body": body, "user": {"login": login}})


class Handler(BaseHTTPRequestHandler):
    server: GitHub

    def log_message(self, *words: Any) -> None:
        pass

    def _answer(self) -> None:
        hub, path = self.server, self.path.partition("?")[0]
        hub.requests.append(f"{self.command} {path}")
        sent = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
        if self.headers["Authorization"] != "Bearer secret" or path == "/user" or hub.forbidden:
            return self._send(403, {"message": "Resource not accessible by integration"})
        if path == "/repos/acme/desk/issues/7/comments":
            if self.command == "POST":
                hub.add(sent["body"])
                return self._send(201, hub.comments[-1])
            page = int(re.search(r"[?&]page=(\d+)", self.path)[1])  # type: ignore[index]
            return self._send(200, hub.comments[(page - 1) * 100 : page * 100])
        number = int(path.removeprefix("/repos/acme/desk/issues/comments/"))
        at = next(at for at, comment in enumerate(hub.comments) if comment["id"] == number)
        if self.command == "DELETE":
            del hub.comments[at]
            return self._send(204, None)
        hub.comments[at] |= sent
        return self._send(200, hub.comments[at])

    do_GET = do_POST = do_PATCH = do_DELETE = _answer

    def _send(self, status: int, data: Any) -> None:
        body = b"" if data is None else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def hub() -> Iterator[GitHub]:
    with GitHub() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@dataclass
class Runner:
    """Runs the action as GitHub's runner does: expressions, conditions, environment files, and what `uses` names."""

    root: Path
    hub: GitHub
    said: str = ""
    run_id: int = 0
    event: str = "pull_request"
    inputs: dict[str, str] = field(default_factory=dict)
    steps: dict[str, dict[str, str]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    code: int = 0

    def run(self, event: str = "pull_request", **inputs: str) -> Runner:
        self.event, self.run_id = event, self.run_id + 1
        self.said, self.steps, self.ran, self.code = "", {}, [], 0
        defaults = {name: str(item.get("default", "")) for name, item in ACTION["inputs"].items()}
        self.inputs = {**defaults, **{name.replace("_", "-"): value for name, value in inputs.items()}}
        payload: dict[str, Any] = {"repository": {"default_branch": "main"}}
        if event == "pull_request":
            payload["pull_request"] = {"number": 7}
        (self.root / "event.json").write_text(json.dumps(payload))
        (self.root / "summary.md").write_text("")
        for step in ACTION["runs"]["steps"]:
            self._step(step)
        return self

    @property
    def summary(self) -> str:
        return (self.root / "summary.md").read_text(encoding="utf-8")

    def _step(self, step: dict[str, Any]) -> None:
        condition = step.get("if", "success()")
        if not self._holds(condition) or (self.code and "always()" not in condition):
            return
        self.ran.append(step["name"])
        outputs = self.steps.setdefault(step.get("id", step["name"]), {})
        if "uses" in step:
            self._use(step["uses"], {name: self._text(str(value)) for name, value in step["with"].items()}, outputs)
            return
        assert "${{" not in step["run"], "an expression in a script would let an input write shell"
        self._shell(step, outputs)

    def _shell(self, step: dict[str, Any], outputs: dict[str, str]) -> None:
        script, told = self.root / "step.sh", self.root / "output.txt"
        script.write_text(step["run"], encoding="utf-8")
        told.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.root / "work" / self._text(step.get("working-directory", ".")),
            env={**self._environment(told), **{n: self._text(str(v)) for n, v in step.get("env", {}).items()}},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
        )
        self.said += done.stdout + done.stderr
        outputs.update(line.split("=", 1) for line in told.read_text(encoding="utf-8").splitlines())  # type: ignore[misc]
        self.code = self.code or done.returncode

    def _environment(self, told: Path) -> dict[str, str]:
        own = f"{self.root / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {
            "PATH": own,
            "HOME": str(self.root),
            "PYTHONIOENCODING": "utf-8",
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(told),
            "GITHUB_STEP_SUMMARY": str(self.root / "summary.md"),
            "GITHUB_EVENT_PATH": str(self.root / "event.json"),
            "GITHUB_WORKSPACE": str(self.root / "work"),
            "GITHUB_REPOSITORY": "acme/desk",
            "GITHUB_API_URL": f"http://127.0.0.1:{self.hub.server_port}",
        }

    def _use(self, action: str, given: dict[str, str], outputs: dict[str, str]) -> None:
        cache = self.root / "cache"
        if action.startswith("actions/cache/restore@"):
            if cache.is_dir():
                shutil.copytree(cache, self.root / "work" / given["path"], dirs_exist_ok=True)
        elif action.startswith("actions/cache/save@"):
            shutil.copytree(self.root / "work" / given["path"], cache, dirs_exist_ok=True)
        elif action.startswith("actions/upload-artifact@"):
            assert Path(given["path"]).is_dir()
            outputs["artifact-url"] = "https://github.example/acme/desk/artifacts/3"
        else:
            assert action.startswith("actions/setup-python@")

    def _text(self, text: str) -> str:
        return EXPRESSION.sub(lambda found: str(self._value(found[1])), text)

    def _value(self, name: str) -> str:
        github = {
            "action_path": str(ROOT),
            "token": "secret",
            "sha": "c0ffee",
            "run_id": str(self.run_id),
            "run_attempt": "1",
            "event_name": self.event,
            "ref_name": "main" if self.event == "push" else "7/merge",
            "event.repository.default_branch": "main",
        }
        place, _, rest = name.partition(".")
        if place == "github":
            return github[rest]
        if place == "inputs":
            return self._text(self.inputs[rest])
        step, _, output = rest.partition(".outputs.")
        return self.steps.get(step, {}).get(output, "")

    def _holds(self, condition: str) -> bool:
        for part in condition.split(" && "):
            if part in ("always()", "success()"):
                continue
            name, sign, text = re.fullmatch(r"(\S+) (==|!=) (\S+)", part).groups()  # type: ignore[union-attr]
            wanted = text.strip("'") if text.startswith("'") else self._value(text)
            if (self._value(name) == wanted) is not (sign == "=="):
                return False
        return True


@pytest.fixture
def runner(tmp_path: Path, hub: GitHub) -> Runner:
    (tmp_path / "work").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "work" / "desk.yaml").write_text(SUITE)
    (tmp_path / "work" / "desk.py").write_text(GOOD)
    # What is to be installed is here already, and a package index is not: pip only says what it was asked for.
    python = tmp_path / "bin" / "python"
    python.write_text(
        '#!/bin/sh\nif [ "$1 $2" = "-m pip" ]; then echo "pip $*"; exit 0; fi\n' + f'exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    return Runner(tmp_path, hub)


def test_a_pull_request_gets_one_comment_that_each_run_writes_anew(runner: Runner, hub: GitHub) -> None:
    work = runner.root / "work"
    on_main = runner.run("push", arguments="--repeat\n10\n")  # the default branch records what is usual
    assert on_main.code == 1, on_main.said  # one case fails as it always did
    assert on_main.ran[-2:] == ["Save the baseline", "Report the verdict"]
    assert "no gate: there is no baseline yet" in on_main.said
    assert "not about a pull request" in on_main.said
    for folder in (".proctor", ".proctor-base", "proctor-reports"):  # each job begins with a clean folder
        shutil.rmtree(work / folder)
    assert hub.comments == []

    (work / "desk.py").write_text(BAD)
    hub.add("<!-- proctor:pull-request default -->\nnot Proctor's", "mallory")
    red = runner.run(requirements="needs.txt", extras="judge")
    assert red.code == 1, red.said
    assert f"pip -m pip install --quiet --disable-pip-version-check {ROOT}[judge]" in red.said
    assert "pip -m pip install --quiet --disable-pip-version-check -r needs.txt" in red.said
    assert re.search(r"baseline +\.proctor-base/cached\.baseline\.jsonl", red.said)
    assert "::error file=desk.yaml,line=5,title=desk/refund failed::" in red.said
    assert "Proctor: " in red.summary
    assert "the comment was written\n" in red.said
    body = hub.comments[1]["body"]
    assert body.startswith("<!-- proctor:pull-request default -->\n## Proctor (default): ❌ regression")
    assert "### Broken (1)" in body
    assert "[desk/refund](https://github.example/acme/desk/artifacts/3#trial-" in body
    assert {path.name for path in (work / "proctor-reports").iterdir()} == {
        "report.html",
        "report.md",
        "report.json",
        "junit.xml",
        "comment.md",
    }
    assert "Save the baseline" not in red.ran

    (work / "desk.py").write_text(GOOD)
    green = runner.run()
    assert green.code == 0, green.said
    assert "the comment was written\n" in green.said
    assert [comment["user"]["login"] for comment in hub.comments] == ["mallory", "github-actions[bot]"]
    assert "✅ no regression" in hub.comments[1]["body"]
    assert hub.comments[0]["body"].endswith("not Proctor's")


def test_where_nothing_can_be_run_the_comment_says_so(runner: Runner, hub: GitHub) -> None:
    (runner.root / "work" / "desk.yaml").write_text("cases: [")
    ended = runner.run(gate="false", key="linux")
    assert ended.code == 2, ended.said
    assert [comment["body"].splitlines()[:2] for comment in hub.comments] == [
        ["<!-- proctor:pull-request linux -->", "## Proctor: no result"]
    ]


def post(runner: Runner, text: str = "<!-- m -->\nnew") -> str:
    (runner.root / "comment.md").write_text(text)
    (runner.root / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    environment = {**runner._environment(runner.root / "output.txt"), "GITHUB_TOKEN": "secret"}
    command = [sys.executable, "-m", "proctor.reporting.github_comment", str(runner.root / "comment.md")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_comment_is_found_among_many_and_a_second_one_is_taken_away(runner: Runner, hub: GitHub) -> None:
    for number in range(130):
        hub.add(f"talk {number}", "ann")
    for text in ("<!-- m -->\nold", "<!-- m -->\ntwice"):
        hub.add(text)
    assert post(runner) == "the comment was written\n"
    own = [comment for comment in hub.comments if comment["user"]["login"] != "ann"]
    assert [comment["body"] for comment in own] == ["<!-- m -->\nnew"]
    assert len(hub.comments) == 131


def test_a_token_that_may_not_write_is_a_warning_and_no_failure(runner: Runner, hub: GitHub) -> None:
    hub.forbidden = True
    told = post(runner)
    assert told.startswith("::warning title=Proctor::the comment could not be written: HTTP Error 403: Forbidden")
    assert "from forks" in told
    assert hub.comments == []
