"""The project of the template adk_ts with the real packages; `nox -s typescript` makes it and runs these tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = os.environ.get("PROCTOR_TYPESCRIPT", "")
pytestmark = [
    pytest.mark.process,
    pytest.mark.needs("adk"),
    pytest.mark.skipif(not PROJECT, reason="needs packages from npm; `nox -s typescript` installs them"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A fresh project of the template, with the packages that are installed in PROJECT."""
    folder = tmp_path / "weather"
    assert proctor(tmp_path, "init", "weather", "--template", "adk_ts").returncode == 0
    (folder / "node_modules").symlink_to(Path(PROJECT) / "node_modules")
    return folder


def proctor(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "proctor", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def change_cases(project: Path, old: str, new: str) -> None:
    path = project / "evaluation" / "tests" / "weather.test.json"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def vitest(project: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    npx = shutil.which("npx") or "npx"
    command = [npx, "vitest", "run"]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=180)


def test_typescript_calls_state_errors_and_tokens_are_seen(project: Path) -> None:
    change_cases(project, "What about Tokyo?", "What about Atlantis?")
    ended = proctor(project, "test", "evaluation", "--json", "report.json")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    report: Any = json.loads((project / "report.json").read_text(encoding="utf-8"))
    replies = {trial["case"]["id"]: trial["replies"] for trial in report["trials"]}
    london, atlantis = replies["two-cities"]
    (call,) = london["tool_calls"]
    assert (call["name"], call["arguments"]) == ("get_weather", {"city": "London"})
    assert call["result"] == {"city": "London", "weather": "sunny, 22°C"}
    assert "no weather station in Atlantis" in atlantis["tool_calls"][0]["error"]
    assert atlantis["state"]["last_city"] == "Atlantis"
    assert replies["greets-by-name"][0]["text"].startswith("Hello Ada!")
    assert london["usage"]["input_tokens"] > 0
    assert london["usage"]["model_calls"] == 2


def test_typescript_vitest_is_green_if_the_cases_pass_and_red_if_one_fails(project: Path) -> None:
    passed = vitest(project)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    change_cases(project, "Hello Ada! How can I help you today?", "Good evening")
    failed = vitest(project)
    assert failed.returncode == 1
    assert "greets-by-name" in failed.stdout + failed.stderr


def test_typescript_vitest_is_red_if_there_is_nothing_to_test(project: Path) -> None:
    (project / "evaluation" / "tests" / "weather.test.json").unlink()
    assert vitest(project).returncode == 1
