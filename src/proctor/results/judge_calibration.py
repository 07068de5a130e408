"""Calibrations of judges against people's labels, and the pass rates of a run corrected by them.

`proctor calibrate` stores a `Calibration` together with what it depends on: the judge and its settings, the evaluator's
arguments (a rubric, criteria), the versions of the prompts, the file of labelled rows, and a date. Reports ask
`review_calibrations(run)`. `stale_reason` decides whether a calibration holds for the scores of the run; one that does
not is reported with what changed, and corrects nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.base.errors import StoreError
from proctor.base.json_data import Json, canonical, to_json
from proctor.cases.encoding import dumps
from proctor.cases.evaluator_specs import write_option
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


VALID_DAYS = 180
"""How long a calibration holds, unless `proctor calibrate --valid-days` says otherwise: models change behind a name."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What a calibration depends on. The fields are also the keys under which it is stored."""

    judge: Json
    """The identity of the judge: model, settings, version of the rules."""
    arguments: Json
    """The arguments of the evaluator, such as a rubric."""
    rows_file: str
    rows_digest: str
    """SHA-256 of the file of labelled rows."""
    valid_days: float = VALID_DAYS
    served: Sequence[str] = ()
    """The models that the provider said it used, if these are other names: dated versions behind an alias."""


@dataclass(frozen=True, slots=True)
class JudgedScores:
    """How the scores of one evaluator in a run came about, as far as the run stores it."""

    judge: str
    fingerprint: str
    """Of the evaluator, its arguments and its judge."""
    versions: Mapping[str, int]
    """By kind of judge question: the version of its prompt."""
    arguments: Json
    """The arguments of the evaluator; `None` if they are not known."""
    judged_at: float
    served: Sequence[str] = ()
    option: str = ""
    """The evaluator with its arguments, as `proctor calibrate -e` takes it."""


def stale_reason(calibration: Calibration, scores: JudgedScores) -> str:
    """Why a calibration does not hold for these scores; "" if it does."""
    binding = calibration.binding
    if calibration.judge != scores.judge:
        return f"the judge is now {scores.judge}"
    changed = [
        f"{kind} (version {calibration.versions[kind]}, now {version})"
        for kind, version in scores.versions.items()
        if calibration.versions.get(kind, version) != version
    ]
    if changed:
        return f"the prompt changed: {', '.join(changed)}"
    if binding is None:
        return "an earlier Proctor stored it without what it depends on"
    if scores.arguments is not None and scores.arguments != binding.arguments:
        return f"the criteria or other arguments of {calibration.evaluator} changed"
    if calibration.fingerprint != scores.fingerprint:
        return f"the evaluator, the settings or the version of the judge changed; it was {canonical(binding.judge)}"
    if scores.served and binding.served and set(scores.served) != set(binding.served):
        return f"the model behind the name is now {', '.join(scores.served)} (it was {', '.join(binding.served)})"
    if (digest := file_digest(Path(binding.rows_file))) and digest != binding.rows_digest:
        return f"the rows in {calibration.source} changed"
    days = (scores.judged_at - calibration.created_at) / 86_400
    return f"it is {days:.0f} days old, and holds for {binding.valid_days:g}" if days > binding.valid_days else ""


def file_digest(path: Path) -> str:
    """SHA-256 of a file; "" if it cannot be read, which proves no change."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


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
    binding: Binding | None = None
    """What it depends on; `None` if an earlier Proctor stored it."""

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


def prompt_versions(details: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """By kind of judge question: the version of its prompt, from the details of scores."""
    versions: dict[str, int] = {}
    for item in details:
        judge = item.get(JUDGE_DETAIL)
        for call in judge_calls(judge) if isinstance(judge, Mapping) else ():
            if isinstance(call.get("kind"), str) and isinstance(call.get("version"), int):
                versions[call["kind"]] = call["version"]
    return versions


def served_models(details: Iterable[Mapping[str, Any]]) -> list[str]:
    """The models that the provider said it used, from the details of scores; often empty."""
    judges = (item.get(JUDGE_DETAIL) for item in details)
    calls = (call for judge in judges if isinstance(judge, Mapping) for call in judge_calls(judge))
    return sorted({call["served"] for call in calls if isinstance(call.get("served"), str)})


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
            "binding": to_json(calibration.binding),
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

    def latest(self, evaluators: Collection[str]) -> dict[str, list[Calibration]]:
        """By evaluator: its calibrations, the latest first; most stores have none."""
        calibrations: dict[str, list[Calibration]] = {}
        for key, created_at, judge, evaluator, data, content in self._database.read(
            "SELECT fingerprint, created_at, judge, evaluator, data, content FROM calibrations ORDER BY no DESC"
        ):
            if (name := decode_text(evaluator)) in evaluators:
                with self._database.store_errors("read"):
                    calibration = _calibration(created_at, judge, evaluator, key, data, content)
                    calibrations.setdefault(name, []).append(calibration)
        return calibrations


def _calibration(created: float, judge: str, evaluator: str, key: str, data: str, content: str) -> Calibration:
    stored = json.loads(content)
    repeated, binding = stored.get("again", ()), stored.get("binding")
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
        binding=None if binding is None else Binding(**binding),
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


@dataclass(frozen=True, slots=True)
class StaleCalibration:
    """A calibration that is not used, why not, and how to make a new one. The fields are also the keys of its JSON."""

    evaluator: str
    judge: str
    """The judge that was calibrated."""
    measured_at: float
    reason: str
    command: str


@dataclass(frozen=True, slots=True)
class CalibrationReview:
    """What is known of the judges of a run: corrected pass rates, and calibrations that do not hold any more."""

    corrections: tuple[Correction, ...] = ()
    stale: tuple[StaleCalibration, ...] = ()


def review_calibrations(run: Run) -> CalibrationReview:
    """The corrected pass rate of each evaluator that has a calibration, and stale calibrations; most runs have none."""
    calibrations = _calibrations(run)
    groups: dict[tuple[str, str, float], list[tuple[Trial, Score]]] = {}
    for trial in run.trials if calibrations else ():
        for score in trial.scores:
            is_decided = score.outcome in (Outcome.PASSED, Outcome.FAILED) and score.threshold is not None
            if is_decided and score.evaluator in calibrations and judge_name(score):
                key = (score.evaluator, score.fingerprint, score.threshold or 0.0)
                groups.setdefault(key, []).append((trial, score))
    corrected: list[Correction] = []
    stale: dict[str, StaleCalibration] = {}
    for (evaluator, _, threshold), scores in groups.items():
        judged = _judged_scores(run, scores)
        reasons = [(item, stale_reason(item, judged)) for item in calibrations[evaluator]]
        valid = next((item for item, reason in reasons if not reason), None)
        if valid is not None:
            corrected.append(_correction(valid, threshold, scores))
        else:
            stale.setdefault(evaluator, _stale(*_nearest(reasons, judged), judged))
    return CalibrationReview(tuple(corrected), tuple(stale.values()))


def _judged_scores(run: Run, scores: Sequence[tuple[Trial, Score]]) -> JudgedScores:
    trial, score = scores[0]
    specs = [*(trial.case.evaluators or ()), *(spec for turn in trial.case.turns for spec in turn.evaluators or ())]
    spec = next((spec for spec in specs if spec.title == score.evaluator), None)
    details = [item.details for _, item in scores]
    return JudgedScores(
        judge_name(score),
        score.fingerprint,
        prompt_versions(details),
        None if spec is None else to_json(spec.arguments),
        run.started_at,
        served_models(details),
        score.evaluator if spec is None else write_option(spec),
    )


def _nearest(reasons: Sequence[tuple[Calibration, str]], judged: JudgedScores) -> tuple[Calibration, str]:
    """The latest calibration of the same judge, or the latest of all."""
    return next(((item, reason) for item, reason in reasons if item.judge == judged.judge), reasons[0])


def _judge_argument(calibration: Calibration, judged: JudgedScores) -> str:
    """The judge as `proctor calibrate` takes it: with its settings, if it is still the same."""
    identity = None if calibration.binding is None else calibration.binding.judge
    members: Sequence[Mapping[str, Json]] = identity.get("judges", ()) if isinstance(identity, Mapping) else ()
    has_settings = len(members) == 1 and members[0].keys() - {"model", "version"}
    return canonical(members[0]) if has_settings and calibration.judge == judged.judge else judged.judge


def _stale(calibration: Calibration, reason: str, judged: JudgedScores) -> StaleCalibration:
    rows = calibration.source if calibration.binding is None else calibration.binding.rows_file
    words = ["proctor", "calibrate", _judge_argument(calibration, judged), rows, "-e", judged.option]
    return StaleCalibration(calibration.evaluator, calibration.judge, calibration.created_at, reason, shlex.join(words))


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
            return calibrations.latest({score.evaluator for trial in run.trials for score in trial.scores})
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
