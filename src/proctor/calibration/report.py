"""The result of a calibration as JSON and as text, always next to that of plain word overlap."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from proctor.base.json_data import Json, to_json, to_text
from proctor.calibration.labelled_rows import word_overlap
from proctor.calibration.measurement import Measurement, UnjudgedRow
from proctor.calibration.statistics import Retest, auc, retest
from proctor.cases.threshold import passes
from proctor.reporting.wording import plural
from proctor.results.agreement import Interval, JudgeAgreement, SuggestedThreshold, judge_agreement, suggest_threshold
from proctor.results.judge_calibration import Calibration
from proctor.results.statistics import Estimate, estimate

MAX_REASONS = 3
"""Maximum reasons shown for rows that were not judged."""
UNDEFINED_TEXT = "undefined: people gave all these rows the same label"


@dataclass(frozen=True, slots=True)
class WordOverlap:
    """The result of plain word overlap, which a judge has to beat."""

    name: str
    auc: Estimate | None
    threshold: SuggestedThreshold | None


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """How well a judge agrees with people. The fields are also keys of its JSON."""

    agreement: JudgeAgreement
    auc: Estimate | None
    suggestion: SuggestedThreshold | None
    at_own_threshold: JudgeAgreement | None
    """Agreement at the evaluator's own threshold, on the half of the rows that checks the suggested one."""
    retest: Retest | None
    baseline: WordOverlap | None
    coverage: Estimate | None
    """The share of rows that the judge scored, of those that it scored or abstained from."""
    risk_coverage: tuple[RiskAtCoverage, ...]


@dataclass(frozen=True, slots=True)
class RiskAtCoverage:
    """How often the judge is wrong on the rows whose scores are furthest from the threshold."""

    coverage: float
    rows: int
    risk: float


def _risk_coverage(calibration: Calibration, rows: int) -> tuple[RiskAtCoverage, ...]:
    """The risk at each tenth of the rows, the surest scores first, up to all rows that were judged."""
    surest = sorted(
        (
            (abs(score - calibration.threshold), passes(score, calibration.threshold) != label)
            for score, label in _pairs(calibration)
        ),
        key=lambda pair: -pair[0],
    )
    counts = sorted({*(rows * tenth // 10 for tenth in range(1, 11)), len(surest)})
    return tuple(
        RiskAtCoverage(count / rows, count, sum(wrong for _, wrong in surest[:count]) / count)
        for count in counts
        if 0 < count <= len(surest)
    )


def _pairs(calibration: Calibration) -> list[tuple[float, bool]]:
    return list(zip(calibration.scores, calibration.labels, strict=True))


def calibration_report(measurement: Measurement) -> CalibrationReport:
    """Compute the report; raises `ValueError` if no row was judged."""
    calibration = measurement.calibration
    verdicts = [passes(score, calibration.threshold) for score in calibration.scores]
    suggestion = calibration.suggestion()
    again = measurement.again
    return CalibrationReport(
        judge_agreement(verdicts, calibration.labels),
        auc(calibration.scores, calibration.labels),
        suggestion,
        None if suggestion is None else judge_agreement(verdicts[1::2], calibration.labels[1::2]),
        retest(*zip(*[[passes(each, calibration.threshold) for each in both] for both in again], strict=True))
        if again
        else None,
        _word_overlap(measurement),
        estimate([*(1.0 for _ in calibration.rows), *(0.0 for _ in range(_abstention_count(measurement)))]),
        _risk_coverage(calibration, len(calibration.rows) + _abstention_count(measurement)),
    )


def _abstention_count(measurement: Measurement) -> int:
    return sum(row.outcome == "pending" for row in measurement.unjudged)


def _word_overlap(measurement: Measurement) -> WordOverlap | None:
    overlap = word_overlap(measurement.rows)
    if overlap is None:
        return None
    name, shares = overlap
    labels = measurement.calibration.labels
    return WordOverlap(name, auc(shares, labels), suggest_threshold(shares, labels))


def calibration_data(measurement: Measurement, unlabelled: int) -> dict[str, Json]:
    """The report as JSON, without the rows, which are in the store."""
    calibration = measurement.calibration
    data: dict[str, Json] = {
        "judge": calibration.judge,
        "evaluator": calibration.evaluator,
        "threshold": calibration.threshold,
        "prompt_versions": dict(calibration.versions),
        "data": {
            "source": calibration.source,
            "fingerprint": calibration.data,
            "rows": len(calibration.rows),
            "unlabelled": unlabelled,
        },
        "binding": to_json(calibration.binding),
        "unjudged": [to_json(row) for row in measurement.unjudged],
    }
    if not calibration.rows:
        return data
    report = to_json(calibration_report(measurement))
    return {**data, **report, "usual": report["at_own_threshold"]}  # "usual": the name of earlier releases


def calibration_lines(measurement: Measurement, unlabelled: int) -> list[str]:
    """The report as lines of text."""
    calibration = measurement.calibration
    if not calibration.rows:
        return [
            f"{calibration.judge} judged none of the rows of {calibration.source}",
            *_unscored_lines(measurement.unjudged, unlabelled),
        ]
    report = calibration_report(measurement)
    agreement = report.agreement
    single = max(agreement.base_rate, 1 - agreement.base_rate)
    lines = [
        f"{calibration.judge} as judge of {calibration.evaluator} (threshold {calibration.threshold:g}): "
        f"{plural(len(calibration.rows), 'row')} of {calibration.source}, "
        f"{agreement.base_rate:.1%} labelled good by people",
        "",
        _line("coverage", report.coverage, f"the judge abstained from {plural(_abstention_count(measurement), 'row')}"),
        _line("accuracy", agreement.accuracy, f"{single:.3f} for always giving the same answer"),
        _line("Cohen's kappa", agreement.kappa, "0 means no better than chance"),
        _line("true-positive rate", agreement.true_positive_rate, "share of good rows that the judge passed"),
        _line("true-negative rate", agreement.true_negative_rate, "share of bad rows that the judge failed"),
        _line("AUC", report.auc, "how often a good row scores above a bad one"),
        _retest_line(measurement, report),
        *_baseline_lines(report.baseline),
        "",
        *_threshold_lines(report),
        "",
        "risk by coverage, the surest scores first:",
        *(f"  {at.coverage:7.1%} of rows  {at.risk:6.1%} wrong" for at in report.risk_coverage),
    ]
    return [*lines, *_unscored_lines(measurement.unjudged, unlabelled)]


def _line(title: str, value: Estimate | Interval | None, remark: str) -> str:
    return f"  {title:<20}{UNDEFINED_TEXT if value is None else f'{value!s:<22}{remark}'}"


def _retest_line(measurement: Measurement, report: CalibrationReport) -> str:
    if report.retest is not None:
        flips = report.retest.flips
        calibration, rows = measurement.calibration, plural(flips.count, "row")
        flipped = f"{calibration.flips_at(calibration.threshold):,} of {rows} judged twice"
        return _line("flips when retested", flips, f"{flipped}; 95% of scores moved by {calibration.noise:.2f} or less")
    text = "never: this judge always gives the same answer" if measurement.again is None else "not measured"
    return f"  {'flips when retested':<20}{text}"


def _baseline_lines(baseline: WordOverlap | None) -> list[str]:
    if baseline is None:
        return []
    lines = [_line("word overlap, AUC", baseline.auc, f"without a judge: {baseline.name}")]
    if baseline.threshold is not None:
        checked = baseline.threshold.checked_on
        remark = f"at {baseline.threshold.value:.3f}, chosen on the other half"
        lines.append(_line("word overlap, acc.", checked.accuracy, remark))
    return lines


def _threshold_lines(report: CalibrationReport) -> list[str]:
    suggestion, own = report.suggestion, report.at_own_threshold
    if suggestion is None or own is None:
        return ["no suggested threshold: each half of the rows needs both good and bad ones"]
    checked = suggestion.checked_on
    return [
        f"suggested threshold {suggestion.value:.3f}, chosen on {plural(suggestion.chosen_on.count, 'row')}; "
        f"on the other {checked.count:,}:",
        _line("accuracy", checked.accuracy, f"at its own threshold: {own.accuracy.mean:.3f}"),
        _line(
            "Cohen's kappa", checked.kappa, "" if own.kappa is None else f"at its own threshold: {own.kappa.value:.3f}"
        ),
    ]


def _unscored_lines(unjudged: tuple[UnjudgedRow, ...], unlabelled: int) -> list[str]:
    lines = []
    for outcome, noun in (
        ("pending", "undecided by the judge"),
        ("error", "not judged because of an error"),
        ("skipped", "with nothing to judge"),
    ):
        reasons = Counter(to_text(row.reason, 200) for row in unjudged if row.outcome == outcome)
        if reasons:
            lines.append(f"{plural(reasons.total(), 'row')} {noun} (not counted):")
            lines += [f"  {count:,} × {reason}" for reason, count in reasons.most_common(MAX_REASONS)]
    if unlabelled:
        lines.append(f"{plural(unlabelled, 'row')} without a label (not counted)")
    return ["", *lines] if lines else []
