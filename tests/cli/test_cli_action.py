"""`action.yml`, step by step in a shell as a runner runs it; GitHub itself is a server on loopback."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from github_runner import GitHub, Runner, serve_github
from repository import ROOT

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


@pytest.fixture
def hub() -> Iterator[GitHub]:
    with serve_github() as server:
        yield server


@pytest.fixture
def runner(tmp_path: Path, hub: GitHub) -> Runner:
    (tmp_path / "work").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "work" / "desk.yaml").write_text(SUITE)
    (tmp_path / "work" / "desk.py").write_text(GOOD)
    # What is to be installed is here already, and a package index is not: pip only says what it was asked for.
    python = tmp_path / "bin" / "python"
    python.write_text(
        '#!/bin/sh\nif [ "$1 $2" = "-m pip" ]; then echo "pip $* in $PWD"; exit 0; fi\n'
        + f'exec "{sys.executable}" "$@"\n'
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
    assert f"pip -m pip install --quiet --disable-pip-version-check . in {ROOT}" in red.said
    assert "pip -m pip install --quiet --disable-pip-version-check agent-proctor[judge]" in red.said
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
    environment = {**runner.job_environment(runner.root / "output.txt"), "GITHUB_TOKEN": "secret"}
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
