"""Runs a GitHub action step by step in a shell, as GitHub's runner does; GitHub itself is a server on loopback."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from repository import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


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


@dataclass
class Runner:
    """Runs the action as GitHub's runner does: expressions, conditions, environment files, and what `uses` names.

    The repository is checked out in the folder `work` of `root`.
    """

    root: Path
    hub: GitHub
    action: dict[str, Any] = field(default_factory=lambda: ACTION)
    action_path: Path = ROOT
    programs: Path = Path(sys.executable).parent
    """The folder of Python, which is what the runner sets up."""
    environment: dict[str, str] = field(default_factory=dict)
    """What the step in the workflow passes as `env`."""
    said: str = ""
    run_id: int = 0
    base_sha: str = ""
    """The tip of the base branch, in the event of a pull request."""
    before: str = ""
    """The tip of the branch before a push."""
    event: str = "pull_request"
    inputs: dict[str, str] = field(default_factory=dict)
    steps: dict[str, dict[str, str]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    code: int = 0

    def run(self, event: str = "pull_request", **inputs: str) -> Runner:
        self.event, self.run_id = event, self.run_id + 1
        self.said, self.steps, self.ran, self.code = "", {}, [], 0
        defaults = {name: str(item.get("default", "")) for name, item in self.action["inputs"].items()}
        self.inputs = {**defaults, **{name.replace("_", "-"): value for name, value in inputs.items()}}
        payload: dict[str, Any] = {"repository": {"default_branch": "main"}}
        if event == "pull_request":
            payload["pull_request"] = {"number": 7}
        (self.root / "event.json").write_text(json.dumps(payload))
        (self.root / "summary.md").write_text("")
        for step in self.action["runs"]["steps"]:
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
            env={**self.job_environment(told), **{n: self._text(str(v)) for n, v in step.get("env", {}).items()}},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
        )
        self.said += done.stdout + done.stderr
        outputs.update(line.split("=", 1) for line in told.read_text(encoding="utf-8").splitlines())  # type: ignore[misc]
        self.code = self.code or done.returncode

    def job_environment(self, told: Path) -> dict[str, str]:
        own = f"{self.root / 'bin'}{os.pathsep}{self.programs}{os.pathsep}{os.environ['PATH']}"
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
            **self.environment,
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
            "action_path": str(self.action_path),
            "token": "secret",
            "sha": "c0ffee",
            "run_id": str(self.run_id),
            "run_attempt": "1",
            "event_name": self.event,
            "ref_name": "7/merge" if self.event == "pull_request" else "main",
            "event.repository.default_branch": "main",
            "event.pull_request.base.sha": self.base_sha if self.event.startswith("pull_request") else "",
            "event.before": self.before if self.event == "push" else "",
            "event.inputs.restart": "",
            "base_ref": "main" if self.event.startswith("pull_request") else "",
        }
        if choice := re.fullmatch(r"(\S+) == '(.*?)'(?: && '(.*?)' \|\| '(.*?)')?", name):
            left, right, when, otherwise = choice.groups()
            holds = self._value(left) == right
            return str(holds).lower() if when is None else when if holds else otherwise
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


@contextmanager
def serve_github() -> Iterator[GitHub]:
    """A GitHub that accepts the comments of one pull request."""
    with GitHub() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
