"""`proctor calibrate JUDGE ROWS`: how well a judge agrees with people."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from proctor.base.errors import UsageError
from proctor.base.json_data import Json
from proctor.base.threads import run_sync
from proctor.cli.configuration import command_configuration
from proctor.cli.options_and_output import json_option, parse_evaluators, say, say_json, store_option
from proctor.reporting.calibration_report import calibration_data, calibration_lines
from proctor.reporting.terminal.screen import is_terminal
from proctor.running.engine.judges import NAMING
from proctor.running.options import written_judge
from proctor.running.people.calibrating import CalibrationOptions, Progress, calibrate
from proctor.running.people.calibration_rows import implied_evaluator, read_rows


@click.command("calibrate")
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
    options = CalibrationOptions(parallel, retest, _progress())
    measured = run_sync(calibrate(_named(judge), data, spec, folder, options))
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


def _named(judge: str) -> str | dict[str, Json]:
    """A name, or an object of options."""
    if not judge.lstrip().startswith("{"):
        return judge
    named: dict[str, Json] = written_judge(judge, "JUDGE")
    if NAMING.isdisjoint(named):
        raise UsageError("the judge has options and no model; name one with the key model")
    return named


def _progress() -> Progress:
    """A line that counts, on a terminal."""
    if not is_terminal(sys.stderr):
        return lambda done, planned: None

    def told(done: int, planned: int) -> None:
        sys.stderr.write(f"\r{done:,} of {planned:,} rows" + ("\n" if done == planned else ""))
        sys.stderr.flush()

    return told
