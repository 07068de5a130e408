"""Scorecards: how each entry of a dataset did by each of its evaluators, as one page to keep or to mail."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from proctor.cases.formats.ids import slug
from proctor.cases.model import UNSET
from proctor.errors import StoreError
from proctor.evaluators.calling import BadVerdict, read_verdict
from proctor.evaluators.model import Evaluation, EvaluationPending, NothingToCompare
from proctor.evaluators.registry import DEFAULT_THRESHOLD
from proctor.plain import Json, plain
from proctor.records import record
from proctor.references import describe
from proctor.reporting.explain import answer, asked
from proctor.reporting.wording import trial_name
from proctor.results.model import Outcome, Run, Score, TrialResult
from proctor.results.store import FOLDER
from proctor.results.verdict import judge

Evaluated: TypeAlias = "Evaluation | Score | BaseException | bool | int | float | None"
"""What an evaluator made of an entry: its evaluation, `None` for nothing to compare, or what it raised."""


@record
class DatasetEntryResult:
    """One entry of a dataset, and what its own evaluators made of it."""

    evaluator_names: Sequence[str]
    evaluations: Sequence[Evaluated]
    """One for each name."""
    input_label: str
    evaluable_dict: Mapping[str, Any]
    """What there is to see: `eval_input`, `eval_output`, `expectation` and anything else."""
    outcome: Outcome | None = None
    """How the entry ended, where a run has said so; else what its evaluations add up to."""

    def __post_init__(self) -> None:
        if len(self.evaluator_names) != len(self.evaluations):
            raise ValueError(
                f"{len(self.evaluator_names)} evaluator names and {len(self.evaluations)} evaluations do not match"
            )

    @property
    def scores(self) -> tuple[Score, ...]:
        """The evaluations in the form of all reports; what was not measured stays so and is never a 0."""
        return tuple(map(_score, self.evaluator_names, self.evaluations))


@record
class DatasetScorecard:
    """A dataset with the results of all its entries."""

    dataset_name: str
    entries: Sequence[DatasetEntryResult]
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    verdict: tuple[Outcome, str] | None = None
    """How the dataset did and why, where a run has said so by its own criteria; else every entry must pass."""


def generate_dataset_scorecard_html(scorecard: DatasetScorecard) -> str:
    """The page as text."""
    from proctor.reporting.scorecard_html import write

    out = io.StringIO()
    write(scorecard, out)
    return out.getvalue()


def save_dataset_scorecard(scorecard: DatasetScorecard, directory: str | os.PathLike[str] | None = None) -> Path:
    """Write the page to `directory` (`.proctor/scorecards`) under the time and the dataset's name; says where it is."""
    from proctor.reporting.scorecard_html import write

    folder = Path(FOLDER) / "scorecards" if directory is None else Path(directory)
    moment = scorecard.timestamp.strftime("%Y%m%d-%H%M%S")
    stem = f"{moment}-{slug(scorecard.dataset_name) or 'dataset'}"
    draft = folder / f".{stem}.{secrets.token_hex(4)}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with draft.open("x", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
            write(scorecard, out)
        return _named(draft, folder, stem).resolve()
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
    verdicts = {suite.name: (suite.outcome, suite.reason) for suite in judge(run).suites}
    return [DatasetScorecard(name, tuple(rows), moment, verdicts.get(name)) for name, rows in entries.items()]


def _named(draft: Path, folder: Path, stem: str) -> Path:
    """The draft under its name; an older scorecard is never written over, however close together they are made."""
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


def _score(name: str, evaluation: Evaluated) -> Score:
    if isinstance(evaluation, Score):
        return evaluation
    needs = DEFAULT_THRESHOLD
    if isinstance(evaluation, EvaluationPending):
        details = {"criteria": evaluation.criteria} if evaluation.criteria else {}
        return Score(name, Outcome.PENDING, None, needs, str(evaluation), details=details)
    if isinstance(evaluation, NothingToCompare):
        return Score(name, Outcome.SKIPPED, None, needs, str(evaluation))
    if isinstance(evaluation, BaseException):
        return Score(name, Outcome.ERROR, None, needs, f"raised {describe(evaluation)}")
    try:
        verdict = read_verdict(evaluation)
    except BadVerdict as problem:
        return Score(name, Outcome.ERROR, None, needs, f"the evaluator {problem}")
    if verdict is None:
        return Score(name, Outcome.SKIPPED, None, needs, "it had nothing to compare")
    outcome = Outcome.PASSED if verdict.score >= needs - 1e-12 else Outcome.FAILED
    details = plain(verdict.details) if verdict.details else {}
    return Score(name, outcome, verdict.score, needs, str(verdict.reasoning or ""), details=details)


def _entry(trial: TrialResult) -> DatasetEntryResult:
    scores = trial.scores
    if trial.reason and not scores:
        scores = (Score("the agent", trial.outcome, reasoning=trial.reason),)
    several = len(trial.case.turns) > 1
    names = tuple(
        f"{s.evaluator}, turn {s.turn + 1}" if several and s.turn is not None else s.evaluator for s in scores
    )
    label = trial_name(trial.case.description or trial.case.id, trial.number)
    return DatasetEntryResult(names, scores, label, _evaluable(trial), trial.outcome)


def _evaluable(trial: TrialResult) -> dict[str, Json]:
    """A turn as it is, a conversation as lists."""
    turns = trial.case.turns
    found: dict[str, list[Json]] = {
        "eval_input": [asked(trial.case, turn) for turn in turns],
        "expectation": [plain(turn.expected.output) for turn in turns if turn.expected.output is not UNSET],
        "eval_output": [answer(reply) for reply in trial.replies],
    }
    shown: dict[str, Json] = {
        name: values[0] if len(turns) == 1 and values else values for name, values in found.items() if values
    }
    if calls := [plain(call) for reply in trial.replies for call in reply.tool_calls]:
        shown["tool_calls"] = calls
    if trial.case.metadata:
        shown["eval_metadata"] = plain(trial.case.metadata)
    return shown
