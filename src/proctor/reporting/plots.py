"""Plots: the distribution of times and scores in a run, and the trend of a suite over runs.

Coordinates are computed here. `templates/plots.html` draws them as SVG; the terminal shows sparklines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from proctor.reporting.wording import duration
from proctor.results.run import Run
from proctor.results.trial import TrialSummary

WIDTH, HEIGHT = 320, 92
LEFT, RIGHT, TOP, BOTTOM = 4, 8, 8, 8
BAR_COUNT = 20
MAX_POINTS = 60


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """One run in a plot."""

    value: float
    label: str
    """The text of its tooltip."""
    low: float | None = None
    high: float | None = None
    href: str = ""
    kind: str = ""
    """The outcome, which decides the color."""


@dataclass(frozen=True, slots=True)
class PlacedPoint:
    """A point with its coordinates in the drawing."""

    x: str
    y: str
    diamond: str
    """The path of a diamond, which marks runs that did not pass."""
    label: str
    href: str
    kind: str


@dataclass(frozen=True, slots=True)
class LinePlot:
    """A line over runs, ready to be drawn."""

    title: str
    points: Sequence[PlacedPoint]
    label: str = ""
    """A description for screen readers."""
    latest: str = ""
    low: str = ""
    high: str = ""
    rules: Sequence[str] = ()
    """The y coordinates of horizontal grid lines."""
    band: str = ""
    line: str = ""
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def has_links(self) -> bool:
        return any(point.href for point in self.points)


def line_plot(
    title: str, points: Sequence[PlotPoint], text: Callable[[float], str], *, share: bool = False
) -> LinePlot:
    """A line over runs, the latest at the right; `share` draws values from 0 to 1 with their intervals as a band."""
    shown = [point for point in points if math.isfinite(point.value)][-MAX_POINTS:]
    if not shown:
        return LinePlot(title, ())
    top = 1.0 if share else max(point.value for point in shown) * 1.1 or 1.0
    placed = [_place_point(point, _x(at, len(shown)), _y(point.value / top)) for at, point in enumerate(shown)]
    latest, high = text(shown[-1].value), text(top if share else top / 1.1)
    return LinePlot(
        title=title,
        points=placed,
        label=f"{title} over {len(shown)} runs, now {latest}, between 0 and {high}",
        latest=latest,
        low=text(0.0),
        high=high,
        rules=[f"{_y(part):.1f}" for part in (0.0, 0.5, 1.0)],
        band=_band(shown, top),
        line=" ".join(f"{point.x},{point.y}" for point in placed),
    )


def _x(at: int, count: int) -> float:
    room = WIDTH - LEFT - RIGHT
    return LEFT + room if count == 1 else LEFT + room * at / (count - 1)


def _y(share: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(1.0, max(0.0, share)))


def _band(points: Sequence[PlotPoint], top: float) -> str:
    """The corners of the area that the intervals cover."""
    intervals = [(at, point.low, point.high) for at, point in enumerate(points)]
    ends = [(at, low, high) for at, low, high in intervals if low is not None and high is not None]
    if len(ends) < 2:
        return ""
    upper = [f"{_x(at, len(points)):.1f},{_y(high / top):.1f}" for at, _, high in ends]
    lower = [f"{_x(at, len(points)):.1f},{_y(low / top):.1f}" for at, low, _ in reversed(ends)]
    return " ".join(upper + lower)


def _place_point(point: PlotPoint, x: float, y: float) -> PlacedPoint:
    diamond = f"M{x:.1f} {y - 5.5:.1f}l5.5 5.5l-5.5 5.5l-5.5 -5.5z"
    return PlacedPoint(f"{x:.1f}", f"{y:.1f}", diamond, point.label, point.href, point.kind)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values lie in each of equally wide bins between `low` and `high`."""

    low: float
    high: float
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.counts)


def distribution(values: Sequence[float], low: float | None = None, high: float | None = None) -> Histogram | None:
    """The histogram of the finite values, or `None` if there are none."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    start, end = min(finite) if low is None else low, max(finite) if high is None else high
    width = (end - start) / BAR_COUNT or 1.0
    if not math.isfinite(width):
        return None
    counts = [0] * BAR_COUNT
    for value in finite:
        counts[min(BAR_COUNT - 1, max(0, int((value - start) / width)))] += 1
    return Histogram(start, end, tuple(counts))


@dataclass(frozen=True, slots=True)
class Bar:
    """One bin of a histogram, with its coordinates in the drawing."""

    x: str
    y: str
    width: str
    height: str
    label: str


@dataclass(frozen=True, slots=True)
class BarPlot:
    """A distribution, ready to be drawn."""

    title: str
    label: str
    """A description for screen readers."""
    low: str
    high: str
    bars: Sequence[Bar]
    base: int = HEIGHT - BOTTOM
    """The y coordinate of the line below the bars."""
    width: int = WIDTH
    height: int = HEIGHT


def bar_plot(title: str, histogram: Histogram, text: Callable[[float], str]) -> BarPlot:
    """A histogram as bars; `text` writes its values."""
    step = WIDTH / len(histogram.counts)
    largest = max(histogram.counts)
    width = (histogram.high - histogram.low) / len(histogram.counts)
    bars = []
    for at, count in enumerate(histogram.counts):
        if count:
            height = max(2.0, (HEIGHT - TOP - BOTTOM) * count / largest)
            start = histogram.low + at * width
            label = f"{count:,} from {text(start)} to {text(start + width)}"
            x, y = f"{at * step + 1:.1f}", f"{HEIGHT - BOTTOM - height:.1f}"
            bars.append(Bar(x, y, f"{step - 2:.1f}", f"{height:.1f}", label))
    low, high = text(histogram.low), text(histogram.high)
    return BarPlot(title, f"{title}: {histogram.total:,} values between {low} and {high}", low, high, bars)


DURATIONS_TITLE = "Time per trial"
BLOCKS, ASCII_BLOCKS = "▁▂▃▄▅▆▇█", "_.-=+*#@"
MAX_EVALUATORS = 12


def sparkline(values: Sequence[float], low: float, high: float, *, unicode: bool) -> str:
    """Values as characters of different height, for a line of text."""
    blocks = BLOCKS if unicode else ASCII_BLOCKS
    width = (high - low) or 1.0
    return "".join(blocks[min(len(blocks) - 1, max(0, int((value - low) / width * len(blocks))))] for value in values)


def histograms(summaries: Sequence[TrialSummary]) -> list[tuple[str, Histogram]]:
    """The histogram of trial times, and of the scores of each evaluator that gives more than 0 and 1."""
    times = distribution([summary.duration_ms for summary in summaries])
    plots = [(DURATIONS_TITLE, times)] if times is not None and times.high > times.low else []
    values: dict[str, list[float]] = {}
    for summary in summaries:
        for row in summary.scores:
            if row.value is not None:
                values.setdefault(row.evaluator, []).append(row.value)
    for name, scores in values.items():
        if any(0.0 < value < 1.0 for value in scores) and (whole := distribution(scores, 0.0, 1.0)) is not None:
            plots.append((name, whole))
    return plots[: MAX_EVALUATORS + 1]


def distribution_lines(run: Run, *, unicode: bool) -> list[tuple[str, str]]:
    """Name and sparkline of each distribution, for the terminal."""
    lines = []
    for name, histogram in histograms(run.summaries):
        line = sparkline(histogram.counts, 0, max(histogram.counts), unicode=unicode)
        lines.append((name, f"{_text(name, histogram.low)} {line} {_text(name, histogram.high)}"))
    return lines


def distribution_plots(summaries: Sequence[TrialSummary]) -> list[BarPlot]:
    """A bar plot of each distribution."""
    return [bar_plot(name, histogram, partial(_text, name)) for name, histogram in histograms(summaries)]


def _text(name: str, value: float) -> str:
    return duration(value) if name == DURATIONS_TITLE else f"{value:g}"
