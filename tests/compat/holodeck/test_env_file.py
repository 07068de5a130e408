"""Variables of an agent.yaml that stand in a `.env` file."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from proctor.compat.holodeck import ConfigError, ConfigLoader, ExecutionResult, TestExecutor

AGENT = """
name: desk
agent: desk.py:answer
evaluations:
  metrics:
    - {type: standard, metric: equality}
test_cases:
  - {name: one, input: "say ${GREETING_TOKEN}", ground_truth: "say ${GREETING_TOKEN} with ${HERE_PASSWORD}"}
"""
DESK = "import os\n\ndef answer(question):\n    return f\"{question} with {os.environ['HERE_PASSWORD']}\"\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder, here = tmp_path / "agent", tmp_path / "here"
    for place in (folder, here):
        place.mkdir()
    (folder / "agent.yaml").write_text(AGENT)
    (folder / "desk.py").write_text(DESK)
    (folder / ".env").write_text("GREETING_TOKEN=hello-from-beside\n")
    (here / ".env").write_text("GREETING_TOKEN=hello-from-elsewhere\nHERE_PASSWORD=the-working-folder\n")
    monkeypatch.chdir(here)
    return folder


def test_variables_next_to_the_agent_and_in_the_working_folder_hold_while_it_runs(project: Path) -> None:
    before = dict(os.environ)
    executor = TestExecutor(str(project / "agent.yaml"))
    assert executor.agent_config.test_cases is not None
    assert executor.agent_config.test_cases[0].input == "say hello-from-beside"
    report = asyncio.run(executor.execute_tests())
    assert report.results[0].passed
    assert dict(os.environ) == before
    assert "hello-from-beside" not in report.model_dump_json()


def test_the_real_environment_comes_first(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREETING_TOKEN", "hi")
    agent = ConfigLoader().load_agent_yaml(project / "agent.yaml")
    assert agent.test_cases is not None
    assert agent.test_cases[0].input == "say hi"


def test_a_variable_that_is_nowhere_is_still_a_problem(project: Path) -> None:
    (project / ".env").unlink()
    Path(".env").unlink()
    with pytest.raises(ConfigError, match=r"uses \$\{GREETING_TOKEN\}, which is not set"):
        ConfigLoader().load_agent_yaml(project / "agent.yaml")


@pytest.mark.process
def test_the_command_line_reads_them_and_shows_none_of_them(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "proctor", "test", "../agent/agent.yaml", "-v", "--json", "report.json"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout + done.stderr + Path("report.json").read_text()
    assert "hello-from-beside" not in shown
    assert "the-working-folder" not in shown


NATIVE = """
name: shop
agent: shop.py:answer
cases:
  - {input: q, expected: from-the-project}
evaluators: [ExactMatch]
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("config", "file", "code"),
    [("", ".env", 0), ('env_file = "test.env"\n', "test.env", 0), ('env_file = "gone.env"\n', ".env", 2)],
)
def test_a_project_has_its_variables_too(tmp_path: Path, config: str, file: str, code: int) -> None:
    (tmp_path / "proctor.toml").write_text(config)
    (tmp_path / file).write_text("SHOP_ANSWER=from-the-project\n")
    (tmp_path / "suite.yaml").write_text(NATIVE)
    (tmp_path / "shop.py").write_text("import os\n\ndef answer(question):\n    return os.environ['SHOP_ANSWER']\n")
    done = subprocess.run(
        [sys.executable, "-m", "proctor", "test", "suite.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert code == 0 or "gone.env, which does not exist" in done.stderr


@pytest.mark.process
def test_a_key_in_the_file_is_enough_to_build_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = "model: {provider: openai, name: gpt, api_key: '${DESK_KEY}'}\ninstructions: {inline: Hi}\n"
    (tmp_path / "agent.yaml").write_text(f"name: a\n{model}test_cases: [{{input: x, expected_tools: [t]}}]\n")
    (tmp_path / ".env").write_text("DESK_KEY=sk-desk-0123456789\n")

    class Backend:
        async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
            return ExecutionResult("sk-desk-0123456789")

    report = asyncio.run(TestExecutor(str(tmp_path / "agent.yaml"), backend=Backend()).execute_tests())
    assert "sk-desk-0123456789" not in report.model_dump_json()
    done = subprocess.run(
        [sys.executable, "-m", "proctor", "doctor", "agent.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "DESK_KEY" not in done.stderr
    assert "not set" not in done.stdout
