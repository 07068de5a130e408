"""`--isolate`: what an agent sees and leaves behind in the processes of its trials."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from engine_helpers import case, cases, only, run, suite, trials_of

from proctor import Reply
from proctor.cases.suite import Case, Turn
from proctor.results.score import Outcome


class Diary:
    """An agent that writes down what happens to it, in which process."""

    name = "diary"
    start_timeout = 0.0

    def __init__(self, file: Path, *, start: Any = None, stop: Any = None, close: Any = None) -> None:
        self.file = file
        self.on_start, self.on_stop, self.on_close = start, stop, close

    def note(self, what: str) -> None:
        with self.file.open("a") as file:
            file.write(f"{what} {os.getpid()}\n")

    async def start(self) -> None:
        self.note("start")
        if self.on_start is not None:
            self.on_start()

    async def stop(self) -> None:
        self.note("stop")
        if self.on_stop is not None:
            self.on_stop()

    def session(self, case: Case) -> DiarySession:
        return DiarySession(self)

    def events(self) -> dict[str, list[str]]:
        """By process: what happened there, in order."""
        found: dict[str, list[str]] = {}
        for line in self.file.read_text(encoding="utf-8").splitlines():
            what, _, pid = line.rpartition(" ")
            found.setdefault(pid, []).append(what)
        return found


class DiarySession:
    def __init__(self, agent: Diary) -> None:
        self.agent = agent

    async def __aenter__(self) -> DiarySession:
        self.agent.note("open")
        return self

    async def __aexit__(self, *error: object) -> None:
        self.agent.note("close")
        if self.agent.on_close is not None:
            self.agent.on_close()

    async def send(self, turn: Turn) -> Reply:
        self.agent.note(f"turn {turn.input}")
        if turn.input == "raises":
            raise ValueError("a bug")
        if turn.input == "waits":
            import asyncio

            await asyncio.sleep(60)
        if turn.input == "holds":
            re.match("(a*)*b", "a" * 40)
        return Reply(str(turn.input))


@pytest.fixture
def diary(tmp_path: Path) -> Diary:
    return Diary(tmp_path / "diary.txt")


def no_database() -> None:
    raise RuntimeError("no database")


def test_every_session_is_closed_and_its_agent_stopped_in_its_own_process(diary: Diary) -> None:
    found = run(suite(cases(3)), agent=diary, isolate=True)

    assert found[1].exit_code == 0
    events = diary.events()
    assert len(events) == 3
    assert str(os.getpid()) not in events
    for trial, happened in zip(trials_of(found), sorted(events.values(), key=str), strict=True):
        assert happened == ["start", "open", f"turn {trial.case.turns[0].input}", "close", "stop"]


@pytest.mark.parametrize("question", ["raises", "waits"])
def test_a_session_whose_turn_failed_or_took_too_long_is_closed_and_its_agent_stopped(
    diary: Diary, question: str
) -> None:
    found = run(suite([case(question)], timeout=1.0), agent=diary, isolate=True)

    assert only(found).outcome is Outcome.FAILED
    assert list(diary.events().values()) == [["start", "open", f"turn {question}", "close", "stop"]]


def test_a_process_that_holds_its_interpreter_is_ended_at_its_timeout_and_fails_alone(diary: Diary) -> None:
    found = run(suite([case("holds"), *cases(3)], timeout=1.0), agent=diary, isolate=True)

    assert {trial.case.id: trial.outcome for trial in trials_of(found) if trial.outcome is not Outcome.PASSED} == {
        "holds": Outcome.FAILED
    }
    assert _all_end([int(pid) for pid in diary.events()])


def test_an_agent_that_cannot_start_is_an_error_and_not_its_failure(diary: Diary) -> None:
    diary.on_start = no_database
    found = run(suite([case("one")]), agent=diary, isolate=True)

    assert found[1].exit_code == 4
    assert only(found).outcome is Outcome.ERROR
    assert only(found).reason == "the agent diary could not start: RuntimeError: no database"
    assert only(found).attempts == 1


def test_an_agent_may_take_longer_to_start_than_its_trial_may_take(diary: Diary) -> None:
    diary.on_start = lambda: time.sleep(1.0)
    diary.start_timeout = 30.0
    trial = only(run(suite([case("one")], timeout=0.7), agent=diary, isolate=True))

    assert trial.outcome is Outcome.PASSED
    assert trial.duration_ms < 700


def test_an_agent_that_takes_too_long_to_start_is_ended(diary: Diary) -> None:
    diary.on_start = lambda: time.sleep(60)
    trial = only(run(suite([case("one")], timeout=0.5), agent=diary, isolate=True))

    assert trial.outcome is Outcome.ERROR
    assert "could not start" in trial.reason


def test_an_agent_that_cannot_stop_is_noted_in_the_run_and_fails_no_trial(diary: Diary) -> None:
    diary.on_stop = no_database
    found = run(suite(cases(2)), agent=diary, isolate=True)

    assert {trial.outcome for trial in trials_of(found)} == {Outcome.PASSED}
    assert found[0].note.count("no database") == 1


def test_a_session_that_cannot_be_closed_fails_its_trial_as_it_does_without_isolation(diary: Diary) -> None:
    diary.on_close = no_database
    alike = [only(run(suite([case("one")]), agent=diary, isolate=isolate)) for isolate in (False, True)]

    assert [trial.outcome for trial in alike] == [Outcome.FAILED, Outcome.FAILED]
    assert ["no database" in trial.reason for trial in alike] == [True, True]


def test_every_trial_has_its_own_number() -> None:
    def agent(question: str, trial: int) -> str:
        return str(trial)

    found = run(suite([case("one")], repeat=3), agent=agent, isolate=True)

    assert sorted(trial.replies[0].text for trial in trials_of(found)) == ["1", "2", "3"]


def test_a_conversation_is_held_in_one_process_and_each_turn_is_received_once(diary: Diary) -> None:
    talk = Case(id="talk", turns=(Turn("a"), Turn("b"), Turn("c")))
    run(suite([talk]), agent=diary, isolate=True)

    (happened,) = diary.events().values()
    assert happened == ["start", "open", "turn a", "turn b", "turn c", "close", "stop"]


def _all_end(pids: list[int]) -> bool:
    """Whether these processes end; the system may take a moment to remove one that was killed."""
    deadline = time.monotonic() + 60
    while any(_is_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(_is_alive(pid) for pid in pids)


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
