"""Workers that are wrong or in bad hands: their trials end as errors or on another worker, and nothing hangs.

Everything is real except Dask: a scheduler in this process calls the functions of the hosts itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from engine_helpers import EXACT, case, echo, suite

from proctor.agents.reply import Reply
from proctor.base.errors import UsageError
from proctor.cases.suite import Settings
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.verdict import RunVerdict
from proctor.running.cluster import agent_host, connection, workers
from proctor.running.cluster.agent_host import call_host
from proctor.running.messages import (
    AgentStarted,
    HostInfo,
    HostStatus,
    LoadedAgent,
    LostTime,
    SessionOpened,
    TurnAnswered,
    encode_message,
)
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import ClusterOptions, RunOptions
from proctor.version import __version__

Behaviour = Callable[[int], Any]
"""What a worker answers to a call with this number, instead of what it should."""

RAN: list[str] = []


class Hostile:
    """Writes down that it was unpickled."""

    def __reduce__(self) -> Any:
        return (RAN.append, ("code of the worker",))


class LocalScheduler:
    """A scheduler with the workers `good` and `bad`, which are in this process."""

    def __init__(self, behaviours: dict[str, Behaviour], names: list[str]) -> None:
        self.behaviours = behaviours
        """What the worker `bad` answers, by method."""
        self.names = names

    async def workers(self) -> dict[str, Any]:
        return {f"tcp://{name}": SimpleNamespace(name=name) for name in self.names}

    async def run(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        method = arguments[2] if function is call_host else ""
        if worker == "tcp://bad" and method in self.behaviours:
            answer = self.behaviours[method](arguments[1])
            return await answer if asyncio.iscoroutine(answer) else answer
        result = function(*arguments)
        return await result if asyncio.iscoroutine(result) else result

    async def restart(self, worker: str, seconds: float) -> None:
        self.names.remove(worker.removeprefix("tcp://"))


class Notices:
    """Collects what a run says about its workers."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def notice(self, text: str) -> None:
        self.lines.append(text)

    def workers(self, states: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **options: None


Hold = Callable[..., tuple[Run, RunVerdict, list[str]]]


@pytest.fixture(autouse=True)
def no_host_outlives_its_test() -> Iterator[None]:
    """A worker that does not answer `stop` keeps its host, whose thread captures what this process prints."""
    yield
    hosts = list(agent_host._HOSTS.values())
    agent_host._HOSTS.clear()
    for host in hosts:
        asyncio.run(host.stop())
    for thread in threading.enumerate():
        if thread.name == "proctor-agents":
            thread.join(10)


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hold:
    """Runs cases on the workers of a scheduler; returns the run, its verdict, and the notices."""
    monkeypatch.setattr(workers, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(workers, "STATUS_SECONDS", 0.02)

    def run(*names: str, timeout: float = 60.0, **behaviours: Behaviour) -> tuple[Run, RunVerdict, list[str]]:
        @contextlib.asynccontextmanager
        async def connect(options: Any, message_limit: int) -> AsyncIterator[LocalScheduler]:
            yield LocalScheduler(behaviours, list(names))

        monkeypatch.setattr(connection, "connect", connect)
        listener: Any = Notices()
        options = RunOptions(
            cluster=ClusterOptions(address="tcp://127.0.0.1:1"),
            backoff=0.0,
            overrides=Settings(parallel=1, timeout=timeout, retries=3, max_reply_bytes=10_000),
        )
        cases = [case(f"c{number}") for number in range(6)]
        request = RunRequest([suite(cases, evaluators=EXACT)], options, agent=echo, store=tmp_path / ".proctor")
        return *run_suites(request, listener), listener.lines

    RAN.clear()
    return run


def never(number: int) -> Any:
    return asyncio.sleep(3600)


def disconnects(number: int) -> Any:
    raise OSError("connection reset by peer")


REFUSED: dict[str, tuple[str, Behaviour, str]] = {
    "a pickle": ("send", lambda number: pickle.dumps(Hostile()), "not a message"),
    "an object": ("send", lambda number: Hostile(), "Hostile instead of a message"),
    "nothing": ("send", lambda number: None, "NoneType instead of a message"),
    "a flood": ("send", lambda number: b"[" + b"[]," * 1_000_000 + b"[]]", "and the limit is"),
    "deep data": ("send", lambda number: b"[" * 100_000, "not a message"),
    "an answer to another call": (
        "send",
        lambda number: encode_message(TurnAnswered(Reply("hello 1")), call=number + 1),
        "answers another call",
    ),
    "another message": ("send", lambda number: encode_message(SessionOpened(None), call=number), "instead of"),
    "a wrong type": (
        "send",
        lambda number: b'{"answers": %d, "message": {"type": "TurnAnswered", "reply": {"text": 5}}}' % number,
        "int instead of text",
    ),
    "a status that is none": ("status", lambda number: b"fine", "not a message"),
    "an opened session that is none": ("open", lambda number: b"{}", "not a message"),
    "a wrong fingerprint": (
        "prepare",
        lambda number: encode_message(HostInfo(__version__, (LoadedAgent("other"),)), call=number),
        "another version of the agent",
    ),
    "a wrong version": ("prepare", lambda number: encode_message(HostInfo("0.0.1"), call=number), "has Proctor 0.0.1"),
    "too few agents": (
        "prepare",
        lambda number: encode_message(HostInfo(__version__), call=number),
        "describes 0 agents",
    ),
    "a description that is none": ("prepare", lambda number: b"\x80\x04N.", "not a message"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_worker_that_sends_anything_but_its_message_is_not_used_and_the_others_do_its_work(
    hold: Hold, name: str
) -> None:
    method, behaviour, reason = REFUSED[name]
    run, verdict, notices = hold("bad", "good", **{method: behaviour})

    assert {trial.case.id: trial.outcome for trial in run.trials} == {f"c{n}": Outcome.PASSED for n in range(6)}
    assert verdict.exit_code == 0
    about = [line for line in notices if "bad" in line]
    assert len(about) == 1
    assert reason in about[0]
    assert "\n" not in about[0]
    assert RAN == []


def test_an_answered_trial_whose_session_cannot_be_closed_is_an_error_and_not_sent_again(hold: Hold) -> None:
    run, verdict, notices = hold("bad", "good", close=lambda number: 5)

    wrong = [trial for trial in run.trials if trial.outcome is not Outcome.PASSED]
    assert [(trial.outcome, trial.attempts) for trial in wrong] == [(Outcome.ERROR, 1)]
    assert "int instead of a message" in wrong[0].reason
    assert verdict.exit_code == 4
    assert len(notices) == 1


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that do not respond are given up soon."""
    monkeypatch.setattr(workers, "STUCK_SECONDS", 0.5)
    monkeypatch.setattr(workers, "SILENT_SECONDS", 1.0)
    monkeypatch.setattr(workers, "NO_WORKER_SECONDS", 0.4)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("behaviour", [disconnects, never], ids=["disconnects", "never answers"])
@pytest.mark.parametrize("method", ["open", "send", "close", "status", "start"])
def test_a_worker_that_disconnects_or_is_silent_never_makes_a_run_hang_or_pass(
    hold: Hold, method: str, behaviour: Behaviour
) -> None:
    run, verdict, _ = hold("bad", "good", timeout=0.5, **{method: behaviour})

    assert verdict.exit_code in (0, 1, 4, 130)
    assert len(run.summaries) == 6 or verdict.exit_code == 130
    wrong = [trial for trial in run.trials if trial.outcome is not Outcome.PASSED]
    assert verdict.exit_code == 0 or wrong
    assert all(trial.reason for trial in wrong)


@pytest.mark.usefixtures("impatient")
def test_without_another_worker_the_run_ends_and_is_not_passed(hold: Hold) -> None:
    run, verdict, notices = hold("bad", send=lambda number: b"nonsense")

    assert verdict.exit_code == 130
    assert not any(trial.outcome is Outcome.PASSED for trial in run.trials)
    assert len(notices) == 1


def test_a_run_without_any_worker_that_fits_is_refused(hold: Hold) -> None:
    with pytest.raises(UsageError, match="bad cannot be used"):
        hold("bad", prepare=lambda number: b"nonsense")


@pytest.mark.usefixtures("impatient")
def test_a_worker_cannot_stop_the_clock_of_its_sessions(hold: Hold) -> None:
    started = [0]

    def status(number: int) -> bytes:
        started[0] += 1  # every time it says that another session has taken all the time so far
        lost = tuple(LostTime(key, 1000.0 * started[0]) for key in range(1, 100))
        return encode_message(HostStatus(lost, 0.0, None), call=number)

    run, verdict, notices = hold("bad", "good", timeout=2.0, send=never, status=status)

    assert {trial.outcome for trial in run.trials} == {Outcome.PASSED}, notices
    assert verdict.exit_code == 0
    assert "says that its sessions get no time" in "\n".join(notices)


def test_a_worker_that_claims_to_have_started_the_agent_is_asked_for_its_turns(hold: Hold) -> None:
    run, _, _ = hold("bad", "good", start=lambda number: encode_message(AgentStarted(None), call=number))

    assert {trial.outcome for trial in run.trials} == {Outcome.PASSED}
