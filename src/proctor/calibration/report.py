"""What comparing a judge with people has shown, as data and in words; plain word overlap always stands beside it."""

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
"""How many reasons for rows without a verdict are shown."""
UNDEFINED_TEXT = "undefined: people gave all these rows the same label"


@dataclass(frozen=True, slots=True)
class WordOverlap:
    """What the overlap of words gets, which needs no judgement: a judge has to beat it."""

    name: str
    auc: Estimate | None
    threshold: SuggestedThreshold | None


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """Everything a person wants to know about a judge before trusting it."""

    agreement: JudgeAgreement
    auc: Estimate | None
    suggestion: SuggestedThreshold | None
    at_own_threshold: JudgeAgreement | None
    """At the evaluator's own threshold, on the half that the suggested one is checked on."""
    retest: Retest | None
    baseline: WordOverlap | None
    coverage: Estimate | None
    """The share of rows that the judge gave a verdict on, of those it gave one on or abstained from."""
    risk_coverage: tuple[RiskAtCoverage, ...]


@dataclass(frozen=True, slots=True)
class RiskAtCoverage:
    """How often the judge is wrong if it is heard only where its score is furthest from the threshold."""

    coverage: float
    rows: int
    risk: float


def _risk_coverage(found: Calibration, asked: int) -> tuple[RiskAtCoverage, ...]:
    """At each tenth of the rows, the surest first, up to those that were judged at all."""
    surest = sorted(
        ((abs(score - found.threshold), passes(score, found.threshold) != label) for score, label in _pairs(found)),
        key=lambda pair: -pair[0],
    )
    counts = sorted({*(asked * tenth // 10 for tenth in range(1, 11)), len(surest)})
    return tuple(
        RiskAtCoverage(count / asked, count, sum(wrong for _, wrong in surest[:count]) / count)
        for count in counts
        if 0 < count <= len(surest)
    )


def _pairs(found: Calibration) -> list[tuple[float, bool]]:
    return list(zip(found.scores, found.labels, strict=True))


def report_on(measured: Measurement) -> CalibrationReport:
    """What the rows say; raises `ValueError` where none was judged."""
    found = measured.calibration
    verdicts = [passes(score, found.threshold) for score in found.scores]
    suggestion = found.suggestion()
    again = measured.again
    return CalibrationReport(
        judge_agreement(verdicts, found.labels),
        auc(found.scores, found.labels),
        suggestion,
        None if suggestion is None else judge_agreement(verdicts[1::2], found.labels[1::2]),
        retest(*zip(*[[passes(each, found.threshold) for each in both] for both in again], strict=True))
        if again
        else None,
        _word_overlap(measured),
        estimate([*(1.0 for _ in found.rows), *(0.0 for _ in range(_abstained(measured)))]),
        _risk_coverage(found, len(found.rows) + _abstained(measured)),
    )


def _abstained(measured: Measurement) -> int:
    return sum(row.outcome == "pending" for row in measured.unjudged)


def _word_overlap(measured: Measurement) -> WordOverlap | None:
    overlap = word_overlap(measured.rows)
    if overlap is None:
        return None
    name, shares = overlap
    labels = measured.calibration.labels
    return WordOverlap(name, auc(shares, labels), suggest_threshold(shares, labels))


def calibration_data(measured: Measurement, unlabelled: int) -> dict[str, Json]:
    """The same as JSON; without the rows, which are in the store."""
    found = measured.calibration
    data: dict[str, Json] = {
        "judge": found.judge,
        "evaluator": found.evaluator,
        "threshold": found.threshold,
        "prompt_versions": dict(found.versions),
        "data": {"source": found.source, "fingerprint": found.data, "rows": len(found.rows), "unlabelled": unlabelled},
        "unjudged": [to_json(row) for row in measured.unjudged],
    }
    if not found.rows:
        return data
    report = to_json(report_on(measured))
    return {**data, **report, "usual": report["at_own_threshold"]}  # "usual": the name of earlier releases


def calibration_lines(measured: Measurement, unlabelled: int) -> list[str]:
    """The same in words."""
    found = measured.calibration
    if not found.rows:
        return [
            f"{found.judge} judged none of the rows of {found.source}",
            *_unscored_lines(measured.unjudged, unlabelled),
        ]
    report = report_on(measured)
    agreement = report.agreement
    single = max(agreement.base_rate, 1 - agreement.base_rate)
    lines = [
        f"{found.judge} as judge of {found.evaluator} at {found.threshold:g}, on {plural(len(found.rows), 'row')} "
        f"of {found.source}, of which people passed {agreement.base_rate:.1%}",
        "",
        _line("coverage", report.coverage, f"the judge abstained from {plural(_abstained(measured), 'row')}"),
        _line("accuracy", agreement.accuracy, f"always the same verdict: {single:.3f}"),
        _line("Cohen's kappa", agreement.kappa, "0 is what chance would give"),
        _line("true-positive rate", agreement.true_positive_rate, "of what people passed, the judge passed"),
        _line("true-negative rate", agreement.true_negative_rate, "of what people failed, the judge failed"),
        _line("AUC", report.auc, "how often a good row scores above a bad one"),
        _retest_line(measured, report),
        *_baseline_lines(report.baseline),
        "",
        *_threshold_lines(report),
        "",
        "risk by coverage, the surest verdicts first:",
        *(f"  {at.coverage:7.1%} of rows  {at.risk:6.1%} wrong" for at in report.risk_coverage),
    ]
    return [*lines, *_unscored_lines(measured.unjudged, unlabelled)]


def _line(title: str, value: Estimate | Interval | None, remark: str) -> str:
    return f"  {title:<20}{UNDEFINED_TEXT if value is None else f'{value!s:<22}{remark}'}"


def _retest_line(measured: Measurement, report: CalibrationReport) -> str:
    if report.retest is not None:
        flips = report.retest.flips
        found, asked = measured.calibration, plural(flips.count, "row")
        flipped = f"{found.flips_at(found.threshold):,} of {asked} asked twice"
        return _line("flips when retested", flips, f"{flipped}; 95% of scores moved by {found.noise:.2f} or less")
    said = "never: it answers the same each time" if measured.again is None else "not measured"
    return f"  {'flips when retested':<20}{said}"


def _baseline_lines(baseline: WordOverlap | None) -> list[str]:
    if baseline is None:
        return []
    lines = [_line("word overlap, AUC", baseline.auc, f"no judge at all: {baseline.name}")]
    if baseline.threshold is not None:
        checked = baseline.threshold.checked_on
        remark = f"at {baseline.threshold.value:.3f}, chosen on the other half"
        lines.append(_line("word overlap, acc.", checked.accuracy, remark))
    return lines


def _threshold_lines(report: CalibrationReport) -> list[str]:
    suggestion, own = report.suggestion, report.at_own_threshold
    if suggestion is None or own is None:
        return ["no threshold is suggested: each half of the rows needs both good and bad ones"]
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
        ("pending", "left open by the judge"),
        ("error", "not judged because of an error"),
        ("skipped", "with nothing to judge"),
    ):
        reasons = Counter(to_text(row.reason, 200) for row in unjudged if row.outcome == outcome)
        if reasons:
            lines.append(f"{plural(reasons.total(), 'row')} {noun}, and counted neither as right nor as wrong:")
            lines += [f"  {count:,} × {reason}" for reason, count in reasons.most_common(MAX_REASONS)]
    if unlabelled:
        lines.append(f"{plural(unlabelled, 'row')} without a label left out")
    return ["", *lines] if lines else []
