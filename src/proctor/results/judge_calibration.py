"""Calibrations of judges, measured against people's labels, and the pass rates of a run corrected by them."""

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
from proctor.results.judge_usage import JUDGE_DETAIL, judge_calls, judge_name
from proctor.results.run import Outcome, Run, Score, TrialResult
from proctor.results.statistics import Estimate, estimate
from proctor.results.store.database import Database
from proctor.results.store.store import DATABASE_FILE
from proctor.results.store.text_columns import decode_text, encode_text

SAME_THRESHOLD = 0.005
"""Thresholds this close are the same one: people type what they read."""


@dataclass(frozen=True, slots=True)
class LabelledScore:
    """One row: what the judge gave it, and what people say."""

    id: str
    score: float
    label: bool


@dataclass(frozen=True, slots=True)
class Calibration:
    """A judge's scores beside people's labels. Every other row belongs to the half on which a threshold is chosen."""

    judge: str
    evaluator: str
    fingerprint: str
    """Of evaluator, arguments and judge: the same under which a run keeps its scores."""
    threshold: float
    versions: Mapping[str, int]
    """By kind of question: the version of the prompt."""
    data: str
    """The fingerprint of the rows."""
    source: str
    rows: tuple[LabelledScore, ...]
    created_at: float = 0.0
    again: tuple[tuple[float, float], ...] | None = ()
    """Both scores of rows that were asked twice; `None` for a judge that answers the same each time."""

    @property
    def scores(self) -> list[float]:
        return [row.score for row in self.rows]

    @property
    def labels(self) -> list[bool]:
        return [row.label for row in self.rows]

    def suggestion(self) -> SuggestedThreshold | None:
        """The threshold that one half suggests, with what it does on the other."""
        return suggest_threshold(self.scores, self.labels) if len(self.rows) > 1 else None

    def agreement_at(self, threshold: float) -> JudgeAgreement:
        """How far verdicts at a threshold agree with people's.

        Of the threshold that was chosen on one half, only the other half can say how good it is.
        """
        suggested = self.suggestion()
        if suggested is not None and abs(suggested.value - threshold) <= SAME_THRESHOLD and threshold != self.threshold:
            return suggested.checked_on
        return judge_agreement([passes(score, threshold) for score in self.scores], self.labels)

    def flips_at(self, threshold: float) -> int:
        """How many of the rows that were asked twice got another verdict the second time."""
        return sum(passes(first, threshold) != passes(second, threshold) for first, second in self.again or ())

    @property
    def noise(self) -> float:
        """How far a score may move when the judge is asked again: 95 % of those asked twice moved no further."""
        moved = sorted(abs(first - second) for first, second in self.again or ())
        return moved[math.ceil(0.95 * len(moved)) - 1] if moved else 0.0

    def fits(self, versions: Mapping[str, int]) -> bool:
        """Whether verdicts that rest on prompts of these versions came about as the measured ones did."""
        return all(self.versions.get(kind, version) == version for kind, version in versions.items())


def prompt_versions(details: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """By kind of question: the version of the prompt that evaluations rest on."""
    found: dict[str, int] = {}
    for each in details:
        account = each.get(JUDGE_DETAIL)
        for call in judge_calls(account) if isinstance(account, Mapping) else ():
            if isinstance(call.get("kind"), str) and isinstance(call.get("version"), int):
                found[call["kind"]] = call["version"]
    return found


class Calibrations:
    """The calibrations of a store; made in it when the first one is kept."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path)

    def close(self) -> None:
        self._database.close()

    def add(self, calibration: Calibration) -> None:
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
        """What was ever measured; mostly nothing."""
        return {key for (key,) in self._database.read("SELECT DISTINCT fingerprint FROM calibrations")}

    def latest(self, fingerprints: Collection[str]) -> dict[str, list[Calibration]]:
        """By fingerprint, of these: what was measured, the latest first."""
        found: dict[str, list[Calibration]] = {}
        for key, created_at, judge, evaluator, data, content in self._database.read(
            "SELECT fingerprint, created_at, judge, evaluator, data, content FROM calibrations ORDER BY no DESC"
        ):
            if key in fingerprints:
                with self._database.store_errors("read"):
                    calibration = _calibration(created_at, judge, evaluator, key, data, content)
                    found.setdefault(key, []).append(calibration)
        return found


def _calibration(created: float, judge: str, evaluator: str, key: str, data: str, content: str) -> Calibration:
    kept = json.loads(content)
    return Calibration(
        judge=decode_text(judge),
        evaluator=decode_text(evaluator),
        fingerprint=key,
        threshold=kept["threshold"],
        versions=kept["versions"],
        data=data,
        source=kept["source"],
        rows=tuple(LabelledScore(*row) for row in kept["rows"]),
        created_at=created,
        again=None if kept.get("again", ()) is None else tuple((one, two) for one, two in kept.get("again", ())),
    )


@dataclass(frozen=True, slots=True)
class NearVerdict:
    """A verdict so close to its threshold that the same judge, asked again, may give the other one."""

    suite: str
    case: str
    number: int
    turn: int | None
    value: float


@dataclass(frozen=True, slots=True)
class Correction:
    """One evaluator of a run whose judge was measured."""

    evaluator: str
    judge: str
    threshold: float
    observed: Estimate
    corrected: CorrectedRate
    rows: int
    """How many labelled rows it rests on."""
    measured_at: float
    true_positive_rate: Estimate | None
    """Of what people passed, the share that the judge passed; `None` where people passed nothing."""
    true_negative_rate: Estimate | None
    retested: int | None
    """How many rows were asked twice; `None` for a judge that answers the same each time."""
    flipped: int
    """How many of these got another verdict."""
    noise: float
    """How far a score may move when the judge is asked again."""
    near: tuple[NearVerdict, ...]


def corrections(run: Run) -> list[Correction]:
    """For each evaluator whose judge was measured with it: the pass rate, seen and corrected. Mostly there are none."""
    known = _calibrations(run)
    if not known:
        return []
    judged: dict[tuple[str, float], list[tuple[TrialResult, Score]]] = {}
    used: dict[tuple[str, float], Calibration] = {}
    for trial in run.trials:
        for score in trial.scores:
            if score.outcome not in (Outcome.PASSED, Outcome.FAILED) or score.threshold is None:
                continue
            versions = prompt_versions([score.details])
            found = next((item for item in known.get(score.fingerprint, ()) if item.fits(versions)), None)
            if found is not None:
                key = (score.fingerprint, score.threshold)
                used.setdefault(key, found)
                judged.setdefault(key, []).append((trial, score))
    return [_correction(used[key], key[1], scores) for key, scores in judged.items()]


def uncalibrated_judges(run: Run, found: Sequence[Correction]) -> dict[str, list[str]]:
    """Each judge of a run that was never compared with people, or not for all it judged: for which evaluators.

    An empty list stands for all of them.
    """
    known = {(item.judge, item.evaluator) for item in found}
    judges = [judge.model for judge in run.judges if judge.scores]
    if not known or not judges:
        return {name: [] for name in judges}
    asked: dict[str, list[str]] = {}
    for trial in run.trials:
        for score in trial.scores:
            name = judge_name(score) if score.value is not None else ""
            if name and score.evaluator not in asked.setdefault(name, []):
                asked[name].append(score.evaluator)
    missing = {name: [each for each in asked.get(name, ()) if (name, each) not in known] for name in judges}
    return {name: [] if each == asked.get(name) else each for name, each in missing.items() if each}


def _calibrations(run: Run) -> dict[str, list[Calibration]]:
    path = None if run.store is None else Path(run.store) / DATABASE_FILE
    if not run.judges or path is None or not path.is_file():
        return {}
    try:
        with closing(Calibrations(path)) as kept:
            measured = kept.fingerprints()
            if not measured:
                return {}
            return kept.latest({each.fingerprint for trial in run.trials for each in trial.scores} & measured)
    except StoreError:
        return {}  # reading the trials reports a broken store; the rest of a report needs no corrections


def _correction(calibration: Calibration, threshold: float, scores: list[tuple[TrialResult, Score]]) -> Correction:
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
