"""Several opinions become one, and no judge is asked whose vote cannot matter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.base.errors import JudgeFailed
from proctor.judging.judge import NeedsModel
from proctor.judging.panel import Panel, Vote, ask_panel

Scores = Sequence[Sequence[float | None]]
"""By judge and sample; `None` abstains."""


@dataclass(frozen=True)
class Opinion:
    score: float
    passed: bool | None = None


class Juror:
    def __init__(self, name: str) -> None:
        self.name = name
        self.samples: list[int] = []

    async def ask(self, question: Any, *, sample: int = 0) -> Any:
        self.samples.append(sample)
        return sample


class Hearing:
    """A panel whose opinions are known beforehand."""

    def __init__(self, scores: Scores, mode: Literal["jury", "cascade"] = "jury", band: float = 0.15) -> None:
        self.jurors = tuple(Juror(f"judge-{number}") for number in range(len(scores)))
        self.scores = scores
        self.panel = Panel(self.jurors, len(scores[0]), mode, band)
        self.calls = 0
        self.at_once = self.peak = 0

    async def assess(self, judge: Any) -> Opinion:
        sample = await judge.ask(None)
        self.calls += 1
        self.at_once += 1
        self.peak = max(self.peak, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        score = self.scores[int(judge.name.removeprefix("judge-"))][sample]
        if score is None:
            raise JudgeFailed(f"{judge.name} has no opinion")
        return Opinion(score)

    def poll(self, threshold: float) -> tuple[Opinion | None, tuple[Vote, ...]]:
        votes: list[Vote] = []
        return asyncio.run(ask_panel(self.panel, threshold, self.assess, votes)), tuple(votes)


def _median(scores: Sequence[float]) -> float:
    return sorted(scores)[(len(scores) - 1) // 2]


def _all_asked(scores: Scores, mode: str, band: float, threshold: float) -> float | None:
    """What would decide if all were asked; `None` when all abstain."""
    given_ = [[score for score in row if score is not None] for row in scores]
    if mode == "jury":
        flat = [score for row in given_ for score in row]
        return _median(flat) if flat else None
    decisive = None
    for number, row in enumerate(given_):
        if row:
            decisive = _median(row)
            if number == len(given_) - 1 or abs(decisive - threshold) > band + 1e-12:
                break
    return decisive


grades = st.sampled_from([0.0, 0.2, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.8, 1.0])
rows = st.integers(1, 5).flatmap(
    lambda samples: st.lists(st.lists(st.none() | grades, min_size=samples, max_size=samples), min_size=1, max_size=4)
)


@given(scores=rows, mode=st.sampled_from(["jury", "cascade"]), threshold=st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]))
def test_the_outcome_is_that_of_asking_all_judges(scores: Scores, mode: Any, threshold: float) -> None:
    hearing = Hearing(scores, mode)
    wanted = _all_asked(scores, mode, hearing.panel.band, threshold)
    if wanted is None:
        with pytest.raises(JudgeFailed):
            hearing.poll(threshold)
    else:
        opinion, votes = hearing.poll(threshold)
        assert opinion is not None
        assert (opinion.score >= threshold) is (wanted >= threshold)
        assert len(votes) == hearing.calls
    assert hearing.calls <= len(scores) * len(scores[0])


@given(scores=rows, threshold=grades)
def test_no_seat_is_asked_twice_and_abstentions_stay_among_the_votes(scores: Scores, threshold: float) -> None:
    hearing = Hearing(scores)
    try:
        _, votes = hearing.poll(threshold)
    except JudgeFailed:
        return
    seats = [(vote.judge, vote.sample) for vote in votes]
    assert len(set(seats)) == len(seats)
    for vote in votes:
        score = scores[int(vote.judge.removeprefix("judge-"))][vote.sample]
        assert (vote.result is None, bool(vote.abstained)) == (score is None, score is None)


@pytest.mark.parametrize(("count", "asked"), [(1, 1), (2, 1), (3, 2), (5, 3), (7, 4)])
def test_a_clear_failure_is_decided_by_as_few_as_can_decide_it(count: int, asked: int) -> None:
    hearing = Hearing([[0.0]] * count)
    hearing.poll(0.5)
    assert hearing.calls == asked


def test_as_many_as_a_decision_needs_are_asked_at_once() -> None:
    hearing = Hearing([[1.0] * 5])
    hearing.poll(0.5)
    assert (hearing.calls, hearing.peak) == (3, 3)


def test_a_tie_fails_and_the_lower_one_of_two_speaks() -> None:
    opinion, _ = Hearing([[0.9], [0.1]]).poll(0.5)
    assert opinion == Opinion(0.1)


def test_a_cascade_asks_the_next_judge_only_where_the_first_is_close_to_the_line() -> None:
    clear, close = Hearing([[0.9], [0.1]], "cascade"), Hearing([[0.55], [0.1]], "cascade")
    assert clear.poll(0.5)[0] == Opinion(0.9)
    assert close.poll(0.5)[0] == Opinion(0.1)
    assert (clear.calls, close.calls) == (1, 2)


def test_a_cascade_whose_last_judge_abstains_falls_back_on_the_one_before() -> None:
    opinion, votes = Hearing([[0.55], [None]], "cascade").poll(0.5)
    assert opinion == Opinion(0.55)
    assert [bool(vote.abstained) for vote in votes] == [False, True]


def test_samples_of_one_judge_are_told_apart() -> None:
    hearing = Hearing([[1.0, 0.0, 1.0]])
    hearing.poll(0.5)
    assert sorted(hearing.jurors[0].samples) == [0, 1, 2]


def test_nothing_to_compare_is_said_by_one_for_all() -> None:
    async def assess(judge: Any) -> Opinion | None:
        return None

    panel = Panel((Juror("a"), Juror("b"), Juror("c")))
    assert asyncio.run(ask_panel(panel, 0.5, assess, votes := [])) is None
    assert votes == []


def test_what_is_wrong_with_the_evaluator_is_not_taken_for_an_abstention() -> None:
    async def assess(judge: Any) -> Opinion:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        asyncio.run(ask_panel(Panel((Juror("a"), Juror("b"), Juror("c"))), 0.5, assess, []))


def test_a_judge_that_failed_is_told_of_before_one_that_needs_a_model() -> None:
    async def assess(judge: Any) -> Opinion:
        raise NeedsModel("rules cannot say") if judge.name == "a" else JudgeFailed("unreachable")

    with pytest.raises(JudgeFailed, match="unreachable"):
        asyncio.run(ask_panel(Panel((Juror("a"), Juror("b"))), 0.5, assess, []))
