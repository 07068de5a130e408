"""Scorecards: the result of each entry of a dataset for each of its evaluators, as one HTML page."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from proctor.base.errors import StoreError, one_line
from proctor.base.json_data import UNSET, Json, to_json
from proctor.cases.ids import slug
from proctor.cases.suite import Case, Criteria, NamedData
from proctor.cases.threshold import DEFAULT_THRESHOLD, passes
from proctor.evaluators.evaluation import (
    Evaluation,
    EvaluationPending,
    InvalidScore,
    NothingToCompare,
    collapse,
    to_evaluation,
)
from proctor.reporting.explain import answer_text, input_text
from proctor.reporting.html import environment
from proctor.reporting.html.environment import pretty
from proctor.reporting.html.run_view import NamedValue, evaluator_views, grids, row_numbers
from proctor.reporting.html.trial_view import MAX_FAILING_TEXT, MAX_PASSING_TEXT, ScoreView, anchor, score_view
from proctor.reporting.wording import counts_text, pass_rate_text, trial_name, utc_time
from proctor.results.reasons import headline_reason
from proctor.results.run import Run
from proctor.results.score import Outcome, Score, Scores
from proctor.results.store.store import STORE_FOLDER
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial, TrialSummary
from proctor.results.verdict import RunVerdict, trial_outcome, verdict

EntryEvaluation: TypeAlias = "Evaluation | Score | BaseException | bool | int | float | None"
"""The result of an evaluator for an entry: an evaluation, None for nothing to compare, or the exception it raised."""


@dataclass(frozen=True, slots=True)
class DatasetEntryResult:
    """One entry of a dataset and the results of its evaluators."""

    evaluator_names: Sequence[str]
    evaluations: Sequence[EntryEvaluation]
    """One per name."""
    input_label: str
    evaluable_dict: Mapping[str, Any]
    """What the page shows: `eval_input`, `eval_output`, `expectation` and anything else."""
    outcome: Outcome | None = None
    """The entry's outcome in a run; without it, the evaluations decide."""

    def __post_init__(self) -> None:
        if len(self.evaluator_names) != len(self.evaluations):
            raise ValueError(
                f"{len(self.evaluator_names)} evaluator names and {len(self.evaluations)} evaluations do not match"
            )

    @property
    def scores(self) -> tuple[Score, ...]:
        """The evaluations as scores; a missing one is never a 0."""
        return tuple(map(_score, self.evaluator_names, self.evaluations))


@dataclass(frozen=True, slots=True)
class DatasetScorecard:
    """A dataset with the results of all its entries."""

    dataset_name: str
    entries: Sequence[DatasetEntryResult]
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    verdict: tuple[Outcome, str] | None = None
    """The outcome and reason from a run with its own criteria; without it, every entry must pass."""


def generate_dataset_scorecard_html(scorecard: DatasetScorecard) -> str:
    """The page as text."""
    out = io.StringIO()
    write(scorecard, out)
    return out.getvalue()


def save_dataset_scorecard(scorecard: DatasetScorecard, directory: str | os.PathLike[str] | None = None) -> Path:
    """Write the page to `directory`, named by time and dataset, and return its path.

    The default directory is `.proctor/scorecards`.
    """
    folder = Path(STORE_FOLDER) / "scorecards" if directory is None else Path(directory)
    moment = scorecard.timestamp.strftime("%Y%m%d-%H%M%S")
    stem = f"{moment}-{slug(scorecard.dataset_name) or 'dataset'}"
    draft = folder / f".{stem}.{secrets.token_hex(4)}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with draft.open("x", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
            write(scorecard, out)
        return _rename_draft(draft, folder, stem).resolve()
    except OSError as error:
        raise StoreError(f"the scorecard could not be written to {folder}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def scorecards_of(run: Run) -> list[DatasetScorecard]:
    """A scorecard for each suite of a run, with an entry for each trial."""
    moment = datetime.fromtimestamp(run.started_at, UTC)
    entries: dict[str, list[DatasetEntryResult]] = {info.name: [] for info in run.suites}
    for trial in run.trials:
        entries.setdefault(trial.suite, []).append(_entry(trial))
    verdicts = {suite.name: (suite.outcome, suite.reason) for suite in verdict(run).suites}
    return [DatasetScorecard(name, tuple(rows), moment, verdicts.get(name)) for name, rows in entries.items()]


def _rename_draft(draft: Path, folder: Path, stem: str) -> Path:
    """Rename the draft to a free file name; an existing scorecard is never overwritten."""
    number = 1
    while True:
        target = folder / (f"{stem}.html" if number == 1 else f"{stem}-{number}.html")
        try:
            target.hardlink_to(draft)
        except FileExistsError:
            number += 1
            continue
        except OSError:  # a file system without links
            draft.replace(target)
        return target


def _score(name: str, evaluation: EntryEvaluation) -> Score:
    if isinstance(evaluation, Score):
        return evaluation
    threshold = DEFAULT_THRESHOLD
    if isinstance(evaluation, EvaluationPending):
        details = {"criteria": evaluation.criteria} if evaluation.criteria else {}
        return Score(name, Outcome.PENDING, None, threshold, str(evaluation), details=details)
    if isinstance(evaluation, NothingToCompare):
        return Score(name, Outcome.SKIPPED, None, threshold, str(evaluation))
    if isinstance(evaluation, BaseException):
        return Score(name, Outcome.ERROR, None, threshold, f"raised {one_line(evaluation)}")
    try:
        result = to_evaluation(evaluation)
    except InvalidScore as problem:
        return Score(name, Outcome.ERROR, None, threshold, f"the evaluator {problem}")
    if result is None:
        return Score(name, Outcome.SKIPPED, None, threshold, "there was nothing to compare")
    outcome = Outcome.PASSED if passes(result.score, threshold, result.passed) else Outcome.FAILED
    details = to_json(result.details) if result.details else {}
    return Score(name, outcome, result.score, threshold, str(result.reasoning or ""), details=details)


def _entry(trial: Trial) -> DatasetEntryResult:
    scores = trial.scores
    if trial.end_reason and not scores:
        scores = Scores([Score("the agent", trial.outcome, reasoning=trial.end_reason)])
    several = len(trial.case.turns) > 1
    names = tuple(
        f"{s.evaluator}, turn {s.turn + 1}" if several and s.turn is not None else s.evaluator for s in scores
    )
    label = trial_name(trial.case.description or trial.case.id, trial.number)
    return DatasetEntryResult(names, scores, label, _evaluable(trial), trial.outcome)


def _evaluable(trial: Trial) -> dict[str, Json]:
    """The data of a trial: single values for one turn, lists for a conversation."""
    turns = trial.case.turns
    by_turn: dict[str, list[Json]] = {
        "eval_input": [input_text(trial.case, turn) for turn in turns],
        "expectation": [to_json(turn.expected.output) for turn in turns if turn.expected.output is not UNSET],
        "eval_output": [answer_text(reply) for reply in trial.replies],
    }
    data: dict[str, Json] = {
        name: values[0] if len(turns) == 1 and values else values for name, values in by_turn.items() if values
    }
    if calls := [to_json(call) for reply in trial.replies for call in reply.tool_calls]:
        data["tool_calls"] = calls
    if trial.case.metadata:
        data["eval_metadata"] = to_json(trial.case.metadata)
    return data


SECTIONS = {
    "Input": ("eval_input", "input"),
    "Expected": ("expectation", "expected_output"),
    "Output": ("eval_output", "output"),
}
"""The headings that come first on the page, with the keys of an entry that they show."""

_NAMED_DATA_KEYS = {"name", "value"}


@dataclass(frozen=True, slots=True)
class EntryView:
    """What the page shows of an entry."""

    outcome: Outcome
    row: int
    anchor: str
    name: str
    reason: str
    limit: int
    """The maximum number of characters of a text."""
    sections: Sequence[tuple[str, str]]
    scores: Sequence[ScoreView]


def write(scorecard: DatasetScorecard, out: TextIO) -> None:
    """Write the page."""
    trials = [_trial(scorecard.dataset_name, number, entry) for number, entry in enumerate(scorecard.entries)]
    run = _run(scorecard, trials)
    run_verdict = verdict(run)
    numbers = row_numbers(run)
    environment.write(
        "compat/pixie/templates/scorecard.html",
        out,
        name=scorecard.dataset_name,
        outcome=run_verdict.outcome,
        reason=run_verdict.reason,
        facts=_facts(scorecard, run_verdict),
        evaluators=evaluator_views(run, run_verdict),
        grids=grids(run, run_verdict, numbers, lambda position: f"#{anchor(position)}"),
        counts=run_verdict.counts,
        entries=map(
            lambda entry, trial: _entry_view(entry, trial, numbers[trial.suite, trial.case.id]),
            scorecard.entries,
            trials,
        ),
    )


def _trial(dataset: str, number: int, entry: DatasetEntryResult) -> Trial:
    """An entry as a trial, from which verdicts and grids are made; its number tells equal labels apart."""
    scores = Scores(
        replace(score, evaluator=str(name)) for name, score in zip(entry.evaluator_names, entry.scores, strict=True)
    )
    outcome, reason = trial_outcome(scores, Criteria())
    case = Case(id=f"{number + 1}. {entry.input_label}", turns=())
    return Trial(dataset, case, 1, number, entry.outcome or outcome, reason, scores=scores)


def _run(scorecard: DatasetScorecard, trials: list[Trial]) -> Run:
    count = len(trials)
    info = SuiteInfo(scorecard.dataset_name, None, "scorecard", "", "", Criteria(), count, count)
    summaries = [TrialSummary.of(trial) for trial in trials]
    return Run("scorecard", scorecard.timestamp.timestamp(), (info,), summaries, trials)


def _facts(scorecard: DatasetScorecard, verdict: RunVerdict) -> list[NamedValue]:
    facts = [NamedValue("Entries", f"{len(scorecard.entries):,}", f"({counts_text(verdict.counts)})")]
    if (rate := verdict.suites[0].pass_rate) is not None:
        facts.append(NamedValue("Pass rate", pass_rate_text(rate)))
    return [*facts, NamedValue("Created", utc_time(scorecard.timestamp.timestamp()))]


def _entry_view(entry: DatasetEntryResult, trial: Trial, row: int) -> EntryView:
    return EntryView(
        outcome=trial.outcome,
        row=row,
        anchor=anchor(trial.position),
        name=trial.case.id,
        reason=headline_reason(trial),
        limit=MAX_FAILING_TEXT if trial.outcome in (Outcome.FAILED, Outcome.ERROR) else MAX_PASSING_TEXT,
        sections=[(title, pretty(value)) for title, value in _sections(entry.evaluable_dict)],
        scores=[score_view(score) for score in trial.scores],
    )


def _sections(evaluable: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    rest = dict(evaluable)
    for title, names in SECTIONS.items():
        for name in names:
            if name in rest and (value := rest.pop(name)) is not UNSET:
                yield title, _collapse(value)
    for name, value in rest.items():
        if value is not None and value is not UNSET:
            yield str(name), value


def _collapse(value: Any) -> Any:
    """Named values as evaluators see them: a single value by itself, several by name."""
    items = to_json(value)
    if isinstance(items, list) and items and all(_is_named_data(item) for item in items):
        return collapse([NamedData(str(item["name"]), item["value"]) for item in items])
    return items


def _is_named_data(item: Json) -> bool:
    return isinstance(item, dict) and item.keys() == _NAMED_DATA_KEYS
