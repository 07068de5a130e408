"""What user code may import when the `proctor` script runs it: the working folder, the project's root, aliases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

SCRIPT = "import sys\nfrom proctor.cli import main\nmain()\n"
RUNNABLE = """
from pydantic import BaseModel
from myapp import answer
from proctor import Runnable

class Question(BaseModel):
    question: str

class App(Runnable):
    @classmethod
    def create(cls):
        return cls()

    async def run(self, args: Question):
        answer(args.question)
"""
APP = "from proctor import wrap\n\ndef answer(question):\n    wrap('yes', purpose='output', name='answer')\n"
DATASET = {
    "runnable": "pixie_qa/run.py:App",
    "evaluators": ["ExactMatch"],
    "entries": [
        {
            "description": "one",
            "input_data": {"question": "Is it?"},
            "eval_input": [{"name": "question", "value": "Is it?"}],
            "expectation": "yes",
        }
    ],
}


def proctor(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """As the script that pip installs runs it: Python puts the script's own folder on the path, and not this one."""
    script = folder.parent / "bin" / "script.py"
    script.parent.mkdir(exist_ok=True)
    script.write_text(SCRIPT, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PROCTOR")}
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        env=kept | environment,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "pixie_qa").mkdir(parents=True)
    (root / "myapp.py").write_text(APP, encoding="utf-8")
    (root / "pixie_qa" / "run.py").write_text(RUNNABLE, encoding="utf-8")
    (root / "pixie_qa" / "data.json").write_text(json.dumps(DATASET), encoding="utf-8")
    return root


def test_code_in_a_folder_imports_from_the_working_folder(project: Path) -> None:
    code, output = proctor(project, "test", "pixie_qa/data.json")
    assert code == 0, output


def test_code_imports_from_the_root_of_the_project_when_run_from_below(project: Path) -> None:
    (project / "pyproject.toml").write_text("", encoding="utf-8")
    data = project / "pixie_qa" / "data.json"
    data.write_text(data.read_text(encoding="utf-8").replace("pixie_qa/run.py", "run.py"), encoding="utf-8")
    code, output = proctor(project / "pixie_qa", "test", "data.json")
    assert code == 0, output


def test_an_interpreter_told_to_keep_the_path_safe_keeps_it(project: Path) -> None:
    code, output = proctor(project, "test", "pixie_qa/data.json", PYTHONSAFEPATH="1")
    assert code == 2
    assert "No module named 'myapp'" in output


AGENT = "from deepeval.test_case import LLMTestCase\n\ndef agent(text):\n    return LLMTestCase(input=text).input\n"
SUITE = "cases:\n  - id: a\n    input: hello\n    expected: hello\nevaluators: [ExactMatch]\nagent: app.py:agent\n"


@pytest.mark.parametrize("module", [False, True])
def test_an_agent_that_imports_an_aliased_package_is_loaded(module: bool, tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "app.py").write_text(AGENT, encoding="utf-8")
    (root / "suite.yaml").write_text(SUITE, encoding="utf-8")
    (root / "proctor.toml").write_text('aliases = ["deepeval"]\n' if module else "", encoding="utf-8")
    code, output = proctor(root, "test", "suite.yaml", **({} if module else {"PROCTOR_ALIASES": "deepeval"}))
    assert code == 0, output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('aliases = "deepeval"', "aliases must be a list of names, not 'deepeval'"),
        ('aliases = ["deepevil"]', "unknown package 'deepevil'; did you mean 'deepeval'?"),
    ],
)
def test_wrong_aliases_are_one_message(text: str, told: str, tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "app.py").write_text("def agent(text):\n    return text\n", encoding="utf-8")
    (root / "suite.yaml").write_text(SUITE, encoding="utf-8")
    (root / "proctor.toml").write_text(text, encoding="utf-8")
    code, output = proctor(root, "test", "suite.yaml")
    assert code == 2, output
    assert told in output
