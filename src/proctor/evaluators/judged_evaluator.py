"""The base class of evaluators that ask a judge, the record of the calls they made, and scores of single items."""

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
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, EvaluationPending, NothingToCompare
from proctor.judging.call_log import WaitTimer, call_log, format_requests
from proctor.judging.choosing import own_judge
from proctor.judging.judge import CannotTell, InvalidReply, Judge, JudgeCall, abstention_message
from proctor.judging.panel import Panel, Vote, ask_panel
from proctor.judging.provider_table import available_judges
from proctor.judging.session import current_session

MAX_REPLY_QUOTE = 10_000
"""Characters kept of a reply that is of no use."""
JUDGE = "judge"
"""The detail of an evaluation that names the judge, its calls and their cost."""


class SkippedByFast(NothingToCompare):
    """Nothing was measured, because the user left out everything that needs a model."""


BUDGET_SPENT = "budget_spent"
"""In an account: the judge was not asked, since the budget is spent."""


class NoVerdict(JudgeFailed):
    """A judge was asked and gave no verdict; `account` has the judge, its calls and their cost."""

    def __init__(self, message: str, account: Mapping[str, Json]) -> None:
        self.account = account
        super().__init__(message)


class JudgeAbstained(EvaluationPending):
    """A judge was asked and cannot tell, so a model or a person has to; `account` has the judge and its calls."""

    def __init__(self, message: str, account: Mapping[str, Json]) -> None:
        self.account = account
        super().__init__(message)


def evaluator_timeout(timeout: float, waits: WaitTimer) -> NoVerdict:
    """The failure of an evaluator whose time was over: what its judge was asked, how long that took, what it cost."""
    why = f"; its requests to the judge took {format_requests(waits.requests)}" if waits.requests else ""
    account: dict[str, Json] = {
        "model": " + ".join(dict.fromkeys(call.model for call in waits.calls)),
        "calls": [call_details(call) for call in waits.calls],
        "usage": total_usage(waits.calls),
    }
    return NoVerdict(f"gave no score within {timeout:g} s{why}", account if waits.calls else {})


@dataclass(frozen=True, kw_only=True)
class JudgedEvaluator:
    """The base of evaluators that ask a judge; `assess` says what is asked and how the replies become a score."""

    model: Any = None
    """Which judge this evaluator asks; `None` leaves it to the suite, the command line or the environment.

    Who judges in the end, `judging.choosing` decides.
    """
    samples: int | None = None
    """How often the judge is asked; the median decides."""

    client: Any = field(default=None, repr=False, compare=False)
    """From Python: the client that asks `model`, such as an `openai.OpenAI`."""

    needs_judge: ClassVar[bool] = True
    asks_judge: ClassVar[bool] = True
    """Tells the registry that a judge has to be chosen for it, also where it can do without one."""
    default_threshold: ClassVar[float] = 0.5

    async def __call__(self, evaluable: Evaluable) -> Evaluation | None:
        session = current_session()
        choice = session.choice_for(own_judge(self))
        if choice.is_skipped:
            name = " + ".join(member.name for member in choice.panel.members) or "a judge"
            raise SkippedByFast(f"needs {name}, and --proctor-fast leaves out what needs a language model")
        panel = session.judges.panel(choice.panel)
        threshold = threshold_in_force(self.default_threshold, caller=session.threshold)
        votes: list[Vote] = []
        with call_log() as calls:
            try:
                opinion = await ask_panel(panel, threshold, partial(self._opinion, evaluable), votes)
            except NeedsModel as error:
                raise NeedsModel(
                    f"{self._title()} needs a model; name one with --judge{_judge_hint()} ({error})"
                ) from error
            except CannotTell as error:
                raise JudgeAbstained(_abstention_reason(error, votes), _judge_details(panel, votes, calls)) from error
            except JudgeFailed as error:
                raise NoVerdict(
                    _abstention_reason(error, votes), _judge_details(panel, votes, calls) | _error_details(error)
                ) from error
        if opinion is None:
            return None
        return replace(opinion, details={**opinion.details, JUDGE: _judge_details(panel, votes, calls)})

    async def _opinion(self, evaluable: Evaluable, judge: Judge) -> Evaluation | None:
        """What `assess` says, unless the verdict hangs on something that the judge could not tell."""
        opinion = await self.assess(evaluable, judge)
        if opinion is None or BEST_CASE not in opinion.details:
            return opinion
        given, best = current_session().threshold, opinion.details[BEST_CASE]
        usual = threshold_in_force(self.default_threshold, caller=given)
        # Without a threshold in force, the caller may compare with any, so that only a clear failure is settled.
        if passes(best, usual) and (given is None or not passes(opinion.score, usual)):
            found = [item for item in opinion.details.get("findings", ()) if item["verdict"] == CANNOT_TELL]
            placed = [": ".join(filter(None, (item["text"], item.get("reason", "")))) for item in found]
            raise CannotTell(abstention_message(judge.name, placed))
        return opinion

    def _title(self) -> str:
        return str(getattr(self, "name", None) or type(self).__name__)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation | None:
        """One opinion. Raise `NothingToCompare` when something needed is missing."""
        raise NotImplementedError


def _judge_hint() -> str:
    """What to write after `--judge` with a key that is set already."""
    found = available_judges()
    return " provider:model" if not found else "".join(f" {name} ({key} is set)" for name, key in found[:1])


def _abstention_reason(error: JudgeFailed, votes: Sequence[Vote]) -> str:
    """Why there is no verdict: the reason of each judge that abstained, each reason once."""
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
    """What an account says about the failure besides its message."""
    if isinstance(error, BudgetSpent):
        return {BUDGET_SPENT: True}
    return {"unfit_reply": mask(to_text(error.reply, MAX_REPLY_QUOTE))} if isinstance(error, InvalidReply) else {}


def total_usage(calls: Sequence[JudgeCall]) -> dict[str, Json]:
    """Usage of the calls that were really made; the total cost is known only if the cost of each is."""
    made = [call.usage for call in calls if not call.cached and call.usage != Usage()]
    total = sum(made, Usage())
    if any(usage.cost_usd is None for usage in made):
        total = replace(total, cost_usd=None)
    return total.to_json()


def call_details(call: JudgeCall) -> dict[str, Json]:
    """One call as it is kept with the verdict; the key finds its prompt and reply in the cache."""
    said: dict[str, Json] = {"kind": call.kind, "version": call.version, "model": call.model, "key": call.key}
    usage = {} if call.cached else call.usage.to_json()
    flags: dict[str, Json] = {"cached": call.cached, "repaired": call.repaired, "sample": call.sample, "usage": usage}
    flags |= {"cut_off": call.abandoned, "cut_off_tokens": call.abandoned_tokens}
    return said | {name: value for name, value in flags.items() if value}


def _vote_details(vote: Vote) -> dict[str, Json]:
    said: dict[str, Json] = {"judge": vote.judge, "sample": vote.sample}
    if vote.abstained:
        return said | {"abstained": vote.abstained}
    opinion: Any = vote.result
    return said | {"score": opinion.score, "reasoning": opinion.reasoning}


MAX_LISTED = 5
"""How many items a reason names; the details have them all."""
MAX_ITEM_QUOTE = 200
BEST_CASE = "at_best"
"""The detail of an evaluation with the score if everything held of which the judge could not tell."""
CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Finding:
    """One item that was judged, and how far it counts in favour of the answer."""

    text: str
    verdict: str
    counts: bool
    reason: str = ""
    degree: float | None = None
    """From 0 to 1, how far it holds, if the judge was asked for a number; otherwise it holds or not."""
    unclear: bool = False
    """Whether the judge could not tell."""

    @property
    def credit(self) -> float:
        """The degree if there is one; otherwise all or nothing."""
        return float(self.counts) if self.degree is None else self.degree


def mean_of_findings(items: Sequence[Finding], what: str, **details: Any) -> Evaluation:
    """The mean credit. `what` completes "2 of 3 …"; items that do not hold are named with their reasons."""
    score = mean(item.credit for item in items)
    details |= {"findings": findings_as_details(items)}
    if any(item.unclear for item in items):
        details[BEST_CASE] = mean(1.0 if item.unclear else item.credit for item in items)
    return Evaluation(score, summarize_findings(items, what), details)


def mean(values: Iterable[float]) -> float:
    """The mean, kept within 0 and 1; of nothing it is 0."""
    given = list(values)
    return min(1.0, max(0.0, math.fsum(given) / len(given))) if given else 0.0


def summarize_findings(items: Sequence[Finding], what: str) -> str:
    """How many items hold, and why the others do not."""
    failed = [item for item in items if not item.counts]
    counted = f"{len(items) - len(failed)} of {len(items)} {what}"
    if not failed:
        return counted
    named = "; ".join(_describe(item) for item in failed[:MAX_LISTED])
    more = f"; and {len(failed) - MAX_LISTED} more" if len(failed) > MAX_LISTED else ""
    return f"{counted}. {named}{more}"


def findings_as_details(items: Iterable[Finding]) -> list[dict[str, Any]]:
    """The items as plain data, for the details of an evaluation."""
    return [
        {"text": item.text, "verdict": item.verdict, "credit": item.credit}
        | ({"reason": item.reason} if item.reason else {})
        for item in items
    ]


def _describe(item: Finding) -> str:
    text = f"{item.verdict}: “{to_text(item.text.strip(), MAX_ITEM_QUOTE)}”"
    return f"{text} ({to_text(item.reason.strip(), MAX_ITEM_QUOTE)})" if item.reason.strip() else text
