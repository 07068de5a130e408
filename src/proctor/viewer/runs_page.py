"""The list of runs, the latest first, with the trend of each suite; and the page of baselines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.reporting.html.run_view import agents_text
from proctor.reporting.plots import LinePlot, PlotPoint, line_plot
from proctor.reporting.wording import duration, money, pass_rate_text
from proctor.results.run import Run, RunStatus
from proctor.results.score import Outcome
from proctor.results.statistics import Estimate, share_of
from proctor.viewer.cases import RunTotals, SuiteTotals
from proctor.viewer.events import live_address
from proctor.viewer.pages import Page, PageRoute, Visit, run_address, suites_text
from proctor.viewer.sources import NamedBaseline, Source

RUNS_PER_PAGE = 40
"""Runs on one page, and in a plot."""
TOTALS_SECONDS = 0.4
"""Time to add up runs that are not in the cache; the next view of the page continues from there."""
MAX_TRENDS = 6


@dataclass(frozen=True, slots=True)
class RunState:
    """The verdict of a run, or that it is running, was interrupted or died."""

    outcome: Outcome | None = None
    is_running: bool = False
    is_interrupted: bool = False
    has_died: bool = False

    @property
    def word(self) -> str:
        """The status of a run without a verdict, in the word of `proctor runs`."""
        return "running" if self.is_running else "died" if self.has_died else "interrupted"


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How many trials of an unfinished run are done."""

    done: int
    planned: int


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in the list."""

    row: Run
    href: str
    state: RunState
    progress: RunProgress | None
    suites: str
    agents: str
    totals: RunTotals | None
    """`None` if there was no time to add its trials up."""
    rate: Estimate | None
    cases: int
    cost: str
    time: str


@dataclass(frozen=True, slots=True)
class SourceView:
    """The runs of one store."""

    label: str
    runs: Sequence[ListedRun]
    trends: Sequence[tuple[str, Sequence[LinePlot]]]
    """By suite."""
    has_commits: bool
    has_costs: bool
    earlier: str
    """The address of earlier runs, if there are any."""


def runs_page(visit: Visit) -> Page:
    """The latest runs of every source, or those of one source before a certain run."""
    sources = visit.sources
    live = live_address(sources)
    before, only = visit.number("before"), visit.number("source")
    until = time.monotonic() + TOTALS_SECONDS
    views = [_source_view(source, at, before, until) for at, source in enumerate(sources.all) if only in (None, at)]
    values = {
        "sources": views,
        "has_labels": len(sources.all) > 1,
        "is_empty": not any(source.count_runs() for source in sources.all) and not sources.baselines,
        "has_baselines": bool(sources.baselines),
    }
    return Page("runs.html", "Runs", values, live=live)


def _source_view(source: Source, at: int, before: int | None, until: float) -> SourceView:
    rows = source.page(before, RUNS_PER_PAGE)
    runs = [_listed_run(source, row, until) for row in rows]
    earlier = f"/?before={rows[-1].no}&source={at}" if len(rows) == RUNS_PER_PAGE and rows[-1].no > 1 else ""
    return SourceView(
        label=source.label,
        runs=runs,
        trends=_trends(runs) if before is None else (),
        has_commits=any(item.row.git is not None for item in runs),
        has_costs=any(item.cost for item in runs),
        earlier=earlier,
    )


def _listed_run(source: Source, row: Run, until: float) -> ListedRun:
    totals = source.totals(row) if source.has_totals(row) or time.monotonic() < until else None
    progress = None if row.status is RunStatus.FINISHED else run_progress(source, row)
    return ListedRun(
        row=row,
        href=run_address(row.id),
        state=run_state(row),
        progress=progress,
        suites=suites_text(row.suites),
        agents=agents_text(row.suites),
        totals=totals,
        rate=overall_pass_rate(totals),
        cases=0 if totals is None else len(totals.cases),
        cost=cost_text(totals),
        time=time_text(row),
    )


def run_state(row: Run) -> RunState:
    """The state of a run, from its status and verdict."""
    verdict = row.stored_verdict
    if row.status is RunStatus.RUNNING:
        return RunState(is_running=True)
    if row.interrupted:
        return RunState(is_interrupted=True, has_died=row.status is RunStatus.DIED)
    return RunState(None if verdict is None else verdict.outcome)


def run_progress(source: Source, row: Run) -> RunProgress:
    return RunProgress(source.count_trials(row), sum(info.planned for info in row.suites))


def overall_pass_rate(totals: RunTotals | None) -> Estimate | None:
    """The pass rate over all suites."""
    rates = [item.rate for item in (totals.suites.values() if totals else ()) if item.rate is not None]
    count = sum(rate.count for rate in rates)
    return share_of(round(sum(rate.mean * rate.count for rate in rates)), count) if count else None


def cost_text(totals: RunTotals | None) -> str:
    costs = [item.cost_usd for item in (totals.suites.values() if totals else ()) if item.cost_usd is not None]
    return money(sum(costs)) if costs else ""


def time_text(row: Run) -> str:
    return "" if row.finished_at is None else duration(max(0.0, row.finished_at - row.started_at) * 1000)


def _trends(runs: Sequence[ListedRun]) -> list[tuple[str, list[LinePlot]]]:
    """Plots of pass rate, cost and time over runs, for each suite that ran more than once."""
    names = list(dict.fromkeys(info.name for item in runs for info in item.row.suites))
    trends = []
    for name in names:
        known = [(item, item.totals.suites) for item in reversed(runs) if item.totals is not None]
        items = [(item, suites[name]) for item, suites in known if name in suites]
        if len(items) < 2:
            continue
        plots = [line_plot("Pass rate", _rate_points(items), lambda value: f"{value:.0%}", share=True)]
        if any(totals.cost_usd is not None for _, totals in items):
            plots.append(line_plot("Cost per trial", _cost_points(items), money))
        times = [_point(item, totals.mean_ms, duration(totals.mean_ms)) for item, totals in items]
        trends.append((name, [*plots, line_plot("Time per trial", times, duration)]))
    return trends[:MAX_TRENDS]


def _rate_points(items: Sequence[tuple[ListedRun, SuiteTotals]]) -> list[PlotPoint]:
    points = []
    for item, totals in items:
        if (rate := totals.rate) is not None:
            points.append(_point(item, rate.mean, pass_rate_text(rate), rate.low, rate.high))
    return points


def _cost_points(items: Sequence[tuple[ListedRun, SuiteTotals]]) -> list[PlotPoint]:
    costs = [(item, t.cost_usd / max(1, t.trials)) for item, t in items if t.cost_usd is not None]
    return [_point(item, cost, money(cost)) for item, cost in costs]


def _point(item: ListedRun, value: float, text: str, low: float | None = None, high: float | None = None) -> PlotPoint:
    verdict = item.row.stored_verdict
    label = f"{text} · {item.row.name or item.row.id}"
    return PlotPoint(value, label, low, high, item.href, "" if verdict is None else verdict.outcome)


MAX_BASELINE_CASES = 1_000


@dataclass(frozen=True, slots=True)
class BaselineView:
    """A baseline file, case by case."""

    name: str
    count: int
    rows: Sequence[tuple[str, str, str, Estimate | None, int]]
    """Case, suite, agent, pass rate, and how many runs it comes from."""


def baselines_page(visit: Visit) -> Page:
    baselines = [_baseline_view(named) for named in visit.sources.baselines]
    return Page("baselines.html", "Baselines", {"baselines": baselines})


def _baseline_view(named: NamedBaseline) -> BaselineView:
    cases = named.baseline.cases()
    rows = [
        (case.identity.case, case.identity.suite, case.identity.agent, case.pass_rate, len(case.runs))
        for case in cases[:MAX_BASELINE_CASES]
    ]
    return BaselineView(str(named.path), len(cases), rows)


PAGES = (
    PageRoute("/", runs_page, "Runs", menu_place=1),
    PageRoute("/baselines", baselines_page),
)
