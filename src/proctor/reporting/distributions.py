"""How times and scores of a run are distributed, and how a suite went from run to run: as plots in every report."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TextIO

from proctor.base.errors import ProctorError
from proctor.reporting.html.plots import Histogram, PlotPoint, bar_plot, distribution, line_plot
from proctor.reporting.wording import duration
from proctor.results.history import SuiteRun, runs_of
from proctor.results.run import Run, TrialSummary
from proctor.results.statistics import wilson

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
    from proctor.results.store import Store

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
