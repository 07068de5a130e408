"""Scorecards: how each entry of a dataset did by each of its evaluators, as one HTML page to keep or to mail."""

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
from proctor.base.json_data import UNSET, Json, plain
from proctor.cases.ids import slug
from proctor.cases.suite import Case, Criteria, NamedData
from proctor.cases.threshold import DEFAULT_THRESHOLD, passes
from proctor.evaluators.evaluation import (
    BadVerdict,
    Evaluation,
    EvaluationPending,
    NothingToCompare,
    collapse,
    read_verdict,
)
from proctor.reporting.explain import answer, asked, one_line_reason, why_open
from proctor.reporting.html.escaping import GLYPHS, badge, block, facts, inline, pretty
from proctor.reporting.html.overview import anchor, write_evaluators, write_grids
from proctor.reporting.html.page_frame import page_end, page_head, write_filter
from proctor.reporting.html.trial_section import FAILING_TEXT, PASSING_TEXT, write_scores
from proctor.reporting.wording import counts_text, share, trial_name, when
from proctor.results.run import Outcome, Run, Score, SuiteInfo, TrialResult, TrialSummary
from proctor.results.store.store import FOLDER
from proctor.results.verdict import RunVerdict, judge, trial_outcome

Evaluated: TypeAlias = "Evaluation | Score | BaseException | bool | int | float | None"
"""What an evaluator made of an entry: its evaluation, `None` for nothing to compare, or what it raised."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class DatasetScorecard:
    """A dataset with the results of all its entries."""

    dataset_name: str
    entries: Sequence[DatasetEntryResult]
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    verdict: tuple[Outcome, str] | None = None
    """How the dataset did and why, where a run has said so by its own criteria; else every entry must pass."""


def generate_dataset_scorecard_html(scorecard: DatasetScorecard) -> str:
    """The page as text."""
    out = io.StringIO()
    write(scorecard, out)
    return out.getvalue()


def save_dataset_scorecard(scorecard: DatasetScorecard, directory: str | os.PathLike[str] | None = None) -> Path:
    """Write the page to `directory` (`.proctor/scorecards`) under the time and the dataset's name; says where it is."""
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
        return Score(name, Outcome.ERROR, None, needs, f"raised {one_line(evaluation)}")
    try:
        verdict = read_verdict(evaluation)
    except BadVerdict as problem:
        return Score(name, Outcome.ERROR, None, needs, f"the evaluator {problem}")
    if verdict is None:
        return Score(name, Outcome.SKIPPED, None, needs, "it had nothing to compare")
    outcome = Outcome.PASSED if passes(verdict.score, needs, verdict.passed) else Outcome.FAILED
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


SECTIONS = {
    "Input": ("eval_input", "input"),
    "Expected": ("expectation", "expected_output"),
    "Answer": ("eval_output", "output"),
}
"""The names under which an entry keeps what readers look for first; all else comes after."""

_BAD = (Outcome.FAILED, Outcome.ERROR)
_NAMED = {"name", "value"}


def write(scorecard: DatasetScorecard, out: TextIO) -> None:
    """Write the page."""
    trials = [_trial(scorecard.dataset_name, number, entry) for number, entry in enumerate(scorecard.entries)]
    run = _run(scorecard, trials)
    verdict = judge(run)
    out.write(
        page_head(f"{GLYPHS[verdict.outcome]} {verdict.outcome.value}: {scorecard.dataset_name}", verdict.outcome)
    )
    _write_banner(scorecard, verdict, out)
    out.write("<main>\n")
    write_evaluators(run, verdict, out)
    rows = write_grids(run, verdict, out)
    _write_entries(scorecard, trials, verdict, rows, out)
    note = "A score passes from what its evaluator needs on. Numbers in brackets are 95 % intervals."
    out.write(f"</main>\n<footer><p>{note}</p></footer>\n")
    out.write(page_end())


def _trial(dataset: str, number: int, entry: DatasetEntryResult) -> TrialResult:
    """An entry in the form that verdicts and grids are made of; its number keeps equal labels apart."""
    scores = tuple(
        replace(score, evaluator=str(name)) for name, score in zip(entry.evaluator_names, entry.scores, strict=True)
    )
    outcome, reason = trial_outcome(scores, Criteria())
    case = Case(f"{number + 1}. {entry.input_label}", ())
    return TrialResult(dataset, case, 1, number, entry.outcome or outcome, reason, scores=scores)


def _run(scorecard: DatasetScorecard, trials: list[TrialResult]) -> Run:
    count = len(trials)
    info = SuiteInfo(scorecard.dataset_name, None, "scorecard", "", "", Criteria(), count, count)
    summaries = [TrialSummary.of(trial) for trial in trials]
    return Run("scorecard", scorecard.timestamp.timestamp(), (info,), summaries, trials)


def _write_banner(scorecard: DatasetScorecard, verdict: RunVerdict, out: TextIO) -> None:
    outcome, rate = verdict.outcome, verdict.suites[0].pass_rate
    pairs = [("Entries", f"{len(scorecard.entries):,} <small>({counts_text(verdict.counts)})</small>")]
    if rate is not None:
        pairs.append(("Pass rate", share(rate)))
    pairs.append(("Made", when(scorecard.timestamp.timestamp())))
    out.write(
        f'<header class="banner {outcome.value}">\n<div class="sign" aria-hidden="true">{GLYPHS[outcome]}</div>\n'
        f'<div class="words">\n<p class="kicker">Scorecard of {inline(scorecard.dataset_name, 300)}</p>\n'
        f'<h1>{outcome.value.capitalize()}</h1>\n<p class="reason">{inline(verdict.reason, 2_000)}</p>\n'
        f"{facts(pairs)}</div>\n</header>\n"
        '<nav aria-label="Sections"><a href="#evaluators">Evaluators</a> <a href="#cases">Cases</a> '
        '<a href="#trials">Entries</a></nav>\n'
    )


def _write_entries(
    scorecard: DatasetScorecard,
    trials: list[TrialResult],
    verdict: RunVerdict,
    rows: Mapping[tuple[str, str], int],
    out: TextIO,
) -> None:
    out.write('<section id="trials">\n<h2>Entries</h2>\n')
    write_filter(verdict.counts, out)
    for entry, trial in zip(scorecard.entries, trials, strict=True):
        _write_entry(entry, trial, rows[trial.suite, trial.case.id], out)
    if not trials:
        out.write('<p class="none">The dataset has no entries.</p>\n')
    out.write("</section>\n")


def _write_entry(entry: DatasetEntryResult, trial: TrialResult, row: int, out: TextIO) -> None:
    outcome = trial.outcome
    reason = "" if outcome is Outcome.PASSED else (one_line_reason if outcome in _BAD else why_open)(trial)
    told = f'<span class="why">{inline(reason)}</span>' if reason else ""
    limit = FAILING_TEXT if outcome in _BAD else PASSING_TEXT
    out.write(
        f'<details class="trial {outcome.value}" data-outcome="{outcome.value}" data-row="{row}">\n'
        f"<summary>{badge(outcome)}<h4>{inline(trial.case.id, 200)}</h4>{told}</summary>\n"
        f'<div class="body" id="{anchor(trial.position)}">\n'
    )
    for title, value in _sections(entry.evaluable_dict):
        out.write(f"<h5>{inline(title, 200)}</h5>\n{block(pretty(value), limit)}")
    write_scores(trial.scores, out)
    out.write("</div>\n</details>\n")


def _sections(evaluable: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    left = dict(evaluable)
    for title, names in SECTIONS.items():
        for name in names:
            if name in left and (value := left.pop(name)) is not UNSET:
                yield title, _collapsed(value)
    for name, value in left.items():
        if value is not None and value is not UNSET:
            yield str(name), value


def _collapsed(value: Any) -> Any:
    """Named values as evaluators see them: one as it is, several by name."""
    items = plain(value)
    if isinstance(items, list) and items and all(isinstance(item, dict) and item.keys() == _NAMED for item in items):
        return collapse([NamedData(str(item["name"]), item["value"]) for item in items])
    return items
