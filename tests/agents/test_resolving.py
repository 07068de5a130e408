from __future__ import annotations

import asyncio
import importlib.metadata
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.agents.agent import Agent, Reply
from proctor.agents.callables import CallableAgent
from proctor.agents.command import CommandAgent
from proctor.agents.http import HttpAgent
from proctor.agents.oracle_and_nop import NopAgent, OracleAgent
from proctor.agents.resolving import resolve_agent
from proctor.agents.runnable import RunnableAgent
from proctor.agents.toolbox import shown_by
from proctor.base.errors import UsageError
from proctor.cases.suite import Case, Turn

SOURCE = """
class App:
    @classmethod
    def create(cls): return cls()
    async def run(self, args): return args

class Bot:
    def __init__(self, tone="dry"): self.tone = tone
    def __call__(self, question): return self.tone

class Picky:
    def __init__(self, key): self.key = key
    def __call__(self, question): return self.key

def shout(question, mark="!"): return question + mark

control = NotImplemented
config = {"python": "agents_here.py:shout", "arguments": {"mark": "?"}}
number = 3
address = "http://x"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agents_here.py").write_text(SOURCE)
    return tmp_path


def ask(agent: Agent, question: Any = "hi") -> Reply:
    async def hold() -> Reply:
        async with agent.session(Case("c", (Turn(question),))) as session:
            return await session.send(Turn(question))

    return asyncio.run(hold())


def test_the_controls_have_names() -> None:
    assert isinstance(resolve_agent("oracle"), OracleAgent)
    assert isinstance(resolve_agent("nop"), NopAgent)


def test_a_reference_to_a_function_a_class_or_a_runnable_is_an_agent(folder: Path) -> None:
    assert ask(resolve_agent("agents_here.py:shout", folder)).text == "hi!"
    assert ask(resolve_agent("agents_here.py:Bot", folder)).text == "dry"
    assert isinstance(resolve_agent("agents_here.py:App", folder), RunnableAgent)
    assert ask(resolve_agent("agents_here.py:config", folder)).text == "hi?"
    assert ask(resolve_agent("json:dumps")).text == '"hi"'


def test_addresses_and_commands_are_told_by_how_they_begin(folder: Path) -> None:
    assert isinstance(resolve_agent("https://example.test/chat"), HttpAgent)
    assert isinstance(resolve_agent("HTTP://localhost:8000"), HttpAgent)
    assert isinstance(resolve_agent({"http": "http://localhost:8000"}), HttpAgent)
    assert isinstance(resolve_agent(f"cmd:{sys.executable} agents_here.py", folder), CommandAgent)


def test_a_python_mapping_gives_a_class_or_function_its_arguments_and_a_name(folder: Path) -> None:
    agent = resolve_agent({"python": "agents_here.py:Picky", "arguments": {"key": "k"}, "name": "mine"}, folder)
    assert (ask(agent).text, agent.name) == ("k", "mine")


def test_objects_are_agents_by_what_they_can_do() -> None:
    class Own:
        name = "own"

        def session(self, case: Case) -> Any:
            return OracleAgent().session(case)

    own = Own()
    assert resolve_agent(own) == resolve_agent(own) != resolve_agent(Own)
    assert (resolve_agent(own).name, ask(resolve_agent(Own)).text) == ("own", "")
    assert isinstance(resolve_agent(lambda question: question), CallableAgent)


def test_an_object_of_the_users_needs_a_name_and_sessions_alone() -> None:
    class Least:
        name = "least"

        def session(self, case: Case) -> Any:
            return OracleAgent().session(case)

    agent = resolve_agent(Least())
    asyncio.run(agent.start())
    asyncio.run(agent.stop())
    assert agent.check(Case("one", (Turn("hello"),))) is None
    assert (agent.fingerprint, agent.takes_files, agent.start_seconds) == ("", True, 0.0)
    assert agent.identity == resolve_agent(Least()).identity


def test_what_an_object_of_the_users_has_beyond_that_is_used() -> None:
    class Most:
        name, fingerprint, takes_files, start_seconds, tools = "most", "most-1", False, 9, [print]

        def __init__(self) -> None:
            self.steps: list[str] = []

        def start(self) -> None:
            self.steps.append("start")

        async def stop(self) -> None:
            self.steps.append("stop")

        def check(self, case: Case) -> str | None:
            return f"not {case.id}"

        def session(self, case: Case) -> Any:
            return OracleAgent().session(case)

    most = Most()
    agent = resolve_agent(most)
    asyncio.run(agent.start())
    asyncio.run(agent.stop())
    assert most.steps == ["start", "stop"]
    assert agent.check(Case("one", (Turn("hello"),))) == "not one"
    assert (agent.identity, agent.takes_files, agent.start_seconds) == ("most-1", False, 9.0)
    assert list(shown_by(agent)) == ["print"]


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (None, "no agent is named"),
        ("", "no agent is named"),
        ("my_agent", "'my_agent' is not an agent; write file.py:name"),
        ("agents_here.py", "which name in it? agents_here.py:my_agent"),
        ("missing.py:x", "no file 'missing.py'"),
        ("agents_here.py:shuot", "did you mean 'shout'"),
        ("agents_here.py:number", "a number is not an agent"),
        ("agents_here.py:address", "is text, not an agent"),
        ("agents_here.py:Picky", '"arguments"'),
        ("no_such_package_x:y", "could not be imported"),
        ({}, "an empty object is not an agent"),
        ({"htpp": "x"}, "did you mean 'http'"),
        ({"http": "http://x", "command": ["x"]}, "only one of these keys"),
        ({"http": {"url": "http://x"}, "timeout": 3}, "must stand inside 'http'"),
        ({"python": "agents_here.py:shout", "argument": {}}, "did you mean 'arguments'"),
        ({"python": 3}, "not a number"),
        ({"python": "agents_here.py:Picky", "arguments": {"kye": 1}}, "cannot be made with kye"),
        (3, "a number is not an agent"),
        (object(), "a value of type object is not an agent"),
    ],
)
def test_what_is_no_agent_is_refused_with_what_to_write(folder: Path, reference: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_agent(reference, folder)
    assert message in str(caught.value)


def test_an_object_with_a_session_but_no_name_is_told_so() -> None:
    class Nameless:
        def session(self, case: Case) -> Any: ...

    with pytest.raises(UsageError, match="no name"):
        resolve_agent(Nameless())


def test_installed_packages_are_asked_last_and_a_broken_one_is_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [_Entry("broken", None), _Entry("other", lambda obj, base: OracleAgent() if obj == "special" else None)]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries if group == "proctor.agents" else [])
    assert isinstance(resolve_agent("special"), OracleAgent)
    with pytest.raises(UsageError, match="the plugin broken failed: ImportError: gone"):
        resolve_agent("unknown")


@given(st.text(max_size=20) | st.dictionaries(st.sampled_from(["http", "command", "python", "x"]), st.text(max_size=5)))
def test_any_reference_is_an_agent_or_a_usage_error(reference: Any) -> None:
    try:
        assert isinstance(resolve_agent(reference, Path("/nonexistent")), Agent)
    except UsageError:
        pass


def test_finding_a_plain_function_loads_nothing_heavy() -> None:
    code = (
        "import sys; from proctor.agents.resolving import resolve_agent; resolve_agent(len); "
        "print([m for m in ('pydantic', 'httpx2', 'importlib.metadata', 'yaml', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class _Entry:
    def __init__(self, name: str, function: Any) -> None:
        self.name = name
        self._function = function

    def load(self) -> Any:
        if self._function is None:
            raise ImportError("gone")
        return self._function
