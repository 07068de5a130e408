"""What only looks like a framework's object is an agent of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from proctor.agents.callables import CallableAgent
from proctor.agents.resolving import resolve_agent


def test_a_package_of_ones_own_that_is_called_agents_is_not_taken_for_the_sdk(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").write_text(
        "class Agent:\n    def __call__(self, question): return question\n"
    )
    (tmp_path / "own_app.py").write_text("from agents import Agent\nagent = Agent()\n")
    code = "from proctor.agents.resolving import resolve_agent; print(type(resolve_agent('own_app.py:agent')).__name__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == "CallableAgent", done.stderr


def test_a_framework_is_not_imported_for_an_agent_of_another_kind() -> None:
    code = (
        "import sys\n"
        "from proctor.agents.resolving import resolve_agent\n"
        "resolve_agent(lambda question: question)\n"
        "frameworks = {'pydantic_ai', 'agents', 'langchain_core', 'langgraph', 'agno', 'google.adk', 'openai'}\n"
        "assert not frameworks & set(sys.modules), frameworks & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_function_is_still_a_function() -> None:
    assert isinstance(resolve_agent(lambda question: question), CallableAgent)


def test_a_function_without_parameters_that_has_to_do_with_no_framework_is_not_called_to_find_out() -> None:
    called = []
    assert isinstance(resolve_agent(lambda: called.append("now")), CallableAgent)
    assert called == []
