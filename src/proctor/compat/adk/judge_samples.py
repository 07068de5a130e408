"""The base of ADK's judged metrics: `judge_model_options`, and a majority vote of independent samples per item.

The judge is asked the same question several times, and each reply votes on every item in it. Asking for all samples at
once would waste calls: with five samples, three equal votes decide. So samples are requested in batches of the size
that could decide every item, until the remaining ones cannot change any majority.
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
"""One reply: for each item, whether it is in favor, and why."""


@dataclass(frozen=True, slots=True)
class VoteCount:
    """The votes on one item."""

    in_favour: int
    against: int
    reason: str = ""
    """The first reason given by the majority."""
    abstained: tuple[str, ...] = ()
    """Why a sample has no vote, for each sample without one."""

    @property
    def votes(self) -> dict[str, Json]:
        """The counts as stored in the details of a score."""
        votes: dict[str, Json] = {"in_favour": self.in_favour, "against": self.against}
        return votes | ({"abstained": list(self.abstained)} if self.abstained else {})

    @property
    def has_majority(self) -> bool:
        """Whether more votes are in favor than against; a tie is lost."""
        return self.in_favour > self.against


async def majority_vote(
    judge: Judge,
    question: Question[Any],
    read: Callable[[Any], Ballot],
    *,
    samples: int,
    max_parallel: int | None = None,
) -> list[VoteCount]:
    """Ask `question` up to `samples` times and return the votes per item of the reply.

    A reply that cannot be used is not a vote. If there are no votes at all, the first failure is raised. `read` turns a
    reply into a ballot. At most `max_parallel` samples run in parallel.
    """
    ballots: list[Ballot] = []
    failures: list[JudgeFailed] = []
    sent = 0
    while sent < samples and (needed := votes_needed(count_votes(ballots), samples - sent)):
        batch = range(sent, sent + min(needed, max_parallel or needed))
        ballots += [read(reply) for reply in await _ask(judge, question, batch, failures)]
        sent = batch.stop
    if not ballots:
        raise failures[0]
    return [replace(votes, abstained=tuple(map(str, failures))) for votes in count_votes(ballots)]


async def ask_samples(
    judge: Judge, question: Question[Any], *, samples: int, max_parallel: int | None = None
) -> list[Any]:
    """Every usable reply to `question`, asked `samples` times; raises the first failure if there is none."""
    replies: list[Any] = []
    failures: list[JudgeFailed] = []
    width = max_parallel or samples
    for start in range(0, samples, width):
        replies += await _ask(judge, question, range(start, min(samples, start + width)), failures)
    if not replies:
        raise failures[0]
    return replies


async def _ask(judge: Judge, question: Question[Any], batch: range, failures: list[JudgeFailed]) -> list[Any]:
    """The replies to one batch of samples; raises if the judge cannot answer this kind of question at all."""
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


def count_votes(ballots: Sequence[Ballot]) -> list[VoteCount]:
    """The votes per item; all ballots have the same items."""
    return [_count_item(votes) for votes in zip(*ballots, strict=True)]


def votes_needed(items: Sequence[VoteCount], remaining: int) -> int:
    """The smallest number of further votes, of `remaining`, that could decide every item; 0 if all are decided."""
    if not items:
        return _item_votes_needed(0, 0, remaining)
    return max(_item_votes_needed(item.in_favour, item.against, remaining) for item in items)


def _item_votes_needed(in_favour: int, against: int, remaining: int) -> int:
    """The votes needed to decide one item.

    Won: in_favour + n > against + (remaining - n). Lost: against + n >= in_favour + (remaining - n).
    """
    to_win = (against + remaining - in_favour) // 2 + 1
    to_lose = (in_favour + remaining - against + 1) // 2
    return max(0, min(to_win, to_lose, remaining))


def _count_item(votes: Sequence[tuple[bool, str]]) -> VoteCount:
    in_favour = sum(verdict for verdict, _ in votes)
    against = len(votes) - in_favour
    side = in_favour > against
    return VoteCount(in_favour, against, next((reason for verdict, reason in votes if verdict is side), ""))


JUDGE_OPTIONS = ("judge_model", "judge_model_config", "num_samples", "parallelism_limit")
"""The keys of `judge_model_options`."""

MODEL_SETTINGS: Final = ("temperature", "top_p", "topP", "max_output_tokens", "maxOutputTokens")
"""The keys of `judge_model_config` that have an effect here, in both spellings."""


@dataclass(frozen=True, kw_only=True)
class AdkJudgedEvaluator(JudgedEvaluator):
    """The base of ADK's judged metrics. The majority of the samples decides each item of a reply."""

    judge_model_options: Mapping[str, Json] = field(default_factory=dict)
    """ADK's: `judge_model`, `judge_model_config`, `num_samples`, `parallelism_limit`."""

    default_samples: ClassVar[int] = 5
    """How often the judge is asked if `num_samples` is not set."""

    def __post_init__(self) -> None:
        options = self.judge_model_options
        if not isinstance(options, Mapping):
            raise ValueError(f"judge_model_options must be an object, not {options!r:.80}")
        unknown = [name for name in options if name not in JUDGE_OPTIONS]
        if unknown:
            raise ValueError(f"judge_model_options has no {unknown[0]!r}; it has {', '.join(JUDGE_OPTIONS)}")
        counts = {f"judge_model_options.{name}": options.get(name) for name in ("num_samples", "parallelism_limit")}
        for name, count in (counts | {"samples": self.samples}).items():
            if count is not None:
                require_int(name, count, least=1)
        if self.model is None:
            object.__setattr__(self, "model", judge_from_options(options))

    async def __call__(self, evaluable: Evaluable) -> Evaluation | None:
        # `assess` takes the samples itself, so the panel must ask each of its judges only once.
        options = {**self.judge_model_options, "num_samples": self.sample_count}
        return await JudgedEvaluator.__call__(replace(self, samples=1, judge_model_options=options), evaluable)

    @property
    def sample_count(self) -> int:
        """How often the judge is asked."""
        samples: int | None = self.judge_model_options.get("num_samples") or self.samples
        return samples or self.default_samples

    @property
    def max_parallel(self) -> int | None:
        """How many samples may run in parallel, or None for no limit."""
        limit: int | None = self.judge_model_options.get("parallelism_limit")
        return limit

    async def vote(self, judge: Judge, question: Question[Any], read: Callable[[Any], Ballot]) -> list[VoteCount]:
        """The majority vote of the samples on each item."""
        return await majority_vote(judge, question, read, samples=self.sample_count, max_parallel=self.max_parallel)


def judge_from_options(options: Mapping[str, Json]) -> Json:
    """The judge that ADK's options name, or None if they name none."""
    model = options.get("judge_model")
    if not isinstance(model, str) or not model:
        return None
    config = options.get("judge_model_config") or {}
    settings = {name: config[name] for name in MODEL_SETTINGS if config.get(name) is not None}
    return {"judge_model": model, **({"judge_model_config": settings} if settings else {})}
