"""Runs, trials and scores as rows of the database, and back.

A field that has a column of its name (`schema.py`) is stored there, so that SQL can use it; all other fields of a trial
are JSON in the column `content`. A new field is stored and a new column is filled without any change here.
"""

from __future__ import annotations

import enum
import json
import operator
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from proctor.agents.reply import Reply, ToolCall
from proctor.base.dataclass_json import DataclassCodec, Hook
from proctor.base.json_data import Json, to_json
from proctor.cases.encoding import dumps
from proctor.cases.suite import NamedData
from proctor.results.gate_result import GateResult, gate_from_json, gate_to_json
from proctor.results.judge_usage import JSON_NAMES, JudgeSummary, JudgeUsage
from proctor.results.run import Run, RunStatus
from proctor.results.score import Score, ScoreRow
from proctor.results.store.schema import SCORES, TRIALS
from proctor.results.store.text_columns import decode_text, encode_text
from proctor.results.suite_info import QuarantinedCase
from proctor.results.trial import LazySequence, Trial, TrialSummary
from proctor.results.verdict import INTERRUPTED

NOT_IN_HEADER = frozenset(
    (
        "no id started_at finished_at status plan name summaries trials stopped_by store configured_judge"
        " planned_trials extra source _results"
    ).split()
)
"""Fields of a run that have their own column, or that exist only in the process that runs it."""


STORED_NAMES: Mapping[type, Mapping[str, str]] = {
    Run: {"stored_verdict": "verdict", "scoring_keys": "evaluator_keys", "unpriced_note": "uncounted"},
    JudgeSummary: JSON_NAMES,
    QuarantinedCase: {"expired": "over"},
    Trial: {"end_reason": "reason"},
}
"""By class: fields that stores and exported runs have under an earlier name."""


def _codec(*, strict: bool) -> DataclassCodec:
    return DataclassCodec(
        hooks={
            NamedData: Hook(lambda item: [item.name, to_json(item.value)], _to_named_data),
            GateResult: Hook(gate_to_json, lambda data: gate_from_json(data, strict=strict)),
        },
        skip={Reply: ["raw", "reports_calls"], Run: NOT_IN_HEADER},
        always={Trial: ["replies", "ended_early", "masked"], Reply: ["text"], ToolCall: ["arguments"], Run: ["judges"]},
        stored_names=STORED_NAMES,
        names={"GateResult": GateResult, "JudgeSummary": JudgeSummary},
        json_value=to_json,
        strict=strict,
    )


def _to_named_data(pair: Sequence[Any]) -> NamedData:
    name, value = pair
    if not isinstance(name, str):
        raise TypeError(f"{type(name).__name__} instead of the name of an output")
    return NamedData(name, value)


CODEC = _codec(strict=False)
CODEC.prepare(Run, Trial, Score)
STRICT_CODEC = _codec(strict=True)
"""Checks the types of values, for exported runs, which may come from anywhere."""


def header_to_json(run: Run) -> dict[str, Json]:
    """The facts about a run, without its trials. `judges` is added when the run ends."""
    unknown = ("judges",) if run.status is RunStatus.RUNNING else ()
    return {**to_json(run.extra), **CODEC.encode(run, without=unknown)}


def run_from_json(
    header: Mapping[str, Json], trials: Iterable[Trial], codec: DataclassCodec = CODEC, **columns: Any
) -> Run:
    """The run that `header_to_json` wrote, in this version or an earlier one, with its columns."""
    status = columns["status"]
    run = codec.decode(Run, header, **columns, trials=trials)
    known = codec.names(Run)
    run.extra = {name: value for name, value in header.items() if name not in known}
    if status in (RunStatus.RUNNING, RunStatus.DIED):
        # The stored values are from before the run was resumed, if it was.
        run.interrupted, run.stored_verdict, run.counts = status is RunStatus.DIED, None, None
    elif "interrupted" not in header and status is RunStatus.INTERRUPTED:  # older programs wrote only the exit code
        run.interrupted = run.stored_verdict is None or run.stored_verdict.exit_code == INTERRUPTED
    if "judges" not in header:
        run.judges = LazySequence(lambda: JudgeUsage(trials))
    return run


class Columns:
    """The fields of a dataclass that have a column in a table: one of the same name, or of the opposite meaning.

    `opposites` has flags that the table stores as their opposite: the field, and the name of the column.
    """

    def __init__(self, kind: type, table: Mapping[str, str], opposites: Mapping[str, str] | None = None) -> None:
        hints = typing.get_type_hints(kind)
        self._opposites = dict(opposites or {})
        self.names = tuple(field.name for field in fields(kind) if self._opposites.get(field.name, field.name) in table)
        self._decoders = [
            (name, operator.not_ if name in self._opposites else _column_decoder(hints[name])) for name in self.names
        ]

    def select(self, table: str) -> str:
        """The columns for a SELECT."""
        return ", ".join(f"{table}.{self._opposites.get(name, name)}" for name in self.names)

    def encode(self, value: object) -> dict[str, Any]:
        """By column: the values to store of an object."""
        row = {name: _to_column(getattr(value, name)) for name in self.names if name not in self._opposites}
        return row | {column: not getattr(value, name) for name, column in self._opposites.items()}

    def decode(self, row: Sequence[Any]) -> dict[str, Any]:
        """By field: the values in a row of these columns."""
        return {
            name: item if decode is None or item is None else decode(item)
            for (name, decode), item in zip(self._decoders, row, strict=True)
        }


def _to_column(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return encode_text(value)
    if value is None or kind in (int, float, bool):  # most values, so they are checked first
        return value
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, str):
        return encode_text(value)
    return dumps(to_json(value)) if isinstance(value, Mapping) else value


def _column_decoder(hint: Any) -> Callable[[Any], Any] | None:
    if hint is str:
        return decode_text
    if isinstance(hint, type) and (issubclass(hint, enum.Enum) or hint is bool):
        return hint
    return json.loads if typing.get_origin(hint) is not None and not _is_union(hint) else None


def _is_union(hint: Any) -> bool:
    return type(None) in typing.get_args(hint)


TRIAL_COLUMNS = Columns(Trial, TRIALS)
SUMMARY_COLUMNS = Columns(TrialSummary, TRIALS)
REPORT_ONLY = {"report_only": "gates"}
SCORE_COLUMNS = Columns(Score, SCORES, REPORT_ONLY)
SCORE_ROW_COLUMNS = Columns(ScoreRow, SCORES, REPORT_ONLY)

NOT_CONTENT = frozenset({"case", "scores", *TRIAL_COLUMNS.names})
"""Fields of a trial that are not in its `content`."""


def trial_to_row(trial: Trial) -> dict[str, Any]:
    """By column: the values of a trial, without the run, the case and the content."""
    usage = trial.usage
    return {
        **TRIAL_COLUMNS.encode(trial),
        "case_id": encode_text(trial.case.id),
        "tokens": None if usage is None else usage.total_tokens,
        "cost_usd": None if usage is None else usage.cost_usd,
        "estimated": usage is not None and usage.estimated,
    }


def trial_to_json(trial: Trial) -> dict[str, Json]:
    """The fields of a trial that have no column."""
    return CODEC.encode(trial, without=NOT_CONTENT)


def trial_from_json(content: Mapping[str, Json], scores: Iterable[Score], **columns: Any) -> Trial:
    """The trial with these contents, scores and columns."""
    scored = tuple(scores)
    early = ended_early(content, has_scores=bool(scored))
    return CODEC.decode(Trial, with_masked(content), **columns, scores=scored, ended_early=early)


def with_masked(content: Mapping[str, Json]) -> Mapping[str, Json]:
    """The content of a trial, with no value for its masked parts if an older version stored it."""
    return content if "masked" in content else {**content, "masked": None}


def ended_early(content: Mapping[str, Json], *, has_scores: bool) -> bool:
    """Whether a stored trial ended before it was scored.

    Older versions did not store it; there, a reason without scores meant that, except for one sentence.
    """
    known = content.get("ended_early")
    if isinstance(known, bool):
        return known
    return bool(content.get("reason")) and not has_scores and content["reason"] != "nothing scores this case"


def score_to_row(score: Score) -> dict[str, Any]:
    """By column: the values of a score, without its trial and its place in it."""
    return SCORE_COLUMNS.encode(score)


def score_from_row(row: Sequence[Any]) -> Score:
    return Score(**SCORE_COLUMNS.decode(row))


def score_row_from_row(row: Sequence[Any]) -> ScoreRow:
    """The part of a stored score that verdicts need."""
    return ScoreRow(**SCORE_ROW_COLUMNS.decode(row))


def summary_from_row(row: Sequence[Any], scores: Iterable[ScoreRow]) -> TrialSummary:
    """The part of a stored trial that verdicts need."""
    return TrialSummary(**SUMMARY_COLUMNS.decode(row), scores=tuple(scores))
