"""The base class of evaluators that ask a judge, the record of the calls they made, and the texts they ask about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from proctor.agents.agent import ToolCall, Usage
from proctor.base.errors import JudgeFailed, NeedsModel
from proctor.base.json_data import UNSET, Json, plain, show
from proctor.base.secrets import mask
from proctor.cases.suite import passes
from proctor.evaluators.evaluation import Evaluable, Evaluation, EvaluationPending, NothingToCompare
from proctor.evaluators.judged_items import AT_BEST, UNCLEAR
from proctor.judging.context import (
    EMBEDDED,
    WaitTimer,
    call_log,
    current_judge_context,
    models_are_left_out,
    requests_told,
)
from proctor.judging.judge import CannotTell, InvalidReply, Judge, JudgeCall, abstention
from proctor.judging.panel import Panel, Vote, poll

LONGEST_REPLY = 10_000
"""Characters kept of a reply that is of no use."""
JUDGE = "judge"
"""The detail of an evaluation that names the judge, its calls and their cost."""


class ModelLeftOut(NothingToCompare):
    """Nothing was measured, because the user left out everything that needs a model."""


class NoVerdict(JudgeFailed):
    """A judge was asked and gave no verdict; `account` has the judge, its calls and their cost."""

    def __init__(self, message: str, account: Mapping[str, Json]) -> None:
        self.account = account
        super().__init__(message)


class Undecided(EvaluationPending):
    """A judge was asked and cannot tell, so a model or a person has to; `account` has the judge and its calls."""

    def __init__(self, message: str, account: Mapping[str, Json]) -> None:
        self.account = account
        super().__init__(message)


def too_late(timeout: float, waits: WaitTimer) -> NoVerdict:
    """The failure of an evaluator whose time was over: what its judge was asked, how long that took, what it cost."""
    why = f"; its requests to the judge took {requests_told(waits.requests)}" if waits.requests else ""
    account: dict[str, Json] = {
        "model": " + ".join(dict.fromkeys(call.model for call in waits.calls)),
        "calls": [call_account(call) for call in waits.calls],
        "usage": spent_on(waits.calls),
    }
    return NoVerdict(f"gave no score within {timeout:g} s{why}", account if waits.calls else {})


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The base of evaluators that ask a judge; `assess` says what is asked and how the replies become a score."""

    model: Any = None
    """Which judge this evaluator asks; `None` leaves it to the suite, the command line or the environment."""
    samples: int | None = None
    """How often the judge is asked; the median decides."""

    client: Any = field(default=None, repr=False, compare=False)
    """From Python: the client that asks `model`, such as an `openai.OpenAI`."""

    needs_judge: ClassVar[bool] = True
    default_threshold: ClassVar[float] = 0.5

    @property
    def own_judge(self) -> Any:
        """Who judges for this evaluator alone; `None` where the judge in force does."""
        if self.client is None:
            return self.model
        from proctor.judging.client_judge import judge_of_client

        return judge_of_client(self.client, self.model)

    async def __call__(self, evaluable: Evaluable) -> Evaluation | None:
        present = current_judge_context()
        own = self.own_judge
        panel = present.judges.panel(present.judge if own is None else own)
        if models_are_left_out() and any(judge.name != EMBEDDED for judge in panel.judges):
            raise ModelLeftOut(f"needs {panel.name}, and --proctor-fast leaves out what needs a language model")
        if self.samples is not None:
            panel = replace(panel, samples=self.samples)
        threshold = self.default_threshold if present.threshold is None else present.threshold
        votes: list[Vote] = []
        with call_log() as calls:
            try:
                opinion = await poll(panel, threshold, partial(self._opinion, evaluable), votes)
            except NeedsModel as error:
                raise NeedsModel(f"{self._title()} needs a model; name one with --judge{_hint()} ({error})") from error
            except CannotTell as error:
                raise Undecided(_why(error, votes), _account(panel, votes, calls)) from error
            except JudgeFailed as error:
                raise NoVerdict(_why(error, votes), _account(panel, votes, calls) | _unfit(error)) from error
        if opinion is None:
            return None
        return replace(opinion, details={**opinion.details, JUDGE: _account(panel, votes, calls)})

    async def _opinion(self, evaluable: Evaluable, judge: Judge) -> Evaluation | None:
        """What `assess` says, unless the verdict hangs on something that the judge could not tell."""
        opinion = await self.assess(evaluable, judge)
        if opinion is None or AT_BEST not in opinion.details:
            return opinion
        given, best = current_judge_context().threshold, opinion.details[AT_BEST]
        usual = self.default_threshold if given is None else given
        # Without a threshold in force, the caller may compare with any, so that only a clear failure is settled.
        if passes(best, usual) and (given is None or not passes(opinion.score, usual)):
            found = [item for item in opinion.details.get("findings", ()) if item["verdict"] == UNCLEAR]
            placed = [": ".join(filter(None, (item["text"], item.get("reason", "")))) for item in found]
            raise CannotTell(abstention(judge.name, placed))
        return opinion

    def _title(self) -> str:
        return str(getattr(self, "name", None) or type(self).__name__)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation | None:
        """One opinion. Raise `NothingToCompare` when something needed is missing."""
        raise NotImplementedError


def _hint() -> str:
    """What to write after `--judge` with a key that is set already."""
    from proctor.judging.services import available_judges

    found = available_judges()
    return " provider:model" if not found else "".join(f" {name} ({key} is set)" for name, key in found[:1])


def _why(error: JudgeFailed, votes: Sequence[Vote]) -> str:
    """Why there is no verdict: the reason of each judge that abstained, each reason once."""
    return "; ".join(dict.fromkeys(vote.abstained for vote in votes if vote.abstained)) or str(error)


def _account(panel: Panel, votes: Sequence[Vote], calls: Sequence[JudgeCall]) -> dict[str, Json]:
    account: dict[str, Json] = {
        "model": panel.name,
        "calls": [call_account(call) for call in calls],
        "usage": spent_on(calls),
    }
    if len(votes) > 1:
        account["votes"] = [_vote(vote) for vote in votes]
    return account


def _unfit(error: JudgeFailed) -> dict[str, Json]:
    return {"unfit_reply": mask(show(error.reply, LONGEST_REPLY))} if isinstance(error, InvalidReply) else {}


def spent_on(calls: Sequence[JudgeCall]) -> dict[str, Json]:
    """Usage of the calls that were really made; the total cost is known only if the cost of each is."""
    made = [call.usage for call in calls if not call.cached and call.usage != Usage()]
    total = sum(made, Usage())
    if any(usage.cost_usd is None for usage in made):
        total = replace(total, cost_usd=None)
    return total.known()


def call_account(call: JudgeCall) -> dict[str, Json]:
    """One call as it is kept with the verdict; the key finds its prompt and reply in the cache."""
    said: dict[str, Json] = {"kind": call.kind, "version": call.version, "model": call.model, "key": call.key}
    usage = {} if call.cached else call.usage.known()
    flags: dict[str, Json] = {"cached": call.cached, "repaired": call.repaired, "sample": call.sample, "usage": usage}
    flags |= {"cut_off": call.cut_off, "cut_off_tokens": call.cut_off_tokens}
    return said | {name: value for name, value in flags.items() if value}


def _vote(vote: Vote) -> dict[str, Json]:
    said: dict[str, Json] = {"judge": vote.judge, "sample": vote.sample}
    if vote.abstained:
        return said | {"abstained": vote.abstained}
    opinion: Any = vote.opinion
    return said | {"score": opinion.score, "reasoning": opinion.reasoning}


def question_text(evaluable: Evaluable) -> str:
    """What was asked, as text."""
    return as_text(evaluable.input)


def answer_text(evaluable: Evaluable) -> str:
    """What was answered, as text."""
    return as_text(evaluable.output)


def expected_text(evaluable: Evaluable, what: str = "an expected answer") -> str:
    """The reference answer; without one there is nothing to compare."""
    if evaluable.expectation is UNSET or evaluable.expectation is None or evaluable.expectation == "":
        raise NothingToCompare(f"needs {what} (`expected`), and the case has none")
    return as_text(evaluable.expectation)


def known_facts(evaluable: Evaluable) -> list[str]:
    """What an answer may repeat without a passage: the user's words, and arguments of the agent's own tool calls."""
    said = [as_text(exchange.turn.input) for exchange in evaluable.turns] or [question_text(evaluable)]
    asked = [show(plain(call.arguments)) for call in evaluable.tool_calls if call.arguments]
    return list(dict.fromkeys(text for text in [*said, question_text(evaluable), *asked] if text.strip()))


def passages(evaluable: Evaluable, *, ideal_first: bool = False) -> list[str]:
    """The texts that an answer is compared with: retrieved, given as ideal context, or results of tools."""
    metadata: Mapping[str, Json] = evaluable.eval_metadata or {}
    retrieved, ideal = evaluable.retrieval_context, evaluable.context
    found = (ideal or retrieved) if ideal_first else (retrieved or ideal)
    if found is None and metadata.get("context"):
        context = metadata["context"]
        found = tuple(as_text(item) for item in context) if isinstance(context, list) else (as_text(context),)
    found = found or _tool_results(evaluable)
    if not found:
        raise NothingToCompare(
            "needs passages to compare with (`retrieval_context`, `context` or results of tools), and there are none"
        )
    return list(found)


def filled_passages(evaluable: Evaluable, *, ideal_first: bool = False) -> list[str]:
    """The passages of a case that are not blank."""
    found = [text for text in passages(evaluable, ideal_first=ideal_first) if text.strip()]
    if not found:
        raise NothingToCompare("needs passages to compare with, and those there are, are empty")
    return found


def _tool_results(evaluable: Evaluable) -> tuple[str, ...]:
    """Results of the agent's tools, for cases that give no other passages."""
    told = [
        {"tool": call.name, "arguments": plain(call.arguments), **_outcome(call)}
        for call in evaluable.tool_calls
        if call.result is not None or call.error is not None
    ]
    return tuple(show(item) for item in told)


def _outcome(call: ToolCall) -> dict[str, Json]:
    return {"error": call.error} if call.result is None else {"result": plain(call.result)}


def as_text(value: Any) -> str:
    """A value as a judge reads it: text as it is, anything else as JSON."""
    if value is None or value is UNSET:
        return ""
    return value if isinstance(value, str) else show(value)
