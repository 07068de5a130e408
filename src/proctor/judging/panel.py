"""Asks several judges, or one judge several times, and combines their results.

A jury asks all judges; a cascade asks the next judge only if the score is close to the threshold. The median decides,
and judges are not asked any more once their votes cannot change the outcome (`_votes_needed`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from proctor.base.errors import JudgeFailed, NeedsModel
from proctor.cases.threshold import TOLERANCE, passes
from proctor.judging.judge import CannotTell, Judge, Question, ReplyT


class HasScore(Protocol):
    """A result with a score, and maybe its own pass or fail."""

    @property
    def score(self) -> float: ...

    @property
    def passed(self) -> bool | None: ...


HasScoreT = TypeVar("HasScoreT", bound=HasScore)


@dataclass(frozen=True, slots=True)
class Panel:
    """One or more judges, and how their results are combined."""

    judges: tuple[Judge, ...]
    samples: int = 1
    """How many times each judge is asked; an odd number cannot tie."""
    mode: Literal["jury", "cascade"] = "jury"
    """`jury`: all vote. `cascade`: the next judge is asked only when the score before is close to the threshold."""
    band: float = 0.15
    """How close to the threshold a score must be for a cascade to go on."""

    @property
    def name(self) -> str:
        joint = " then " if self.mode == "cascade" else " + "
        return joint.join(judge.name for judge in self.judges)


@dataclass(frozen=True, slots=True)
class Vote:
    """One result, or why there is none."""

    judge: str
    sample: int
    result: Any = None
    abstained: str = ""


class _Sample:
    """A judge whose answers are cached apart from those of other samples."""

    def __init__(self, judge: Judge, number: int) -> None:
        self.name = judge.name
        self._judge = judge
        self._number = number

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        return await self._judge.ask(question, sample=self._number + sample)


async def ask_panel(
    panel: Panel, threshold: float, assess: Callable[[Judge], Awaitable[HasScoreT | None]], votes: list[Vote]
) -> HasScoreT | None:
    """The opinion that decides; every vote is added to `votes`. `None`: there was nothing to compare.

    The deciding opinion is the median by score, the lower one of two: it passes only if more than half of the votes do.
    A judge that fails abstains; when all abstain, a failure is raised.
    """
    stages = [panel.judges] if panel.mode == "jury" else [(judge,) for judge in panel.judges]
    failures: list[JudgeFailed] = []
    decisive: list[HasScoreT] = []
    for stage in stages:
        is_last = stage is stages[-1]
        seats = [(judge, number) for judge in stage for number in range(panel.samples)]
        heard = await _ask_stage(seats, threshold if is_last else None, assess, votes, failures)
        if heard is None:
            return None
        decisive = heard or decisive
        if heard and abs(_median(heard, threshold).score - threshold) > panel.band + TOLERANCE:
            break
    if not decisive:
        raise min(failures, key=_severity)
    return _median(decisive, threshold)


def _severity(failure: JudgeFailed) -> int:
    """Of several failures the gravest is raised: one that broke, then one that cannot tell, then a missing model."""
    return 2 if isinstance(failure, NeedsModel) else 1 if isinstance(failure, CannotTell) else 0


async def _ask_stage(
    seats: list[tuple[Judge, int]],
    threshold: float | None,
    assess: Callable[[Judge], Awaitable[HasScoreT | None]],
    votes: list[Vote],
    failures: list[JudgeFailed],
) -> list[HasScoreT] | None:
    """The opinions of `seats`; `None` when there was nothing to compare.

    With a threshold, the rest is not asked once it can no longer change the outcome: judge calls cost money.
    """
    heard: list[HasScoreT] = []
    while seats:
        needed = len(seats) if threshold is None else _votes_needed(heard, len(seats), threshold)
        if not needed:
            break
        asked, seats = seats[:needed], seats[needed:]
        replies = await _ask_all([assess(_Sample(judge, number) if number else judge) for judge, number in asked])
        for (judge, number), reply in zip(asked, replies, strict=True):
            if reply is None:
                return None
            if isinstance(reply, JudgeFailed):
                failures.append(reply)
                votes.append(Vote(judge.name, number, abstained=str(reply)))
            else:
                heard.append(reply)
                votes.append(Vote(judge.name, number, reply))
    return heard


def _votes_needed(heard: Sequence[HasScore], left: int, threshold: float) -> int:
    """The least number of further votes that can settle pass or fail, if they all agree; 0 if it is settled.

    Passed needs more than half of the votes, so it is settled when good > fails + left, and failed when
    good + left <= fails. Each further vote also lowers `left` by one.
    """
    good = sum(passes(opinion.score, threshold, opinion.passed) for opinion in heard)
    fails = len(heard) - good
    to_pass = (fails + left - good) // 2 + 1
    to_fail = (good + left - fails + 1) // 2
    return max(0, min(to_pass, to_fail))


async def _ask_all(asked: Sequence[Awaitable[HasScoreT | None]]) -> list[HasScoreT | JudgeFailed | None]:
    """What each says, or why it abstains; any other exception is a bug of the evaluator and is raised."""
    results = await asyncio.gather(*asked, return_exceptions=True)
    replies: list[HasScoreT | JudgeFailed | None] = []
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, JudgeFailed):
            raise result
        replies.append(result)
    return replies


def _median(opinions: Sequence[HasScoreT], threshold: float) -> HasScoreT:
    """By verdict and then by score, so that it passes only if more than half do; the lower one of two."""

    def rank(opinion: HasScoreT) -> tuple[bool, float]:
        return passes(opinion.score, threshold, opinion.passed), opinion.score

    return sorted(opinions, key=rank)[(len(opinions) - 1) // 2]
