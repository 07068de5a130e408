from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.agents import frameworks
from proctor.agents.agent import Agent, BaseAgent, as_base_agent
from proctor.agents.command_agent import CommandAgent
from proctor.agents.control_agents import NopAgent, OracleAgent
from proctor.agents.function_agent import CallableAgent
from proctor.agents.http_agent import HttpAgent
from proctor.agents.reply import Reply, Usage
from proctor.agents.resolve import check_agent, resolve_agent
from proctor.agents.runnable_agent import RunnableAgent
from proctor.agents.tools import tools_of
from proctor.base.errors import AgentFailed, UsageError
from proctor.base.references import resolve
from proctor.cases.suite import Case, Turn
from proctor.plugins import Plugin

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
        async with agent.session(Case(id="c", turns=(Turn(question),))) as session:
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
    assert agent.check(Case(id="one", turns=(Turn("hello"),))) is None
    assert (agent.fingerprint, agent.reads_files, agent.start_timeout) == ("", True, 0.0)
    assert agent.identity == resolve_agent(Least()).identity


def test_what_an_object_of_the_users_has_beyond_that_is_used() -> None:
    class Most:
        name, fingerprint, reads_files, start_timeout, tools = "most", "most-1", False, 9, [print]
        reports_cost, reports_all_tool_calls, endpoint, unfingerprinted_parts = (
            True,
            True,
            "models.example",
            ("a prompt in a database",),
        )

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
    assert agent.check(Case(id="one", turns=(Turn("hello"),))) == "not one"
    assert (agent.identity, agent.reads_files, agent.start_timeout) == ("most-1", False, 9.0)
    assert (agent.reports_cost, agent.reports_all_tool_calls, agent.endpoint) == (True, True, "models.example")
    assert agent.unfingerprinted_parts == ("a prompt in a database",)
    assert list(tools_of(agent)) == ["print"]


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (None, "no agent is set"),
        ("", "no agent is set"),
        ("my_agent", "'my_agent' is not an agent; write file.py:name"),
        ("agents_here.py", "add the name of the agent in the file, agents_here.py:my_agent"),
        ("missing.py:x", "no file 'missing.py'"),
        ("agents_here.py:shuot", "did you mean 'shout'"),
        ("agents_here.py:number", "a number is not an agent"),
        ("agents_here.py:address", "is text, not an agent"),
        ("agents_here.py:Picky", '"arguments"'),
        ("no_such_package_x:y", "could not be imported"),
        ({}, "an empty object is not an agent"),
        ({"htpp": "x"}, "did you mean 'http'"),
        ({"http": "http://x", "command": ["x"]}, "only one of these keys"),
        ({"http": {"url": "http://x"}, "timeout": 3}, "must be inside 'http'"),
        ({"python": "agents_here.py:shout", "argument": {}}, "did you mean 'arguments'"),
        ({"python": 3}, "not a number"),
        ({"python": "agents_here.py:Picky", "arguments": {"kye": 1}}, "cannot be created with kye"),
        (3, "a number is not an agent"),
        (object(), "an object of the class object from the module builtins"),
    ],
)
def test_an_invalid_reference_is_refused_with_what_to_write(folder: Path, reference: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_agent(reference, folder)
    assert message in str(caught.value)


def test_an_object_with_a_session_but_no_name_is_told_so() -> None:
    class Nameless:
        def session(self, case: Case) -> Any: ...

    with pytest.raises(UsageError, match="no name"):
        resolve_agent(Nameless())


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Plugin]]:
    """Plugins of installed packages, to which a test adds its own."""
    found: list[Plugin] = []
    monkeypatch.setattr(frameworks, "installed_plugins", lambda: found)
    frameworks.installed_adapters.cache_clear()
    yield found
    frameworks.installed_adapters.cache_clear()


def test_a_function_of_an_installed_package_knows_more_references(installed: list[Plugin]) -> None:
    find = lambda reference, base: OracleAgent() if reference == "special" else None  # noqa: E731
    installed += [Plugin(name="other", adapters=[find])]
    assert isinstance(resolve_agent("special"), OracleAgent)


def test_a_broken_package_is_mentioned_where_nothing_else_knows_the_reference(installed: list[Plugin]) -> None:
    installed += [Plugin(name="broken", adapters=["nowhere_at_all:find"])]
    with pytest.raises(UsageError, match="the plugin 'broken' failed: nowhere_at_all:find could not be loaded"):
        resolve_agent("unknown")


class Module:
    """An agent of another framework, which can be called too."""

    name = "a module"

    def __call__(self, question: str) -> str:
        return "called past the adapter"


class Modules(frameworks.Adapter):
    name, title, packages, modules = "modules", "Modules", ("modules",), (__name__,)
    takes = "a Module"

    @classmethod
    def accepts(cls, target: Any) -> bool:
        return isinstance(target, Module)

    def describe(self) -> Any:
        return self.target.name

    async def send(self, session: Any, turn: Turn, recorder: Any) -> str:
        await recorder.call_tool("look_up", {"question": turn.input}, lambda: "found")
        recorder.add_model_call(3, 4)
        return f"adapted {turn.input}"


def test_an_adapter_of_an_installed_package_is_asked_before_an_object_is_called(installed: list[Plugin]) -> None:
    installed += [Plugin(name="modules", adapters=[Modules])]
    agent = resolve_agent(Module())
    reply = ask(agent)
    assert (agent.name, reply.text, reply.usage) == ("a module", "adapted hi", Usage(3, 4, model_calls=1))
    assert [(call.name, call.result) for call in reply.tool_calls] == [("look_up", "found")]


def test_a_function_of_an_installed_package_is_asked_before_an_object_is_called(installed: list[Plugin]) -> None:
    find = lambda target, base: OracleAgent() if isinstance(target, Module) else None  # noqa: E731
    installed += [Plugin(name="other", adapters=[find])]
    assert isinstance(resolve_agent(Module()), OracleAgent)


def test_a_factory_is_called_once_when_the_agent_starts(tmp_path: Path) -> None:
    (tmp_path / "factories_here.py").write_text(
        "made = []\n"
        "def answer(question): return f'{question} {len(made)}'\n"
        "def make():\n    made.append('sync')\n    return answer\n"
        "async def make_later(word='later'):\n    made.append(word)\n    return answer\n"
        "def number(): return 3\n"
        "def text(): return 'hello'\n"
        "def broken(): raise ValueError('no key')\n"
    )
    made = resolve("factories_here.py:made", tmp_path)
    agent = resolve_agent("factories_here.py:make()", tmp_path)
    assert made == []
    assert (_started(agent, "a", "b"), made) == (["a 1", "b 1"], ["sync"])
    assert _started(resolve_agent("factories_here.py:make_later()", tmp_path), "a") == ["a 2"]
    described = {"python": "factories_here.py:make_later()", "arguments": {"word": "given"}}
    assert _started(resolve_agent(described, tmp_path), "a") == ["a 3"]
    assert made == ["sync", "later", "given"]
    for name, reason in [("number", "a number is not an agent"), ("text", "returned text"), ("broken", "no key")]:
        with pytest.raises(AgentFailed, match=reason):
            _started(resolve_agent(f"factories_here.py:{name}()", tmp_path), "a")
    with pytest.raises(UsageError, match="cannot be called"):
        resolve_agent("factories_here.py:made()", tmp_path)


def _started(agent: Any, *questions: str) -> list[str]:
    """The answers of an agent that was started, each in a session of its own."""

    async def converse() -> list[str]:
        await agent.start()
        try:
            return [await _answer(agent, question) for question in questions]
        finally:
            await agent.stop()

    return asyncio.run(converse())


async def _answer(agent: Any, question: str) -> str:
    case = Case(id=question, turns=(Turn(question),))
    async with agent.session(case) as session:
        return str((await session.send(case.turns[0])).text)


@given(st.text(max_size=20) | st.dictionaries(st.sampled_from(["http", "command", "python", "x"]), st.text(max_size=5)))
def test_any_reference_is_an_agent_or_a_usage_error(reference: Any) -> None:
    try:
        assert isinstance(resolve_agent(reference, Path("/nonexistent")), Agent)
    except UsageError:
        pass


def test_earlier_names_of_attributes_are_accepted_with_a_warning() -> None:
    class Old:
        name, tells_cost, sees_calls, start_seconds = "old", True, True, 7.0

        def session(self, case: Case) -> Any: ...

    with pytest.warns(DeprecationWarning) as caught:
        agent = as_base_agent(Old())
    assert "Old.tells_cost is now Old.reports_cost" in [str(warning.message) for warning in caught]
    assert (agent.reports_cost, agent.reports_all_tool_calls, agent.start_timeout) == (True, True, 7.0)

    with pytest.warns(DeprecationWarning, match="Derived.takes_files is now Derived.reads_files"):

        class Derived(BaseAgent):
            name = "derived"
            takes_files = False

    derived = Derived()
    assert derived.reads_files is False
    with pytest.warns(DeprecationWarning, match="is now BaseAgent.unfingerprinted_parts"):
        derived.unknown_parts = ("a prompt",)  # type: ignore[attr-defined]
    assert derived.unfingerprinted_parts == ("a prompt",)


@pytest.mark.parametrize("reference", ["src/weather.ts:agent", "agent.mjs", "lib/agent.js:make()"])
def test_a_javascript_file_is_refused_with_how_to_test_it(reference: str) -> None:
    for check in (resolve_agent, check_agent):
        with pytest.raises(UsageError, match=re.escape(f"proctor-bridge.cjs {reference}")):
            check(reference)


def test_an_unknown_object_is_named_by_its_class_and_file_with_the_function_to_write(tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(
        "class Desk:\n    async def ainvoke(self, question):\n        return question\n\n"
        "class Silent:\n    pass\n\ndesk, silent = Desk(), Silent()\n"
    )
    with pytest.raises(UsageError) as caught:
        resolve_agent("desk.py:desk", tmp_path)
    assert "an object of the class Desk from desk.py" in str(caught.value)
    assert "    async def agent(question):\n        return await desk.ainvoke(question)" in str(caught.value)
    with pytest.raises(UsageError, match=r"Silent from desk\.py(.|\n)*return silent\.ask\(question\)"):
        resolve_agent("desk.py:silent", tmp_path)
    with pytest.raises(UsageError, match=r"the class Desk(.|\n)*await Desk\(\)\.ainvoke"):
        resolve_agent("desk.py:Desk", tmp_path)
