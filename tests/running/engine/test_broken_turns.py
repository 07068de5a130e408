"""An agent that raises, or runs out of time, keeps what it had done by then."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from agents_under_test import case, only, run, suite
from reporting_samples import report

import proctor
from proctor.cases.suite import Case, Expected, ExpectedCall, Turn
from proctor.reporting.explain import explain
from proctor.reporting.html import report_page as html
from proctor.reporting.markdown import report as markdown
from proctor.results.run import Outcome, TrialResult

NEVER = threading.Event()


@proctor.tool
def find_order(order: str) -> str:
    return "lost"


@proctor.tool
def slow_search(words: str) -> str:
    NEVER.wait()
    return ""


@proctor.tool
async def find_later(order: str) -> str:
    return "lost"


def raises(question: str) -> str:
    find_order("A-17")
    proctor.wrap({"step": 1}, purpose="output", name="plan")
    return _inner(question)


def _inner(question: str) -> str:
    raise KeyError("no such customer")


async def raises_later(question: str) -> str:
    await find_later("A-17")
    return _inner(question)


def streams(question: str) -> Iterator[str]:
    find_order("A-17")
    yield "Your order "
    yield "is "
    raise KeyError("no such customer")


async def streams_later(question: str) -> AsyncIterator[str]:
    await find_later("A-17")
    yield "Your order "
    yield "is "
    raise KeyError("no such customer")


def hangs(question: str) -> str:
    find_order("A-17")
    return slow_search(question)


async def hangs_later(question: str) -> str:
    await find_later("A-17")
    await asyncio.Event().wait()
    return ""


def streams_and_hangs(question: str) -> Iterator[str]:
    find_order("A-17")
    yield "Your order "
    NEVER.wait()


def exits(question: str) -> str:
    find_order("A-17")
    raise SystemExit(3)


def tried(agent: Any, **limits: Any) -> TrialResult:
    return only(run(suite([case("one")], **limits), agent=agent))


@pytest.mark.parametrize("agent", [raises, raises_later, streams, streams_later, exits])
def test_an_agent_that_raises_keeps_its_tool_calls_and_where_it_raised(agent: Any) -> None:
    trial = tried(agent)

    (reply,) = trial.replies
    assert trial.outcome is Outcome.FAILED
    assert trial.scores == ()
    assert [(call.arguments, call.result) for call in reply.tool_calls] == [({"order": "A-17"}, "lost")]
    assert reply.error is not None
    assert reply.error.startswith(trial.reason)
    assert "\n  at test_broken_turns.py:" in reply.error
    assert "raise KeyError" in reply.error or "raise SystemExit" in reply.error


def test_every_place_in_the_users_files_is_kept_the_outermost_first() -> None:
    (reply,) = tried(raises).replies

    places = (reply.error or "").split("\n  at ")[1:]
    assert [place.partition(" in ")[2] for place in places] == [
        "raises: return _inner(question)",
        '_inner: raise KeyError("no such customer")',
    ]


def test_named_outputs_of_an_agent_that_raises_are_kept() -> None:
    (reply,) = tried(raises).replies

    assert [(item.name, item.value) for item in reply.outputs] == [("plan", {"step": 1})]


@pytest.mark.parametrize("agent", [streams, streams_later])
def test_the_part_of_a_stream_that_came_before_it_broke_is_kept(agent: Any) -> None:
    (reply,) = tried(agent).replies

    assert reply.text == "Your order is "


@pytest.mark.parametrize("agent", [hangs, hangs_later, streams_and_hangs])
def test_an_agent_that_runs_out_of_time_keeps_its_tool_calls_and_where_it_was(agent: Any) -> None:
    trial = tried(agent, timeout=0.3)

    (reply,) = trial.replies
    assert trial.reason == "the agent gave no answer within 0.3 s"
    assert (reply.tool_calls[0].arguments, reply.tool_calls[0].result) == ({"order": "A-17"}, "lost")
    assert f" in {agent.__name__}: " in (reply.error or "")
    assert reply.text == ("Your order " if agent is streams_and_hangs else "")


def test_a_call_that_had_not_come_back_is_among_the_calls() -> None:
    (reply,) = tried(hangs, timeout=0.3).replies

    assert [(call.name, call.error) for call in reply.tool_calls] == [
        ("find_order", None),
        ("slow_search", "had not come back when the turn broke off"),
    ]


def test_what_was_answered_before_stands_before_the_turn_that_broke() -> None:
    def agent(question: str) -> str:
        return question if question == "one" else raises(question)

    talk = Case("c", tuple(Turn(text, Expected(output=text)) for text in ("one", "two", "three")))
    trial = only(run(suite([talk]), agent=agent))

    assert [(reply.text, reply.error is None) for reply in trial.replies] == [("one", True), ("", False)]
    assert not trial.is_answered


def test_only_the_last_attempt_is_kept_of_an_agent_that_was_asked_again() -> None:
    def agent(question: str) -> str:
        find_order("A-17")
        raise ConnectionError("the line is down")

    trial = tried(agent, retries=1)

    assert trial.outcome is Outcome.ERROR
    assert trial.attempts == 2
    assert len(trial.replies) == 1
    assert len(trial.replies[0].tool_calls) == 1


def test_reports_show_the_calls_that_were_made_and_claim_no_other() -> None:
    expected = Expected(output="x", tool_calls=(ExpectedCall("find_order"),))
    found, _ = run(suite([Case("c", (Turn("q", expected),))]), agent=raises)
    (trial,) = found.trials

    told = "\n".join(f"{fact.label} {fact.text}" for fact in explain(trial))
    assert 'find_order(order="A-17") -> "lost"' in told
    assert "broke at test_broken_turns.py:" in told
    for module in (markdown, html):
        text = report(module, found)
        assert "_inner: raise KeyError" in text
        assert "not called" not in text
        assert "Missing" not in text


def test_a_turn_of_which_nothing_is_known_is_not_said_to_lack_calls() -> None:
    class Unreachable:
        name = "far"

        def session(self, case: Case) -> Any:
            raise ConnectionRefusedError("no such host")

    expected = Expected(output="x", tool_calls=(ExpectedCall("find_order"),))
    found, _ = run(suite([Case("c", (Turn("q", expected),))], retries=0), agent=Unreachable())

    assert "not called" not in report(html, found)
    assert only((found, None)).replies == ()


def kills_itself(question: str) -> str:
    find_order("A-17")
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


@pytest.mark.parametrize("agent", [raises, streams, hangs, streams_and_hangs, kills_itself])
def test_an_isolated_trial_keeps_what_its_process_had_done(agent: Any) -> None:
    found = run(suite([case("one")], timeout=1.5), agent=agent, isolate=True)

    (reply,) = only(found).replies
    assert (reply.tool_calls[0].name, reply.tool_calls[0].result) == ("find_order", "lost")
    assert reply.text == {streams: "Your order is ", streams_and_hangs: "Your order "}.get(agent, "")
    if agent in (raises, streams):
        assert "\n  at test_broken_turns.py:" in (reply.error or "")
    if agent is hangs:
        assert [call.name for call in reply.tool_calls] == ["find_order", "slow_search"]
