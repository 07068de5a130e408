from __future__ import annotations

import asyncio
import threading
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from proctor.agents.reply import Reply
from proctor.agents.runnable_agent import Runnable, RunnableAgent
from proctor.base.errors import AgentFailed, UsageError
from proctor.cases.suite import Case, Turn


class Question(BaseModel):
    text: str
    times: int = 1


class App(Runnable[Question]):
    log: ClassVar[list[str]] = []

    @classmethod
    def create(cls) -> App:
        cls.log.append("create")
        return cls()

    async def setup(self) -> None:
        self.log.append("setup")

    async def run(self, args: Question) -> str:
        return args.text * args.times

    async def teardown(self) -> None:
        self.log.append("teardown")


@pytest.fixture(autouse=True)
def _fresh_log() -> None:
    App.log.clear()


def case(*inputs: Any) -> Case:
    return Case(id="c", turns=tuple(Turn(value) for value in inputs))


def ask(agent: RunnableAgent, *inputs: Any, started: bool = True) -> list[Reply]:
    async def hold() -> list[Reply]:
        if started:
            await agent.start()
        try:
            async with agent.session(case(*inputs)) as session:
                return [await session.send(Turn(value)) for value in inputs]
        finally:
            if started:
                await agent.stop()

    return asyncio.run(hold())


def test_run_gets_its_arguments_as_the_model_it_asks_for() -> None:
    assert ask(RunnableAgent(App), {"text": "ab", "times": "2"})[0].text == "abab"


def test_one_instance_is_set_up_once_for_all_sessions_and_torn_down_at_the_end() -> None:
    agent = RunnableAgent(App)

    async def hold() -> None:
        await agent.start()
        for _ in range(3):
            async with agent.session(case({"text": "x"})) as session:
                await session.send(Turn({"text": "x"}))
        await agent.stop()
        await agent.stop()

    asyncio.run(hold())
    assert App.log == ["create", "setup", "teardown"]


def test_a_session_without_a_started_agent_takes_care_of_itself() -> None:
    assert ask(RunnableAgent(App), {"text": "x"}, started=False)[0].text == "x"
    assert App.log == ["create", "setup", "teardown"]


def test_teardown_happens_even_when_setup_failed_and_the_first_error_is_the_one_reported() -> None:
    log = []

    class Broken(App):
        async def setup(self) -> None:
            raise ConnectionError("no database")

        async def teardown(self) -> None:
            log.append("teardown")
            raise RuntimeError("nothing to close")

    with pytest.raises(AgentFailed, match=r"Broken.setup\(\) raised ConnectionError: no database") as caught:
        ask(RunnableAgent(Broken), {"text": "x"})
    assert log == ["teardown"]
    assert "nothing to close" in caught.value.__notes__[0]


def test_setup_and_teardown_are_optional_and_everything_may_be_sync() -> None:
    loop_thread = threading.get_ident()

    class Plain:
        @classmethod
        def create(cls) -> Plain:
            return cls()

        def run(self, question: Question) -> Any:
            return {"answer": question.text, "state": {"in_thread": threading.get_ident() != loop_thread}}

    reply = ask(RunnableAgent(Plain), {"text": "x"})[0]
    assert (reply.text, reply.state) == ("x", {"in_thread": True})


def test_arguments_are_checked_before_anything_runs_and_every_field_error_is_listed() -> None:
    agent = RunnableAgent(App)
    reason = agent.check(case({"times": "many"}))
    assert reason is not None
    assert "Question" in reason
    assert "text: Field required" in reason
    assert "times: Input should be a valid integer" in reason
    assert "pydantic.dev" not in reason
    assert agent.check(case({"text": "x"})) is None
    several = agent.check(case({"text": "x"}, "no object"))
    assert several is not None
    assert several.startswith("turn 2: ")
    assert App.log == []
    with pytest.raises(AgentFailed, match="not a valid Question"):
        ask(agent, {})


def test_a_run_without_a_model_gets_the_data_itself() -> None:
    class Untyped:
        @classmethod
        def create(cls) -> Untyped:
            return cls()

        async def run(self, args):  # type: ignore[no-untyped-def]
            args["mark"] = 1
            return args

    given = {"a": [1]}
    assert ask(RunnableAgent(Untyped), given)[0].structured == {"a": [1], "mark": 1}
    assert given == {"a": [1]}


def test_a_run_that_cannot_be_given_arguments_is_refused_with_what_to_write() -> None:
    class Two:
        @classmethod
        def create(cls) -> Two:
            return cls()

        async def run(self, first: str, second: str) -> None: ...

    with pytest.raises(UsageError, match="one parameter, args"):
        RunnableAgent(Two)

    class Odd:
        @classmethod
        def create(cls) -> Odd:
            return cls()

        async def run(self, args: threading.Thread) -> None: ...

    reason = RunnableAgent(Odd).check(case({}))
    assert reason is not None
    assert "pydantic model" in reason
