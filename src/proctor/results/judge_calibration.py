"""Calibrations of judges against people's labels, and the pass rates of a run corrected by them.

`proctor calibrate` stores a `Calibration`. Reports ask `corrections(run)`, which finds the calibrations that fit the
scores of the run (same evaluator, arguments, judge and prompt versions) and corrects the pass rates.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.base.errors import StoreError
from proctor.base.json_data import Json
from proctor.cases.encoding import dumps
from proctor.cases.threshold import TOLERANCE, passes
from proctor.results.agreement import (
    CorrectedRate,
    JudgeAgreement,
    SuggestedThreshold,
    corrected_pass_rate,
    judge_agreement,
    suggest_threshold,
)
from proctor.results.judge_usage import judge_calls, judge_name
from proctor.results.run import Run
from proctor.results.score import JUDGE_DETAIL, Outcome, Score
from proctor.results.statistics import Estimate, estimate
from proctor.results.store.database import Database
from proctor.results.store.store import DATABASE_FILE
from proctor.results.store.text_columns import decode_text, encode_text
from proctor.results.trial import Trial

SAME_THRESHOLD = 0.005
"""Thresholds this close count as the same: people type the rounded number that a report shows."""


@dataclass(frozen=True, slots=True)
class LabelledScore:
    """One labelled row: the judge's score, and whether people passed it."""

    id: str
    score: float
    label: bool


@dataclass(frozen=True, slots=True)
class Calibration:
    """A judge's scores of rows that people labelled. A threshold is chosen on every other row."""

    judge: str
    evaluator: str
    fingerprint: str
    """The fingerprint of evaluator, arguments and judge, the same as that of the scores of a run."""
    threshold: float
    versions: Mapping[str, int]
    """By kind of judge question: the version of its prompt."""
    data: str
    """The fingerprint of the rows."""
    source: str
    rows: tuple[LabelledScore, ...]
    created_at: float = 0.0
    again: tuple[tuple[float, float], ...] | None = ()
    """Both scores of rows that were judged twice; `None` for a judge that always answers the same."""

    @property
    def scores(self) -> list[float]:
        return [row.score for row in self.rows]

    @property
    def labels(self) -> list[bool]:
        return [row.label for row in self.rows]

    def suggestion(self) -> SuggestedThreshold | None:
        """The best threshold on one half of the rows, with the agreement on the other."""
        return suggest_threshold(self.scores, self.labels) if len(self.rows) > 1 else None

    def agreement_at(self, threshold: float) -> JudgeAgreement:
        """How far the judge agrees with people at a threshold.

        For the suggested threshold, only the half on which it was not chosen counts.
        """
        suggested = self.suggestion()
        if suggested is not None and abs(suggested.value - threshold) <= SAME_THRESHOLD and threshold != self.threshold:
            return suggested.checked_on
        return judge_agreement([passes(score, threshold) for score in self.scores], self.labels)

    def flips_at(self, threshold: float) -> int:
        """How many of the rows that were judged twice passed once and failed once."""
        return sum(passes(first, threshold) != passes(second, threshold) for first, second in self.again or ())

    @property
    def noise(self) -> float:
        """How far a score moves if the row is judged again: 95 % of the rows judged twice moved no further."""
        moves = sorted(abs(first - second) for first, second in self.again or ())
        return moves[math.ceil(0.95 * len(moves)) - 1] if moves else 0.0

    def fits(self, versions: Mapping[str, int]) -> bool:
        """Whether scores with these prompt versions were judged in the same way as the labelled rows."""
        return all(self.versions.get(kind, version) == version for kind, version in versions.items())


def prompt_versions(details: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """By kind of judge question: the version of its prompt, from the details of scores."""
    versions: dict[str, int] = {}
    for item in details:
        judge = item.get(JUDGE_DETAIL)
        for call in judge_calls(judge) if isinstance(judge, Mapping) else ():
            if isinstance(call.get("kind"), str) and isinstance(call.get("version"), int):
                versions[call["kind"]] = call["version"]
    return versions


class Calibrations:
    """The calibrations in a store."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path)

    def close(self) -> None:
        self._database.close()

    def add(self, calibration: Calibration) -> None:
        """Store a calibration, next to earlier ones."""
        content: dict[str, Json] = {
            "threshold": calibration.threshold,
            "versions": dict(calibration.versions),
            "source": calibration.source,
            "rows": [[row.id, row.score, row.label] for row in calibration.rows],
            "again": None if calibration.again is None else [list(both) for both in calibration.again],
        }
        with self._database.transaction():
            self._database.execute(
                "INSERT INTO calibrations (created_at, judge, evaluator, fingerprint, data, content)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    time.time(),
                    encode_text(calibration.judge),
                    encode_text(calibration.evaluator),
                    calibration.fingerprint,
                    calibration.data,
                    dumps(content),
                ),
            )

    def fingerprints(self) -> set[str]:
        """The fingerprints that have a calibration; most stores have none."""
        return {key for (key,) in self._database.read("SELECT DISTINCT fingerprint FROM calibrations")}

    def latest(self, fingerprints: Collection[str]) -> dict[str, list[Calibration]]:
        """By fingerprint: its calibrations, the latest first."""
        calibrations: dict[str, list[Calibration]] = {}
        for key, created_at, judge, evaluator, data, content in self._database.read(
            "SELECT fingerprint, created_at, judge, evaluator, data, content FROM calibrations ORDER BY no DESC"
        ):
            if key in fingerprints:
                with self._database.store_errors("read"):
                    calibration = _calibration(created_at, judge, evaluator, key, data, content)
                    calibrations.setdefault(key, []).append(calibration)
        return calibrations


def _calibration(created: float, judge: str, evaluator: str, key: str, data: str, content: str) -> Calibration:
    stored = json.loads(content)
    repeated = stored.get("again", ())
    return Calibration(
        judge=decode_text(judge),
        evaluator=decode_text(evaluator),
        fingerprint=key,
        threshold=stored["threshold"],
        versions=stored["versions"],
        data=data,
        source=stored["source"],
        rows=tuple(LabelledScore(*row) for row in stored["rows"]),
        created_at=created,
        again=None if repeated is None else tuple((first, second) for first, second in repeated),
    )


@dataclass(frozen=True, slots=True)
class NearVerdict:
    """A score so close to its threshold that the same judge might decide otherwise if it were asked again."""

    suite: str
    case: str
    number: int
    turn: int | None
    value: float


@dataclass(frozen=True, slots=True)
class Correction:
    """The corrected pass rate of one evaluator of a run."""

    evaluator: str
    judge: str
    threshold: float
    observed: Estimate
    corrected: CorrectedRate
    rows: int
    """Number of labelled rows."""
    measured_at: float
    true_positive_rate: Estimate | None
    """The share that the judge passed of what people passed; `None` if they passed nothing."""
    true_negative_rate: Estimate | None
    retested: int | None
    """Number of rows that were judged twice; `None` for a judge that always answers the same."""
    flipped: int
    """How many of these passed once and failed once."""
    noise: float
    """How far a score moves if the row is judged again."""
    near: tuple[NearVerdict, ...]


def corrections(run: Run) -> list[Correction]:
    """The observed and the corrected pass rate of each evaluator that has a calibration; most runs have none."""
    calibrations = _calibrations(run)
    if not calibrations:
        return []
    scores_by_judge: dict[tuple[str, float], list[tuple[Trial, Score]]] = {}
    used: dict[tuple[str, float], Calibration] = {}
    for trial in run.trials:
        for score in trial.scores:
            if score.outcome not in (Outcome.PASSED, Outcome.FAILED) or score.threshold is None:
                continue
            versions = prompt_versions([score.details])
            fitting = (item for item in calibrations.get(score.fingerprint, ()) if item.fits(versions))
            if (calibration := next(fitting, None)) is not None:
                key = (score.fingerprint, score.threshold)
                used.setdefault(key, calibration)
                scores_by_judge.setdefault(key, []).append((trial, score))
    return [_correction(used[key], key[1], scores) for key, scores in scores_by_judge.items()]


def uncalibrated_judges(run: Run, corrections: Sequence[Correction]) -> dict[str, list[str]]:
    """By judge of the run: the evaluators for which it has no calibration. An empty list means all of them."""
    calibrated = {(item.judge, item.evaluator) for item in corrections}
    judges = [judge.model for judge in run.judges if judge.scores]
    if not calibrated or not judges:
        return {name: [] for name in judges}
    evaluators: dict[str, list[str]] = {}
    for trial in run.trials:
        for score in trial.scores:
            name = judge_name(score) if score.value is not None else ""
            if name and score.evaluator not in evaluators.setdefault(name, []):
                evaluators[name].append(score.evaluator)
    missing = {name: [item for item in evaluators.get(name, ()) if (name, item) not in calibrated] for name in judges}
    return {name: [] if names == evaluators.get(name) else names for name, names in missing.items() if names}


def _calibrations(run: Run) -> dict[str, list[Calibration]]:
    path = None if run.store is None else Path(run.store) / DATABASE_FILE
    if not run.judges or path is None or not path.is_file():
        return {}
    try:
        with closing(Calibrations(path)) as calibrations:
            calibrated = calibrations.fingerprints()
            if not calibrated:
                return {}
            return calibrations.latest(
                {score.fingerprint for trial in run.trials for score in trial.scores} & calibrated
            )
    except StoreError:
        return {}  # a broken store is reported when trials are read; a report can do without corrections


def _correction(calibration: Calibration, threshold: float, scores: list[tuple[Trial, Score]]) -> Correction:
    observed = estimate(
        [float(score.outcome is Outcome.PASSED) for _, score in scores],
        groups=[f"{trial.suite}/{trial.case.id}" for trial, _ in scores],
    )
    agreement = calibration.agreement_at(threshold)
    if observed is None:
        raise ValueError("there is nothing to correct")
    noise = calibration.noise
    return Correction(
        scores[0][1].evaluator,
        judge_name(scores[0][1]) or calibration.judge,
        threshold,
        observed,
        corrected_pass_rate(observed, agreement),
        agreement.count,
        calibration.created_at,
        agreement.true_positive_rate,
        agreement.true_negative_rate,
        None if calibration.again is None else len(calibration.again),
        calibration.flips_at(threshold),
        noise,
        tuple(
            NearVerdict(trial.suite, trial.case.id, trial.number, score.turn, score.value)
            for trial, score in scores
            if noise and score.value is not None and abs(score.value - threshold) <= noise + TOLERANCE
        ),
    )
