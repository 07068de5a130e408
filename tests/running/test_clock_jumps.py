"""The system's clock is set while a run goes on, by hours, forward and back."""

from __future__ import annotations

import random
import time
from email.utils import formatdate
from pathlib import Path

import pytest
from engine_helpers import case, run, suite

from proctor.base.clock import Clock
from proctor.base.errors import AgentFailed
from proctor.base.infrastructure import retry_after
from proctor.cases.files.downloads import _CachedDownload
from proctor.cases.suite import Settings
from proctor.results.score import Outcome
from proctor.results.store.store import Store

HOUR = 3600.0


class JumpingClock:
    """A clock that somebody sets, by up to five hours, every time that it is read."""

    def __init__(self) -> None:
        self.offset = 0.0
        self._random = random.Random(1)
        self._now = time.time

    def __call__(self) -> float:
        self.offset = self._random.uniform(-5, 5) * HOUR
        return self._now() + self.offset


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> JumpingClock:
    jumping = JumpingClock()
    monkeypatch.setattr(Clock, "time", staticmethod(jumping))
    monkeypatch.setattr(time, "time", jumping)
    return jumping


ASKED: list[str] = []


def busy_once(question: str) -> str:
    """The question, except the first time that it is asked."""
    ASKED.append(question)
    if ASKED.count(question) == 1:
        raise AgentFailed("busy", transient=True, retry_after=0.01)
    return question


def wrong_once(question: str) -> str:
    ASKED.append(question)
    return "wrong" if len(ASKED) == 3 else question


def test_timeouts_and_durations_do_not_follow_the_clock(clock: JumpingClock, tmp_path: Path) -> None:
    for attempt in range(3):
        ASKED.clear()
        found, verdict = run(
            suite([case(f"c{number}") for number in range(6)]),
            agent=busy_once,
            store=tmp_path,
            overrides=Settings(timeout=20.0),
        )
        assert {trial.outcome for trial in found.trials} == {Outcome.PASSED}, attempt
        assert verdict.exit_code == 0
        assert all(0 <= trial.duration_ms < 60_000 for trial in found.trials)
        assert found.finished_at is not None
        assert 0 <= found.finished_at - found.started_at < 60


def test_the_latest_run_is_the_last_one_whatever_its_date_is(clock: JumpingClock, tmp_path: Path) -> None:
    names = [run(suite([case("c")]), agent=lambda question: question, store=tmp_path)[0].id for _ in range(6)]

    store = Store(tmp_path)
    assert [stored.id for stored in store.runs(None)] == names[::-1]


def test_a_run_that_was_interrupted_before_the_clock_was_set_back_is_resumed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ASKED.clear()
    cases = suite([case(f"c{number}") for number in range(5)], parallel=1)
    first, _ = run(cases, agent=wrong_once, store=tmp_path, maxfail=1)
    now = Clock.time
    monkeypatch.setattr(Clock, "time", staticmethod(lambda: now() - 5 * HOUR))
    second, verdict = run(cases, agent=wrong_once, store=tmp_path, maxfail=1, resume=True)

    assert second.id == first.id
    assert ",".join(ASKED) == "c0,c1,c2,c3,c4"
    assert verdict.exit_code == 1
    assert second.finished_at is not None
    assert second.finished_at >= second.started_at


def test_a_date_to_retry_after_is_measured_by_the_clock_of_the_service() -> None:
    for skew in (-5 * HOUR, 0.0, 5 * HOUR):
        there = time.time() + skew
        headers = {"Date": formatdate(there, usegmt=True), "Retry-After": formatdate(there + 30, usegmt=True)}
        assert retry_after(headers) == 30.0
    assert 25 < retry_after({"Retry-After": formatdate(time.time() + 30, usegmt=True)}) <= 30
    assert retry_after({"Date": "yesterday", "Retry-After": "7"}) == 7.0


def test_a_download_that_was_cached_while_the_clock_was_ahead_is_not_used_for_years(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now = time.time()
    for offset, is_fresh in ((0.0, True), (5 * 365 * 24 * HOUR, False), (-5 * HOUR, False)):
        monkeypatch.setattr(time, "time", lambda offset=offset: now + offset)
        _CachedDownload(tmp_path, "http://example.com/a").save(b"x", {"cache-control": "max-age=600"})
        monkeypatch.setattr(time, "time", lambda: now + 1)
        assert _CachedDownload(tmp_path, "http://example.com/a").is_fresh is is_fresh
