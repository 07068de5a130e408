"""Who judged a run, on how many calls, at what cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from proctor.base.json_data import Json, to_json
from proctor.cases.scenario import SIMULATED
from proctor.judging.judge import is_rule_based
from proctor.results.run import Outcome, Score, TrialResult

JUDGE_DETAIL = "judge"
"""The detail of a score that says who judged, on what calls, at what cost."""


@dataclass(frozen=True, slots=True)
class JudgeSummary:
    """One judge, or one panel of judges, over a whole run. What came from the cache cost nothing again."""

    model: str
    scores: int = 0
    calls: int = 0
    """Of a model; what the rule-based judge answers is no call."""
    cached: int = 0
    """Answers that were there before the run."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    """`None` is not known, which differs from zero."""
    unpriced: int = 0
    """Calls that were answered and whose cost is not known; `cost_usd` leaves them out."""
    abstained: int = 0
    """Scores that the judge could not give."""
    shared: int = 0
    """Answers that a call of this run gave to the same question before."""
    abandoned_requests: int = 0
    """Requests that were given up before an answer came; tokens and cost leave them out."""
    abandoned_tokens: int = 0
    """About how many tokens these requests sent."""

    @property
    def tokens(self) -> int | None:
        known = [count for count in (self.input_tokens, self.output_tokens) if count is not None]
        return sum(known) if known else None


JSON_NAMES = {"abandoned_requests": "cut_off", "abandoned_tokens": "cut_off_tokens"}
"""Fields of `JudgeSummary` that stores and reports have under another name."""


def summary_to_json(summary: JudgeSummary) -> dict[str, Json]:
    """The form in which the JSON report has it."""
    return {JSON_NAMES.get(name, name): value for name, value in to_json(summary).items()}


def judge_details(score: Score) -> Mapping[str, Json] | None:
    """What a score says of its judge; `None` where none judged."""
    account = score.details.get(JUDGE_DETAIL)
    return account if isinstance(account, Mapping) and isinstance(account.get("model"), str) else None


def judge_name(score: Score) -> str:
    """Who judged a score; empty where no judge was asked."""
    account = judge_details(score) if score.details else None
    return "" if account is None else str(account["model"])


def judge_calls(account: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    calls = account.get("calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []


class JudgeUsage:
    """Adds up, trial by trial."""

    def __init__(self, trials: Iterable[TrialResult] = ()) -> None:
        self._by_model: dict[str, JudgeSummary] = {}
        self._asked: set[Json] = set()
        self._found: dict[str, Counter[Json]] = {}
        """By model and key: how often an answer was found instead of asked for."""
        for trial in trials:
            self.add(trial)

    def __iter__(self) -> Iterator[JudgeSummary]:
        """What was found although the run itself had asked for it was not in the cache before."""
        for model, known in self._by_model.items():
            shared = sum(many for key, many in self._found[model].items() if key in self._asked)
            yield replace(known, cached=known.cached - shared, shared=shared) if shared else known

    def add(self, trial: TrialResult) -> None:
        accounts = [(judge_details(score), int(score.value is not None)) for score in trial.scores]
        open_ = [score.value is None and score.outcome in (Outcome.PENDING, Outcome.SKIPPED) for score in trial.scores]
        if trial.case.scenario is not None and not trial.reused:  # else nothing was asked of the player again
            accounts.append((simulated_user_details(trial), 0))
            open_.append(False)
        for (account, scores), abstained in zip(accounts, open_, strict=True):
            if account is not None:
                known = self._by_model.get(account["model"]) or JudgeSummary(account["model"])
                self._by_model[known.model] = _with(known, account, scores, int(abstained))
                self._note_keys(account)

    def _note_keys(self, account: Mapping[str, Json]) -> None:
        found = self._found.setdefault(account["model"], Counter())
        for call in judge_calls(account):
            key = str(call.get("key"))
            if call.get("cached"):
                found[key] += 1
            else:
                self._asked.add(key)


def simulated_user_details(trial: TrialResult) -> Mapping[str, Json] | None:
    """What a conversation says of the model that played its user; `None` where its turns were written down."""
    account = trial.case.turns[0].extra.get(SIMULATED) if trial.case.turns else None
    return account if isinstance(account, Mapping) and isinstance(account.get("model"), str) else None


def _with(known: JudgeSummary, account: Mapping[str, Json], scores: int, abstained: int) -> JudgeSummary:
    calls = [call for call in judge_calls(account) if not is_rule_based(call.get("model"))]
    cached = sum(bool(call.get("cached")) for call in calls)
    usage = account.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    return replace(
        known,
        scores=known.scores + scores,
        calls=known.calls + len(calls) - cached,
        cached=known.cached + cached,
        input_tokens=_sum(known.input_tokens, usage.get("input_tokens")),
        output_tokens=_sum(known.output_tokens, usage.get("output_tokens")),
        cost_usd=_sum(known.cost_usd, _cost(account, calls)),
        unpriced=known.unpriced + sum(_is_unpriced(call) for call in calls),
        abstained=known.abstained + abstained,
        abandoned_requests=known.abandoned_requests + _added(calls, "cut_off"),
        abandoned_tokens=known.abandoned_tokens + _added(calls, "cut_off_tokens"),
    )


def _added(calls: Sequence[Mapping[str, Json]], name: str) -> int:
    return sum(count for call in calls if isinstance(count := call.get(name), int))


def _cost(account: Mapping[str, Json], calls: Sequence[Mapping[str, Json]]) -> Json:
    """What those calls of models cost whose cost is known; older accounts tell only what all of them did."""
    told = [call["usage"] for call in calls if isinstance(call.get("usage"), Mapping)]
    costs = [usage["cost_usd"] for usage in told if isinstance(usage.get("cost_usd"), (int, float))]
    if costs or told or not calls:
        return sum(costs) if costs or is_rule_based(account["model"]) else None
    usage = account.get("usage")
    return usage.get("cost_usd") if isinstance(usage, Mapping) else None


def _is_unpriced(call: Mapping[str, Json]) -> bool:
    usage = call.get("usage")
    return isinstance(usage, Mapping) and usage.get("cost_usd") is None


def _sum(left: Json, right: Json) -> Json:
    if not isinstance(right, (int, float)):
        return left
    return right if left is None else left + right
