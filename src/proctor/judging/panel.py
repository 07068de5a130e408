"""Asks several judges, or one judge several times, and combines their results.

A jury asks all judges; a cascade asks the next judge only if the score is close to the threshold. The median decides. A
mean would let one extreme vote decide. Calls cost money, so the remaining judges are not asked once their votes cannot
change the outcome (`_votes_needed`).
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
    """`jury`: all vote. `cascade`: the next judge is asked only if the last score is close to the threshold."""
    band: float = 0.15
    """How close to the threshold a score must be for a cascade to ask the next judge."""

    @property
    def name(self) -> str:
        separator = " then " if self.mode == "cascade" else " + "
        return separator.join(judge.name for judge in self.judges)


@dataclass(frozen=True, slots=True)
class Vote:
    """The result of one judge, or why there is none."""

    judge: str
    sample: int
    result: Any = None
    abstained: str = ""


class _Sample:
    """A judge whose answers are cached separately from those of other samples."""

    def __init__(self, judge: Judge, number: int) -> None:
        self.name = judge.name
        self._judge = judge
        self._number = number

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        return await self._judge.ask(question, sample=self._number + sample)


async def ask_panel(
    panel: Panel, threshold: float, assess: Callable[[Judge], Awaitable[HasScoreT | None]], votes: list[Vote]
) -> HasScoreT | None:
    """The deciding result, or `None` if there is nothing to compare; every vote is added to `votes`.

    `assess` gets the result from one judge. The deciding result is the median by score, the lower one of two, so it
    passes only if more than half of the votes do. A judge that fails abstains; if all abstain, a failure is raised.
    """
    stages = [panel.judges] if panel.mode == "jury" else [(judge,) for judge in panel.judges]
    failures: list[JudgeFailed] = []
    deciding: list[HasScoreT] = []
    for stage in stages:
        is_last = stage is stages[-1]
        seats = [(judge, number) for judge in stage for number in range(panel.samples)]
        results = await _ask_stage(seats, threshold if is_last else None, assess, votes, failures)
        if results is None:
            return None
        deciding = results or deciding
        if results and abs(_median(results, threshold).score - threshold) > panel.band + TOLERANCE:
            break
    if not deciding:
        raise min(failures, key=_severity)
    return _median(deciding, threshold)


def _severity(failure: JudgeFailed) -> int:
    """The rank of a failure, the most severe first: an error, an abstention, a missing model."""
    return 2 if isinstance(failure, NeedsModel) else 1 if isinstance(failure, CannotTell) else 0


async def _ask_stage(
    seats: list[tuple[Judge, int]],
    threshold: float | None,
    assess: Callable[[Judge], Awaitable[HasScoreT | None]],
    votes: list[Vote],
    failures: list[JudgeFailed],
) -> list[HasScoreT] | None:
    """The results of `seats` (judges and sample numbers); `None` if there is nothing to compare.

    With a threshold, the remaining seats are not asked once they cannot change the outcome.
    """
    results: list[HasScoreT] = []
    while seats:
        needed = len(seats) if threshold is None else _votes_needed(results, len(seats), threshold)
        if not needed:
            break
        batch, seats = seats[:needed], seats[needed:]
        replies = await _ask_all([assess(_Sample(judge, number) if number else judge) for judge, number in batch])
        for (judge, number), reply in zip(batch, replies, strict=True):
            if reply is None:
                return None
            if isinstance(reply, JudgeFailed):
                failures.append(reply)
                votes.append(Vote(judge.name, number, abstained=str(reply)))
            else:
                results.append(reply)
                votes.append(Vote(judge.name, number, reply))
    return results


def _votes_needed(results: Sequence[HasScore], left: int, threshold: float) -> int:
    """The least number of further votes that can decide, if they all agree; 0 if the outcome is decided.

    To pass takes more than half of the votes, so it passes if passed > failed + left, and fails if
    passed + left <= failed. Each further vote also lowers `left` by one.
    """
    passed = sum(passes(result.score, threshold, result.passed) for result in results)
    failed = len(results) - passed
    to_pass = (failed + left - passed) // 2 + 1
    to_fail = (passed + left - failed + 1) // 2
    return max(0, min(to_pass, to_fail))


async def _ask_all(calls: Sequence[Awaitable[HasScoreT | None]]) -> list[HasScoreT | JudgeFailed | None]:
    """The result of each call, or its `JudgeFailed`; any other exception is a bug in the evaluator and is raised."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    replies: list[HasScoreT | JudgeFailed | None] = []
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, JudgeFailed):
            raise result
        replies.append(result)
    return replies


def _median(results: Sequence[HasScoreT], threshold: float) -> HasScoreT:
    """The median by pass or fail and then by score, the lower one of two: it passes only if more than half do."""

    def rank(result: HasScoreT) -> tuple[bool, float]:
        return passes(result.score, threshold, result.passed), result.score

    return sorted(results, key=rank)[(len(results) - 1) // 2]
