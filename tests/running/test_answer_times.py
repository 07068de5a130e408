"""When an answer counts as late, in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from proctor.agents.trial_context import TrialContext
from proctor.base.clock import Clock
from proctor.running.answer_times import AnswerTimes, SentTurn


class Simulation:
    """A run in which turns are sent and answered at times that are known in advance."""

    def __init__(self) -> None:
        self.now = 0.0
        self.times = AnswerTimes()
        self._latencies: dict[SentTurn, float] = {}

    def send(self, latency: float) -> SentTurn:
        turn = SentTurn(sent_at=self.now)
        self.times.add(turn)
        self._latencies[turn] = latency
        return turn

    def advance(self, now: float) -> None:
        self.now = now
        for turn, latency in self._latencies.items():
            if turn.sent_at is not None and turn.sent_at + latency <= now:
                turn.answer_seconds = latency

    def late(self) -> list[SentTurn]:
        return [turn for turn in self._latencies if turn.answer_seconds is None and self.times.is_late(turn)]


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> Simulation:
    simulation = Simulation()
    monkeypatch.setattr(Clock, "monotonic", lambda: simulation.now)
    return simulation


def lognormal(seed: int) -> Callable[[], float]:
    source = random.Random(seed)
    return lambda: source.lognormvariate(-1.2, 0.8)  # median 0.3 s, one in twenty above 1.1 s


def test_a_turn_that_hangs_is_late_once_it_took_twice_as_long_as_nearly_all_others(simulation: Simulation) -> None:
    hanging = simulation.send(20.0)
    for _ in range(30):
        simulation.send(1.0)
    simulation.advance(1.9)
    assert simulation.late() == []
    simulation.advance(2.1)
    assert simulation.late() == [hanging]


def test_at_the_beginning_slow_answers_are_not_late_next_to_the_quick_ones_that_are_there_already(
    simulation: Simulation,
) -> None:
    for number in range(64):
        simulation.send(0.1 if number < 32 else 3.0)
    for step in range(30):
        simulation.advance(step / 10)
        assert simulation.late() == []


def test_no_answer_is_late_before_twenty_others_are_known(simulation: Simulation) -> None:
    hanging = simulation.send(20.0)
    for _ in range(19):
        simulation.send(0.3)
    simulation.advance(5.0)
    assert simulation.late() == []
    simulation.send(0.3)
    simulation.advance(10.5)
    assert simulation.late() == [hanging]


def test_when_the_provider_becomes_slow_for_all_no_answer_is_late(simulation: Simulation) -> None:
    for _ in range(100):
        simulation.send(0.3)
    simulation.advance(1.0)
    for _ in range(64):
        simulation.send(10.0)
    for step in range(100):
        simulation.advance(1.0 + step / 10)
        if step > 20:
            assert simulation.late() == []


@pytest.mark.parametrize("seed", range(5))
def test_few_ordinary_answers_are_late(simulation: Simulation, seed: int) -> None:
    latency, late = lognormal(seed), set()
    for step in range(400):
        simulation.advance(step / 20)
        simulation.send(latency())
        late.update(simulation.late())
    assert len(late) <= 8


def test_no_answer_of_a_quick_agent_is_late(simulation: Simulation) -> None:
    for _ in range(50):
        simulation.send(0.001)
    simulation.send(0.4)
    simulation.advance(0.39)
    assert simulation.late() == []


def test_waiting_for_a_worker_does_not_count(simulation: Simulation) -> None:
    trial, turn = TrialContext(), SentTurn()
    with turn.timed(trial):
        simulation.now = 5.0
        trial.excluded_seconds += 4.0
        assert turn.seconds_so_far == 1.0
        simulation.now = 6.0
    assert turn.answer_seconds == 2.0


def test_a_turn_that_failed_and_waits_to_be_sent_again_is_not_late(simulation: Simulation) -> None:
    turn = SentTurn()
    with pytest.raises(ConnectionError), turn.timed(TrialContext()):
        raise ConnectionError
    for _ in range(30):
        simulation.send(0.3)
    simulation.times.add(turn)
    simulation.advance(30.0)
    assert turn.seconds_so_far == 0.0
    assert not simulation.times.is_late(turn)
