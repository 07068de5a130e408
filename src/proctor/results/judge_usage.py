"""The judges of a run: how many scores, calls and tokens each took, and what it cost.

Evaluators put their judge calls into `Score.details["judge"]`. `JudgeUsage` adds these up, trial by trial, into one
`JudgeSummary` per judge, which is stored with the run. It also counts the models that play simulated users.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from proctor.base.json_data import Json, to_json
from proctor.cases.scenario import SIMULATION_KEY
from proctor.judging.judge import is_rule_based
from proctor.results.score import JUDGE_DETAIL, Outcome, Score
from proctor.results.trial import Trial


@dataclass(frozen=True, slots=True)
class JudgeSummary:
    """One judge, or one panel of judges, over a whole run. Cached answers cost nothing."""

    model: str
    scores: int = 0
    calls: int = 0
    """Calls of a model; the rule-based judge makes none."""
    cached: int = 0
    """Answers that were in the cache before the run."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    """`None` if it is not known, which is not the same as zero."""
    unpriced: int = 0
    """Answered calls whose cost is not known; `cost_usd` does not include them."""
    abstained: int = 0
    """Scores that the judge could not decide."""
    shared: int = 0
    """Answers from the cache that an earlier call of this run had put there."""
    abandoned_requests: int = 0
    """Requests that were given up before an answer arrived; tokens and cost do not include them."""
    abandoned_tokens: int = 0
    """Roughly how many tokens these requests sent."""

    @property
    def tokens(self) -> int | None:
        """Input and output tokens together; `None` if neither is known."""
        known = [count for count in (self.input_tokens, self.output_tokens) if count is not None]
        return sum(known) if known else None


JSON_NAMES = {"abandoned_requests": "cut_off", "abandoned_tokens": "cut_off_tokens"}
"""Fields of `JudgeSummary` that stores and reports have under another name."""


def summary_to_json(summary: JudgeSummary) -> dict[str, Json]:
    """The form in which the JSON report has it."""
    return {JSON_NAMES.get(name, name): value for name, value in to_json(summary).items()}


def judge_details(score: Score) -> Mapping[str, Json] | None:
    """The name, calls and usage of the judge of a score; `None` if no judge was involved."""
    details = score.details.get(JUDGE_DETAIL)
    return details if isinstance(details, Mapping) and isinstance(details.get("model"), str) else None


def judge_name(score: Score) -> str:
    """The judge of a score; empty if no judge was involved."""
    details = judge_details(score) if score.details else None
    return "" if details is None else str(details["model"])


def judge_calls(details: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """The calls in the details of a judge or a simulated user."""
    calls = details.get("calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []


def judge_call_keys(trial: Trial) -> tuple[str, ...]:
    """The keys of the model calls behind the deciding scores. Two trials with the same keys share one verdict."""
    details = (judge_details(score) for score in trial.scores if score.details and not score.report_only)
    calls = (call for item in details if item is not None for call in judge_calls(item))
    return tuple(sorted(str(call.get("key")) for call in calls if not is_rule_based(call.get("model"))))


class JudgeUsage:
    """Adds up the judge calls of trials; iterating over it gives one `JudgeSummary` per judge."""

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self._by_model: dict[str, JudgeSummary] = {}
        self._called: set[Json] = set()
        """Keys of the calls that this run made."""
        self._cached: dict[str, Counter[Json]] = {}
        """By model and key: how often an answer came from the cache."""
        for trial in trials:
            self.add(trial)

    def __iter__(self) -> Iterator[JudgeSummary]:
        # An answer from the cache that this run had put there itself is not counted as cached before the run.
        for model, known in self._by_model.items():
            shared = sum(count for key, count in self._cached[model].items() if key in self._called)
            yield replace(known, cached=known.cached - shared, shared=shared) if shared else known

    def add(self, trial: Trial) -> None:
        """Count the judge calls of a trial, and the calls of its simulated user."""
        for score in trial.scores:
            if (details := judge_details(score)) is not None:
                abstained = score.value is None and score.outcome in (Outcome.PENDING, Outcome.SKIPPED)
                self._count(details, scores=int(score.value is not None), abstained=int(abstained))
        # A reused conversation called no model in this run.
        user = None if trial.case.scenario is None or trial.reused else simulated_user_details(trial)
        if user is not None:
            self._count(user, scores=0, abstained=0)

    def _count(self, details: Mapping[str, Json], *, scores: int, abstained: int) -> None:
        model = details["model"]
        self._by_model[model] = _add(self._by_model.get(model) or JudgeSummary(model), details, scores, abstained)
        cached = self._cached.setdefault(model, Counter())
        for call in judge_calls(details):
            key = str(call.get("key"))
            if call.get("cached"):
                cached[key] += 1
            else:
                self._called.add(key)


def simulated_user_details(trial: Trial) -> Mapping[str, Json] | None:
    """The name, calls and usage of the model that played the user; `None` if the turns are in the suite."""
    details = trial.case.turns[0].extra.get(SIMULATION_KEY) if trial.case.turns else None
    return details if isinstance(details, Mapping) and isinstance(details.get("model"), str) else None


def _add(summary: JudgeSummary, details: Mapping[str, Json], scores: int, abstained: int) -> JudgeSummary:
    calls = [call for call in judge_calls(details) if not is_rule_based(call.get("model"))]
    cached = sum(bool(call.get("cached")) for call in calls)
    usage = details.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    return replace(
        summary,
        scores=summary.scores + scores,
        calls=summary.calls + len(calls) - cached,
        cached=summary.cached + cached,
        input_tokens=_sum(summary.input_tokens, usage.get("input_tokens")),
        output_tokens=_sum(summary.output_tokens, usage.get("output_tokens")),
        cost_usd=_sum(summary.cost_usd, _cost(details, calls)),
        unpriced=summary.unpriced + sum(_is_unpriced(call) for call in calls),
        abstained=summary.abstained + abstained,
        abandoned_requests=summary.abandoned_requests + _total(calls, "cut_off"),
        abandoned_tokens=summary.abandoned_tokens + _total(calls, "cut_off_tokens"),
    )


def _total(calls: Sequence[Mapping[str, Json]], name: str) -> int:
    return sum(count for call in calls if isinstance(count := call.get(name), int))


def _cost(details: Mapping[str, Json], calls: Sequence[Mapping[str, Json]]) -> Json:
    """The cost of the calls whose cost is known. Older runs have only one figure for all calls of a score."""
    usages = [call["usage"] for call in calls if isinstance(call.get("usage"), Mapping)]
    costs = [usage["cost_usd"] for usage in usages if isinstance(usage.get("cost_usd"), (int, float))]
    if costs or usages or not calls:
        return sum(costs) if costs or is_rule_based(details["model"]) else None
    usage = details.get("usage")
    return usage.get("cost_usd") if isinstance(usage, Mapping) else None


def _is_unpriced(call: Mapping[str, Json]) -> bool:
    usage = call.get("usage")
    return isinstance(usage, Mapping) and usage.get("cost_usd") is None


def _sum(left: Json, right: Json) -> Json:
    if not isinstance(right, (int, float)):
        return left
    return right if left is None else left + right
