"""What is left of a run's pass rates once the known mistakes of its judges are taken out."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from proctor.errors import StoreError
from proctor.records import record
from proctor.results.agreement import CorrectedRate, corrected_pass_rate
from proctor.results.calibrations import Calibration, Calibrations, prompt_versions
from proctor.results.model import Outcome, Run
from proctor.results.statistics import Estimate, estimate
from proctor.results.store import FILE


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
        return {}  # a report says what it can; that the store is broken is said by whoever reads trials from it


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
