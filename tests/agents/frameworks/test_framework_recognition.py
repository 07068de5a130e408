"""What only looks like a framework's object is an agent of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from proctor.agents.function_agent import CallableAgent, read_binding
from proctor.agents.resolve import resolve_agent


def test_a_package_of_ones_own_that_is_called_agents_is_not_taken_for_the_sdk(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").write_text(
        "class Agent:\n    def __call__(self, question): return question\n"
    )
    (tmp_path / "own_app.py").write_text("from agents import Agent\nagent = Agent()\n")
    code = "from proctor.agents.resolve import resolve_agent; print(type(resolve_agent('own_app.py:agent')).__name__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == "CallableAgent", done.stderr


def test_a_framework_is_not_imported_for_an_agent_of_another_kind() -> None:
    code = (
        "import sys\n"
        "from proctor.agents.resolve import resolve_agent\n"
        "resolve_agent(lambda question: question)\n"
        "frameworks = {'pydantic_ai', 'agents', 'langchain_core', 'langgraph', 'agno', 'google.adk', 'openai'}\n"
        "assert not frameworks & set(sys.modules), frameworks & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_function_is_still_a_function() -> None:
    assert isinstance(resolve_agent(lambda question: question), CallableAgent)


OWN_PACKAGE = """
called = []
def answer():
    called.append("answer")
    return "an answer"
"""


@pytest.mark.parametrize("package", ["agents", "workflows"])
def test_a_function_that_uses_a_package_of_the_users_called_agents_is_called_once_per_turn(
    tmp_path: Path, package: str
) -> None:
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text(OWN_PACKAGE)
    (tmp_path / "own_app.py").write_text(f"import {package}\n\n\ndef run():\n    return {package}.answer()\n")
    code = f"""
import {package}
import proctor
from proctor.agents.resolve import resolve_agent

resolve_agent("own_app.py:run")
assert {package}.called == []
suite = proctor.Suite("s", (proctor.Case(id="c", turns=(proctor.Turn("hi", proctor.Expected(output="an answer")),)),))
(trial,) = proctor.run(suite, agent="own_app.py:run").trials
assert trial.outcome == "passed", trial.reason
assert {package}.called == ["answer"]
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


SUITE = "agent: {}\ncases:\n  - id: a\n    input: hi\n    expected: {{output: hi}}\n"


@pytest.mark.parametrize("reference", ["app.py:make", "app.py:make()"])
def test_planning_a_run_calls_no_function_of_the_users(tmp_path: Path, reference: str) -> None:
    (tmp_path / "app.py").write_text("import pathlib\n\n\ndef make():\n    pathlib.Path('called').write_text('')\n")
    (tmp_path / "suite.yaml").write_text(SUITE.format(reference))
    command = [sys.executable, "-m", "proctor", "plan", "suite.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "called").exists()


def test_a_parameter_of_a_type_whose_name_contains_dict_gets_the_value_under_its_name() -> None:
    class Prediction(str):
        __slots__ = ()

    def explain(prediction: Prediction) -> str:
        return f"because of {prediction}"

    assert read_binding(explain).bind({"input": {"prediction": "rain"}}).arguments == {"prediction": "rain"}


def test_a_function_without_parameters_is_not_called_while_it_is_resolved() -> None:
    called = []
    assert isinstance(resolve_agent(lambda: called.append("now")), CallableAgent)
    assert called == []
