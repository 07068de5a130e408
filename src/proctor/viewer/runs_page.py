"""All runs, the latest first, and where each suite is going; and the baselines named on the command line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO

from proctor.base.git import GitState
from proctor.reporting.html.escaping import code, escape, gauge, inline
from proctor.reporting.plots import PlotPoint, line_plot
from proctor.reporting.wording import counted, duration, money
from proctor.results.run import Outcome, Run
from proctor.results.statistics import Estimate, wilson
from proctor.results.verdict import INTERRUPTED
from proctor.viewer.layout import agents_text, moment, page, run_address, sign, suites_text
from proctor.viewer.library import Library, Source
from proctor.viewer.run_index import SuiteTotals

PAGE = 40
"""Runs on one page, and in a plot."""
PATIENCE_SECONDS = 0.4
"""How long a page may take to add up runs that were not looked at before; the next view goes on from there."""
SUITES_SHOWN = 6


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run with what is known of it."""

    source: Source
    row: Run
    status: str
    totals: dict[str, SuiteTotals] | None
    """`None` where there was no time to add its trials up."""


def runs_page(library: Library, before: int | None = None, only: int | None = None, live: str = "") -> str:
    """The latest runs of every source, or those of one source before the run numbered `before`."""
    out = StringIO()
    out.write('<h1 class="plain">Runs</h1>\n')
    if not any(source.count_runs() for source in library.sources) and not library.baselines:
        out.write('<p class="none">No run is kept here yet: <code>proctor test</code> makes one.</p>\n')
    until = time.monotonic() + PATIENCE_SECONDS
    for at, source in enumerate(library.sources):
        if only not in (None, at):
            continue
        rows = source.page(before, PAGE)
        shown = [_look_at(source, row, until) for row in rows]
        if len(library.sources) > 1:
            out.write(f"<h2>{inline(source.label)}</h2>\n")
        if before is None:
            _write_trends(shown, out)
        _write_table(source, shown, out)
        if len(rows) == PAGE and rows[-1].no > 1:
            out.write(
                f'<p class="pages"><a rel="next" href="/?before={rows[-1].no}&amp;source={at}">earlier runs →</a></p>\n'
            )
    if library.baselines:
        out.write('<p><a href="/baselines">Baselines</a></p>\n')
    return page("Runs", f'<div id="live">\n{out.getvalue()}</div>\n', here="/", live=live)


def _look_at(source: Source, row: Run, until: float) -> ShownRun:
    known = source.index.is_ready(row.no) or time.monotonic() < until
    return ShownRun(source, row, row.status, source.totals(row) if known else None)


def _write_trends(shown: Sequence[ShownRun], out: StringIO) -> None:
    """Each suite that was run more than once: pass rate, cost and latency, a point for each run."""
    names = list(dict.fromkeys(info.name for item in shown for info in item.row.suites))
    drawn = [(name, [item for item in reversed(shown) if item.totals and name in item.totals]) for name in names]
    drawn = [(name, items) for name, items in drawn if len(items) > 1][:SUITES_SHOWN]
    if drawn:
        out.write('<section class="trends" aria-label="Trends">\n')
        for name, items in drawn:
            out.write(f'<div class="trend"><h2>{inline(name, 120)}</h2>\n<div class="plots">\n')
            out.write(line_plot("Pass rate", _points(name, items, "rate"), lambda value: f"{value:.0%}", share=True))
            if any(item.totals and item.totals[name].cost_usd is not None for item in items):
                out.write(line_plot("Cost of a trial", _points(name, items, "cost"), money))
            out.write(line_plot("Time of a trial", _points(name, items, "time"), duration))
            out.write("</div></div>\n")
        out.write("</section>\n")


def _points(name: str, items: Sequence[ShownRun], what: str) -> list[PlotPoint]:
    points = []
    for item in items:
        totals = (item.totals or {})[name]
        value: float | None = totals.mean_ms
        text = duration(totals.mean_ms)
        rate = totals.rate
        if what == "cost":
            value = None if totals.cost_usd is None else totals.cost_usd / max(1, totals.trials)
            text = "" if value is None else money(value)
        elif what == "rate":
            value, text = (
                (None, "") if rate is None else (rate.mean, f"{rate.mean:.0%} [{rate.low:.0%}, {rate.high:.0%}]")
            )
        if value is None:
            continue
        label = f"{text} · {item.row.name or item.row.id}"
        low, high = (rate.low, rate.high) if what == "rate" and rate is not None else (None, None)
        points.append(PlotPoint(value, label, low, high, run_address(item.row), _outcome_word(item)))
    return points


def _outcome_word(item: ShownRun) -> str:
    verdict = item.row.stored_verdict
    return "" if verdict is None else verdict.outcome


COLUMNS = ("Verdict", "Run", "Suites", "Pass rate", "Cases", "Agent", "Commit", "Cost", "Time", "Started")
NUMBERS = ("Cases", "Cost", "Time")


def _write_table(source: Source, shown: Sequence[ShownRun], out: StringIO) -> None:
    """A row for each run; what is known of none of them has no column."""
    if not shown:
        return
    absent = set()
    if not any(item.row.git is not None for item in shown):
        absent.add("Commit")
    if not any(total.cost_usd is not None for item in shown for total in (item.totals or {}).values()):
        absent.add("Cost")
    titles = [title for title in COLUMNS if title not in absent]
    heads = "".join(f'<th scope="col"{" class=number" if title in NUMBERS else ""}>{title}</th>' for title in titles)
    label = f"Runs of {inline(source.label)}"
    out.write(f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">\n<table class="list runs">\n')
    out.write(f"<thead><tr>{heads}</tr></thead>\n<tbody>\n")
    for item in shown:
        cells = _cells(item)
        out.write(f"<tr data-item>{''.join(cells[title] for title in titles)}</tr>\n")
    out.write("</tbody>\n</table>\n</div>\n")


def _cells(item: ShownRun) -> dict[str, str]:
    row, totals = item.row, None if item.totals is None else list(item.totals.values())
    name = f"{inline(row.name, 80)} <small>{escape(row.id)}</small>" if row.name else escape(row.id)
    origin = f" <small>rescored {escape(row.rescored)}</small>" if row.rescored else ""
    cases = "" if totals is None else f"{sum(sum(total.outcomes.values()) for total in totals):,}"
    return {
        "Verdict": f"<td>{state_sign(row, item.status)}{_progress(item)}</td>",
        "Run": f'<th scope="row"><a href="{run_address(row)}">{name}</a>{origin}</th>',
        "Suites": f"<td>{inline(suites_text(row.suites), 120)}</td>",
        "Pass rate": f'<td class="rate-cell">{rate_cell(together(totals))}</td>',
        "Cases": f'<td class="number">{cases}</td>',
        "Agent": f"<td>{inline(agents_text(row.suites), 60)}</td>",
        "Commit": f"<td>{commit(row.git)}</td>",
        "Cost": f'<td class="number">{cost_text(totals)}</td>',
        "Time": f'<td class="number">{took(row)}</td>',
        "Started": f"<td>{moment(row.started_at)}</td>",
    }


def state_sign(row: Run, status: str) -> str:
    """The verdict, or that a run still goes on, was interrupted or died."""
    verdict = row.stored_verdict
    if status == "running":
        return '<span class="badge running"><span aria-hidden="true">●</span> running</span>'
    if status in ("interrupted", "died") or (verdict is not None and verdict.exit_code == INTERRUPTED):
        died = " <small>the process died</small>" if status == "died" else ""
        return f'<span class="badge error"><span aria-hidden="true">◼</span> interrupted</span>{died}'
    return sign(None, "no verdict") if verdict is None else sign(Outcome(verdict.outcome))


def _progress(item: ShownRun) -> str:
    if item.status == "finished":
        return ""
    made, planned = item.source.index.count(item.row.no), sum(info.planned for info in item.row.suites)
    return progress(made, planned)


def progress(made: int, planned: int) -> str:
    return (
        f' <progress max="{max(planned, 1)}" value="{made}" aria-label="trials made"></progress>'
        f" <small>{made:,} of {counted(planned, 'trial')}</small>"
    )


def together(totals: Sequence[SuiteTotals] | None) -> Estimate | None:
    """The pass rate over all suites."""
    rates = [item.rate for item in totals or () if item.rate is not None]
    count = sum(rate.count for rate in rates)
    if not count:
        return None
    share = sum(rate.mean * rate.count for rate in rates) / count
    return Estimate(share, *wilson(share, count), count)


def rate_cell(rate: Estimate | None) -> str:
    if rate is None:
        return '<span class="quiet">–</span>'
    return f"<b>{rate.mean:.1%}</b> <small>[{rate.low:.0%}, {rate.high:.0%}]</small>{gauge(rate)}"


def cost_text(totals: Sequence[SuiteTotals] | None) -> str:
    costs = [item.cost_usd for item in totals or () if item.cost_usd is not None]
    return escape(money(sum(costs))) if costs else '<span class="quiet">–</span>'


def took(row: Run) -> str:
    if row.finished_at is None:
        return '<span class="quiet">–</span>'
    return duration(max(0.0, row.finished_at - row.started_at) * 1000)


def commit(git: GitState | None) -> str:
    if git is None or git.commit is None:
        return '<span class="quiet">–</span>'
    dirty = ' <small title="files differed from the commit">changed</small>' if git.dirty else ""
    branch = f" <small>{inline(git.branch, 60)}</small>" if git.branch else ""
    return f"{code(git.commit[:8])}{branch}{dirty}"


MOST_CASES = 1_000


def baselines_page(library: Library) -> str:
    out = StringIO()
    out.write('<h1 class="plain">Baselines</h1>\n')
    for named in library.baselines:
        cases = named.baseline.cases()
        out.write(f"<h2>{inline(str(named.path))} <small>{counted(len(cases), 'case')}</small></h2>\n")
        label = f"Cases of {inline(str(named.path))}"
        out.write(
            f'<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table class="list"><thead><tr>'
        )
        out.write('<th scope="col">Case</th><th scope="col">Suite</th><th scope="col">Agent</th>')
        out.write('<th scope="col">Passes</th><th scope="col" class="number">Trials</th>')
        out.write('<th scope="col" class="number">Runs</th></tr></thead>\n<tbody>\n')
        for case in cases[:MOST_CASES]:
            identity, trials = case.identity, 0 if case.record is None else case.record.trials
            out.write(
                f'<tr data-item><th scope="row">{inline(identity.case, 120)}</th><td>{inline(identity.suite, 120)}</td>'
                f'<td>{inline(identity.agent, 120)}</td><td class="rate-cell">{rate_cell(case.pass_rate)}</td>'
                f'<td class="number">{trials:,}</td><td class="number">{len(case.runs):,}</td></tr>\n'
            )
        out.write("</tbody></table></div>\n")
        if len(cases) > MOST_CASES:
            out.write(f'<p class="cut">And {counted(len(cases) - MOST_CASES, "more case")}.</p>\n')
    if not library.baselines:
        out.write('<p class="none">No baseline was named on the command line.</p>\n')
    return page("Baselines", out.getvalue())
