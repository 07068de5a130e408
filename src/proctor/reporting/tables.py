"""Runs and comparisons as flat rows, for scripts, notebooks and tables of pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.base.errors import UsageError
from proctor.base.json_data import Json
from proctor.reporting.comparison_report import what_differs
from proctor.reporting.explain import answer, asked, one_line_reason
from proctor.results.comparison import Comparison, Passes
from proctor.results.run import Outcome, Run, TrialResult
from proctor.results.statistics import mean

if TYPE_CHECKING:
    import pandas

LONGEST_REASON = 2_000


def trial_rows(run: Run) -> list[dict[str, Json]]:
    """A row a trial; every row has the same keys, so that tables have no holes but those of missing scores."""
    names = list(dict.fromkeys(score.evaluator for summary in run.summaries for score in summary.scores))
    agents = {info.name: info.agent for info in run.suites}
    return [_trial_row(run.id, agents.get(trial.suite, ""), trial, names) for trial in run.trials]


def _trial_row(run: str, agent: str, trial: TrialResult, names: list[str]) -> dict[str, Json]:
    usage = trial.usage
    row: dict[str, Json] = {
        "run": run,
        "suite": trial.suite,
        "agent": agent,
        "case": trial.case.id,
        "tags": ", ".join(trial.case.tags),
        "trial": trial.number,
        "outcome": trial.outcome.value,
        "reason": "" if trial.outcome is Outcome.PASSED else one_line_reason(trial, LONGEST_REASON),
        "input": "\n".join(asked(trial.case, turn) for turn in trial.case.turns),
        "answer": "\n".join(answer(reply) for reply in trial.replies),
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
    """A row a case, the most serious first."""
    return [
        {
            "suite": case.suite,
            "case": case.case_id,
            "group": case.group.value,
            **_passes("before", case.before),
            **_passes("after", case.after),
            "renamed_from": case.renamed_from,
            "what_differs": "\n".join(what_differs(case)),
        }
        for cases in comparison.groups.values()
        for case in cases
    ]


def _passes(side: str, passes: Passes | None) -> dict[str, Json]:
    return {
        f"{side}_passed": None if passes is None else passes.passed,
        f"{side}_trials": None if passes is None else passes.trials,
    }


def as_frame(rows: list[dict[str, Json]]) -> pandas.DataFrame:
    """The rows as a table of pandas."""
    try:
        import pandas
    except ImportError:
        raise UsageError("to_pandas() needs pandas: pip install pandas; to_dicts() gives the same without it") from None
    return pandas.DataFrame(rows)
