"""Comparisons of two runs as JSON, Markdown and HTML, and of the agents of one run in every report.

The terminal, the viewer and the comment on a pull request take their texts for cases, scores and resources from here.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from proctor.base.json_data import Json, to_json
from proctor.reporting.html import environment
from proctor.reporting.markdown.escaping import inline, row, table_head
from proctor.reporting.wording import duration, money, plural, utc_time
from proctor.results.comparison.alignment import AlignedTrials, Step
from proctor.results.comparison.comparison import (
    CaseChange,
    Change,
    ComparedRun,
    Comparison,
    EvaluatorChange,
    PassCount,
    ResourceRatio,
    p_text,
)
from proctor.results.score import Outcome

CHANGE_TITLES = {
    Change.BROKEN: "Broken",
    Change.FLAKY: "Flaky",
    Change.STILL_FAILING: "Still failing",
    Change.NOT_COMPARABLE: "Not comparable",
    Change.FIXED: "Fixed",
    Change.NEW: "New",
    Change.GONE: "Gone",
    Change.STILL_PASSING: "Still passing",
}
RESOURCE_NAMES = {"tokens": "Tokens", "cost_usd": "Cost", "duration_ms": "Median time", "tool_calls": "Tool calls"}
SCORE_COLUMNS = ("Evaluator", "Before", "After", "Difference (95 %)", "p")
MAX_LISTED_CASES = 100
"""Maximum cases per kind of change in a Markdown report."""


def write_json(comparison: Comparison, out: TextIO) -> None:
    out.write(json.dumps(comparison.to_json(), indent=2) + "\n")


def case_to_json(pair: AlignedTrials, before: str, after: str) -> dict[str, Json]:
    """Two aligned conversations as plain data."""
    return {
        "schema": "proctor.aligned-case/1",
        "case": pair.after.case.id,
        "before": {"run": before, "suite": pair.before.suite, **_trial(pair.before)},
        "after": {"run": after, "suite": pair.after.suite, **_trial(pair.after)},
        "divergence": to_json(pair.divergence),
        "steps": [
            {
                "before": _step(step.before),
                "after": _step(step.after),
                "kind": step.kind,
                "difference": step.difference,
            }
            for step in pair.steps
        ],
    }


def _trial(trial: object) -> dict[str, Json]:
    return {name: to_json(getattr(trial, name)) for name in ("number", "outcome", "reason")}


def _step(step: Step | None) -> Json:
    return (
        None if step is None else {"kind": step.kind, "turn": step.turn, "text": step.text, "call": to_json(step.call)}
    )


def write_markdown(comparison: Comparison, out: TextIO) -> None:
    """Write the conclusion, then the cases by what changed, the most serious first, then scores and resources."""
    out.write(f"## Comparison of {inline(run_label(comparison.before))} and {inline(run_label(comparison.after))}\n\n")
    out.write(f"**{inline(comparison.sentence)}**\n\n")
    for name, side in (("Before", comparison.before), ("After", comparison.after)):
        out.write(f"- **{name}:** {inline(run_description(side))}\n")
    out.write("\n")
    for group, cases in comparison.groups.items():
        if cases and group is not Change.STILL_PASSING:
            _write_group(group, cases, out)
    _write_evaluators(comparison.evaluators, out)
    _write_resources(comparison.resources, out)
    if count := len(comparison.groups[Change.STILL_PASSING]):
        out.write(f"{plural(count, 'case')} still {'passes' if count == 1 else 'pass'}.\n")


def _write_group(group: Change, cases: Sequence[CaseChange], out: TextIO) -> None:
    out.write(f"### {CHANGE_TITLES[group]} ({len(cases):,})\n\n")
    listed = listed_cases(cases)
    out.writelines(f"- {inline(note, 600)}\n" for note in listed.notes)
    out.write("\n" if listed.notes else "")
    out.write(table_head("Case", "Passed", "Differences"))
    for case, lines in listed.rows[:MAX_LISTED_CASES]:
        out.write(row(inline(case_name(case)), change_text(case), inline("; ".join(lines), 600)))
    if len(cases) > MAX_LISTED_CASES:
        out.write(f"\nAnd {plural(len(cases) - MAX_LISTED_CASES, 'more case')}.\n")
    out.write("\n")


def _write_evaluators(changes: Sequence[EvaluatorChange], out: TextIO) -> None:
    if changes:
        out.write("### Scores\n\n" + table_head(*SCORE_COLUMNS))
        for item in changes:
            cells = (inline(item.evaluator), f"{item.before:.3f}", f"{item.after:.3f}")
            out.write(row(*cells, difference_text(item), inline(p_text(item.p_value) + (" (differs)" * item.differs))))
        out.write(f"\n{note}\n\n" if (note := correction_note(changes)) else "\n")


def _write_resources(ratios: Sequence[ResourceRatio], out: TextIO) -> None:
    if ratios:
        out.write("### Resources per trial\n\n" + table_head("Resource", "Before", "After", "Factor (95 %)"))
        for item in ratios:
            name = RESOURCE_NAMES[item.resource] + (" (estimate)" if item.estimated else "")
            before, after = amount_text(item.resource, item.before), amount_text(item.resource, item.after)
            out.write(row(name, inline(before), inline(after), ratio_text(item)))
        out.write("\n")


def run_label(side: ComparedRun) -> str:
    return side.name or side.run


def run_description(side: ComparedRun) -> str:
    """The id of a run, when it started, its agent and its commit."""
    parts = [side.run if not side.name else f"{side.name} ({side.run})", utc_time(side.started_at), side.agent]
    if side.git is not None and side.git.commit is not None:
        branch = f"{side.git.branch} " if side.git.branch else ""
        parts.append(f"{branch}{side.git.commit[:10]}{' with uncommitted changes' if side.git.dirty else ''}")
    return ", ".join(part for part in parts if part)


def case_name(case: CaseChange) -> str:
    was = f" (was {case.renamed_from})" if case.renamed_from else ""
    return f"{case.suite}/{case.case_id}{was}"


def change_text(case: CaseChange) -> str:
    """`5/5 → 0/5`; a dash for a run that does not have the case."""
    return f"{passes_text(case.before)} → {passes_text(case.after)}"


def passes_text(passes: PassCount | None) -> str:
    """`4/5`, with `+1 without result` if one more trial ended in an error or is pending."""
    if passes is None:
        return "–"
    if not passes.trials:
        return "no result"
    rest = f" +{passes.without_verdict} without result" if passes.without_verdict else ""
    return f"{passes.passed}/{passes.trials}{rest}"


@dataclass(frozen=True, slots=True)
class ListedCases:
    """Cases with one kind of change. What several of them have in common is said once."""

    notes: Sequence[str]
    """`24 cases: no result in either run (pending: a person reads the poem)`."""
    rows: Sequence[tuple[CaseChange, Sequence[str]]]
    """Each case with its own differences."""


def listed_cases(cases: Sequence[CaseChange]) -> ListedCases:
    """The cases of one kind of change; what changed or fails keeps all that is known about it."""
    texts = [tuple(differences(case)) for case in cases]
    if not cases or cases[0].group not in (Change.NOT_COMPARABLE, Change.NEW, Change.GONE):
        return ListedCases([], list(zip(cases, texts, strict=True)))
    common = {text: count for text, count in Counter(text for text in texts if text).items() if count > 1}
    is_one = len(common) == 1 and len(cases) == sum(common.values())
    marks = {text: () if is_one else (f"({number})",) for number, text in enumerate(common, 1)}
    notes = [f"{' '.join([*marks[text], plural(count, 'case')])}: {'; '.join(text)}" for text, count in common.items()]
    return ListedCases(notes, [(case, marks.get(text, text)) for case, text in zip(cases, texts, strict=True)])


def differences(case: CaseChange) -> Iterator[str]:
    """Why a case fails or cannot be compared, then where the conversations diverge, then scores."""
    yield from case.reasons
    if case.divergence is not None:
        yield f"diverges at {case.divergence}"
    if case.group is not Change.NOT_COMPARABLE:
        for score in case.scores:
            old, new = ("none" if value is None else f"{value:.2f}" for value in (score.before, score.after))
            yield f"{score.evaluator} {old} → {new}"


def correction_note(changes: Sequence[EvaluatorChange]) -> str:
    """What was done to the p-values and intervals of several evaluators; empty for one, which needs no correction."""
    if len(changes) < 2:
        return ""
    return (
        f"p is corrected for {len(changes)} evaluators (Holm's method): with many, one would seem to differ by luck. "
        "The intervals agree with it: one that contains 0 shows no difference."
    )


def difference_text(item: EvaluatorChange) -> str:
    effect = item.difference
    return f"{effect.value:+.3f} [{effect.low:+.3f}, {effect.high:+.3f}]"


def ratio_text(item: ResourceRatio) -> str:
    effect = item.ratio
    interval = "" if math.isinf(effect.high) else f" [{effect.low:.2f}, {effect.high:.2f}]"
    return f"{effect.value:.2f}{interval}"


def amount_text(resource: str, value: float) -> str:
    if resource == "cost_usd":
        return money(value)
    if resource == "duration_ms":  # in hundredths of a second, quick answers would all look the same
        return duration(value) if value >= 1_000 else f"{value:.3g} ms"
    return f"{value:,.2f}".rstrip("0").removesuffix(".") if value < 10 else f"{value:,.1f}".removesuffix(".0")


MAX_HTML_ROWS = 1_000
"""Maximum cases per kind of change on a page; the JSON report has all."""
VERDICT_OUTCOMES = {
    "regression": Outcome.FAILED,
    "improvement": Outcome.PASSED,
    "no difference": Outcome.PASSED,
    "not comparable": Outcome.ERROR,
}
"""The outcome whose color a verdict has."""
_GROUP_OUTCOMES = {
    Change.BROKEN: Outcome.FAILED,
    Change.FIXED: Outcome.PASSED,
    Change.FLAKY: Outcome.ERROR,
    Change.STILL_FAILING: Outcome.FAILED,
    Change.NOT_COMPARABLE: Outcome.PENDING,
}


def group_outcome(group: Change) -> Outcome:
    """The outcome whose color a kind of change has."""
    return _GROUP_OUTCOMES.get(group, Outcome.SKIPPED)


@dataclass(frozen=True, slots=True)
class GroupView:
    """The cases with one kind of change."""

    title: str
    outcome: Outcome
    is_folded: bool
    """Whether the list is closed at first, as it is for cases that still pass."""
    count: int
    notes: Sequence[str]
    """What several of them have in common."""
    rows: Sequence[tuple[str, str, str, Sequence[str]]]
    """The link to both conversations, the name, how many trials passed, and the differences."""

    @property
    def more(self) -> int:
        return self.count - len(self.rows)


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """A comparison as the templates need it."""

    outcome: Outcome
    verdict: str
    sentence: str
    sides: Sequence[tuple[str, str]]
    groups: Sequence[GroupView]
    scores: Sequence[Sequence[str]]
    score_note: str
    """How the numbers of several evaluators are corrected."""
    resources: Sequence[Sequence[str]]


def comparison_view(
    comparison: Comparison, link: Callable[[CaseChange], str] | None = None, *, limit: int = MAX_HTML_ROWS
) -> ComparisonView:
    """A comparison for a page, with at most `limit` cases per kind of change; `link` returns the address of a case."""
    groups = [_group_view(group, cases, link, limit) for group, cases in comparison.groups.items() if cases]
    scores = [
        (
            item.evaluator,
            f"{item.before:.3f}",
            f"{item.after:.3f}",
            difference_text(item),
            p_text(item.p_value) + " (differs)" * item.differs,
        )
        for item in comparison.evaluators
    ]
    resources = [
        (
            RESOURCE_NAMES[item.resource] + " (estimate)" * item.estimated,
            amount_text(item.resource, item.before),
            amount_text(item.resource, item.after),
            ratio_text(item),
        )
        for item in comparison.resources
    ]
    return ComparisonView(
        VERDICT_OUTCOMES[comparison.verdict],
        _verdict_title(comparison),
        comparison.sentence,
        [("Before", run_description(comparison.before)), ("After", run_description(comparison.after))],
        groups,
        scores,
        correction_note(comparison.evaluators),
        resources,
    )


def _verdict_title(comparison: Comparison) -> str:
    """The verdict as a heading that the list of broken cases below it does not contradict."""
    if comparison.verdict != "no difference":
        return comparison.verdict
    is_changed = any(comparison.groups[group] for group in (Change.BROKEN, Change.FIXED, Change.FLAKY))
    return "no significant difference" if is_changed else "no change"


def _group_view(
    group: Change, cases: Sequence[CaseChange], link: Callable[[CaseChange], str] | None, limit: int
) -> GroupView:
    listed = listed_cases(cases)
    return GroupView(
        CHANGE_TITLES[group],
        group_outcome(group),
        group is Change.STILL_PASSING,
        len(cases),
        listed.notes,
        [
            ("" if link is None else link(case), case_name(case), change_text(case), lines)
            for case, lines in listed.rows[:limit]
        ],
    )


def write_html(comparison: Comparison, out: TextIO) -> None:
    title = f"Comparison of {run_label(comparison.before)} and {run_label(comparison.after)}"
    view = comparison_view(comparison)
    environment.write("reporting/templates/comparison.html", out, title=title, outcome=view.outcome, comparison=view)


WRITERS: Mapping[str, Callable[[Comparison, TextIO], None]] = {
    "json": write_json,
    "md": write_markdown,
    "html": write_html,
}
