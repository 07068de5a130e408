"""The page that compares two runs: what changed in each case, and both conversations of one case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.reporting.comparison_report import comparison_view, run_label
from proctor.reporting.html.trial_view import MarkedText, mark_differences
from proctor.reporting.wording import trial_name
from proctor.results.comparison.alignment import MAX_TRIALS, AlignedStep, AlignedTrials, Step, most_similar_trials
from proctor.results.comparison.compare import NoSuchCase, align_case, compare_runs
from proctor.results.comparison.comparison import CaseChange
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.trial import Trial
from proctor.viewer.cases import outcome_groups
from proctor.viewer.pages import Page, PageRoute, Visit, case_address, compare_address, run_address, suites_text
from proctor.viewer.sources import NotFound, Source, Sources, latest_runs

MAX_RUNS = 200
"""Maximum runs to choose from."""
MAX_STEP_TEXT = 4_000
LARGE_COMPARISON = 10_000
"""With more trials in both runs, only outcomes are compared at first, since the statistics read every trial."""
MAX_LISTED_CASES = 50


def compare_page(visit: Visit) -> Page:
    sources, query = visit.sources, visit.query
    chosen = query.get("a", ""), query.get("b", "")
    form = {"fields": _fields(sources, *chosen), "whole_address": "", "groups": (), "comparison": None}
    if not all(chosen):
        return Page("compare.html", "Compare", form)
    (first, before), (second, after) = sources.find(chosen[0]), sources.find(chosen[1])
    if "case" in query:
        pair = _align(first, before, second, after, query)
        values = {"fields": form["fields"], **_case_values(pair, before, after)}
        return Page("compare_case.html", f"{query['case']} in two runs", values)
    if first is second and "whole" not in query:
        old_totals, new_totals = first.totals(before), first.totals(after)
        if old_totals.trials + new_totals.trials > LARGE_COMPARISON:
            groups = [
                _outcome_group(before, after, name, outcome, cases)
                for name, outcome, cases in outcome_groups(old_totals, new_totals)
            ]
            whole = f"{compare_address(before.id, after.id)}&whole=1"
            return Page("compare.html", "Compare", {**form, "groups": groups, "whole_address": whole})
    with first.open_run(before) as old, second.open_run(after) as new:
        comparison = compare_runs(old, new)

    def link(case: CaseChange) -> str:
        if case.before is None or case.after is None:
            return case_address((after if case.before is None else before).id, case.suite, case.case_id)
        return compare_address(before.id, after.id, case.suite, case.case_id)

    view = comparison_view(comparison, link)
    title = f"{run_label(comparison.before)} and {run_label(comparison.after)}"
    values = {**form, "comparison": view}
    return Page("compare.html", title, values, outcome=view.outcome)


@dataclass(frozen=True, slots=True)
class OutcomeGroup:
    """Cases of two large runs whose outcome changed in the same way."""

    name: str
    outcome: Outcome
    count: int
    rows: Sequence[tuple[str, str, str]]
    """Address, name, and how many trials passed; cases that still pass are only counted."""


def _outcome_group(
    before: Run, after: Run, name: str, outcome: Outcome, cases: Sequence[tuple[tuple[str, str], str]]
) -> OutcomeGroup:
    listed = () if name == "still passing" else cases[:MAX_LISTED_CASES]
    rows = [
        (compare_address(before.id, after.id, suite, case), f"{suite}/{case}", change)
        for (suite, case), change in listed
    ]
    return OutcomeGroup(name, outcome, len(cases), rows)


def _fields(sources: Sources, before: str, after: str) -> list[tuple[str, str, str, list[tuple[str, str]]]]:
    """The form fields for both runs: name, title, the selected run, and the options."""
    rows = [row for _, row in latest_runs(sources, MAX_RUNS)]
    if len(rows) < 2 and not before:
        return []
    latest = rows[0].id if rows else ""
    previous = rows[1].id if len(rows) > 1 else ""
    options = [(row.id, _option(row)) for row in rows]
    return [("a", "Before", before or previous, options), ("b", "After", after or latest, options)]


def _option(row: Run) -> str:
    parts = [row.name, suites_text(row.suites)[:60], row.id]
    return " · ".join(part for part in parts if part)


def _align(first: Source, before: Run, second: Source, after: Run, query: Mapping[str, str]) -> AlignedTrials:
    """The most similar trials of the case in both runs; reads only its trials, unless it was renamed."""
    suite, case = query.get("suite", ""), query["case"]
    old, new = _trials(first, before, suite, case), _trials(second, after, suite, case)
    aligned = most_similar_trials(old, new) if old and new else None
    if aligned is None:
        with first.open_run(before) as earlier, second.open_run(after) as later:
            try:
                aligned = align_case(earlier, later, f"{suite}/{case}" if suite else case)
            except NoSuchCase:
                raise NotFound(f"Case {case!r} is not in both runs.") from None
    return aligned


def _trials(source: Source, row: Run, suite: str, case: str) -> list[Trial]:
    with source.lock:
        return list(source.store.trials(row.no, {(suite, case)}))[:MAX_TRIALS]


@dataclass(frozen=True, slots=True)
class StepSide:
    """One side of a step."""

    label: str
    text: str
    marked: MarkedText | None


def _case_values(pair: AlignedTrials, before: Run, after: Run) -> dict[str, Any]:
    """Both conversations step by step, with the first difference marked."""
    divergence = pair.divergence
    heads = [
        (
            title,
            case_address(row.id, trial.suite, trial.case.id, trial.number),
            trial_name(trial.case.id, trial.number),
            run_address(row.id),
            row.name or row.id,
            trial.outcome,
        )
        for title, row, trial in (("Before", before, pair.before), ("After", after, pair.after))
    ]
    return {
        "back": compare_address(before.id, after.id),
        "case_id": pair.after.case.id,
        "reason": "No difference." if divergence is None else f"First difference: {divergence.text}",
        "heads": heads,
        "divergence": -1 if divergence is None else divergence.step,
        "steps": [_step(step) for step in pair.steps],
    }


def _step(step: AlignedStep) -> tuple[bool, list[StepSide | None]]:
    """Whether both sides are the same, and the sides."""
    texts = [None if side is None else side.text for side in (step.before, step.after)]
    marked = None
    if step.kind is not None and texts[0] and texts[1] and max(len(texts[0]), len(texts[1])) <= MAX_STEP_TEXT:
        marked = mark_differences(texts[0], texts[1])
    both = [_side(side, None if marked is None else marked[at]) for at, side in enumerate((step.before, step.after))]
    return step.kind is None, both


def _side(step: Step | None, marked: MarkedText | None) -> StepSide | None:
    if step is None:
        return None
    names = {"user": "user", "call": "tool", "answer": "agent", "end": "end"}
    return StepSide(f"{names[step.kind]} · turn {step.turn}", step.text, marked)


PAGES = (PageRoute("/compare", compare_page, "Compare", menu_place=2),)
