"""The base of ADK's judged metrics: `judge_model_options`, and a majority of independent samples for each item.

No more samples are asked for than can change the majority.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from proctor.base.errors import JudgeFailed, NeedsModel
from proctor.base.json_data import Json
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation
from proctor.evaluators.judged_evaluator import JudgedEvaluator
from proctor.evaluators.values import require_int
from proctor.judging.judge import Judge, Question

Ballot = Sequence[tuple[bool, str]]
"""One reply: for each item whether it is in favour, and why."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How the vote on one item went."""

    in_favour: int
    against: int
    reason: str = ""
    """What the first of the majority said."""
    abstained: tuple[str, ...] = ()
    """Why there is no vote of a sample that was asked, for each."""

    @property
    def votes(self) -> dict[str, Json]:
        """The tally as it is kept."""
        votes: dict[str, Json] = {"in_favour": self.in_favour, "against": self.against}
        return votes | ({"abstained": list(self.abstained)} if self.abstained else {})

    @property
    def carried(self) -> bool:
        """More for than against: a tie is lost."""
        return self.in_favour > self.against


async def take_votes(
    judge: Judge, question: Question[Any], read: Callable[[Any], Ballot], *, samples: int, at_once: int | None = None
) -> list[Tally]:
    """One tally per item of the replies to `question`, which is put up to `samples` times.

    A reply that cannot be used is no vote; when there is no vote at all, the first failure is raised. As many are asked
    at once as are needed in any case (and no more than `at_once`), and none that could not change anything.
    """
    ballots: list[Ballot] = []
    failures: list[JudgeFailed] = []
    asked = 0
    while asked < samples and (needed := votes_needed(count(ballots), samples - asked)):
        batch = range(asked, asked + min(needed, at_once or needed))
        ballots += [read(reply) for reply in await _ask(judge, question, batch, failures)]
        asked = batch.stop
    if not ballots:
        raise failures[0]
    return [replace(tally, abstained=tuple(map(str, failures))) for tally in count(ballots)]


async def take_all(judge: Judge, question: Question[Any], *, samples: int, at_once: int | None = None) -> list[Any]:
    """Every usable reply to `question`, which is put `samples` times; without any, the first failure is raised."""
    replies: list[Any] = []
    failures: list[JudgeFailed] = []
    width = at_once or samples
    for start in range(0, samples, width):
        replies += await _ask(judge, question, range(start, min(samples, start + width)), failures)
    if not replies:
        raise failures[0]
    return replies


async def _ask(judge: Judge, question: Question[Any], batch: range, failures: list[JudgeFailed]) -> list[Any]:
    """The replies to one question put several times at once; a judge that can never answer it ends the sampling."""
    replies = await asyncio.gather(*(judge.ask(question, sample=i) for i in batch), return_exceptions=True)
    usable: list[Any] = []
    for reply in replies:
        if isinstance(reply, JudgeFailed) and not isinstance(reply, NeedsModel):
            failures.append(reply)
        elif isinstance(reply, BaseException):
            raise reply
        else:
            usable.append(reply)
    return usable


def count(ballots: Sequence[Ballot]) -> list[Tally]:
    """The tally of each item; all ballots have the same items."""
    return [_tally(votes) for votes in zip(*ballots, strict=True)]


def votes_needed(tallies: Sequence[Tally], left: int) -> int:
    """The fewest further votes, of `left`, that could settle every item; none if all are settled."""
    if not tallies:
        return _needed(0, 0, left)
    return max(_needed(tally.in_favour, tally.against, left) for tally in tallies)


def _needed(in_favour: int, against: int, left: int) -> int:
    """Settled for: in_favour + n > against + (left - n). Settled against: against + n >= in_favour + (left - n)."""
    to_carry = (against + left - in_favour) // 2 + 1
    to_lose = (in_favour + left - against + 1) // 2
    return max(0, min(to_carry, to_lose, left))


def _tally(votes: Sequence[tuple[bool, str]]) -> Tally:
    in_favour = sum(verdict for verdict, _ in votes)
    against = len(votes) - in_favour
    side = in_favour > against
    return Tally(in_favour, against, next((reason for verdict, reason in votes if verdict is side), ""))


OPTIONS = ("judge_model", "judge_model_config", "num_samples", "parallelism_limit")

SETTINGS: Final = ("temperature", "top_p", "topP", "max_output_tokens", "maxOutputTokens")
"""What of a `judge_model_config` a judge can be told."""


@dataclass(frozen=True, kw_only=True)
class AdkJudged(JudgedEvaluator):
    """The base of ADK's judged metrics; each item of a reply is decided by the majority of the samples."""

    judge_model_options: Mapping[str, Json] = field(default_factory=dict)
    """ADK's: `judge_model`, `judge_model_config`, `num_samples`, `parallelism_limit`."""

    usual_samples: ClassVar[int] = 5

    def __post_init__(self) -> None:
        options = self.judge_model_options
        if not isinstance(options, Mapping):
            raise ValueError(f"judge_model_options must be an object, not {options!r:.80}")
        unknown = [name for name in options if name not in OPTIONS]
        if unknown:
            raise ValueError(f"judge_model_options has no {unknown[0]!r}; it has {', '.join(OPTIONS)}")
        counts = {f"judge_model_options.{name}": options.get(name) for name in ("num_samples", "parallelism_limit")}
        for name, count in (counts | {"samples": self.samples}).items():
            if count is not None:
                require_int(name, count, least=1)
        if self.model is None:
            object.__setattr__(self, "model", judge_named(options))

    async def __call__(self, evaluable: Evaluable) -> Evaluation | None:
        # The samples are taken item by item in `assess`, so the panel is to ask each of its judges for one opinion.
        options = {**self.judge_model_options, "num_samples": self.votes}
        return await JudgedEvaluator.__call__(replace(self, samples=1, judge_model_options=options), evaluable)

    @property
    def votes(self) -> int:
        """How often the judge is asked."""
        given: int | None = self.judge_model_options.get("num_samples") or self.samples
        return given or self.usual_samples

    @property
    def at_once(self) -> int | None:
        """How many samples may be under way at the same time, where the options say."""
        limit: int | None = self.judge_model_options.get("parallelism_limit")
        return limit

    async def vote(self, judge: Judge, question: Question[Any], read: Callable[[Any], Ballot]) -> list[Tally]:
        """What most samples say of each item."""
        return await take_votes(judge, question, read, samples=self.votes, at_once=self.at_once)


def judge_named(options: Mapping[str, Json]) -> Json:
    """The part of ADK's options that names the judge; `None` where they name none."""
    model = options.get("judge_model")
    if not isinstance(model, str) or not model:
        return None
    given = options.get("judge_model_config") or {}
    settings = {name: given[name] for name in SETTINGS if given.get(name) is not None}
    return {"judge_model": model, **({"judge_model_config": settings} if settings else {})}
