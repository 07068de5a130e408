"""The record that every run of an agent.yaml leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import COMMAND
from scripted_model import model_server, says

Command = Callable[..., Any]

KEY = "sk-live-0123456789abcdef"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def write(project: Path, file: str = "agent.yaml", **more: Any) -> Path:
    data = {
        "name": "Loan desk",
        "agent": "agents.py:echo",
        "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
        "test_cases": [{"name": "one", "input": "a", "ground_truth": "a"}],
        **more,
    }
    path = project / file
    path.write_text(yaml.safe_dump({key: value for key, value in data.items() if value is not None}, sort_keys=False))
    return path


def records(project: Path) -> list[Path]:
    return sorted((project / ".proctor" / "results").rglob("*"))


def only_record(project: Path, agent: str = "loan-desk") -> dict[str, Any]:
    [path] = (project / ".proctor" / "results" / agent).iterdir()
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_each_run_leaves_one_record_that_can_be_had_again(project: Path, proctor: Command) -> None:
    path, folder = write(project), project / ".proctor" / "results" / "loan-desk"
    assert proctor("test", path).code == 0
    [first] = folder.iterdir()
    ended = proctor("test", path, "--repeat", "2")
    [second] = set(folder.iterdir()) - {first}
    assert f"record: {second.relative_to(project)}" in ended.out
    latest = json.loads(second.read_text())
    assert latest["metadata"]["run_id"] == second.stem
    assert len(latest["report"]["results"]) == 2
    assert latest["metadata"]["settings"]["repeat"] == 2
    shown = proctor("show", "--report", "record=-")
    assert (shown.code, json.loads(shown.out)) == (0, latest)
    assert proctor("show", first.stem, "--record", project / "copy.json").code == 0
    assert (project / "copy.json").read_bytes() == first.read_bytes()


def test_a_record_says_what_was_in_force(project: Path, proctor: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLODECK_FILE_TIMEOUT", "11")
    monkeypatch.setenv("DESK_KEY", KEY)
    (project / "prompt.md").write_text("---\nversion: 2.1\nauthor: Ann\n---\nYou lend money.\n")
    (project / "config.yml").write_text("providers: {openai: {top_p: 0.5, api_key: '${DESK_KEY}'}}\n")
    with model_server(lambda talk: says(f"a, and your key is {KEY}")) as server:
        model = {"provider": "openai", "name": "gpt-4o", "endpoint": server.url}
        path = write(project, agent=None, model=model, instructions={"file": "prompt.md"})
        ended = proctor("test", path, "--timeout", "77", "-j", "3", "-q")
    assert (ended.code, "record:" in ended.out) == (1, False), ended
    found = only_record(project)
    metadata, config = found["metadata"], found["metadata"]["agent_config"]
    assert {key: metadata["prompt_version"][key] for key in ("version", "author", "source", "file_path")} == {
        "version": "2.1",
        "author": "Ann",
        "source": "file",
        "file_path": "prompt.md",
    }
    assert config["model"] == {
        "temperature": 0.3,
        "max_tokens": 1000,
        "top_p": 0.5,
        "api_key": "${DESK_KEY}",
        **model,
    }
    assert config["execution"]["llm_timeout"] == 77
    assert config["execution"]["parallel_test_cases"] == 3
    assert config["execution"]["file_timeout"] == 11
    assert config["test_cases"] == [{"name": "one", "input": "a", "ground_truth": "a"}]
    assert metadata["cli_args"] == ["test", str(path), "--timeout", "77", "-j", "3", "-q"]
    masked = f"[secret: DESK_KEY, {len(KEY)} characters]"
    assert found["report"]["results"][0]["agent_response"] == f"a, and your key is {masked}"
    assert KEY not in json.dumps(found)


def test_two_agents_of_one_run_have_a_record_each(project: Path, proctor: Command) -> None:
    write(project, "a.yaml")
    write(project, "b.yaml", name="loan desk!", agent="agents.py:wrong")
    (project / "c.yaml").write_text("name: other\nagent: agents.py:echo\ncases: [{input: a, expected: a}]\n")
    assert proctor("test", "a.yaml", "b.yaml", "c.yaml").code == 4
    first, second = only_record(project), only_record(project, "loan-desk-2")
    assert [r["report"]["outcome"] for r in (first, second)] == ["passed", "error"]
    assert [len(r["report"]["results"]) for r in (first, second)] == [1, 1]
    ended = proctor("show", "--report", "record=-")
    assert ended.code == 2
    assert "more than one record" in ended.err


def test_other_suites_leave_none(project: Path, proctor: Command, suite: Command) -> None:
    suite()
    assert proctor("test").code == 0
    assert records(project) == []
    ended = proctor("show", "--record", "-")
    assert ended.code == 2
    assert "left no record" in ended.err


def test_a_record_that_cannot_be_written_costs_no_verdict(project: Path, proctor: Command) -> None:
    (project / ".proctor").mkdir()
    (project / ".proctor" / "results").write_text("in the way")
    ended = proctor("test", write(project))
    assert ended.code == 0
    assert "warning: the record of the run could not be written" in ended.err


def test_a_document_on_standard_output_stays_one(project: Path, proctor: Command) -> None:
    ended = proctor("test", write(project), "--json", "-")
    assert json.loads(ended.out)["schema"]
    assert "record: " in ended.err


@pytest.mark.process
def test_an_interrupted_run_leaves_a_record_too_and_the_resumed_one_completes_it(project: Path) -> None:
    (project / "slow.py").write_text(
        "import os, time\n\ndef answer(question):\n"
        "    if question == 'b' and not os.path.exists('mended'):\n"
        "        print('waiting', flush=True)\n        time.sleep(3600)\n    return question\n"
    )
    tests = [{"name": name, "input": name, "ground_truth": name} for name in "ab"]
    write(project, agent="slow.py:answer", test_cases=tests)
    command = [*COMMAND, "test", "agent.yaml"]
    running = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert any("waiting" in line for line in running.stdout)
    os.kill(running.pid, signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    found = only_record(project)
    assert (found["metadata"]["interrupted"], found["report"]["summary"]["total_tests"]) == (True, 1)
    (project / "mended").touch()
    done = subprocess.run([*command, "--resume"], cwd=project, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done
    again = only_record(project)
    assert again["metadata"]["run_id"] == found["metadata"]["run_id"]
    assert (again["metadata"]["interrupted"], again["report"]["summary"]["total_tests"]) == (False, 2)
