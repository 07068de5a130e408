"""JudgedEvaluator, the base class of evaluators that ask a judge.

A subclass implements `assess`: it asks the judge questions and turns the replies into a score, often as the mean of
`Finding`s. This base class chooses the judge, asks a panel if there is one, records the judge's calls and their cost in
the details, and abstains if the score would pass or fail depending on what the judge could not tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from proctor.agents.reply import Usage
from proctor.base.errors import BudgetSpent, JudgeFailed, NeedsModel
from proctor.base.json_data import Json, to_text
from proctor.base.masking import mask
from proctor.cases.threshold import passes, threshold_in_force
from proctor.evaluators.declaration import ScoreSettings
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, EvaluationPending, NothingToCompare
from proctor.judging.call_log import WaitTimer, call_log, format_requests
from proctor.judging.choosing import own_judge
from proctor.judging.judge import (
    CannotTell,
    CheckedJudge,
    InvalidReply,
    Judge,
    JudgeCall,
    NothingFound,
    abstention_message,
)
from proctor.judging.panel import Panel, Vote, ask_panel
from proctor.judging.provider_table import available_judges
from proctor.judging.session import current_session

MAX_REPLY_QUOTE = 10_000
"""How many characters of an unusable reply are stored."""
FAST_NOTE = "--fast (in pytest --proctor-fast) skips evaluators that need a language model"
"""Pytest has its own option, and tests that call an evaluator directly get this reason too."""
JUDGE = "judge"
"""The detail of an evaluation that holds the judge, its calls and their cost."""


class SkippedByFast(NothingToCompare):
    """Not evaluated, because `--fast` skips everything that needs a model."""


BUDGET_SPENT = "budget_spent"
"""In the details of a judge: it was not asked because the budget is spent."""


class NoVerdict(JudgeFailed):
    """The judge gave no usable verdict; `account` has the judge, its calls and their cost."""

    def __init__(self, message: str, account: Mapping[str, Json]) -> None:
        self.account = account
        super().__init__(message)


class JudgeAbstained(EvaluationPending):
    """The judge abstained, so a model or a person has to decide; `account` has the judge and its calls."""

    def __init__(self, message: str, account: Mapping[str, Json]) -> None:
        self.account = account
        super().__init__(message)


class ModelMissing(JudgeAbstained, NeedsModel):
    """The evaluator needs a judge with a model, and none is configured; pending like any other abstention."""


def evaluator_timeout(timeout: float, waits: WaitTimer) -> NoVerdict:
    """The error for an evaluator that ran out of time, with the requests to its judge, their duration and cost."""
    why = f"; its requests to the judge took {format_requests(waits.requests)}" if waits.requests else ""
    account: dict[str, Json] = {
        "model": " + ".join(dict.fromkeys(call.model for call in waits.calls)),
        "calls": [call_details(call) for call in waits.calls],
        "usage": total_usage(waits.calls),
    }
    return NoVerdict(f"gave no score within {timeout:g} s{why}", account if waits.calls else {})


@dataclass(frozen=True, kw_only=True)
class JudgedEvaluator(ScoreSettings):
    """The base of evaluators that ask a judge. A subclass implements `assess`.

    Example:

        @dataclass(frozen=True, kw_only=True)
        class Polite(JudgedEvaluator):
            async def assess(self, evaluable, judge):
                reply = await judge.ask(my_question(answer_text(evaluable)))
                return Evaluation(float(reply.verdict == "yes"), reply.reason)
    """

    model: Any = None
    """The judge; `None` leaves it to the suite, the command line or the environment (see `judging.choosing`)."""
    samples: int | None = None
    """How many times the judge is asked; the median counts."""

    client: Any = field(default=None, repr=False, compare=False)
    """From Python: the client to ask `model` with, such as an `openai.OpenAI`."""

    needs_judge: ClassVar[bool] = True
    asks_judge: ClassVar[bool] = True
    """Tells the registry to choose a judge for it, even if it can do without one."""
    default_threshold: ClassVar[float] = 0.5

    async def __call__(self, evaluable: Evaluable) -> Evaluation | None:
        session = current_session()
        choice = session.choice_for(own_judge(self))
        if choice.is_skipped:
            name = " + ".join(member.name for member in choice.panel.members) or "a judge"
            raise SkippedByFast(f"needs {name}; {FAST_NOTE}")
        panel = session.judges.panel(choice.panel)
        threshold = threshold_in_force(self.default_threshold, caller=session.threshold)
        votes: list[Vote] = []
        with call_log() as calls:
            try:
                evaluation = await ask_panel(panel, threshold, partial(self._assess, evaluable), votes)
            except NeedsModel as error:
                raise ModelMissing(
                    f"{self._title()} needs a model; name one with --judge{_judge_hint()} ({error})",
                    _judge_details(panel, votes, calls),
                ) from error
            except CannotTell as error:
                if isinstance(error, NothingFound) and session.sources.skip_models:
                    raise SkippedByFast(f"{error}; {FAST_NOTE}") from error
                raise JudgeAbstained(_abstention_reason(error, votes), _judge_details(panel, votes, calls)) from error
            except JudgeFailed as error:
                raise NoVerdict(
                    _abstention_reason(error, votes), _judge_details(panel, votes, calls) | _error_details(error)
                ) from error
        if evaluation is None:
            return None
        return replace(evaluation, details={**evaluation.details, JUDGE: _judge_details(panel, votes, calls)})

    async def _assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation | None:
        """The result of `assess`; raises `CannotTell` if the outcome depends on what the judge could not tell."""
        evaluation = await self.assess(evaluable, CheckedJudge(judge))
        if evaluation is None or BEST_CASE not in evaluation.details:
            return evaluation
        threshold, best = current_session().threshold, evaluation.details[BEST_CASE]
        in_force = threshold_in_force(self.default_threshold, caller=threshold)
        # Without a threshold the caller may compare with any, so only a clear failure is certain.
        if passes(best, in_force) and (threshold is None or not passes(evaluation.score, in_force)):
            undecided = [item for item in evaluation.details.get("findings", ()) if item["verdict"] == CANNOT_TELL]
            texts = [(item["text"], item.get("reason", "")) for item in undecided]
            raise CannotTell(abstention_message(judge.name, texts))
        return evaluation

    def _title(self) -> str:
        return str(getattr(self, "name", None) or type(self).__name__)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation | None:
        """The evaluation by one judge. Raise `NothingToCompare` if something that it needs is missing."""
        raise NotImplementedError


def _judge_hint() -> str:
    """What to write after `--judge`: a provider whose key is set, if there is one."""
    judges = available_judges()
    return " provider:model" if not judges else "".join(f" {name} ({key} is set)" for name, key in judges[:1])


def _abstention_reason(error: JudgeFailed, votes: Sequence[Vote]) -> str:
    """Why there is no score: the distinct reasons of the judges that abstained."""
    return "; ".join(dict.fromkeys(vote.abstained for vote in votes if vote.abstained)) or str(error)


def _judge_details(panel: Panel, votes: Sequence[Vote], calls: Sequence[JudgeCall]) -> dict[str, Json]:
    account: dict[str, Json] = {
        "model": panel.name,
        "calls": [call_details(call) for call in calls],
        "usage": total_usage(calls),
    }
    if len(votes) > 1:
        account["votes"] = [_vote_details(vote) for vote in votes]
    return account


def _error_details(error: JudgeFailed) -> dict[str, Json]:
    """The details of a failure besides its message."""
    if isinstance(error, BudgetSpent):
        return {BUDGET_SPENT: True}
    return {"unfit_reply": mask(to_text(error.reply, MAX_REPLY_QUOTE))} if isinstance(error, InvalidReply) else {}


def total_usage(calls: Sequence[JudgeCall]) -> dict[str, Json]:
    """The usage of all calls that were not cached. The total cost is known only if the cost of each is."""
    usages = [call.usage for call in calls if not call.cached and call.usage != Usage()]
    total = sum(usages, Usage())
    if any(usage.cost_usd is None for usage in usages):
        total = replace(total, cost_usd=None)
    return total.to_json()


def call_details(call: JudgeCall) -> dict[str, Json]:
    """One call as it is stored with a score. The key finds its prompt and reply in the store."""
    fields: dict[str, Json] = {"kind": call.kind, "version": call.version, "model": call.model, "key": call.key}
    usage = {} if call.cached else call.usage.to_json()
    flags: dict[str, Json] = {"cached": call.cached, "repaired": call.repaired, "sample": call.sample, "usage": usage}
    flags |= {"cut_off": call.abandoned, "cut_off_tokens": call.abandoned_tokens, "served": call.served}
    return fields | {name: value for name, value in flags.items() if value}


def _vote_details(vote: Vote) -> dict[str, Json]:
    fields: dict[str, Json] = {"judge": vote.judge, "sample": vote.sample}
    if vote.abstained:
        return fields | {"abstained": vote.abstained}
    evaluation: Any = vote.result
    return fields | {"score": evaluation.score, "reasoning": evaluation.reasoning}


MAX_LISTED = 5
"""How many findings a reason lists. The details have all of them."""
MAX_ITEM_QUOTE = 200
BEST_CASE = "at_best"
"""The detail of an evaluation with the score if every open finding counted."""
CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one item, and how much it counts in favor of the answer."""

    text: str
    verdict: str
    counts: bool
    reason: str = ""
    degree: float | None = None
    """How much it counts, from 0 to 1, if the judge gave a number; otherwise all or nothing."""
    unclear: bool = False
    """Whether the judge could not tell."""

    @property
    def credit(self) -> float:
        """The degree if there is one; otherwise all or nothing."""
        return float(self.counts) if self.degree is None else self.degree


def mean_of_findings(findings: Sequence[Finding], what: str, **details: Any) -> Evaluation:
    """The mean credit of the findings. `what` completes "2 of 3 …" in the reason."""
    score = mean(item.credit for item in findings)
    details |= {"findings": findings_as_details(findings)}
    if any(item.unclear for item in findings):
        details[BEST_CASE] = mean(1.0 if item.unclear else item.credit for item in findings)
    return Evaluation(score, summarize_findings(findings, what), details)


def mean(values: Iterable[float]) -> float:
    """The mean, limited to 0 to 1; 0 if there are no values."""
    numbers = list(values)
    return min(1.0, max(0.0, math.fsum(numbers) / len(numbers))) if numbers else 0.0


def summarize_findings(findings: Sequence[Finding], what: str) -> str:
    """How many findings count, and the reasons of the others."""
    failed = [item for item in findings if not item.counts]
    counted = f"{len(findings) - len(failed)} of {len(findings)} {what}"
    if not failed:
        return counted
    listed = "; ".join(_describe(item) for item in failed[:MAX_LISTED])
    more = f"; and {len(failed) - MAX_LISTED} more" if len(failed) > MAX_LISTED else ""
    return f"{counted}. {listed}{more}"


def findings_as_details(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The findings as plain data, for the details of an evaluation."""
    return [
        {"text": item.text, "verdict": item.verdict, "credit": item.credit}
        | ({"reason": item.reason} if item.reason else {})
        for item in findings
    ]


def _describe(item: Finding) -> str:
    text = f"{item.verdict}: “{to_text(item.text.strip(), MAX_ITEM_QUOTE)}”"
    return f"{text} ({to_text(item.reason.strip(), MAX_ITEM_QUOTE)})" if item.reason.strip() else text
