"""Small plots as SVG that needs no script: a figure over runs with its interval, and how values are distributed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from proctor.base.records import record
from proctor.reporting.html.escaping import escape, inline

WIDTH, HEIGHT = 320, 92
LEFT, RIGHT, TOP, BOTTOM = 4, 8, 8, 8
BARS = 20
MOST_POINTS = 60


@record
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


@record
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
