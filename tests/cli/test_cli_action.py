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
    assert "| desk/refund | ❌ regressed" in body
    assert "[Download the reports](https://github.example/acme/desk/artifacts/3)" in body
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


@pytest.fixture
def checkout(runner: Runner) -> Path:
    """A clone in `work` whose origin has the first commit on main."""
    origin, work = runner.root / "origin", runner.root / "work"
    git(runner.root, "init", "--quiet", "--bare", "--initial-branch=main", str(origin))
    git(work, "init", "--quiet", "--initial-branch=main")
    git(work, "remote", "add", "origin", origin.as_uri())
    (work / ".gitignore").write_text(".proctor\n.proctor-base\nproctor-reports\n__pycache__\n")
    commit(work)
    git(work, "push", "--quiet", "origin", "main")
    return work


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=ann", "-c", "user.email=ann@example.com"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout.strip()


def commit(work: Path, agent: str = "", suite: str = "") -> str:
    """Commit these files, and what else changed; the commit."""
    if agent:
        (work / "desk.py").write_text(agent)
    if suite:
        (work / "desk.yaml").write_text(suite)
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--allow-empty", "--message", "change")
    return git(work, "rev-parse", "HEAD")


def failures(work: Path) -> int:
    return (work / "proctor-reports" / "junit.xml").read_text().count("<failure")


def test_pushes_record_the_baseline_and_only_the_push_that_changes_the_agent_is_red(
    runner: Runner, checkout: Path
) -> None:
    runner.before = "0" * 40  # a new branch
    first = runner.run("push", comment="false")
    assert first.code == 0, first.said  # `never` fails on both sides
    assert failures(checkout) == 0
    assert "cached.baseline.jsonl: 3 cases" in first.said and "Save the baseline" in first.ran

    runner.before = git(checkout, "rev-parse", "HEAD")
    commit(checkout, BAD)
    intended = runner.run("push", comment="false")
    assert intended.code == 1, intended.said
    assert "refund regressed, caused by this change" in intended.said and "1 case restarted" in intended.said
    assert "Save the baseline" in intended.ran, "what reached main is its new behavior"

    commit(checkout)
    after = runner.run("workflow_dispatch", restart="never\n", comment="false")
    assert after.code == 0, after.said
    assert re.search(r"baseline +\.proctor-base/cached\.baseline\.jsonl", after.said)
    assert "1 case restarted" in after.said, "by hand"


def test_a_pull_request_is_compared_with_its_merge_base_without_a_baseline(
    runner: Runner, hub: GitHub, checkout: Path
) -> None:
    base = git(checkout, "rev-parse", "HEAD")
    commit(checkout, BAD.replace("at nine", "at ten"))  # main goes on, and breaks `opening` too
    runner.base_sha = git(checkout, "rev-parse", "HEAD")
    git(checkout, "push", "--quiet", "origin", "main")
    git(checkout, "switch", "--quiet", "--create", "change", base)
    commit(checkout)
    green = runner.run()
    assert green.code == 0, green.said
    assert f"no regression in 3 cases against {base[:10]}" in green.said
    assert failures(checkout) == 0 and "::error" not in green.said and "Save the baseline" not in green.ran
    assert "## Proctor (default): ✅ no regression" in hub.comments[0]["body"]

    commit(checkout, BAD)
    red = runner.run()
    assert red.code == 1 and "refund regressed, caused by this change" in red.said
    assert "::error file=desk.yaml,line=5,title=desk/refund failed::" in red.said and red.said.count("::error") == 1
    assert "| desk/refund | ❌ regressed" in hub.comments[0]["body"] and len(hub.comments) == 1
    again = runner.run()  # somebody re-runs the job
    assert again.code == 1 and len(hub.comments) == 1

    hub.forbidden = True  # from a fork
    case = "  - {id: hours, input: Your hours?, expected: {contains: [nine]}}\n"
    commit(checkout, GOOD, SUITE + case)
    changed = runner.run()
    assert changed.code == 0, changed.said
    assert "::warning title=Proctor::the comment could not be written" in changed.said
    assert "no regression in 4 cases" in changed.summary


@pytest.mark.parametrize("is_merge", [True, False], ids=["merge-commit", "head"])
def test_a_shallow_clone_gets_the_merge_base_also_after_a_force_push(
    runner: Runner, checkout: Path, is_merge: bool
) -> None:
    base = commit(checkout)
    git(checkout, "push", "--quiet", "origin", "main")
    git(checkout, "switch", "--quiet", "--create", "change", "HEAD")
    commit(checkout)
    head = commit(checkout, BAD)
    if is_merge:  # what GitHub checks out: the head, merged into the base
        git(checkout, "switch", "--quiet", "--detach", base)
        git(checkout, "merge", "--quiet", "--no-ff", "--message", "merge", head)
        head = git(checkout, "rev-parse", "HEAD")
    git(checkout, "push", "--quiet", "origin", f"{head}:refs/heads/shown")
    shutil.rmtree(checkout)
    origin = (runner.root / "origin").as_uri()
    git(runner.root, "clone", "--quiet", "--depth=1", "--branch=shown", origin, "work")
    runner.base_sha = "1" * 40  # what main was before a force-push
    shallow = runner.run("pull_request" if is_merge else "pull_request_target")
    assert shallow.code == 1, shallow.said
    assert "Record the default branch" not in shallow.ran, "the code of a pull request is no baseline"
    assert f"with {base[:10]} in the same minutes" in shallow.said


def test_a_merge_base_that_cannot_be_fetched_is_named_with_the_setting(
    runner: Runner, hub: GitHub, checkout: Path
) -> None:
    commit(checkout)
    git(checkout, "push", "--quiet", "origin", "main")
    shutil.rmtree(checkout)
    git(runner.root, "clone", "--quiet", "--depth=1", (runner.root / "origin").as_uri(), "work")
    shutil.rmtree(runner.root / "origin")
    runner.base_sha = "1" * 40
    ended = runner.run()
    assert ended.code == 2, ended.said
    assert "::error title=Proctor::the merge base with main is not in this clone; set fetch-depth: 0" in ended.said
    assert "no result" in hub.comments[0]["body"]


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
