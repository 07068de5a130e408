"""Which judge each evaluator asks, and what is wrong with the judges that are named.

`with_judge` decides it once, in the plan: the judge of the command line, else the evaluator's own, else the judge that
`settings.judge_for` finds for the suite. From then on `Bound.judge` is the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from proctor.base.environment import variables_in
from proctor.base.errors import Problem, UsageError
from proctor.base.json_data import Json, fingerprint, plain
from proctor.base.masking import mask
from proctor.cases.suite import Suite
from proctor.evaluators.registry import Bound
from proctor.judging.context import JudgeContext
from proctor.judging.judge import EMBEDDED
from proctor.judging.judge_cache import JudgeCache
from proctor.judging.judge_factory import SharedJudges
from proctor.judging.judge_specs import has_only_options, read_panel
from proctor.judging.limits import Budget
from proctor.running.settings import GIVEN, Choice


def line_with(path: Path | None, text: str) -> int | None:
    """The first line of a file that mentions something, so that a problem found late still points into the file."""
    if path is None or not text or not path.is_file():
        return None
    content = path.read_text(encoding="utf-8", errors="replace")
    at = content.find(text)
    return content.count("\n", 0, at) + 1 if at >= 0 else None


def line_of_complaint(path: Path | None, text: str, reason: str) -> int | None:
    """The line of the variable that a reason complains of, nearest to what `text` names; else the line of `text`."""
    named = line_with(path, text)
    variables = variables_in(reason)
    if path is None or not variables or not path.is_file():
        return named
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    found = [number for number, line in enumerate(lines, 1) if f"${{{variables[0]}}}" in line]
    return min(found, key=lambda number: abs(number - (named or 0)), default=named)


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


def judge_problems(suite: Suite, judged: Sequence[Bound], choice: Choice, *, fast: bool) -> list[Problem]:
    """Judges that are named and cannot be had: an unknown name, a package or a key that is missing."""
    if fast:
        judged = [bound for bound in judged if not needs_model(bound)]
    problems: list[Problem] = []
    is_asked = any(bound.judge is choice.judge and not has_only_options(own_judge(bound)) for bound in judged)
    if is_asked or (not fast and (choice.origin == GIVEN or choice.path is not None)):
        reason = _nameless(choice.judge) or (refusal(choice.judge) if is_asked else _misnamed(choice.judge))
        where = GIVEN if choice.origin == GIVEN else "judge"
        line = line_of_complaint(choice.path, _as_written(choice.judge), reason)
        problems += [Problem(reason, choice.path, line, f"{where}:")] if reason else []
    for bound in judged:
        own = own_judge(bound)
        is_used = own is not None and (bound.judge is not choice.judge or has_only_options(own))
        if is_used and (reason := refusal(own)):
            line = line_of_complaint(suite.path, _as_written(own), reason)
            problems.append(Problem(reason, suite.path, line, f"evaluator {bound.title!r}: model:"))
    return problems


def _nameless(judge: Any) -> str:
    """What is wrong with options alone if no judge is named that they could belong to."""
    return "has options and names nobody; name a judge with the key model" if has_only_options(judge) else ""


def _as_written(judge: Any) -> str:
    """What to look for in the file that names a judge."""
    if isinstance(judge, Mapping):
        return str(judge.get("name") or judge.get("model") or "judge")
    return judge if isinstance(judge, str) else ""


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
