"""Asks more than one judge, or one more than once, and decides as soon as the rest can no longer change the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, Protocol, TypeVar

from proctor.base.errors import JudgeFailed
from proctor.base.records import record
from proctor.base.threshold import TOLERANCE, passes
from proctor.judging.judge import Judge, NeedsModel, Question, ReplyT


class Scored(Protocol):
    """What an opinion comes down to."""

    @property
    def score(self) -> float: ...


ScoredT = TypeVar("ScoredT", bound=Scored)


@record
class Panel:
    """Who judges, and how their opinions become one."""

    judges: tuple[Judge, ...]
    samples: int = 1
    """How often each judge is asked; an odd number cannot tie."""
    mode: Literal["jury", "cascade"] = "jury"
    """`jury`: everybody votes. `cascade`: the next judge is asked only when the one before is close to the line."""
    band: float = 0.15
    """How close to the threshold a score must be for a cascade to go on."""

    @property
    def name(self) -> str:
        joint = " then " if self.mode == "cascade" else " + "
        return joint.join(judge.name for judge in self.judges)


@record
class Vote:
    """One opinion, or why there was none."""

    judge: str
    sample: int
    opinion: Any = None
    abstained: str = ""


class _Sample:
    """A judge whose answers are told apart from those of other samples."""

    def __init__(self, judge: Judge, number: int) -> None:
        self.name = judge.name
        self._judge = judge
        self._number = number

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        return await self._judge.ask(question, sample=self._number + sample)


async def poll(
    panel: Panel, threshold: float, assess: Callable[[Judge], Awaitable[ScoredT | None]], votes: list[Vote]
) -> ScoredT | None:
    """The opinion that decides; every vote is added to `votes`. `None`: there was nothing to compare.

    The deciding opinion is the median by score, the lower one of two: it passes only if more than half of the votes do.
    A judge that fails abstains; when all abstain, a failure is raised. As many are asked at once as are needed in any
    case, and nobody whose vote could not change the outcome any more.
    """
    stages = [panel.judges] if panel.mode == "jury" else [(judge,) for judge in panel.judges]
    failures: list[JudgeFailed] = []
    decisive: list[ScoredT] = []
    for stage in stages:
        is_last = stage is stages[-1]
        level = _Levels(threshold, None if is_last else panel.band)
        heard = await _hear(stage, panel.samples, level, assess, votes, failures)
        if heard is None:
            return None
        decisive = heard or decisive
        if heard and (is_last or level.is_clear(_median(heard).score)):
            break
    if not decisive:
        raise next((failure for failure in failures if not isinstance(failure, NeedsModel)), failures[0])
    return _median(decisive)


async def _hear(
    judges: Sequence[Judge],
    samples: int,
    level: _Levels,
    assess: Callable[[Judge], Awaitable[ScoredT | None]],
    votes: list[Vote],
    failures: list[JudgeFailed],
) -> list[ScoredT] | None:
    """The opinions of judges who vote together, as many as it takes; `None` when there was nothing to compare."""
    seats = [(judge, number) for judge in judges for number in range(samples)]
    heard: list[ScoredT] = []
    while seats and (needed := level.votes_needed([opinion.score for opinion in heard], len(seats))):
        asked, seats = seats[:needed], seats[needed:]
        replies = await _together([assess(_Sample(judge, number) if number else judge) for judge, number in asked])
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


async def _together(asked: Sequence[Awaitable[ScoredT | None]]) -> list[ScoredT | JudgeFailed | None]:
    """What each says, or why it abstains; anything else that goes wrong is not the judges' matter."""
    results = await asyncio.gather(*asked, return_exceptions=True)
    replies: list[ScoredT | JudgeFailed | None] = []
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, JudgeFailed):
            raise result
        replies.append(result)
    return replies


class _Levels:
    """What a score comes down to for whoever decides: pass or fail and, in a cascade, whether that is clear."""

    def __init__(self, threshold: float, band: float | None) -> None:
        self._threshold = threshold
        self._band = band

    def is_clear(self, score: float) -> bool:
        return self._band is not None and abs(score - self._threshold) > self._band + TOLERANCE

    def of(self, score: float) -> int:
        """Clearly failing, failing, passing, clearly passing."""
        passed = passes(score, self._threshold)
        return (2 if passed else 1) if not self.is_clear(score) else (3 if passed else 0)

    def votes_needed(self, scores: Sequence[float], left: int) -> int:
        """The least number of further votes after which the median's level can be certain; 0 if it is already."""
        levels = [self.of(score) for score in scores]
        scale = range(1, 3) if self._band is None else range(4)
        for further in range(left):
            if any(_is_certain([*levels, *[level] * further], left - further, scale) for level in scale):
                return further
        return left


def _is_certain(levels: Sequence[int], left: int, scale: range) -> bool:
    """Whether the median stays on its level, however those vote who are left, or if they do not."""
    if not levels:
        return False
    spread = [*[scale[0]] * left, *sorted(levels), *[scale[-1]] * left]
    highest = (len(levels) + left - 1) // 2 + left
    return spread[highest - left] == spread[highest]


def _median(opinions: Sequence[ScoredT]) -> ScoredT:
    return sorted(opinions, key=lambda opinion: opinion.score)[(len(opinions) - 1) // 2]
