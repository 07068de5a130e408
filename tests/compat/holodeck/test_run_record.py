"""The record of a run: what it was made with, what came of it, and not a single secret."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from proctor.base.errors import InvalidSuite, StoreError, UsageError
from proctor.cases.formats.loading import load
from proctor.compat.holodeck import ConfigLoader, ExecutionConfig, ExecutionResult, TestExecutor
from proctor.compat.holodeck.config import prompt_version_of
from proctor.compat.holodeck.run_record import mask_results
from proctor.declared.agent_reader import split_front_matter

KEY = "sk-live-0123456789abcdef"
MASKED_KEY = "[secret: API key, 24 characters]"


class Echo:
    """A backend that repeats what it is told, and lets slip what it knows."""

    def __init__(self, slip: str = "") -> None:
        self.slip = slip

    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        calls = [{"name": "login", "arguments": {"password": "tr0ub4dor&3", "user": "bob"}}]
        return ExecutionResult(message + self.slip, calls)

    async def teardown(self) -> None: ...


def write(folder: Path, **more: Any) -> Path:
    data = {
        "name": "Loan desk",
        "model": {"provider": "openai", "name": "gpt-4o"},
        "instructions": {"inline": "You lend money."},
        "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
        "test_cases": [{"name": "one", "input": "a", "ground_truth": "a"}],
        **more,
    }
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in data.items() if value is not None}, sort_keys=False))
    return path


def record_of(path: Path, backend: Any = None, **given: Any) -> dict[str, Any]:
    async def run() -> Path:
        executor = TestExecutor(str(path), backend=backend or Echo(), **given)
        await executor.execute_tests()
        await executor.shutdown()
        return executor.save_record(path.parent / "results")

    kept = asyncio.run(run())
    assert kept.parent == path.parent / "results" / "loan-desk"
    found: dict[str, Any] = json.loads(kept.read_text())
    assert kept.stem == found["metadata"]["run_id"]
    return found


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def test_a_record_is_the_report_and_what_it_was_made_with(tmp_path: Path) -> None:
    found = record_of(write(tmp_path), execution_config=ExecutionConfig(llm_timeout=9, parallel_test_cases=2))
    assert set(found) == {"report", "metadata"}
    assert set(found["metadata"]) >= {"agent_config", "prompt_version", "holodeck_version", "cli_args", "git_commit"}
    report = found["report"]
    assert (report["summary"]["passed"], report["results"][0]["agent_response"]) == (1, "a")
    config = found["metadata"]["agent_config"]
    assert config["model"] == {"temperature": 0.3, "max_tokens": 1000, "provider": "openai", "name": "gpt-4o"}
    assert (config["execution"]["llm_timeout"], config["execution"]["parallel_test_cases"]) == (9, 2)
    assert config["test_cases"] == [{"name": "one", "input": "a", "ground_truth": "a"}]


def test_tests_of_another_file_are_in_the_record(tmp_path: Path) -> None:
    (tmp_path / "tests.yaml").write_text("test_cases: [{input: b, ground_truth: b}]\n")
    found = record_of(write(tmp_path, test_cases=None, test_cases_file="tests.yaml"))
    assert found["metadata"]["agent_config"]["test_cases"] == [{"input": "b", "ground_truth": "b"}]


def test_a_record_says_what_the_file_said_when_the_run_began(tmp_path: Path) -> None:
    path = write(tmp_path)

    class Rewriting(Echo):
        async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
            write(tmp_path, model={"provider": "openai", "name": "another"}, instructions={"inline": "Changed."})
            return ExecutionResult(message)

    found = record_of(path, Rewriting())["metadata"]
    assert found["agent_config"]["model"]["name"] == "gpt-4o"
    assert found["prompt_version"]["body_hash"] == hashlib.sha256(b"You lend money.").hexdigest()


def test_the_commit_that_was_checked_out_is_recorded(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    assert record_of(write(tmp_path))["metadata"]["git_commit"] is None
    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=tmp_path, check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert record_of(write(tmp_path))["metadata"]["git_commit"] == commit.stdout.strip()


def test_no_secret_is_in_a_record_wherever_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain_looking = "correcthorsebatterystaple"
    for name, value in {"DESK": plain_looking, "DESK_API_KEY": "0815-4711-key-of-a-kind", "CITY": "Oslo"}.items():
        monkeypatch.setenv(name, value)
    tool = {
        "type": "mcp",
        "name": "kb",
        "description": "d",
        "command": "npx",
        "args": ["--key", "${DESK_API_KEY}", KEY, "in ${CITY}"],
        "env": {"WHERE": "${CITY}", "PASSWORD": 123456789},
        "headers": {"X-Desk": "${DESK}", "Authorization": "Bearer abcdefgh12345678"},
    }
    model = {"provider": "openai", "name": "m", "api_key": "${DESK}", "endpoint": "https://bob:pw12@desk.example/v1"}
    tests = [
        {"input": "a", "ground_truth": "a", "expected_tools": [{"name": "login", "args": {"password": "hunter22"}}]}
    ]
    path = write(tmp_path, model=model, tools=[tool], test_cases=tests)
    found = record_of(path, Echo(f" {plain_looking} 0815-4711-key-of-a-kind {KEY} https://a:b@c"))
    text = json.dumps(found)
    hidden = (
        plain_looking,
        "0815-4711",
        KEY,
        "pw12",
        "abcdefgh12345678",
        "123456789",
        "hunter22",
        "tr0ub4dor",
        "a:b@c",
    )
    assert [secret for secret in hidden if secret in text] == []
    config = found["metadata"]["agent_config"]
    assert config["model"]["api_key"] == "${DESK}"
    assert config["model"]["endpoint"] == "https://[secret: URL password, 8 characters]@desk.example/v1"
    assert config["tools"][0]["args"] == ["--key", "${DESK_API_KEY}", MASKED_KEY, "in Oslo"]
    assert config["tools"][0]["env"] == {"WHERE": "${CITY}", "PASSWORD": "[secret: PASSWORD, 9 characters]"}
    made = found["report"]["results"][0]["tool_invocations"][0]["args"]
    assert made == {"password": "[secret: password, 11 characters]", "user": "bob"}


def test_a_metric_that_is_called_like_a_secret_keeps_its_score(tmp_path: Path) -> None:
    (tmp_path / "graders.py").write_text("def secret(context):\n    return 0.5\n")
    metrics = {"metrics": [{"type": "code", "grader": "graders.py:secret"}]}
    found = record_of(write(tmp_path, evaluations=metrics))
    assert found["report"]["summary"]["average_scores"] == {"secret": 0.5}


def test_a_key_that_a_tool_is_given_is_an_ordinary_word(tmp_path: Path) -> None:
    expected = [{"name": "lookup", "args": {"key": "opening-hours"}}]
    tests = [{"input": "when are the opening-hours?", "ground_truth": "opening-hours", "expected_tools": expected}]
    found = record_of(write(tmp_path, test_cases=tests))
    assert found["report"]["results"][0]["test_input"] == "when are the opening-hours?"
    assert found["metadata"]["agent_config"]["test_cases"] == tests


def test_what_one_result_holds_under_the_name_of_a_secret_is_masked_in_the_others() -> None:
    masked = mask_results([{"args": {"password": "tr0ub4dor and 3"}}, {"text": "it was tr0ub4dor and 3"}])
    assert "tr0ub4dor" not in json.dumps(masked)
    assert mask_results(masked) == masked


def test_a_record_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("in the way")
    with pytest.raises(StoreError, match="the record of the run could not be written"):
        record_of(write(tmp_path))


def test_a_record_that_breaks_off_is_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("proctor.compat.holodeck.run_record.os.fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        record_of(write(tmp_path))
    assert list((tmp_path / "results" / "loan-desk").iterdir()) == []


def test_there_is_no_record_before_there_is_a_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no run to write a record of"):
        TestExecutor(str(write(tmp_path)), backend=Echo()).save_record(tmp_path)


def prompt(folder: Path, text: str) -> Any:
    (folder / "prompt.md").write_bytes(text.encode("utf-8", "surrogatepass"))
    [suite] = load([write(folder, instructions={"file": "prompt.md"})])
    return prompt_version_of(suite)


def test_instructions_say_their_version_and_whatever_else_they_note(tmp_path: Path) -> None:
    found = prompt(
        tmp_path, "---\nversion: 1.2\nauthor: Ann\ndescription: Kind\ntags: [a, 2]\nticket: 7\n---\n\nBe kind.\n"
    )
    assert (found.version, found.author, found.description, found.tags) == ("1.2", "Ann", "Kind", ("a", "2"))
    assert (found.source, found.file_path, found.extra) == ("file", "prompt.md", {"ticket": 7})
    assert found.body_hash == hashlib.sha256(b"Be kind.\n").hexdigest()


@pytest.mark.parametrize(
    "text", ["Be kind.", "---\nversion", "---\n: [\n---\nx", "---\n- a list\n---\nx", "", "---", "--- \n---\n"]
)
def test_instructions_without_a_version_are_known_by_their_text(tmp_path: Path, text: str) -> None:
    found = prompt(tmp_path, text)
    assert found.version == f"auto-{found.body_hash[:8]}"


def test_notes_change_no_version_that_is_known_by_its_text(tmp_path: Path) -> None:
    first = prompt(tmp_path, "---\nauthor: Ann\n---\nBe kind.")
    second = prompt(tmp_path, "---\r\nauthor: Bob\r\n---\r\nBe kind.")
    assert first.version == second.version != prompt(tmp_path, "Be kinder.").version


def test_inline_instructions_have_no_notes(tmp_path: Path) -> None:
    [suite] = load([write(tmp_path, instructions={"inline": "---\nversion: 3\n---\nx"})])
    found = prompt_version_of(suite)
    assert found is not None
    assert (found.source, found.file_path, found.version[:5]) == ("inline", None, "auto-")


def test_a_prompt_that_cannot_be_read_costs_no_report(tmp_path: Path) -> None:
    path = write(tmp_path, instructions={"file": "gone.md"})
    assert ConfigLoader().load_agent_yaml(path).prompt_version is None
    assert record_of(path)["metadata"]["prompt_version"] is None


@given(st.text())
def test_notes_and_text_are_told_apart_in_any_text(text: str) -> None:
    try:
        notes, body = split_front_matter(Path("prompt.md"), text)
    except InvalidSuite:
        assert text.lstrip().startswith("---")
        return
    assert isinstance(notes, dict)
    assert text.endswith(body)
