"""`proctor view` from the shell: it answers, and it ends with Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND
from served_viewer import serve_viewer
from stored_runs import FIRST, SECOND, two_runs

from proctor.base.installation import install_command
from proctor.results.store.run_files import export_run
from proctor.results.store.store import Store
from proctor.viewer.sources import open_sources


@pytest.mark.process
def test_the_viewer_serves_until_ctrl_c_and_leaves_nothing_behind(project: Path) -> None:
    two_runs(project / ".proctor")
    command = [*COMMAND, "view", SECOND, "--no-open"]
    started = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert started.stdout is not None
        said = started.stdout.readline()
        found = re.search(rf"(http://127\.0\.0\.1:(\d+)/)runs/{SECOND}\?token=\S{{32}} ", said)
        assert found, said
        with pytest.raises(urllib.error.HTTPError, match="403"):  # another user of this machine
            urllib.request.urlopen(f"{found.group(1)}runs/{SECOND}", timeout=30)
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(found.group().strip(), timeout=30) as page:
            assert b"after the change" in page.read()
        listening = browser.open(f"{found.group(1)}events", timeout=30)  # as open pages do
        assert listening.readline()
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=30)
        listening.close()
    finally:
        started.kill()
        started.wait()
    assert (started.returncode, out, err) == (0, "", "")
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", int(found.group(2))), timeout=5):
        pass


@pytest.mark.process
def test_away_from_loopback_the_address_that_is_opened_carries_a_token(project: Path) -> None:
    two_runs(project / ".proctor")
    os.mkfifo(project / "opened")
    browser = project / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {project}/opened\n', encoding="utf-8")
    browser.chmod(0o755)
    command = [*COMMAND, "view", "--host", "0.0.0.0"]
    environment = {**os.environ, "BROWSER": str(browser)}
    started = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert started.stdout is not None
        said = started.stdout.readline()
        assert (project / "opened").read_text(encoding="utf-8").strip() in said
    finally:
        started.kill()
        started.communicate()
    assert re.search(r"http://0\.0\.0\.0:\d+/\?token=\S{32} ", said)


def test_what_is_nothing_is_said_before_anything_is_served(project: Path, proctor: Callable[..., Any]) -> None:
    assert "no results in" in proctor("view", "--no-open").err
    two_runs(project / ".proctor")
    ended = proctor("view", "--no-open", "nonsense")
    assert ended.code == 2
    assert "'nonsense' is not a run, a store or a file" in ended.err
    taken = socket.create_server(("127.0.0.1", 0))
    with taken:
        ended = proctor("view", "--no-open", "--port", taken.getsockname()[1])
    assert "cannot listen on" in ended.err


def test_without_its_packages_the_viewer_says_what_to_install(
    project: Path, proctor: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    two_runs(project / ".proctor")
    for name in [name for name in sys.modules if name.startswith(("starlette", "proctor.viewer"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    ended = proctor("view", "--no-open")
    assert ended.code == 2
    assert install_command("view") in ended.err


def test_stores_files_and_runs_can_be_named_together(project: Path) -> None:
    two_runs(project / "other")
    two_runs(project / ".proctor")
    kept = Store(project / "other")
    with (project / "run.jsonl").open("w", encoding="utf-8") as out:
        export_run(kept.find_run(FIRST), out)
    kept.close()
    for named, labels, first in [
        ([], [".proctor"], "/"),
        ([FIRST], [".proctor"], f"/runs/{FIRST}"),
        ([FIRST, SECOND], [".proctor"], "/"),
        (["last"], [".proctor"], f"/runs/{SECOND}"),
        (["other"], ["other"], "/"),
        (["other/results.db"], ["other"], "/"),
        (["run.jsonl"], ["run.jsonl"], f"/runs/{FIRST}"),
        (["last", "other", "run.jsonl"], [".proctor", "other", "run.jsonl"], "/"),
    ]:
        sources = open_sources(named, Path(".proctor"))
        assert [source.label for source in sources.all] == labels
        assert sources.first_page() == first
        sources.close()


def test_the_page_of_a_run_shows_gate_agents_and_judges_like_the_report(
    proctor: Callable[..., Any], suite: Callable[..., Any], project: Path
) -> None:
    suite(text="name: desk\nagent: agents.py:echo\ncases: [{id: c1, input: q, expected: q}]\n")
    proctor("test", "--repeat", "5", "--name", "first")
    proctor("baseline", "accept")
    proctor("test", "--gate", "--name", "gated", "-e", "Factuality", "--judge", "rules")
    proctor("test", "--agent", "good=agents.py:echo", "--agent", "lazy=nop", "--name", "agents")
    with closing(Store(project / ".proctor")) as store:
        runs = {row.name: row.id for row in store.runs()}
    with serve_viewer(project / ".proctor") as client:
        gated = client.get(f"/runs/{runs['gated']}").text
        agents = client.get(f"/runs/{runs['agents']}").text
    assert '<section id="gate">' in gated
    assert "<h2>Gate: " in gated
    assert "<dt>Judge</dt>" in gated
    assert "desk: 2 arms" in agents
    assert "lazy compared with good: " in agents
