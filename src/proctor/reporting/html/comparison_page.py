"""The comparison of two runs as one HTML page that asks nothing from outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TextIO

from proctor.reporting.comparison_report import (
    MOST_LISTED,
    RESOURCE_NAMES,
    TITLES,
    amount,
    case_name,
    change_text,
    difference_text,
    ratio_text,
    side_name,
    side_text,
    what_differs,
)
from proctor.reporting.html.escaping import escape, inline
from proctor.reporting.html.report_page import page_end, page_head
from proctor.reporting.wording import counted
from proctor.results.comparison import CaseChange, Comparison, Group, p_text
from proctor.results.run import Outcome

Link = Callable[[CaseChange], str]
MOST_ROWS = 1_000
"""Cases of a group that are listed; the JSON has all."""
OUTCOMES = {
    "regression": Outcome.FAILED,
    "improvement": Outcome.PASSED,
    "no difference": Outcome.PASSED,
    "not comparable": Outcome.ERROR,
}
"""The colour of a verdict."""
GROUP_OUTCOMES = {
    Group.BROKEN: Outcome.FAILED,
    Group.FIXED: Outcome.PASSED,
    Group.FLAKY: Outcome.ERROR,
    Group.STILL_FAILING: Outcome.FAILED,
    Group.NOT_COMPARABLE: Outcome.PENDING,
}


def write(comparison: Comparison, out: TextIO) -> None:
    outcome = OUTCOMES[comparison.verdict]
    title = f"{side_name(comparison.before)} and {side_name(comparison.after)}"
    out.write(page_head(f"Comparison of {title}", outcome))
    out.write("<main>\n")
    write_comparison(comparison, out)
    out.write("</main>\n" + page_end())


def write_comparison(comparison: Comparison, out: TextIO, link: Link | None = None) -> None:
    """What changed, group by group; `link` gives the address where both conversations of a case are shown."""
    outcome = OUTCOMES[comparison.verdict]
    out.write(
        f'<header class="banner {outcome.value}"><div class="words">\n'
        f'<p class="kicker">Comparison</p>\n<h1>{escape(comparison.verdict.capitalize())}</h1>\n'
        f'<p class="reason">{inline(comparison.sentence, 2000)}</p>\n<dl class="facts">\n'
    )
    for name, side in (("Before", comparison.before), ("After", comparison.after)):
        out.write(f"<div><dt>{name}</dt><dd>{inline(side_text(side))}</dd></div>\n")
    out.write("</dl>\n</div></header>\n")
    for group, cases in comparison.groups.items():
        if cases:
            _write_group(group, cases, out, link)
    _write_numbers(comparison, out)


def _write_group(group: Group, cases: Sequence[CaseChange], out: TextIO, link: Link | None) -> None:
    """Cases that still pass are there to be looked up, folded."""
    kind = GROUP_OUTCOMES.get(group, Outcome.SKIPPED).value
    head = f'<span class="badge {kind}">{TITLES[group]}</span> {counted(len(cases), "case")}'
    folded = group is Group.STILL_PASSING
    out.write(f"<details><summary>{head}</summary>\n" if folded else f"<section>\n<h2>{head}</h2>\n")
    shown = cases[:MOST_ROWS] if not folded else cases[: 10 * MOST_LISTED]
    rows = []
    for case in shown:
        told = "".join(f"<div>{inline(line)}</div>" for line in what_differs(case))
        name, change = inline(case_name(case), 200), inline(change_text(case))
        if link is not None and (place := link(case)):
            name = f'<a href="{escape(place)}">{name}</a>'
        rows.append(f'<tr><th scope="row">{name}</th><td>{change}</td><td>{told}</td></tr>\n')
    out.write(_table(TITLES[group], ("Case", "Passed", "What differs"), rows))
    if len(cases) > len(shown):
        out.write(f'<p class="cut">And {counted(len(cases) - len(shown), "more case")}.</p>\n')
    out.write("</details>\n" if folded else "</section>\n")


def _write_numbers(comparison: Comparison, out: TextIO) -> None:
    if comparison.evaluators:
        out.write("<section>\n<h2>Scores</h2>\n")
        rows = [
            f'<tr><th scope="row">{inline(item.evaluator)}</th><td>{item.before:.3f}</td><td>{item.after:.3f}</td>'
            f"<td>{difference_text(item)}</td>"
            f"<td>{escape(p_text(item.p_value))}{' (differs)' * item.differs}</td></tr>\n"
            for item in comparison.evaluators
        ]
        out.write(
            _table("Scores", ("Evaluator", "Before", "After", "Difference (95 %)", "p (Holm)"), rows) + "</section>\n"
        )
    if comparison.resources:
        out.write("<section>\n<h2>What a trial took</h2>\n")
        rows = [
            f'<tr><th scope="row">{RESOURCE_NAMES[item.resource]}{" (estimate)" * item.estimated}</th>'
            f"<td>{escape(amount(item.resource, item.before))}</td><td>{escape(amount(item.resource, item.after))}</td>"
            f"<td>{ratio_text(item)}</td></tr>\n"
            for item in comparison.resources
        ]
        out.write(
            _table("What a trial took", ("Resource", "Before", "After", "Times as much (95 %)"), rows) + "</section>\n"
        )


def _table(label: str, titles: Sequence[str], rows: Sequence[str]) -> str:
    heads = "".join(f'<th scope="col">{title}</th>' for title in titles)
    body = f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody>"
    place = f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">'
    return f'{place}<table class="grid">\n{body}\n</table></div>\n'
