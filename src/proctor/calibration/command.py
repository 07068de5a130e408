"""`proctor calibrate JUDGE ROWS`: how well a judge agrees with people."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from proctor.base.event_loops import run_sync
from proctor.calibration.labelled_rows import implied_evaluator, read_rows
from proctor.calibration.measurement import CalibrationOptions, CalibrationProgress, calibrate
from proctor.calibration.report import calibration_data, calibration_lines
from proctor.cli.help_pages import DocumentedCommand
from proctor.cli.options import command_configuration, json_option, parse_evaluators, store_option
from proctor.cli.output import say, say_json
from proctor.reporting.terminal.screen import is_terminal
from proctor.reporting.wording import duration, plural

SECONDS_BETWEEN_LINES = 10.0
"""Seconds between two lines on progress where there is no terminal."""


@click.command(
    "calibrate", cls=DocumentedCommand, examples=("proctor calibrate openai:gpt-5-mini labels.jsonl -e Faithfulness",)
)
@click.argument("judge", metavar="JUDGE")
@click.argument("rows", metavar="ROWS.jsonl", type=click.Path(path_type=Path))
@click.option("-e", "--evaluator", metavar="NAME", help="What is judged (default: Faithfulness or Factuality).")
@click.option("--positive", metavar="LABEL", help="The label of good answers, where it is not a usual word.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only so many rows, chosen by their ids.")
@click.option("--retest", type=click.IntRange(min=0), default=20, metavar="N", help="Ask so many twice (default: 20).")
@click.option("-j", "--parallel", type=click.IntRange(min=1), default=8, metavar="N", help="Rows at once (default: 8).")
@json_option
@store_option
def command(
    judge: str,
    rows: Path,
    evaluator: str | None,
    positive: str | None,
    limit: int | None,
    retest: int,
    parallel: int,
    as_json: bool,
    store: str | None,
) -> int:
    """Compare the verdicts of JUDGE with those of people, and keep the result for the reports of later runs.

    Each line of ROWS.jsonl is an object with an answer, a label (such as supported or unsupported, correct or
    incorrect, yes or no), and what the judge is to hold it against: context, or reference; and, if there are, input and
    id. A judge with options is written as a JSON object, as a suite has it. Exits with 4 if no row could be judged.
    """
    data = read_rows(rows, positive, limit)
    spec = implied_evaluator(data.rows) if evaluator is None else parse_evaluators((evaluator,))[0]
    folder = command_configuration().store(store)
    options = CalibrationOptions(parallel, retest, _Progress())
    measured = run_sync(calibrate(judge, data, spec, folder, options))
    if as_json:
        say_json("calibration", calibration_data(measured, data.unlabelled))
    else:
        for line in calibration_lines(measured, data.unlabelled):
            say(line)
    if not measured.rows:
        return 4
    kept = f"kept in {folder}: runs that are judged like this show a corrected pass rate beside the one that was seen"
    say(kept if as_json else f"\n{kept}", err=as_json)
    return 0


class _Progress:
    """Tells how far a calibration has come: on a terminal in one line that changes, else in a line now and then."""

    def __init__(self) -> None:
        self._live = is_terminal(sys.stderr)
        self._began = self._told_at = time.monotonic()
        self._again = False
        self._width = 0

    def __call__(self, step: CalibrationProgress) -> None:
        now = time.monotonic()
        if step.again != self._again:
            self._again, self._began = step.again, now
        is_last = step.done == step.planned
        if not self._live and (is_last or now - self._told_at < SECONDS_BETWEEN_LINES):
            return
        self._told_at = now
        line = progress_text(step, now - self._began)
        shown = f"\r{line:<{self._width}}" if self._live else line
        self._width = len(line)
        sys.stderr.write(shown + ("\n" if is_last or not self._live else ""))
        sys.stderr.flush()


def progress_text(step: CalibrationProgress, seconds: float) -> str:
    """`12 of 60 rows, 24 calls (3 from cache), about 1m 20s left`."""
    rows = plural(step.planned, "row")
    parts = [f"{step.done:,} of {rows}{' asked again' if step.again else ''}"]
    if step.calls or step.cached:
        kept = f" ({step.cached:,} from cache)" if step.cached else ""
        parts.append(plural(step.calls, "call") + kept)
    left = seconds / step.done * (step.planned - step.done)
    if left >= 1:
        parts.append(f"about {duration(left * 1000)} left")
    return ", ".join(parts)
