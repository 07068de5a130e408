"""What the judge of a suite means for its evaluators. Loads nothing of `judging` where no judge is asked."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from proctor.base.environment import variables_in
from proctor.base.errors import Problem, UsageError
from proctor.base.json_data import Json, fingerprint, plain
from proctor.base.records import record
from proctor.base.secrets import mask
from proctor.cases.suite import Suite
from proctor.evaluators.registry import Bound
from proctor.running.options import EMBEDDED, GIVEN, Choice


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


if TYPE_CHECKING:
    from proctor.judging.context import WaitTimer
    from proctor.judging.judge_cache import JudgeCache
    from proctor.judging.judge_factory import SharedJudges
    from proctor.judging.limits import Budget

T = TypeVar("T")

NOT_IDENTIFYING = frozenset(
    "api_key api_key_env timeout concurrency requests_per_minute tokens_per_minute parallelism_limit threads "
    "context".split()
)
"""What may change about a judge without making another judge of it."""
NAMING = frozenset("model jury cascade provider judge_model judgeModel".split())
"""What in an object names a judge; one without any of these has options for the judge that is in force anyhow."""


def in_force(bound: Bound, judge: Any) -> Any:
    """Who judges for an evaluator: its own model, else the suite's judge."""
    own = getattr(bound.call, "own_judge", getattr(bound.call, "model", None)) if bound.judged else None
    return judge if own is None else own


def needs_model(bound: Bound, judge: Any) -> bool:
    """Whether an evaluator asks a language model; one that the embedded judge judges does not."""
    if not bound.judged:
        return bound.needs_judge
    named = judge if _has_no_model(in_force(bound, judge)) else in_force(bound, judge)
    return (named.get("model") if isinstance(named, Mapping) else named) != EMBEDDED


def _has_no_model(judge: Any) -> bool:
    return isinstance(judge, Mapping) and NAMING.isdisjoint(judge)


def _nobody(judge: Any) -> str:
    """What is wrong with options alone where no judge is named to whom they could belong."""
    return "has options and names nobody; name a judge with the key model" if _has_no_model(judge) else ""


def with_judge(bound: Bound, choice: Choice) -> Bound:
    """The evaluator with its judge, under a fingerprint of its own for each: another may come to other scores.

    The judge of the command line judges also where a file names a judge for one evaluator alone.
    """
    if not bound.judged:
        return bound
    judge, own = choice.judge, in_force(bound, choice.judge)
    if choice.origin == GIVEN and own is not judge and not _has_no_model(own):
        call = copy.copy(bound.call)
        object.__setattr__(call, "model", judge)
        bound, own = replace(bound, call=call), judge
    who = [_itself(own), _itself(judge)] if _has_no_model(own) else [_itself(own)]
    return replace(bound, fingerprint=fingerprint(bound.fingerprint, *who))


def judge_identity(judge: Any) -> Json:
    """What tells one judge from another, in any process and without secrets."""
    if judge is None:
        return None
    if isinstance(judge, Mapping):
        return {name: plain(value) for name, value in judge.items() if name not in NOT_IDENTIFYING}
    if isinstance(judge, (str, list, tuple)):
        return plain(judge)
    return str(getattr(judge, "name", None) or type(judge).__qualname__)


def _itself(judge: Any) -> Json:
    """The same, where a model file is known by its content: it may be moved, and another may come to its place."""
    told = judge_identity(judge)
    return _with_contents(told) if isinstance(told, (str, Mapping, list)) else told


def _with_contents(told: Json) -> Json:
    if isinstance(told, Mapping):
        return {name: _with_contents(value) for name, value in told.items()}
    if isinstance(told, list):
        return [_with_contents(item) for item in told]
    if not isinstance(told, str) or not told.strip().startswith("local:"):
        return told
    from proctor.judging.local_model import known_by_content

    return known_by_content(told)


def judge_names(asked: Iterable[tuple[Iterable[Bound], Any]], *, fast: bool) -> str:
    """Who is going to judge, for a person to read, from the evaluators of each suite and its judge."""
    names: dict[str, None] = {}
    for evaluators, judge in asked:
        for bound in evaluators:
            if bound.judged and not (fast and needs_model(bound, judge)):
                own = in_force(bound, judge)
                names[_called(judge if _has_no_model(own) else own)] = None
    return mask(" and ".join(names))


def _called(judge: Any) -> str:
    if not isinstance(judge, Mapping):
        return judge if isinstance(judge, str) else str(getattr(judge, "name", None) or type(judge).__name__)
    model = judge.get("model")
    return (
        model if isinstance(model, str) else next((f"a {key}" for key in ("jury", "cascade") if key in judge), "named")
    )


def judge_problems(suite: Suite, judged: Sequence[Bound], choice: Choice, *, fast: bool) -> list[Problem]:
    """Judges that are asked for and cannot be had: an unknown name, a package or a key that is missing."""
    if fast:
        judged = [bound for bound in judged if not needs_model(bound, choice.judge)]
    problems: list[Problem] = []
    asked = any(in_force(bound, choice.judge) is choice.judge for bound in judged)
    if asked or (not fast and (choice.origin == GIVEN or choice.path is not None)):
        reason = _nobody(choice.judge) or (refusal(choice.judge) if asked else _misnamed(choice.judge))
        where = GIVEN if choice.origin == GIVEN else "judge"
        line = line_of_complaint(choice.path, _as_written(choice.judge), reason)
        problems += [Problem(reason, choice.path, line, f"{where}:")] if reason else []
    for bound in judged:
        own = in_force(bound, choice.judge)
        if own is not choice.judge and (reason := refusal(own)):
            line = line_of_complaint(suite.path, _as_written(own), reason)
            problems.append(Problem(reason, suite.path, line, f"evaluator {bound.title!r}: model:"))
    return problems


def _as_written(judge: Any) -> str:
    """What to look for in the file that names a judge."""
    if isinstance(judge, Mapping):
        return str(judge.get("name") or judge.get("model") or "judge")
    return judge if isinstance(judge, str) else ""


def refusal(judge: Any) -> str:
    """Why a judge cannot be had; empty where it can, as far as that shows without a call."""
    from proctor.judging.judge_factory import SharedJudges

    try:
        SharedJudges().panel(judge)
    except UsageError as error:
        return str(error)
    return ""


def _misnamed(judge: Any) -> str:
    """Why a judge that is never asked is still a mistake: it was named, and there is none of that name."""
    if not isinstance(judge, (str, Mapping)):
        return ""
    from proctor.judging.judge_specs import read_panel

    try:
        read_panel(judge)
    except UsageError as error:
        return str(error)
    return ""


@record
class RunJudges:
    """Where the evaluators of a run find their judges."""

    judges: SharedJudges
    cache: JudgeCache | None = None
    """Where embeddings are kept."""
    budget: Budget | None = None

    def waits(self) -> WaitTimer:
        from proctor.judging.context import WaitTimer

        return WaitTimer()

    def too_late(self, timeout: float, waits: WaitTimer) -> Exception:
        """Why there is no score in time."""
        from proctor.evaluators.judged_evaluator import too_late

        return too_late(timeout, waits)

    async def with_judge(self, work: Callable[[], Awaitable[T]], judge: Any, threshold: float, waits: WaitTimer) -> T:
        """What comes of `work`, during which evaluators get this judge."""
        from proctor.judging.context import JudgeContext, counting_waits, judge_context

        with judge_context(JudgeContext(self.judges, judge, threshold, self.cache, self.budget)), counting_waits(waits):
            return await work()
