"""Plots of a run in every report: how times and scores are distributed, and how a suite went from run to run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TextIO

from proctor.base.errors import ProctorError
from proctor.reporting.html.escaping import escape, inline
from proctor.reporting.wording import duration
from proctor.results.history import SuiteRun, runs_of
from proctor.results.run import Run, TrialSummary
from proctor.results.statistics import wilson
from proctor.results.store.store import Store

WIDTH, HEIGHT = 320, 92
LEFT, RIGHT, TOP, BOTTOM = 4, 8, 8, 8
BARS = 20
MOST_POINTS = 60


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """One run in a plot."""

    value: float
    label: str
    """What is said of the point where it is looked at."""
    low: float | None = None
    high: float | None = None
    href: str = ""
    kind: str = ""
    """The outcome, which gives the colour."""


def line_plot(title: str, points: Sequence[PlotPoint], text: Callable[[float], str], *, share: bool = False) -> str:
    """A line over runs, the latest at the right; of a share, the scale is 0 to 1 and the band its interval."""
    shown = [point for point in points if math.isfinite(point.value)][-MOST_POINTS:]
    if not shown:
        return f'<figure class="plot"><figcaption>{escape(title)} <b>not known</b></figcaption></figure>\n'
    top = 1.0 if share else max(point.value for point in shown) * 1.1 or 1.0
    places = [(_x(at, len(shown)), _y(point.value / top)) for at, point in enumerate(shown)]
    band = _band(shown, top)
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(_dot(point, *place) for point, place in zip(shown, places, strict=True))
    grid = "".join(
        f'<line class="rule" x1="0" x2="{WIDTH}" y1="{_y(part):.1f}" y2="{_y(part):.1f}"/>' for part in (0.0, 0.5, 1.0)
    )
    high = text(top if share else top / 1.1)
    role = "group" if any(point.href for point in shown) else "img"
    told = f"{title} over {len(shown)} runs, now {text(shown[-1].value)}, between 0 and {high}"
    return (
        f'<figure class="plot"><figcaption>{escape(title)} <b>{escape(text(shown[-1].value))}</b></figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="{role}" aria-label="{inline(told)}">{grid}{band}'
        f'<polyline class="line" points="{line}"/>{dots}</svg>'
        f'<p class="axis"><span>{escape(text(0.0))} to {escape(high)}</span><span>latest →</span></p></figure>\n'
    )


def _x(at: int, count: int) -> float:
    room = WIDTH - LEFT - RIGHT
    return LEFT + room if count == 1 else LEFT + room * at / (count - 1)


def _y(share: float) -> float:
    kept = min(1.0, max(0.0, share))
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - kept)


def _band(points: Sequence[PlotPoint], top: float) -> str:
    known = [(at, point.low, point.high) for at, point in enumerate(points)]
    ends = [(at, low, high) for at, low, high in known if low is not None and high is not None]
    if len(ends) < 2:
        return ""
    upper = [f"{_x(at, len(points)):.1f},{_y(high / top):.1f}" for at, _, high in ends]
    lower = [f"{_x(at, len(points)):.1f},{_y(low / top):.1f}" for at, low, _ in reversed(ends)]
    return f'<polygon class="band" points="{" ".join(upper + lower)}"/>'


def _dot(point: PlotPoint, x: float, y: float) -> str:
    label = inline(point.label)
    kind = f" {point.kind}" if point.kind else ""
    inside = f'class="point{kind}"><title>{label}</title>'
    mark = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {inside}</circle>'
    if point.kind and point.kind != "passed":  # another shape as well as another colour
        mark = f'<path d="M{x:.1f} {y - 5.5:.1f}l5.5 5.5l-5.5 5.5l-5.5 -5.5z" {inside}</path>'
    return f'<a href="{escape(point.href)}" aria-label="{label}">{mark}</a>' if point.href else mark


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values lie in each of equal parts between two ends."""

    low: float
    high: float
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.counts)


def distribution(values: Sequence[float], low: float | None = None, high: float | None = None) -> Histogram | None:
    """The values in parts of equal width; `None` of no values."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return None
    least, most = min(known) if low is None else low, max(known) if high is None else high
    width = (most - least) / BARS or 1.0
    if not math.isfinite(width):
        return None
    counts = [0] * BARS
    for value in known:
        counts[min(BARS - 1, max(0, int((value - least) / width)))] += 1
    return Histogram(least, most, tuple(counts))


def bar_plot(title: str, found: Histogram | None, text: Callable[[float], str]) -> str:
    """How values are distributed."""
    if found is None or not found.total:
        return ""
    step = WIDTH / len(found.counts)
    most = max(found.counts)
    width = (found.high - found.low) / len(found.counts)
    bars = []
    for at, count in enumerate(found.counts):
        if count:
            tall = max(2.0, (HEIGHT - TOP - BOTTOM) * count / most)
            start = found.low + at * width
            told = inline(f"{count:,} from {text(start)} to {text(start + width)}")
            bars.append(
                f'<rect class="bar" x="{at * step + 1:.1f}" y="{HEIGHT - BOTTOM - tall:.1f}" '
                f'width="{step - 2:.1f}" height="{tall:.1f}"><title>{told}</title></rect>'
            )
    told = f"{title}: {found.total:,} values between {text(found.low)} and {text(found.high)}"
    rule = f'<line class="rule" x1="0" x2="{WIDTH}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"/>'
    return (
        f'<figure class="plot"><figcaption>{inline(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{inline(told)}">{rule}{"".join(bars)}</svg>'
        f'<p class="axis"><span>{escape(text(found.low))}</span><span>{escape(text(found.high))}</span></p></figure>\n'
    )


TIMES = "Time of a trial"
BLOCKS, ASCII_BLOCKS = "▁▂▃▄▅▆▇█", "_.-=+*#@"
MOST_RUNS = 20
MOST_TRIALS = 5_000
"""A run with more is not read only to draw where it came from."""
MOST_EVALUATORS = 12


def sparkline(values: Sequence[float], low: float, high: float, *, unicode: bool) -> str:
    """Values as blocks of different height, for a line of text."""
    blocks = BLOCKS if unicode else ASCII_BLOCKS
    width = (high - low) or 1.0
    return "".join(blocks[min(len(blocks) - 1, max(0, int((value - low) / width * len(blocks))))] for value in values)


def histograms(summaries: Sequence[TrialSummary]) -> list[tuple[str, Histogram]]:
    """The times of trials, and the scores of each evaluator that gives more than 0 and 1."""
    times = distribution([summary.duration_ms for summary in summaries])
    found = [(TIMES, times)] if times is not None and times.high > times.low else []
    values: dict[str, list[float]] = {}
    for summary in summaries:
        for row in summary.scores:
            if row.value is not None:
                values.setdefault(row.evaluator, []).append(row.value)
    for name, scores in values.items():
        if any(0.0 < value < 1.0 for value in scores) and (whole := distribution(scores, 0.0, 1.0)) is not None:
            found.append((name, whole))
    return found[: MOST_EVALUATORS + 1]


def distribution_lines(run: Run, *, unicode: bool) -> list[tuple[str, str]]:
    """Name and picture of each distribution, for the terminal."""
    lines = []
    for name, found in histograms(run.summaries):
        picture = sparkline(found.counts, 0, max(found.counts), unicode=unicode)
        lines.append((name, f"{_text(name, found.low)} {picture} {_text(name, found.high)}"))
    return lines


def write_distributions(run: Run, out: TextIO) -> None:
    """The section of the HTML report; nothing where there is nothing to see."""
    plots = [bar_plot(name, found, partial(_text, name)) for name, found in histograms(run.summaries)]
    plots += [_trend(name, runs) for name, runs in _histories(run)]
    if plots:
        out.write('<section id="distributions">\n<h2>Distributions</h2>\n<div class="plots">\n')
        out.write("".join(plots) + "</div>\n</section>\n")


def _text(name: str, value: float) -> str:
    return duration(value) if name == TIMES else f"{value:g}"


def _histories(run: Run) -> list[tuple[str, list[SuiteRun]]]:
    """The runs of each suite up to this one, the earliest first; none where the store cannot be read."""
    if run.store is None or not Path(run.store).is_dir() or len(run.summaries) > MOST_TRIALS:
        return []
    found = []
    try:
        with closing(Store(Path(run.store), create=False)) as store:
            for info in run.suites[:MOST_EVALUATORS]:
                runs = (item for item in runs_of(store, info.name) if item.row.started_at <= run.started_at + 1)
                latest = [item for item in islice(runs, MOST_RUNS) if item.trials <= MOST_TRIALS]
                if len(latest) > 1:
                    found.append((info.name, latest[::-1]))
    except ProctorError:
        return []
    return found


def _trend(name: str, runs: Sequence[SuiteRun]) -> str:
    points = []
    for item in runs:
        if item.pass_rate is not None:
            low, high = wilson(item.pass_rate, item.cases)
            label = f"{item.pass_rate:.0%} [{low:.0%}, {high:.0%}] · {item.row.name or item.row.id}"
            points.append(PlotPoint(item.pass_rate, label, low, high, kind=item.outcome.value))
    return line_plot(f"Pass rate of {name[:60]}", points, lambda value: f"{value:.0%}", share=True)
