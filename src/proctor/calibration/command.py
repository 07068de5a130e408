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
from proctor.results.judge_calibration import VALID_DAYS

SECONDS_BETWEEN_LINES = 10.0
"""Seconds between two progress lines if there is no terminal."""


@click.command(
    "calibrate",
    cls=DocumentedCommand,
    examples=(
        "proctor calibrate openai:gpt-5-mini labels.jsonl -e Faithfulness",
        """proctor calibrate openai:gpt-5-mini labels.jsonl -e 'LLMJudge={"rubric": "The answer is polite."}'""",
    ),
)
@click.argument("judge", metavar="JUDGE")
@click.argument("rows", metavar="ROWS.jsonl", type=click.Path(path_type=Path))
@click.option(
    "-e",
    "--evaluator",
    metavar="NAME[=JSON]",
    help="Evaluator to calibrate, with its arguments (default: Faithfulness or Factuality).",
)
@click.option(
    "--positive",
    metavar="LABEL",
    help="Label that means a good answer, if it is not a common word like yes or correct.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Use only N rows, chosen by their ids.")
@click.option("--retest", type=click.IntRange(min=0), default=20, metavar="N", help="Judge N rows twice (default: 20).")
@click.option(
    "-j",
    "--parallel",
    type=click.IntRange(min=1),
    default=8,
    metavar="N",
    help="Rows to judge in parallel (default: 8).",
)
@click.option(
    "--valid-days",
    type=click.FloatRange(min=0, min_open=True),
    default=VALID_DAYS,
    metavar="N",
    help=f"Days for which reports use the result (default: {VALID_DAYS}): models change behind their names.",
)
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
    valid_days: float,
    as_json: bool,
    store: str | None,
) -> int:
    """Measure how well JUDGE agrees with human labels, and save the result for the reports of later runs.

    Each line of ROWS.jsonl is a JSON object with answer, label (such as supported or unsupported, correct or incorrect,
    yes or no), and context or reference to compare the answer with. Input and id are optional. Write a judge with
    options as a JSON object, as in a suite. Exits with 4 if no row could be judged.
    """
    data = read_rows(rows, positive, limit)
    spec = implied_evaluator(data.rows) if evaluator is None else parse_evaluators((evaluator,))[0]
    folder = command_configuration().store(store)
    options = CalibrationOptions(parallel, retest, valid_days, _Progress())
    measured = run_sync(calibrate(judge, data, spec, folder, options))
    if as_json:
        say_json("calibration", calibration_data(measured, data.unlabelled))
    else:
        for line in calibration_lines(measured, data.unlabelled):
            say(line)
    if not measured.rows:
        return 4
    saved = (
        f"saved to {folder}; for {valid_days:g} days, reports of runs with this judge and evaluator also show a "
        "corrected pass rate"
    )
    say(saved if as_json else f"\n{saved}", err=as_json)
    return 0


class _Progress:
    """Prints progress: on a terminal in one line that is updated, otherwise a line every few seconds."""

    def __init__(self) -> None:
        self._live = is_terminal(sys.stderr)
        self._started_at = self._printed_at = time.monotonic()
        self._is_retest = False
        self._width = 0

    def __call__(self, step: CalibrationProgress) -> None:
        now = time.monotonic()
        if step.is_retest != self._is_retest:
            self._is_retest = step.is_retest
            self._started_at = now
        is_last = step.done == step.planned
        if not self._live and (is_last or now - self._printed_at < SECONDS_BETWEEN_LINES):
            return
        self._printed_at = now
        line = progress_text(step, now - self._started_at)
        text = f"\r{line:<{self._width}}" if self._live else line
        self._width = len(line)
        sys.stderr.write(text + ("\n" if is_last or not self._live else ""))
        sys.stderr.flush()


def progress_text(step: CalibrationProgress, seconds: float) -> str:
    """`12 of 60 rows, 24 calls (3 from cache), about 1m 20s left`."""
    rows = plural(step.planned, "row")
    parts = [f"{step.done:,} of {rows}{' judged again' if step.is_retest else ''}"]
    if step.calls or step.cached:
        cached = f" ({step.cached:,} from cache)" if step.cached else ""
        parts.append(plural(step.calls, "call") + cached)
    left = seconds / step.done * (step.planned - step.done)
    if left >= 1:
        parts.append(f"about {duration(left * 1000)} left")
    return ", ".join(parts)
