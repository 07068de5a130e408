from __future__ import annotations

import asyncio
import datetime
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from engine_helpers import case, only, outcomes, run, suite

from proctor.agents.reply import Reply, Usage
from proctor.base.errors import AgentFailed
from proctor.cases.suite import Case, Expected, Turn
from proctor.results.score import Outcome


class Overloaded(Exception):
    status_code = 429


class FromResponse(Exception):
    """As `raise_for_status` of the common HTTP libraries raises it."""

    def __init__(self, status: int) -> None:
        self.response = type("Response", (), {"status_code": status})()
        super().__init__(f"status {status}")


class ReadError(Exception):
    """A connection lost while reading, as an HTTP library names it."""


class Derived(ReadError):
    pass


TRANSIENT: list[Callable[[], Exception]] = [
    lambda: AgentFailed("busy", transient=True),
    lambda: AgentFailed("busy", transient=True, retry_after=0.001),
    lambda: ConnectionError("reset"),
    lambda: ConnectionResetError("reset"),
    lambda: TimeoutError("slow"),
    Overloaded,
    lambda: FromResponse(429),
    lambda: FromResponse(503),
    Derived,
    lambda: ExceptionGroup("both", [Overloaded(), ConnectionError()]),
]
LASTING: list[Callable[[], Exception]] = [
    lambda: AgentFailed("no"),
    lambda: ValueError("no"),
    lambda: FromResponse(400),
    lambda: ExceptionGroup("both", [Overloaded(), ValueError()]),
]


def failing(error: Callable[[], Exception], times: float, asked: list[str]) -> Any:
    async def agent(question: str) -> str:
        asked.append(question)
        if len(asked) <= times:
            raise error()
        return question

    return agent


@pytest.mark.parametrize("error", TRANSIENT)
def test_what_is_not_the_agents_fault_is_tried_again(error: Callable[[], Exception]) -> None:
    asked: list[str] = []
    trial = only(run(suite([case("c")], retries=2), agent=failing(error, 2, asked)))

    assert (trial.outcome, trial.attempts, len(asked)) == (Outcome.PASSED, 3, 3)


@pytest.mark.parametrize("error", TRANSIENT)
def test_what_is_not_the_agents_fault_and_does_not_pass_is_an_error(error: Callable[[], Exception]) -> None:
    asked: list[str] = []
    found = run(suite([case("c")], retries=2), agent=failing(error, float("inf"), asked))
    trial = only(found)

    assert (trial.outcome, trial.attempts, len(asked)) == (Outcome.ERROR, 3, 3)
    assert trial.reason.endswith("(after 3 attempts)")
    assert found[1].exit_code == 4


@pytest.mark.parametrize("error", LASTING)
def test_what_is_the_agents_fault_is_a_failure_at_once(error: Callable[[], Exception]) -> None:
    asked: list[str] = []
    found = run(suite([case("c")], retries=2), agent=failing(error, float("inf"), asked))

    assert (only(found).outcome, only(found).attempts, len(asked)) == (Outcome.FAILED, 1, 1)
    assert found[1].exit_code == 1


def test_no_retries_means_one_attempt() -> None:
    asked: list[str] = []
    trial = only(run(suite([case("c")], retries=0), agent=failing(Overloaded, float("inf"), asked)))

    assert (trial.outcome, trial.attempts) == (Outcome.ERROR, 1)
    assert trial.reason.startswith("the agent raised Overloaded (test_retries.py:")


@pytest.mark.parametrize("hint", ["soon", datetime.timedelta(seconds=1), float("nan"), -5, [], object()])
def test_a_service_that_says_nonsense_about_when_to_try_again_is_tried_again(hint: Any) -> None:
    class Strange(ConnectionError):
        retry_after = hint

    asked: list[str] = []
    trial = only(run(suite([case("c")], retries=1), agent=failing(Strange, 1, asked)))

    assert (trial.outcome, trial.attempts) == (Outcome.PASSED, 2)


def test_a_service_that_wants_to_be_left_alone_for_a_day_is_not_waited_for() -> None:
    asked: list[str] = []
    error = AgentFailed("busy", transient=True, retry_after=86400)
    trial = only(run(suite([case("c")], retries=1), agent=failing(lambda: error, 1, asked)))
    assert (trial.outcome, trial.attempts) == (Outcome.ERROR, 1)
    assert trial.reason == "busy (the service asks to wait 86,400 s more)"


class Limited(Exception):
    status_code = 429

    def __init__(self) -> None:
        headers = {"retry-after-ms": "1"}
        self.response = type("Response", (), {"status_code": 429, "headers": headers})()
        super().__init__("slow down")


def test_a_rate_limit_that_says_when_to_come_back_costs_no_attempts() -> None:
    asked: list[str] = []
    trial = only(run(suite([case("c")], retries=1), agent=failing(Limited, 12, asked)))
    assert (trial.outcome, trial.attempts) == (Outcome.PASSED, 13)


def test_a_rate_limit_that_never_ends_is_an_error() -> None:
    asked: list[str] = []
    trial = only(run(suite([case("c")], retries=1), agent=failing(Limited, float("inf"), asked)))
    assert trial.outcome is Outcome.ERROR
    assert trial.reason.endswith("(after 21 attempts)")


def test_the_later_turn_of_a_conversation_waits_for_the_rate_limit_in_its_session() -> None:
    asked: list[str] = []

    async def agent(question: str) -> str:
        asked.append(question)
        if question == "b" and asked.count("b") < 6:
            raise Limited
        return question

    turns = tuple(Turn(question, Expected(output=question)) for question in "ab")
    trial = only(run(suite([Case(id="c", turns=turns)], retries=1), agent=agent))
    assert trial.outcome is Outcome.PASSED
    assert asked == ["a", *"bbbbbb"]


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("asynchronous", [True, False])
def test_an_agent_that_wants_to_end_the_process_only_fails(ending: type[BaseException], asynchronous: bool) -> None:
    def quits(question: str) -> str:
        if question == "bad":
            raise ending("enough")
        return question

    async def quits_async(question: str) -> str:
        return quits(question)

    found = run(suite([case("bad"), case("good")]), agent=quits_async if asynchronous else quits)

    assert outcomes(found) == {"bad": Outcome.FAILED, "good": Outcome.PASSED}
    assert ending.__name__ in next(iter(found[0].trials)).reason


def test_an_agent_whose_background_task_wants_to_end_the_process_only_fails() -> None:
    async def quits() -> None:
        sys.exit(3)

    async def agent(question: str) -> str:
        if question == "bad":
            await asyncio.create_task(quits())
        return question

    found = run(suite([case("bad"), case("good")], parallel=1), agent=agent)

    assert outcomes(found) == {"bad": Outcome.FAILED, "good": Outcome.PASSED}


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("I say nothing")


@pytest.mark.parametrize("error", [Mute, type("Odd", (Exception,), {"status_code": property(lambda self: 1 / 0)})])
def test_an_agent_that_raises_something_unspeakable_does_not_end_the_run(error: type[Exception]) -> None:
    def agent(question: str) -> str:
        if question == "bad":
            raise error
        return question

    found = run(suite([case("bad"), case("good")]), agent=agent)

    assert outcomes(found)["bad"] in (Outcome.FAILED, Outcome.ERROR)
    assert outcomes(found)["good"] is Outcome.PASSED


class Scripted:
    """An agent whose session returns whatever it is told."""

    name = "scripted"

    def __init__(self, reply: Any) -> None:
        self.reply = reply

    def session(self, of: Any) -> Scripted:
        return self

    async def __aenter__(self) -> Scripted:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def send(self, turn: Any) -> Any:
        return self.reply if turn.input == "bad" else Reply(turn.input)


@pytest.mark.parametrize(
    "reply",
    [
        "text",
        None,
        object(),
        Reply,
        Reply(text=None),  # type: ignore[arg-type]
        Reply(text=b"x"),  # type: ignore[arg-type]
        Reply(tool_calls=None),  # type: ignore[arg-type]
        Reply(tool_calls=("look_up",)),  # type: ignore[arg-type]
        Reply(usage={"input_tokens": 3}),  # type: ignore[arg-type]
        Reply(outputs=(1,)),  # type: ignore[arg-type]
        Reply(outputs=5),  # type: ignore[arg-type]
    ],
)
def test_a_session_that_returns_something_else_than_a_reply_is_an_error(reply: Any, tmp_path: Any) -> None:
    found = run(suite([case("bad"), case("good")]), agent=Scripted(reply), store=tmp_path / "store")

    assert outcomes(found) == {"bad": Outcome.ERROR, "good": Outcome.PASSED}
    assert "cannot be read" in next(iter(found[0].trials)).reason


def test_numbers_of_other_libraries_count_as_numbers(tmp_path: Any) -> None:
    usage = Usage(Decimal(3), Fraction(4), Decimal("0.25"), True)  # type: ignore[arg-type]
    trial = only(run(suite([case("bad", "")]), agent=Scripted(Reply(usage=usage)), store=tmp_path))

    assert trial.replies[0].usage == Usage(3, 4, 0.25, 1)


@pytest.mark.parametrize("count", ["three", float("nan"), float("inf"), 2**70, [1]])
def test_a_usage_that_is_not_a_number_is_an_error_of_that_trial_alone(count: Any, tmp_path: Any) -> None:
    found = run(suite([case("bad"), case("good")]), agent=Scripted(Reply(usage=Usage(count))), store=tmp_path)

    assert outcomes(found) == {"bad": Outcome.ERROR, "good": Outcome.PASSED}


def test_an_agent_that_returns_an_object_in_which_no_answer_can_be_read_is_an_error() -> None:
    trial = only(run(suite([case("c")]), agent=lambda question: object()))

    assert trial.outcome is Outcome.ERROR
    assert "the agent's reply cannot be read: the agent returned a value of type object" in trial.reason


def test_a_session_that_cannot_be_opened_or_closed_is_a_failure_of_the_agent() -> None:
    class Closing(Scripted):
        async def __aexit__(self, *_: object) -> None:
            raise ValueError("stuck")

    class Opening(Scripted):
        def session(self, of: Any) -> Any:
            raise ValueError("locked")

    reason = only(run(suite([case("c")]), agent=Opening(None))).reason
    assert reason.startswith("the agent raised ValueError: locked (test_retries.py:")
    assert only(run(suite([case("c")]), agent=Closing(None))).reason.startswith(
        "the agent raised ValueError: stuck (test_retries.py:"
    )
    assert only(run(suite([case("c")]), agent=Closing(None))).outcome is Outcome.FAILED
