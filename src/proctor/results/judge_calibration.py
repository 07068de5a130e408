"""Calibrations of judges, measured against people's labels, and the pass rates of a run corrected by them."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from proctor.base.errors import StoreError
from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.cases.suite import passes
from proctor.results.agreement import (
    CorrectedRate,
    JudgeAgreement,
    Threshold,
    corrected_pass_rate,
    judge_agreement,
    suggest_threshold,
)
from proctor.results.case_encoding import dumps
from proctor.results.database import Database
from proctor.results.encoding import decode_text, encode_text
from proctor.results.judge_calls import DETAIL, calls_of
from proctor.results.run import Outcome, Run
from proctor.results.statistics import Estimate, estimate
from proctor.results.store import FILE

NEAR = 0.005
"""Thresholds this close are the same one: people type what they read."""


@record
class Measured:
    """One row: what the judge gave it, and what people say."""

    id: str
    score: float
    label: bool


@record
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
    rows: tuple[Measured, ...]
    created_at: float = 0.0

    @property
    def scores(self) -> list[float]:
        return [row.score for row in self.rows]

    @property
    def labels(self) -> list[bool]:
        return [row.label for row in self.rows]

    def suggestion(self) -> Threshold | None:
        """The threshold that one half suggests, with what it does on the other."""
        return suggest_threshold(self.scores, self.labels) if len(self.rows) > 1 else None

    def agreement_at(self, threshold: float) -> JudgeAgreement:
        """How far verdicts at a threshold agree with people's.

        Of the threshold that was chosen on one half, only the other half can say how good it is.
        """
        suggested = self.suggestion()
        if suggested is not None and abs(suggested.value - threshold) <= NEAR and threshold != self.threshold:
            return suggested.checked_on
        return judge_agreement([passes(score, threshold) for score in self.scores], self.labels)

    def fits(self, versions: Mapping[str, int]) -> bool:
        """Whether verdicts that rest on prompts of these versions came about as the measured ones did."""
        return all(self.versions.get(kind, version) == version for kind, version in versions.items())


def prompt_versions(details: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """By kind of question: the version of the prompt that evaluations rest on."""
    found: dict[str, int] = {}
    for each in details:
        account = each.get(DETAIL)
        for call in calls_of(account) if isinstance(account, Mapping) else ():
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
        }
        with self._database.writing():
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

    def latest(self, fingerprints: Collection[str]) -> dict[str, list[Calibration]]:
        """By fingerprint, of these: what was measured, the latest first."""
        found: dict[str, list[Calibration]] = {}
        for key, created_at, judge, evaluator, data, content in self._database.read(
            "SELECT fingerprint, created_at, judge, evaluator, data, content FROM calibrations ORDER BY no DESC"
        ):
            if key in fingerprints:
                with self._database.guard("read"):
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
        rows=tuple(Measured(*row) for row in kept["rows"]),
        created_at=created,
    )


@record
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


def corrections(run: Run) -> list[Correction]:
    """For each evaluator whose judge was measured with it: the pass rate, seen and corrected. Mostly there are none."""
    known = _calibrations(run)
    if not known:
        return []
    passed: dict[tuple[str, float], list[tuple[str, float]]] = {}
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
                passed.setdefault(key, []).append((f"{trial.suite}/{trial.case.id}", score.outcome is Outcome.PASSED))
    return [_correction(used[key], key[1], values) for key, values in passed.items()]


def _calibrations(run: Run) -> dict[str, list[Calibration]]:
    path = None if run.store is None else Path(run.store) / FILE
    if not run.judges or path is None or not path.is_file():
        return {}
    try:
        with closing(Calibrations(path)) as kept:
            return kept.latest({score.fingerprint for trial in run.trials for score in trial.scores})
    except StoreError:
        return {}  # reading the trials reports a broken store; the rest of a report needs no corrections


def _correction(calibration: Calibration, threshold: float, values: list[tuple[str, float]]) -> Correction:
    observed = estimate([float(value) for _, value in values], groups=[case for case, _ in values])
    agreement = calibration.agreement_at(threshold)
    if observed is None:
        raise ValueError("there is nothing to correct")
    return Correction(
        calibration.evaluator,
        calibration.judge,
        threshold,
        observed,
        corrected_pass_rate(observed, agreement),
        agreement.count,
        calibration.created_at,
    )
