"""The evaluator Trajectory: tool calls as steps in a partial order.

Calls inside a call (an agent used as a tool) form a separate level. Each level is aligned with its steps by
`steps.align`, inner levels first, since the result inside a call counts for half of its worth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

from proctor.agents.reply import ToolCall
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.declaration import ScoreSettings, evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation
from proctor.evaluators.observation import settle_comparison
from proctor.evaluators.tools.calls import (
    actual_text,
    counted_calls,
    credit,
    expected_text,
    mismatches,
    require_failed_calls,
    wrong_arguments,
)
from proctor.evaluators.tools.differences import Fault, fault, one_line, other_calls, times, with_original_index
from proctor.evaluators.tools.steps import Step, StepMatches, align, read_calls, read_steps
from proctor.evaluators.values import require_bool


@evaluator(family="tools", threshold=1.0, example={"steps": [{"name": "search"}, {"name": "refund", "optional": True}]})
@dataclass(frozen=True, slots=True)
class Trajectory(ScoreSettings):
    """The agent took the steps in a valid order (a partial order of tool calls) and called nothing forbidden.

    1 if all steps were taken, each `after` the ones it names, and nothing forbidden was called. With `partial`, the
    share of the steps.
    """

    steps: Sequence[Any] = ()
    """Calls with `name` and `args`, or alternatives (`any_of`); with `id`, `after`, `optional`, `repeat`, `steps`."""
    forbid: Sequence[Any] = ()
    """Names, patterns such as `delete_*`, or calls with arguments that the agent must not make."""
    extra: bool = True
    """Whether other calls are allowed."""
    partial: bool = False
    """Whether some of the steps earn part of the score. Otherwise it is 1 or 0."""
    failed_calls: str = "count"
    """`ignore` does not count calls that ended in an error as steps. Forbidden calls still count."""
    base: Path | None = None
    """The folder that references to predicates start from."""

    def __post_init__(self) -> None:
        require_bool(extra=self.extra, partial=self.partial)
        require_failed_calls(self.failed_calls)
        object.__setattr__(self, "steps", read_steps(self.steps, self.base))
        object.__setattr__(self, "forbid", read_calls(self.forbid, self.base, "forbid"))
        if not self.steps and not self.forbid and self.extra:
            raise ValueError("nothing to check; set steps, forbid, or extra: false")

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        calls = evaluable.tool_calls
        places = counted_calls(calls, self.failed_calls)
        result = _align_level(self.steps, [calls[index] for index in places], extra_allowed=self.extra)
        forbidden = [
            index for index, call in enumerate(calls) if any(_is_forbidden(call, pattern) for pattern in self.forbid)
        ]
        phrases = [f"forbidden {actual_text(calls[index])}" for index in forbidden] + result.phrases
        whole = result.share == 1.0 and not forbidden
        score = 0.0 if forbidden else result.share if self.partial else float(whole)
        reason = result.summary if whole else one_line(phrases)
        evaluation = Evaluation(
            score,
            reason,
            result.details([calls[index] for index in forbidden], places)
            | {
                "faults": [fault("forbidden", calls[index].name, index) for index in forbidden]
                + [with_original_index(item, places) for item in result.faults]
            },
        )
        return settle_comparison(evaluable, evaluation, extra_allowed=self.extra and not self.forbid)


Problem: TypeAlias = tuple[str, list[Fault]]
"""What is wrong, in words, and the faults for reports."""


@dataclass(frozen=True, slots=True)
class _LevelResult:
    """How far the calls of one level match its steps."""

    share: float
    findings: list[Problem]
    """What is wrong, the most serious first."""
    matched: int
    """Calls that match a step fully."""
    made: int
    required: int
    """Required calls."""
    required_found: int
    """Required calls that were made."""
    pairs: list[tuple[str, int]]
    exact: bool

    @property
    def phrases(self) -> list[str]:
        """What is wrong, in words."""
        return [phrase for phrase, _ in self.findings]

    @property
    def faults(self) -> list[Fault]:
        return [item for _, faults in self.findings for item in faults]

    @property
    def summary(self) -> str:
        further = f"; {other_calls(self.made - self.matched)}" if self.made > self.matched else ""
        return f"{self.required_found} of {self.required} steps taken, in a valid order{further}"

    def details(self, forbidden: Sequence[ToolCall], places: Sequence[int]) -> dict[str, Any]:
        precision = self.matched / self.made if self.made else float(not self.required)
        recall = self.required_found / self.required if self.required else 1.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        pairs = [[step, places[call]] for step, call in self.pairs]
        details = {"pairs": pairs, "edits": self.phrases, "exact": self.exact}
        details["forbidden"] = [actual_text(call) for call in forbidden]
        return {"precision": precision, "recall": recall, "f1": f1, "share": self.share, **details}


@dataclass(frozen=True, slots=True)
class _Level:
    """The steps and calls of one level, and which call makes which step."""

    steps: Sequence[Step]
    calls: Sequence[ToolCall]
    weighted: Sequence[StepMatches]
    pairs: Sequence[tuple[int, int]]
    inner: dict[tuple[int, int], _LevelResult]
    """Per step and call, the result of the steps inside."""

    def missing(self) -> dict[int, int]:
        """The number of required calls that each step lacks."""
        counts = Counter(step for step, _ in self.pairs)
        return {i: step.at_least - counts[i] for i, step in enumerate(self.steps) if step.at_least > counts[i]}

    def counted_credits(self) -> list[float]:
        """The credit of each required call, and of each optional call that is partly wrong."""
        earned: dict[int, list[float]] = {}
        for i, j in self.pairs:
            earned.setdefault(i, []).append(self.weighted[i].weights[j] or 0.0)
        counted: list[float] = []
        for i, weights in earned.items():
            weights.sort(reverse=True)
            least = self.steps[i].at_least
            counted += weights[:least] + [weight for weight in weights[least:] if weight < 1.0]
        return counted

    def extra(self) -> list[int]:
        paired = {j for _, j in self.pairs}
        return [j for j in range(len(self.calls)) if j not in paired]

    def names(self, ids: Sequence[str]) -> str:
        by_id = {step.id: step for step in self.steps}
        return ", ".join(" or ".join(call.name for call in by_id[name].any_of) for name in ids)


def _align_level(steps: Sequence[Step], calls: Sequence[ToolCall], *, extra_allowed: bool) -> _LevelResult:
    """Align one level of steps with its calls. If steps have inner steps, only calls of that level count."""
    top = _top_level(calls) if any(step.steps for step in steps) else list(range(len(calls)))
    calls_here = [calls[index] for index in top]
    inner = {
        (i, j): _align_inside(step.steps, calls, call, extra_allowed=extra_allowed)
        for i, step in enumerate(steps)
        if step.steps
        for j, call in enumerate(calls_here)
        if step.best(call) is not None
    }
    weighted = [
        StepMatches(
            [_weight(step, call, inner.get((i, j))) for j, call in enumerate(calls_here)],
            before,
            step.at_least,
            step.at_most,
        )
        for i, (step, before) in enumerate(zip(steps, _predecessors(steps), strict=True))
    ]
    alignment = align(weighted, further=extra_allowed)
    level = _Level(steps, calls_here, weighted, alignment.pairs, inner)
    exact = alignment.exact and all(taken.exact for taken in inner.values())
    return _result_of(level, top, exact=exact, extra_allowed=extra_allowed)


def _align_inside(
    steps: Sequence[Step], calls: Sequence[ToolCall], outer: ToolCall, *, extra_allowed: bool
) -> _LevelResult:
    """Align the calls inside another with its inner steps. Faults have the index of their call in `calls`."""
    places = _inside(calls, outer)
    result = _align_level(steps, [calls[index] for index in places], extra_allowed=extra_allowed)
    return replace(result, findings=_with_original_indices(result.findings, places))


def _with_original_indices(findings: Iterable[Problem], places: Sequence[int]) -> list[Problem]:
    return [(phrase, [with_original_index(item, places) for item in faults]) for phrase, faults in findings]


def _weight(step: Step, call: ToolCall, inside: _LevelResult | None) -> float | None:
    expected = step.best(call)
    if expected is None:
        return None
    own = credit(expected, call)
    return own if inside is None else (own + inside.share) / 2


def _result_of(level: _Level, top: Sequence[int], *, exact: bool, extra_allowed: bool) -> _LevelResult:
    steps, missing, extra = level.steps, level.missing(), level.extra()
    weights = [level.weighted[i].weights[j] or 0.0 for i, j in level.pairs]
    earned = level.counted_credits()
    whole = sum(missing.values()) + len(earned) + (0 if extra_allowed else len(extra))
    findings = [*_missing(level, missing, extra), *_wrong_arguments(level)]
    if not extra_allowed:
        findings += _extra(level, extra)
    right = Counter(i for (i, _), weight in zip(level.pairs, weights, strict=True) if weight == 1.0)
    return _LevelResult(
        share=min(1.0, sum(earned) / whole) if whole else 1.0,
        findings=[*_with_original_indices(findings, top), *_inner_findings(level, top)],
        matched=sum(right.values()),
        made=len(level.calls),
        required=sum(step.at_least for step in steps),
        required_found=sum(min(right[i], step.at_least) for i, step in enumerate(steps)),
        pairs=[(steps[i].id, top[j]) for i, j in level.pairs],
        exact=exact,
    )


def _extra(level: _Level, extra: Sequence[int]) -> Iterator[Problem]:
    """Calls that are not a step. Equal calls are one problem with a fault for each."""
    places: dict[str, list[int]] = {}
    for j in extra:
        places.setdefault(actual_text(level.calls[j]), []).append(j)
    for text, indices in places.items():
        yield f"extra {times(text, len(indices))}", [fault("extra", level.calls[j].name, j) for j in indices]


def _missing(level: _Level, missing: dict[int, int], extra: list[int]) -> Iterator[Problem]:
    """Missing steps. A call that only came at the wrong time is reported as that, and removed from `extra`."""
    for i, count in missing.items():
        step = level.steps[i]
        moved = [j for j in extra if level.weighted[i].weights[j] == 1.0][:count]
        for j in moved:
            extra.remove(j)
            phrase = f"{actual_text(level.calls[j])} out of order{_required_position(level, step)}"
            yield phrase, [fault("order", level.calls[j].name, j)]
        if count > len(moved):
            text = times(step.text, count - len(moved))
            phrase = f"missing {text} after {level.names(step.after)}" if step.after else f"missing {text}"
            yield phrase, [fault("missing", step.any_of[0].name, call=step.text)]


def _required_position(level: _Level, step: Step) -> str:
    """The tools that a step must come after and before."""
    after = level.names(step.after)
    before = level.names([item.id for item in level.steps if step.id in item.after])
    parts = [f"after {after}" if after else "", f"before {before}" if before else ""]
    return f" (belongs {' and '.join(part for part in parts if part)})" if after or before else ""


def _wrong_arguments(level: _Level) -> Iterator[Problem]:
    for i, j in level.pairs:
        step, call = level.steps[i], level.calls[j]
        if (expected := step.best(call)) is not None and (reasons := list(mismatches(expected, call))):
            wrong = wrong_arguments(expected, call)
            item = fault("arguments", call.name, j, call=expected_text(expected), arguments=wrong, reasons=reasons)
            yield f"{call.name}: {', '.join(reasons)}", [item]


def _inner_findings(level: _Level, top: Sequence[int]) -> Iterator[Problem]:
    """What is wrong inside the paired calls. A call that is missing inside has the index of the outer call."""
    for i, j in level.pairs:
        if (inside := level.inner.get((i, j))) is not None:
            for phrase, faults in inside.findings:
                yield f"inside {level.calls[j].name}: {phrase}", [{"actual": top[j], **item} for item in faults]


def _predecessors(steps: Sequence[Step]) -> list[frozenset[int]]:
    """Per step, the indices of all steps that must come before it, directly or not."""
    index = {step.id: i for i, step in enumerate(steps)}
    predecessors: list[frozenset[int]] = []
    for step in steps:
        before: set[int] = set()
        waiting = [index[name] for name in step.after]
        while waiting:
            current = waiting.pop()
            if current not in before:
                before.add(current)
                waiting += [index[name] for name in steps[current].after]
        predecessors.append(frozenset(before))
    return predecessors


def _top_level(calls: Sequence[ToolCall]) -> list[int]:
    known = {call.id for call in calls if call.id is not None}
    return [index for index, call in enumerate(calls) if call.parent is None or call.parent not in known]


def _inside(calls: Sequence[ToolCall], outer: ToolCall) -> list[int]:
    """The indices of the calls made inside another, at any depth."""
    if outer.id is None:
        return []
    parents = {call.id: call.parent for call in calls if call.id is not None}
    return [index for index, call in enumerate(calls) if call is not outer and outer.id in _ancestors(call, parents)]


def _ancestors(call: ToolCall, parents: Mapping[str, str | None]) -> set[str]:
    """The ids of all calls that a call was made inside of, in any order of recording."""
    ancestors: set[str] = set()
    outer = call.parent
    while outer is not None and outer not in ancestors:
        ancestors.add(outer)
        outer = parents.get(outer)
    return ancestors


def _is_forbidden(call: ToolCall, pattern: ExpectedCall) -> bool:
    same_name = pattern.accepts_name(call.name) or fnmatchcase(call.name, pattern.name)
    return same_name and next(mismatches(pattern, call), None) is None
