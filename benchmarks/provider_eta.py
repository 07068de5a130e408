"""How good the forecast of the progress bar is: records runs against the loopback provider, and draws them.

    python benchmarks/provider_eta.py record      # run 400 cases in each setting, and store when each trial ran
    python benchmarks/provider_eta.py draw        # draw docs/forecast.svg, and print the table

The recorded schedules are in `tests/reporting/terminal/recorded_schedules.json`; the tests of the forecast use them.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import proctor
from environments import ROOT
from proctor.reporting.terminal.eta import Forecast, RestEstimator
from provider import DRIVERS, running_provider, write_cases
from provider_schedule import SETTINGS

SCHEDULES = ROOT / "tests" / "reporting" / "terminal" / "recorded_schedules.json"
PICTURE = ROOT / "docs" / "forecast.svg"
CASES = 400

Schedule = list[tuple[float, float]]
"""When each trial started and ended, in seconds after the first one."""


class Recorder:
    """A listener that notes when each trial starts and ends."""

    def __init__(self) -> None:
        self._starts: dict[str, float] = {}
        self.trials: Schedule = []

    def started(self, run: object, planned: int, stored: int) -> None:
        self._begin = time.monotonic()

    def trial_started(self, case: proctor.Case, number: int) -> None:
        self._starts[case.id] = time.monotonic() - self._begin

    def trial_done(self, trial: proctor.Trial) -> None:
        self.trials.append((round(self._starts[trial.case.id], 3), round(time.monotonic() - self._begin, 3)))

    def finished(self, run: object, verdict: object) -> None:
        pass


def record(name: str) -> Schedule:
    """The schedule of one run in a setting."""
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder, running_provider(SETTINGS[name], CASES) as address:
        os.environ |= {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "loopback"}
        os.chdir(folder)
        rows = write_cases(Path(folder), CASES)
        suite = proctor.Suite("forecast", [proctor.Case(**row) for row in rows], evaluators=["ExactMatch"])
        proctor.run(suite, agent=f"{DRIVERS / 'provider_agent.py'}:answer", listener=recorder)
        os.chdir(ROOT)
    return sorted(recorder.trials)


@dataclass(frozen=True, slots=True)
class Point:
    """What was announced at a time of a run, and what was true."""

    time: float
    rest: float
    forecast: Forecast | None
    plain: float | None
    """What the time so far, divided by the finished trials, would have announced."""


def replay(schedule: Schedule, points: int = 120) -> Iterator[Point]:
    """What the bar announces during a recorded run."""
    estimator, end = RestEstimator(len(schedule)), max(end for _, end in schedule)
    events = sorted(
        [(start, 1, number) for number, (start, _) in enumerate(schedule)]
        + [(stop, 0, number) for number, (_, stop) in enumerate(schedule)]
    )
    finished = place = 0
    for step in range(points):
        now = end * step / points
        while place < len(events) and events[place][0] <= now:
            moment, is_start, number = events[place]
            (estimator.start if is_start else estimator.finish)(number, moment)
            finished += not is_start
            place += 1
        plain = now / finished * (len(schedule) - finished) if finished else None
        yield Point(now, end - now, estimator.forecast(now), plain)


WIDTH, HEIGHT, LEFT, TOP, GAP = 220, 150, 46, 40, 34
STYLE = (
    "text{font:12px sans-serif;fill:#555}.title{font-weight:bold;fill:#333}.axis{stroke:#999;fill:none}"
    ".true{stroke:#222;fill:none;stroke-width:1.5}.plain{stroke:#c2410c;fill:none;stroke-dasharray:3 3}"
    ".band{fill:#2563eb;fill-opacity:.35;stroke:#2563eb;stroke-width:1}.tail{fill:#e5e7eb}"
)


def draw(schedules: Mapping[str, Schedule]) -> str:
    """One panel for each setting: seconds left over the time of the run, as announced and as it turned out."""
    width, height = LEFT + 3 * (WIDTH + GAP), 2 * (HEIGHT + TOP + 30) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>{STYLE}</style><rect width='100%' height='100%' fill='#fff'/>",
    ]
    for number, (name, schedule) in enumerate(schedules.items()):
        x, y = LEFT + (number % 3) * (WIDTH + GAP), TOP + (number // 3) * (HEIGHT + TOP + 30)
        parts.append(f'<g transform="translate({x} {y})">{_panel(name, list(replay(schedule)))}</g>')
    parts.append(
        f'<g transform="translate({LEFT + 2 * (WIDTH + GAP)} {TOP + HEIGHT + TOP + 30})">{_legend()}</g></svg>'
    )
    return "\n".join(parts) + "\n"


def _panel(name: str, points: list[Point]) -> str:
    end = points[0].rest
    ceiling = 1.6 * end

    def at(time_: float, seconds: float) -> str:
        return f"{WIDTH * time_ / end:.1f},{HEIGHT * (1 - min(seconds, ceiling) / ceiling):.1f}"

    parts = [f'<text class="title" x="0" y="-12">{name}</text>']
    for kind, members in groupby(points, key=_kind):
        shown = [(point.time, point.forecast) for point in members if point.forecast is not None]
        if kind:
            low = [at(time_, 0.0 if kind == "tail" else item.low) for time_, item in shown]
            high = [at(time_, ceiling if kind == "tail" else max(item.high, item.low + 0.3)) for time_, item in shown]
            parts.append(f'<polygon class="{kind}" points="{" ".join([*low, *reversed(high)])}"/>')
    plain = " ".join(at(point.time, point.plain) for point in points if point.plain is not None)
    parts.append(f'<polyline class="plain" points="{plain}"/>')
    parts.append(f'<polyline class="true" points="{at(0, end)} {at(end, 0)}"/>')
    parts.append(f'<polyline class="axis" points="0,0 0,{HEIGHT} {WIDTH},{HEIGHT}"/>')
    parts.append(f'<text x="0" y="{HEIGHT + 16}">0</text>')
    parts.append(f'<text x="{WIDTH}" y="{HEIGHT + 16}" text-anchor="end">{end:.0f} s</text>')
    parts.append(f'<text x="-6" y="{HEIGHT - HEIGHT / 1.6 + 4}" text-anchor="end">{end:.0f} s</text>')
    return "".join(parts)


def _kind(point: Point) -> str:
    """What is drawn at a time: a range, that only slow trials are left, or nothing."""
    return "" if point.forecast is None else "tail" if point.forecast.is_tail else "band"


def _legend() -> str:
    rows = (
        ('<polyline class="true" points="0,6 26,6"/>', "seconds left"),
        ('<rect class="band" width="26" height="12"/>', "announced"),
        ('<rect class="tail" width="26" height="12"/>', "names the trials that are left"),
        ('<polyline class="plain" points="0,6 26,6"/>', "time so far / finished trials"),
    )
    return "".join(
        f'<g transform="translate(0 {24 * number})">{mark}<text x="34" y="11">{text}</text></g>'
        for number, (mark, text) in enumerate(rows)
    )


def table(schedules: Mapping[str, Schedule]) -> str:
    """How far the announced time is off, while there is one."""
    lines = [
        "| setting | run | shown from | rest in the range ± 20 % ± 1 s | middle off (median) | time / finished off |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, schedule in schedules.items():
        points = list(replay(schedule))
        shown = [(point, point.forecast) for point in points if point.forecast and not point.forecast.is_tail]
        first = next(point.time for point in points if point.forecast)
        hits = [item.low * 0.8 - 1 <= point.rest <= item.high * 1.2 + 1 for point, item in shown]
        off = statistics.median(abs((item.low + item.high) / 2 - point.rest) for point, item in shown)
        plain = statistics.median(abs(point.plain - point.rest) for point, _ in shown if point.plain is not None)
        share = sum(hits) / len(hits)
        end = points[0].rest
        lines.append(f"| {name} | {end:.0f} s | {first:.1f} s | {share:.0%} | {off:.1f} s | {plain:.1f} s |")
    return "\n".join(lines)


def _record_apart(name: str) -> Schedule:
    """Record a run in its own process: the client takes the address of the provider when it is loaded."""
    output = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True).stdout
    schedule: Schedule = json.loads(output)
    return schedule


def main(what: str) -> None:
    if what in SETTINGS:
        print(json.dumps(record(what)))
        return
    if what == "record":
        recorded = {name: _record_apart(name) for name in SETTINGS}
        SCHEDULES.write_text(json.dumps(recorded, separators=(",", ":")) + "\n", encoding="utf-8")
    schedules = json.loads(SCHEDULES.read_text(encoding="utf-8"))
    PICTURE.write_text(draw(schedules), encoding="utf-8")
    print(table(schedules))


if __name__ == "__main__":
    main(*sys.argv[1:])
