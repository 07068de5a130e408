"""Two runs beside each other: what became of each case, and both conversations of one."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from urllib.parse import urlencode

from proctor.reporting.comparison_report import OUTCOMES, side_name, write_html_comparison
from proctor.reporting.html.escaping import badge, block, escape, inline, marked_pair
from proctor.reporting.wording import counted, trial_name
from proctor.results.comparison.alignment import MOST_TRIALS, AlignedStep, AlignedTrials, Step, nearest_pair
from proctor.results.comparison.comparing import align_case, compare_runs
from proctor.results.comparison.comparison import CaseChange
from proctor.results.run import Run, TrialResult
from proctor.results.store.text_columns import encode_text
from proctor.viewer.case_query import outcome_groups
from proctor.viewer.layout import case_address, page, run_address, sign, suites_text
from proctor.viewer.library import Library, NotFound, Source, all_runs

MOST_RUNS = 200
"""Runs that can be chosen from."""
STEP_TEXT = 4_000
LARGE = 10_000
"""Trials of both runs from which on they are compared by outcome first: the statistics read every one of them."""
MOST_LISTED = 50


def compare_page(library: Library, query: Mapping[str, str]) -> str:
    chosen = query.get("a", ""), query.get("b", "")
    out = StringIO()
    out.write('<h1 class="plain">Compare</h1>\n')
    _write_form(library, *chosen, out)
    if not all(chosen):
        return page("Compare", out.getvalue(), here="/compare")
    (first, before), (second, after) = library.find(chosen[0]), library.find(chosen[1])
    if "case" in query:
        pair = _aligned(first, before, second, after, query)
        _write_case(pair, before, after, out)
        return page(f"{query['case']} in two runs", out.getvalue(), here="/compare")
    if first is second and "whole" not in query:
        trials = sum(item.trials for row in (before, after) for item in first.totals(row).values())
        if trials > LARGE:
            _write_outcomes(first, before, after, out)
            return page("Compare", out.getvalue(), here="/compare")
    with first.opened(before) as old, second.opened(after) as new:
        comparison = compare_runs(old, new)

    def link(case: CaseChange) -> str:
        if case.before is None or case.after is None:
            return case_address((after if case.before is None else before).id, case.suite, case.case_id)
        pairs = [("a", before.id), ("b", after.id), ("suite", case.suite), ("case", case.case_id)]
        return f"/compare?{urlencode(pairs, errors='surrogatepass')}"

    write_html_comparison(comparison, out, link)
    for note in comparison.notes:
        out.write(f'<p class="quiet">{inline(note, 2_000)}</p>\n')
    title = f"{side_name(comparison.before)} and {side_name(comparison.after)}"
    return page(title, out.getvalue(), here="/compare", outcome=OUTCOMES[comparison.verdict])


def _write_outcomes(source: Source, before: Run, after: Run, out: StringIO) -> None:
    """What became of the cases of two large runs, by their outcomes alone, which SQLite counts at once."""
    whole = f"/compare?a={escape(before.id)}&amp;b={escape(after.id)}&amp;whole=1"
    out.write(
        '<p class="reason">The runs are large: cases stand here by their outcome alone, and nothing says whether luck '
        f'explains the change. <a href="{whole}">Compare every trial</a>, which takes a while.</p>\n'
    )
    for group, outcome, cases, count in outcome_groups(source.index, before.no, after.no, MOST_LISTED):
        out.write(f"<h2>{sign(outcome, group)} {counted(count, 'case')}</h2>\n")
        if not cases:
            continue
        label = f'<div class="scroll" role="region" aria-label="{escape(group)}" tabindex="0">'
        out.write(f'{label}<table class="list"><thead><tr><th scope="col">Case</th><th scope="col">Passed</th></tr>')
        out.write("</thead>\n<tbody>\n")
        for suite, case, change in cases:
            pairs = [("a", before.id), ("b", after.id), ("suite", suite), ("case", case)]
            link = escape(f"/compare?{urlencode(pairs, errors='surrogatepass')}")
            name = f'<a href="{link}">{inline(f"{suite}/{case}", 200)}</a>'
            out.write(f'<tr data-item><th scope="row">{name}</th><td>{escape(change)}</td></tr>\n')
        out.write("</tbody></table></div>\n")
        if count > len(cases):
            out.write(f'<p class="cut">And {counted(count - len(cases), "more case")}.</p>\n')


def _write_form(library: Library, before: str, after: str, out: StringIO) -> None:
    rows = [row for _, row in all_runs(library, MOST_RUNS)]
    if len(rows) < 2 and not before:
        out.write('<p class="none">There is nothing to compare yet: that takes two runs.</p>\n')
        return
    usual = [rows[1].id if len(rows) > 1 else "", rows[0].id if rows else ""]
    out.write('<form method="get" class="fields choice">\n')
    for name, title, chosen in (("a", "Before", before or usual[0]), ("b", "After", after or usual[1])):
        options = "".join(
            f'<option value="{escape(row.id)}"{" selected" if row.id == chosen else ""}>{_option(row)}</option>'
            for row in rows
        )
        out.write(f'<label>{title} <select name="{name}">{options}</select></label>\n')
    out.write("<button>Compare</button></form>\n")


def _option(row: Run) -> str:
    parts = [row.name, suites_text(row.suites)[:60], row.id]
    return inline(" · ".join(part for part in parts if part), 200)


def _aligned(first: Source, before: Run, second: Source, after: Run, query: Mapping[str, str]) -> AlignedTrials:
    """Only the trials of this case are read, unless it had another name before."""
    suite, case = query.get("suite", ""), query["case"]
    old, new = _trials(first, before, suite, case), _trials(second, after, suite, case)
    found = nearest_pair(old, new) if old and new else None
    if found is None:
        with first.opened(before) as earlier, second.opened(after) as later:
            aligned = align_case(earlier, later, f"{suite}/{case}" if suite else case)
        if isinstance(aligned, list):
            raise NotFound(f"No case {case!r} is in both runs.")
        found = aligned
    return found


def _trials(source: Source, row: Run, suite: str, case: str) -> list[TrialResult]:
    source.ensure(row)
    found = source.index.rows(
        "SELECT numbers FROM case_rows WHERE run = ? AND suite = ? AND case_id = ?",
        (row.no, encode_text(suite), encode_text(case)),
    )
    if not found:
        return []
    with source.lock:
        return [source.store.trial(int(no)) for no in found[0][0].split(",")[:MOST_TRIALS]]


def _write_case(pair: AlignedTrials, before: Run, after: Run, out: StringIO) -> None:
    """Both conversations, a step of each beside the other, with the first that differs marked."""
    back = f"/compare?a={escape(before.id)}&amp;b={escape(after.id)}"
    out.write(f'<p class="crumbs"><a href="{back}" data-up>Comparison</a> / {inline(pair.after.case.id)}</p>\n')
    told = "The conversations are the same." if pair.divergence is None else f"They part: {pair.divergence.text}"
    out.write(f'<p class="reason">{inline(told, 1_000)}</p>\n')
    out.write('<div class="scroll" role="region" aria-label="Both conversations" tabindex="0">\n')
    out.write('<table class="aligned">\n<thead><tr>')
    for name, row, trial in (("Before", before, pair.before), ("After", after, pair.after)):
        link = escape(case_address(row.id, trial.suite, trial.case.id, trial.number))
        out.write(
            f'<th scope="col">{name}: <a href="{link}">{inline(trial_name(trial.case.id, trial.number), 120)}</a> in '
            f'<a href="{run_address(row)}">{inline(row.name or row.id)}</a> {badge(trial.outcome)}</th>'
        )
    out.write("</tr></thead>\n<tbody>\n")
    for at, step in enumerate(pair.steps):
        _write_step(step, pair.divergence is not None and pair.divergence.step == at, out)
    out.write("</tbody></table></div>\n")


def _write_step(step: AlignedStep, parts_here: bool, out: StringIO) -> None:
    if parts_here:
        out.write('<tr class="parts"><th scope="rowgroup" colspan="2">≠ here they part</th></tr>\n')
    kind = "same" if step.kind is None else "differs"
    texts = [None if side is None else side.text for side in (step.before, step.after)]
    marked = None
    if step.kind is not None and texts[0] and texts[1] and max(len(texts[0]), len(texts[1])) <= STEP_TEXT:
        marked = marked_pair(texts[0], texts[1])
    out.write(f'<tr class="{kind}">')
    for at, side in enumerate((step.before, step.after)):
        out.write(f"<td>{_side(side, None if marked is None else marked[at])}</td>")
    out.write("</tr>\n")


def _side(step: Step | None, marked: str | None) -> str:
    if step is None:
        return '<p class="none">no such step</p>'
    names = {"user": "user", "call": "tool", "answer": "agent", "end": "end"}
    text = block(step.text, STEP_TEXT) if marked is None else f"<pre>{marked}</pre>\n"
    return f'<p class="label">{names[step.kind]} · turn {step.turn}</p>{text}'
