"""Grades from people and agents: finds the pending scores of a stored run, reads rows of grades, and stores them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from proctor.agents.reply import Reply
from proctor.base.documents import did_you_mean
from proctor.base.errors import StoreError, UsageError
from proctor.base.json_data import UNSET, Json, Unset, to_json, to_text
from proctor.cases.suite import Case, EvaluatorSpec, Turn
from proctor.cases.threshold import DEFAULT_THRESHOLD, passes, threshold_in_force
from proctor.evaluators import shipped_evaluators
from proctor.evaluators.declaration import declaration_of
from proctor.evaluators.registry import shipped_class
from proctor.results.reasons import NUMBERED_TITLE
from proctor.results.run import Run
from proctor.results.score import GRADED_BY, Outcome, Score, Scores
from proctor.results.store.run_files import is_file_name
from proctor.results.store.store import Store
from proctor.results.trial import Trial, TrialSummary
from proctor.results.verdict import RunVerdict, record_verdict, trial_outcome, verdict
from proctor.running.resume import exclusive_run

GRADED_AT = "graded_at"
"""The details of a graded score: who graded it, and when."""


@dataclass(frozen=True, slots=True)
class ScoreAddress:
    """Identifies a score of a run."""

    suite: str
    case: str
    trial: int
    """The number of the trial, from 1."""
    turn: int | None
    """The index of the turn, or `None` for the whole conversation."""
    evaluator: str


@dataclass(frozen=True, slots=True)
class PendingScore:
    """One score that needs a grade, with everything that a grader needs to see."""

    address: ScoreAddress
    criteria: str
    question: Json
    answer: Json
    threshold: float
    expected: Json | Unset = UNSET
    material: Mapping[str, Json] = field(default_factory=dict)
    """What the answer is graded against besides the expected output, by title: the evaluator's own criteria, rubric or
    steps, and the passages."""
    pending_because: str = ""
    """Why there is no score; empty if there is one."""


@dataclass(frozen=True, slots=True)
class Grade:
    """A person's grade for one pending score."""

    address: ScoreAddress
    score: float
    reasoning: str
    grader: str


class Gradebook:
    """A stored run that is being graded; grades are stored immediately."""

    def __init__(self, store: Store, run: str, *, find_pending: bool = True) -> None:
        """`run` is an id or name. Without `find_pending`, `pending` stays empty; the caller knows what to grade."""
        row = store.find_run(run)
        self._store = store
        self._no = row.no
        self.run: Run = store.find_run(row.id)
        self._criteria = {info.name: info.criteria for info in self.run.suites}
        self._trials = {address: key.no for address, key in store.stored_trials(row.no).items()}
        self.pending: list[PendingScore] = []
        self.other_scores: dict[ScoreAddress, Score] = {}
        """Every score of the run that is not pending."""
        for trial in self.run.trials if find_pending else ():
            self._collect(trial)

    def verdict(self) -> RunVerdict:
        return verdict(self.run)

    def record(self, grades: Sequence[Grade]) -> None:
        """Store grades, all or none, and update the outcomes of the trials and the verdict of the run."""
        by_address = {grade.address: grade for grade in grades}
        changed = []
        for place in dict.fromkeys((grade.address.suite, grade.address.case, grade.address.trial) for grade in grades):
            trial = self._store.trial(self._trials[place])
            _require_pending(trial, by_address)
            scores = Scores(_apply_grade(score, by_address.get(_address(trial, score))) for score in trial.scores)
            outcome, _ = trial_outcome(scores, self._criteria[trial.suite])
            changed.append((self._trials[place], replace(trial, scores=scores, outcome=outcome)))
        updated = {trial.position: TrialSummary.of(trial) for _, trial in changed}
        run = replace(self.run, summaries=[updated.get(summary.position, summary) for summary in self.run.summaries])
        record_verdict(run, verdict(run))
        self._store.update_scores(run, changed)
        self.run = run
        self.pending = [item for item in self.pending if item.address not in by_address]
        self.other_scores |= {_address(trial, score): score for _, trial in changed for score in trial.scores}

    def _collect(self, trial: Trial) -> None:
        for score in trial.scores:
            address = _address(trial, score)
            if score.outcome is Outcome.PENDING:
                self.pending.append(_pending_score(trial, score, address))
            else:
                self.other_scores[address] = score


def read_gradebook(folder: Path, run: str) -> Gradebook:
    """The gradebook of a run, to look at its pending scores."""
    return Gradebook(Store(folder, create=False), run)


@contextmanager
def open_gradebook(folder: Path, run: str) -> Iterator[Gradebook]:
    """The gradebook of a run, for grading; the run is locked for other processes."""
    store = Store(folder, create=False)
    try:
        if is_file_name(run):
            raise UsageError(f"{run} is a file; import it into a store first: `proctor runs import {run}`")
        run_id = store.find_run(run).id
        with exclusive_run(store, run_id):
            yield Gradebook(store, run_id)
    finally:
        store.close()


def _require_pending(trial: Trial, grades: Mapping[ScoreAddress, Grade]) -> None:
    """Raise `StoreError` rather than overwrite a grade: the lock of a run cannot stop every other process."""
    for score in trial.scores:
        if _address(trial, score) in grades and score.outcome is not Outcome.PENDING:
            raise StoreError(f"{score.evaluator} of case {trial.case.id!r} was graded by somebody else in the meantime")


def _apply_grade(score: Score, grade: Grade | None) -> Score:
    if grade is None or score.outcome is not Outcome.PENDING:
        return score
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return replace(
        score,
        outcome=Outcome.PASSED if passes(grade.score, _threshold(score)) else Outcome.FAILED,
        value=grade.score,
        reasoning=grade.reasoning,
        details={**score.details, GRADED_BY: grade.grader, GRADED_AT: when},
    )


def _address(trial: Trial, score: Score) -> ScoreAddress:
    return ScoreAddress(trial.suite, trial.case.id, trial.number, score.turn, score.evaluator)


def _threshold(score: Score) -> float:
    """The threshold of a score; scores of early versions do not have one."""
    return threshold_in_force(DEFAULT_THRESHOLD, entry=score.threshold)


def pending_score(trial: Trial, score: Score) -> PendingScore:
    """A score with everything that a grader needs to see."""
    return _pending_score(trial, score, _address(trial, score))


def _pending_score(trial: Trial, score: Score, address: ScoreAddress) -> PendingScore:
    details: Mapping[str, Json] = score.details
    turns = trial.case.turns if score.turn is None else trial.case.turns[score.turn :][:1]
    replies = trial.replies if score.turn is None else trial.replies[score.turn :][:1]
    questions = [_question(trial.case, turn) for turn in turns]
    answers = [to_json(reply.answer) for reply in replies]
    return PendingScore(
        address,
        criteria=str(details.get("criteria") or _evaluator_summary(trial, score) or score.reasoning),
        question=questions[0] if len(questions) == 1 else questions,
        answer=answers[0] if len(questions) == 1 and answers else answers,
        threshold=_threshold(score),
        expected=turns[-1].expected.output if turns else UNSET,
        material={**_instructions(trial, score), **_passages(turns, replies)},
        pending_because=score.reasoning if score.outcome is Outcome.PENDING else "",
    )


def _evaluator_summary(trial: Trial, score: Score) -> str:
    """What a shipped evaluator checks, in one sentence; "" for own code."""
    spec = _spec(trial, score)
    name = score.evaluator if spec is None else spec.shipped_name
    return declaration_of(shipped_class(name)).summary if name in shipped_evaluators() else ""


def _instructions(trial: Trial, score: Score) -> dict[str, Json]:
    """What the suite tells the evaluator in words: criteria, rubric, steps; not its numbers and switches."""
    spec = _spec(trial, score)
    if spec is None:
        return {}
    texts = {name: value for name, value in spec.arguments.items() if isinstance(value, (str, list, tuple, Mapping))}
    shown = score.details.get("criteria")
    return {
        name.replace("_", " ").capitalize(): to_json(value) for name, value in texts.items() if value and value != shown
    }


def _spec(trial: Trial, score: Score) -> EvaluatorSpec | None:
    """The entry of the suite that a score comes from; `None` if the case does not list it."""
    own = () if score.turn is None or score.turn >= len(trial.case.turns) else trial.case.turns[score.turn].evaluators
    title = NUMBERED_TITLE.sub("", score.evaluator)
    specs = (*(own or ()), *(trial.case.evaluators or ()))
    return next((spec for spec in specs if spec.title in (score.evaluator, title)), None)


def _passages(turns: Sequence[Turn], replies: Sequence[Reply]) -> dict[str, Json]:
    """The passages of the case, and those that the agent retrieved."""
    context = [passage for turn in turns for passage in turn.expected.context or ()]
    retrieved: list[str] = []
    for turn, reply in zip_longest(turns, replies):
        own = None if turn is None else turn.retrieval_context
        retrieved += own if own is not None else () if reply is None else reply.retrieval_context or ()
    named = {"Context": to_json(context), "Retrieved passages": to_json(retrieved)}
    return {title: passages for title, passages in named.items() if passages}


def _question(case: Case, turn: Turn) -> Json:
    """The input of a turn, or the named inputs of the case if the turn has none."""
    if turn.input is None and case.inputs:
        return {item.name: to_json(item.value) for item in case.inputs}
    return to_json(turn.input)


SCORE_WORDS = {"pass": 1.0, "fail": 0.0}
GRADE_KEYS = ("suite", "case", "trial", "turn", "evaluator", "score", "reasoning", "grader")
CONTEXT_KEYS = ("schema", "criteria", "question", "expected", "answer", "threshold", "material")
"""Keys of a row that are only shown to the grader; they are ignored when rows are read."""

MAX_QUOTE = 60
"""How many characters of a wrong value a message quotes."""


class BadGrade(Exception):
    """A grade that is not valid; the message says why."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """One row of a file, and where it is."""

    place: str
    data: Json


def grading_row(item: PendingScore) -> dict[str, Json]:
    """A row to fill in: `score` and `reasoning` are empty."""
    address = item.address
    row: dict[str, Json] = {
        "suite": address.suite,
        "case": address.case,
        "trial": address.trial,
        "turn": address.turn,
        "evaluator": address.evaluator,
        "criteria": item.criteria,
        "question": item.question,
        "answer": item.answer,
        "threshold": item.threshold,
        "score": None,
        "reasoning": "",
    }
    if item.expected is not UNSET:
        row["expected"] = to_json(item.expected)
    if item.material:
        row["material"] = to_json(item.material)
    return row


def parse_rows(text: str, source: str) -> list[FileRow]:
    """The rows of a JSON list, or one per line; raises `UsageError` with every line that is not JSON."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return _parse_lines(text, source)
    if isinstance(whole, list):
        return [FileRow(f"{source}: row {number}", data) for number, data in enumerate(whole, 1)]
    return [FileRow(f"{source}: row 1", whole)]


def _parse_lines(text: str, source: str) -> list[FileRow]:
    rows, problems = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{source}:{number}"
        try:
            rows.append(FileRow(place, json.loads(line)))
        except (ValueError, RecursionError) as error:
            problems.append(f"{place}: is not valid JSON: {error}")
    if problems:
        raise UsageError(_join_problems(problems))
    return rows


def read_grades(rows: Sequence[FileRow], book: Gradebook, grader: str) -> list[Grade]:
    """The grades in rows; a row whose score is null stays pending. Raises `UsageError` with all problems."""
    grades: dict[ScoreAddress, Grade] = {}
    problems: list[str] = []
    for row in rows:
        try:
            grade = _read_grade(row.data, book, grader)
            if grade is not None and grade.address in grades:
                raise BadGrade("an earlier row has a grade for the same score")
        except BadGrade as problem:
            problems.append(f"{row.place}: {problem}")
            continue
        if grade is not None:
            grades[grade.address] = grade
    if problems:
        raise UsageError(_join_problems(problems))
    if not grades:
        raise UsageError("no row has a score")
    return list(grades.values())


def read_score(value: Any) -> float:
    """The score of a row: a number between 0 and 1, pass or fail."""
    if isinstance(value, str) and value.strip().lower() in SCORE_WORDS:
        return SCORE_WORDS[value.strip().lower()]
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0.0 <= number <= 1.0:
        raise BadGrade(f"score must be a number between 0 and 1, pass or fail, not {_quote(value)}")
    return number


def _quote(value: Any) -> str:
    """A value as text, short enough for a message."""
    return to_text(to_json(value), MAX_QUOTE)


def _read_grade(data: Json, book: Gradebook, grader: str) -> Grade | None:
    if not isinstance(data, dict):
        raise BadGrade(f"must be an object with case, evaluator and score, not {_quote(data)}")
    for key in data:
        if key not in GRADE_KEYS + CONTEXT_KEYS:
            raise BadGrade(f"unknown key {_quote(key)}{did_you_mean(key, GRADE_KEYS)}")
    if "score" not in data:
        raise BadGrade("has no score; null leaves it pending")
    address = _find_score(data, book)
    if data["score"] is None:
        return None
    reasoning, by = data.get("reasoning"), data.get("grader")
    for name, text in (("reasoning", reasoning), ("grader", by)):
        if text is not None and not isinstance(text, str):
            raise BadGrade(f"{name} must be text, not {_quote(text)}")
    return Grade(address, read_score(data["score"]), reasoning or "", by or grader)


def _find_score(data: dict[str, Json], book: Gradebook) -> ScoreAddress:
    """The one pending score that a row identifies; raises `BadGrade` if there is none or more than one."""
    for name in ("case", "evaluator"):
        if not isinstance(data.get(name), str):
            raise BadGrade(f"must have {name!r}")
    matches = [item.address for item in book.pending if _matches(data, item.address)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = [name for name in ("suite", "trial", "turn") if len({getattr(a, name) for a in matches}) > 1]
        raise BadGrade(f"matches {len(matches)} scores; add {' and '.join(names)}")
    raise BadGrade(_why_not_found(data, book))


def _matches(data: dict[str, Json], address: ScoreAddress) -> bool:
    return all(
        name not in data or (type(data[name]), data[name]) == (type(getattr(address, name)), getattr(address, name))
        for name in ("suite", "case", "trial", "turn", "evaluator")
    )


def _why_not_found(data: dict[str, Json], book: Gradebook) -> str:
    done = [score for address, score in book.other_scores.items() if _matches(data, address)]
    what = f"{_quote(data['evaluator'])} of case {_quote(data['case'])}"
    if done:
        return f"{what} does not need a grade: {_describe_score(done[0])}"
    addresses = [item.address for item in book.pending] + list(book.other_scores)
    for name in ("suite", "case", "evaluator"):
        names = [getattr(address, name) for address in addresses]
        if name in data and data[name] not in names:
            return f"run {book.run.id} has no {name} {_quote(data[name])}{did_you_mean(str(data[name]), names)}"
    return f"{what} is not in run {book.run.id} with this {' and '.join(n for n in ('trial', 'turn') if n in data)}"


def _describe_score(score: Score) -> str:
    text = score.outcome.value if score.value is None else f"{score.outcome.value} with {score.value:g}"
    return f"{text}, graded by {score.details[GRADED_BY]}" if GRADED_BY in score.details else text


def _join_problems(problems: Sequence[str]) -> str:
    count = len(problems)
    return "\n".join([*problems, f"{count} problem{'s' if count != 1 else ''}; nothing was graded"])
