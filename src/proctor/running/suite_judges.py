"""Which judge each evaluator asks, and what is wrong with the judges that are named.

`with_judge` decides it once, in the plan: the judge of the command line, else the evaluator's own, else the judge that
`settings.judge_for` finds for the suite. From then on `Bound.judge` is the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from proctor.base.environment import variables_in
from proctor.base.errors import Problem, UsageError
from proctor.base.json_data import Json, fingerprint, plain
from proctor.base.masking import mask
from proctor.base.positions import Position
from proctor.cases.suite import Suite
from proctor.evaluators.registry import Bound
from proctor.judging.context import JudgeContext
from proctor.judging.judge import EMBEDDED
from proctor.judging.judge_cache import JudgeCache
from proctor.judging.judge_factory import SharedJudges
from proctor.judging.judge_specs import has_only_options, read_panel
from proctor.judging.limits import Budget
from proctor.running.settings import GIVEN, Choice


def position_of(suite: Suite, key: str, value: Any, reason: str) -> Position | None:
    """Where a suite says something that is wrong: the text with the variable that a reason names, else the key."""
    variables = variables_in(reason)
    places = _places_of(value, f"${{{variables[0]}}}", key) if variables else ()
    found = (suite.key_positions.get(place) for place in (*places, key))
    return next((position for position in found if position is not None), None)


def _places_of(value: Any, text: str, place: str) -> Iterator[str]:
    """The places in data, as people write them, of texts that hold some text."""
    if isinstance(value, str) and text in value:
        yield place
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _places_of(item, text, f"{place}.{name}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _places_of(item, text, f"{place}[{index}]")


NOT_IDENTIFYING = frozenset(
    "api_key api_key_env timeout concurrency requests_per_minute tokens_per_minute parallelism_limit threads "
    "context".split()
)
"""What may change about a judge without making another judge of it."""


def own_judge(bound: Bound) -> Any:
    """The judge that an evaluator names for itself, or `None`."""
    return getattr(bound.call, "own_judge", getattr(bound.call, "model", None)) if bound.judged else None


def needs_model(bound: Bound) -> bool:
    """Whether an evaluator asks a language model; the rule-based judge is not one."""
    if not bound.judged:
        return bound.needs_judge
    judge = bound.judge
    return (judge.get("model") if isinstance(judge, Mapping) else judge) != EMBEDDED


def with_judge(bound: Bound, choice: Choice) -> Bound:
    """The evaluator with the judge that it asks, which is part of its fingerprint: another may give other scores.

    The judge of the command line also judges for an evaluator that names its own. An evaluator may have only options,
    such as the number of samples; those apply to the judge of the suite.
    """
    if not bound.judged:  # of a user's own evaluator nothing is known but that it may ask a judge
        return replace(bound, judge=choice.judge)
    own = own_judge(bound)
    if own is None or (choice.origin == GIVEN and not has_only_options(own)):
        judge, identity = choice.judge, [judge_identity(choice.judge)]
    elif has_only_options(own):
        judge, identity = choice.judge, [judge_identity(own), judge_identity(choice.judge)]
    else:
        judge, identity = own, [judge_identity(own)]
    return replace(bound, judge=judge, fingerprint=fingerprint(bound.fingerprint, *identity))


def judge_identity(judge: Any) -> Json:
    """What tells one judge from another, in any process and without secrets."""
    if judge is None:
        return None
    if isinstance(judge, Mapping):
        return {name: plain(value) for name, value in judge.items() if name not in NOT_IDENTIFYING}
    if isinstance(judge, (str, list, tuple)):
        return plain(judge)
    return str(getattr(judge, "name", None) or type(judge).__qualname__)


def judge_names(evaluators: Iterable[Bound], *, fast: bool) -> str:
    """Who is going to judge, for a person to read."""
    judged = [bound for bound in evaluators if bound.judged and not (fast and needs_model(bound))]
    return mask(" and ".join(dict.fromkeys(_called(bound.judge) for bound in judged)))


def _called(judge: Any) -> str:
    if not isinstance(judge, Mapping):
        return judge if isinstance(judge, str) else str(getattr(judge, "name", None) or type(judge).__name__)
    model = judge.get("model")
    return (
        model if isinstance(model, str) else next((f"a {key}" for key in ("jury", "cascade") if key in judge), "named")
    )


def judge_problems(
    suite: Suite,
    judged: Sequence[Bound],
    choice: Choice,
    positions: Callable[[Bound], Iterable[Position | None]],
    *,
    fast: bool,
) -> list[Problem]:
    """Judges that are named and cannot be had: an unknown name, a package or a key that is missing.

    `positions` says where an evaluator is named, which may be in many places.
    """
    if fast:
        judged = [bound for bound in judged if not needs_model(bound)]
    problems: list[Problem] = []
    is_asked = any(bound.judge is choice.judge and not has_only_options(own_judge(bound)) for bound in judged)
    if is_asked or (not fast and (choice.origin == GIVEN or choice.path is not None)):
        reason = _nameless(choice.judge) or (refusal(choice.judge) if is_asked else _misnamed(choice.judge))
        where = GIVEN if choice.origin == GIVEN else "judge"
        position = None if choice.path is None else position_of(suite, "judge", choice.judge, reason)
        problems += [Problem.at(position, reason, f"{where}:", path=choice.path)] if reason else []
    for bound in judged:
        own = own_judge(bound)
        is_used = own is not None and (bound.judge is not choice.judge or has_only_options(own))
        if is_used and (reason := refusal(own)):
            place = f"evaluator {bound.title!r}: model:"
            problems += [Problem.at(position, reason, place, path=suite.path) for position in positions(bound)]
    return problems


def _nameless(judge: Any) -> str:
    """What is wrong with options alone if no judge is named that they could belong to."""
    return "has options and names nobody; name a judge with the key model" if has_only_options(judge) else ""


def refusal(judge: Any) -> str:
    """Why a judge cannot be had, as far as that shows without a call; an empty string if it can."""
    try:
        SharedJudges().panel(judge)
    except UsageError as error:
        return str(error)
    return ""


def _misnamed(judge: Any) -> str:
    """Why a judge that is never asked is still a mistake: it was named, and there is none of that name."""
    if not isinstance(judge, (str, Mapping)):
        return ""
    try:
        read_panel(judge)
    except UsageError as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class RunJudges:
    """What the evaluators of a run share: their judges, a cache and a budget."""

    judges: SharedJudges
    cache: JudgeCache | None = None
    """Where embeddings are stored."""
    budget: Budget | None = None

    def context(self, bound: Bound, threshold: float) -> JudgeContext:
        """What holds while an evaluator asks its judge."""
        own = own_judge(bound)
        is_overridden = own is not None and own is not bound.judge
        return JudgeContext(self.judges, bound.judge, threshold, self.cache, self.budget, is_final=is_overridden)
