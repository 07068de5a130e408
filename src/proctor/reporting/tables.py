"""Runs and comparisons as flat rows: for scripts and pandas, and as CSV that spreadsheets can open safely."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from proctor.base.errors import StoreError, UsageError
from proctor.base.json_data import UNSET, Json
from proctor.base.own_files import SCORE_COLUMNS
from proctor.reporting.comparison_report import differences
from proctor.reporting.explain import answer_text, expected_lines, input_text, value_text
from proctor.reporting.terminal.screen import escape_control
from proctor.results.comparison.comparison import Comparison, PassCount
from proctor.results.reasons import headline_reason
from proctor.results.run import Run
from proctor.results.score import Score
from proctor.results.statistics import mean
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict

if TYPE_CHECKING:
    import pandas

MAX_REASON = 2_000


def trial_rows(run: Run) -> list[dict[str, Json]]:
    """One row per trial, all with the same keys."""
    names = list(dict.fromkeys(score.evaluator for summary in run.summaries for score in summary.scores))
    agents = {info.name: info.agent for info in run.suites}
    return [_trial_row(run.id, agents.get(trial.suite, ""), trial, names) for trial in run.trials]


def _trial_row(run: str, agent: str, trial: Trial, names: list[str]) -> dict[str, Json]:
    usage = trial.usage
    row: dict[str, Json] = {
        "run": run,
        "suite": trial.suite,
        "agent": agent,
        "case": trial.case.id,
        "tags": ", ".join(trial.case.tags),
        "trial": trial.number,
        "outcome": trial.outcome.value,
        "reason": headline_reason(trial, MAX_REASON),
        "input": "\n".join(input_text(trial.case, turn) for turn in trial.case.turns),
        "answer": "\n".join(answer_text(reply) for reply in trial.replies),
        "tools": ", ".join(call.name for reply in trial.replies for call in reply.tool_calls),
        "duration_ms": trial.duration_ms,
        "tokens": None if usage is None else usage.total_tokens,
        "cost_usd": None if usage is None else usage.cost_usd,
    }
    for name in names:
        values = [score.value for score in trial.scores if score.evaluator == name and score.value is not None]
        row[f"score.{name}"] = mean(values)
    return row


def case_rows(comparison: Comparison) -> list[dict[str, Json]]:
    """One row per case, the most serious change first."""
    return [
        {
            "suite": case.suite,
            "case": case.case_id,
            "group": case.group.value,
            **_passes("before", case.before),
            **_passes("after", case.after),
            "renamed_from": case.renamed_from,
            "what_differs": "\n".join(differences(case)),
        }
        for cases in comparison.groups.values()
        for case in cases
    ]


def _passes(side: str, passes: PassCount | None) -> dict[str, Json]:
    return {
        f"{side}_passed": None if passes is None else passes.passed,
        f"{side}_trials": None if passes is None else passes.trials,
    }


def as_frame(rows: list[dict[str, Json]]) -> pandas.DataFrame:
    """The rows as a pandas DataFrame."""
    try:
        import pandas
    except ImportError:
        raise UsageError(
            "to_pandas() needs pandas: pip install pandas. Or use to_dicts(), which works without it"
        ) from None
    return pandas.DataFrame(rows)


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Characters that make a spreadsheet read a cell as a formula if the cell starts with one."""
NO_LIMIT = 1_000_000
"""Characters of an expectation in CSV; practically no limit."""


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the scores of a run as CSV, one trial at a time."""
    _write(run, out, head=True)


def append(run: Run, path: Path) -> None:
    """Append the scores of a run to a CSV file, or create it; raises `UsageError` if the file has other columns."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        has_rows = path.exists() and path.stat().st_size > 0
        if has_rows:
            with path.open(encoding="utf-8", newline="") as old:
                if next(csv.reader(old), None) != list(SCORE_COLUMNS):
                    raise UsageError(f"{path} does not have the columns {', '.join(SCORE_COLUMNS)}; use a new file")
        with path.open("a", encoding="utf-8", errors="backslashreplace", newline="") as out:
            _write(run, out, head=not has_rows)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StoreError(f"the scores could not be written to {path}: {error}") from error


def _write(run: Run, out: TextIO, *, head: bool) -> None:
    rows = csv.writer(out, lineterminator="\n")
    if head:
        rows.writerow(SCORE_COLUMNS)
    for trial in run.trials:
        rows.writerows([csv_safe(cell) for cell in row] for row in _rows(run.id, trial))


def csv_safe(cell: Any) -> Any:
    """A cell that a spreadsheet shows as text instead of calculating it; numbers stay numbers."""
    if not isinstance(cell, str):
        return "" if cell is None else cell
    cell = escape_control(cell.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n"))
    return f"'{cell}" if cell.lstrip(" ").startswith(FORMULA_STARTS) else cell


def _rows(run: str, trial: Trial) -> Iterator[tuple[Any, ...]]:
    """One row per score; also one for a trial without scores, so that every trial is in the table."""
    head = (run, trial.suite, trial.case.id, trial.number)
    for score in trial.scores:
        turn = None if score.turn is None else score.turn + 1
        values = (score.evaluator, score.value, score.threshold, score.outcome.value, score.reasoning)
        yield (*head, turn, *values, *_exchange(trial, score))
    if not trial.scores:
        yield (*head, None, "", None, None, trial.outcome.value, trial.end_reason, *_exchange(trial, None))


def _exchange(trial: Trial, score: Score | None) -> tuple[str, str, str]:
    """Input, output and expectation of the score's turn, or of the whole conversation."""
    turns = trial.case.turns
    indexes = range(len(turns)) if score is None or score.turn is None else [score.turn]
    inputs = [input_text(trial.case, turns[index]) for index in indexes]
    outputs = [answer_text(trial.replies[index]) for index in indexes if index < len(trial.replies)]
    expected = [_expected(trial, index) for index in indexes]
    return "\n".join(inputs), "\n".join(outputs), "\n".join(text for text in expected if text)


def _expected(trial: Trial, index: int) -> str:
    expected = trial.case.turns[index].expected
    if expected.output is not UNSET and expected.contains is None and expected.tools is None:
        return value_text(expected.output)
    return "\n".join(expected_lines(expected, NO_LIMIT))
