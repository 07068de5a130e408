"""What makes a build red: the result of the gate in words, and the failing cases with file and line.

`gate_lines` is what every report says about the gate. `findings` are the failing cases, and what else makes the
build red, as GitHub's annotations and GitLab's code quality report show them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from proctor.base.infrastructure import missing_keys
from proctor.base.json_data import Json
from proctor.cases.identity import CaseAddress
from proctor.gate.new_cases import new_cases_verdict
from proctor.gate.verdict import case_text, evidence_text, is_unmeasured, suite_wide_text, world_text
from proctor.reporting.failing_cases import case_positions_in, failing_cases
from proctor.reporting.terminal.screen import escape_control
from proctor.reporting.wording import plural
from proctor.results.gate_result import CaseStatus, GatedCaseResult, GateResult, GateVerdict, WorldChange
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.verdict import RunVerdict, deciding_suites, expired_quarantine_text, suites_of_old_version

MAX_GATE_CASES = 30
STATUS_LABELS = {
    CaseStatus.REGRESSED: "regressed",
    CaseStatus.UNDECIDED: "unclear",
    CaseStatus.IMPROVED: "improved",
    CaseStatus.CLEARED: "cleared on re-run",
    CaseStatus.FAILS_ON_BOTH: "fails with both versions",
    CaseStatus.UNCHANGED: "unchanged",
    CaseStatus.NEW: "new",
    CaseStatus.UNMEASURED: "errors",
    CaseStatus.QUARANTINED: "quarantined",
}
STATUS_OUTCOMES = {
    CaseStatus.REGRESSED: Outcome.FAILED,
    CaseStatus.UNDECIDED: Outcome.PENDING,
    CaseStatus.IMPROVED: Outcome.PASSED,
    CaseStatus.UNMEASURED: Outcome.ERROR,
    CaseStatus.FAILS_ON_BOTH: Outcome.PENDING,
}
GATE_VERDICT_LABELS = {
    GateVerdict.REGRESSION: "REGRESSION",
    GateVerdict.NEW_CASE_FAILS: "A NEW CASE FAILS",
    GateVerdict.NO_REGRESSION: "NO REGRESSION",
    GateVerdict.WORLD_CHANGED: "THE WORLD CHANGED",
    GateVerdict.INCONCLUSIVE: "INCONCLUSIVE",
    GateVerdict.ERROR: "ERROR",
}


@dataclass(frozen=True, slots=True)
class GateLine:
    """One line about the gate: a label and a text."""

    label: str
    text: str
    outcome: Outcome | None = None


def gate_lines(run: Run) -> list[GateLine]:
    """What the gate found, the worst first; empty for a run without a gate."""
    gate = run.gate
    if gate is None:
        return []
    order = list(STATUS_LABELS)
    cases = sorted((case for case in gate.cases if case.is_notable), key=lambda case: order.index(case.status))
    lines = [
        GateLine(STATUS_LABELS[case.status], gate_case_text(gate, case), STATUS_OUTCOMES.get(case.status))
        for case in cases
    ]
    if len(lines) > MAX_GATE_CASES:
        rest = plural(len(lines) - MAX_GATE_CASES, "more case")
        lines = [*lines[:MAX_GATE_CASES], GateLine("and", f"{rest}; the JSON report has all of them")]
    if gate.suite_wide.proven:
        lines.append(GateLine("suite-wide", suite_wide_text(gate), Outcome.FAILED))
    lines += [
        GateLine("no baseline", f"{plural(count, 'case')}: {reason}")
        for reason, count in _missing_baselines(gate).items()
    ]
    if gate.against:
        lines += _two_version_lines(gate)
    lines.append(GateLine("baseline", gate_effort_text(gate)))
    return lines


def gate_effort_text(gate: GateResult) -> str:
    """The baseline, the number of extra trials, and the false-alarm rate of the gate."""
    extra = f"{plural(gate.extra_trials, 'extra trial')} (limit {gate.max_trials} per case)"
    stopped = f"; stopped: {gate.stopped}" if gate.stopped else ""
    return f"{gate.baseline}; {extra}; false-alarm rate at most {100 * gate.alpha:g}%{stopped}"


def _model_lines(world: WorldChange) -> list[GateLine]:
    """The models then and now, if they are known of both."""
    then, now = world.models_then, world.models_now
    if not then or not now:
        return []
    if set(now) <= set(then):
        return [GateLine("models", f"{', '.join(now)}, as in the baseline")]
    return [GateLine("models", f"{', '.join(now)} now, {', '.join(then)} in the baseline", Outcome.PENDING)]


def _two_version_lines(gate: GateResult) -> list[GateLine]:
    """What to know about a comparison of two versions."""
    lines = []
    if gate.world is not None:
        lines.append(GateLine("world", world_text(gate), Outcome.PENDING))
        lines += _model_lines(gate.world)
    if not gate.answers_vary:
        lines.append(GateLine("answers", "both versions repeat their answers word for word, so few trials decide"))
    if gate.looks_cached:
        note = "answers repeat word for word although they vary in the baseline; a cache would make the verdict wrong"
        lines.append(GateLine("cached?", note, Outcome.PENDING))
    if gate.suite_wide.rounds:
        lines.append(GateLine("searched", f"for a drop of all pass rates by {100 * gate.visible_drop:.0f} points"))
    lines.append(GateLine("against", f"{gate.against}, side by side in random order"))
    return lines


def gate_case_text(gate: GateResult, case: GatedCaseResult) -> str:
    """What the gate found about a case, and where its conversation first differs from one that passed."""
    text = case_text(case, gate.against)
    return text if case.divergence is None else f"{text}; diverges at {case.divergence}"


def _missing_baselines(gate: GateResult) -> dict[str, int]:
    """How many cases have no baseline, by reason."""
    counts: dict[str, int] = {}
    for case in gate.with_status(CaseStatus.NEW):
        counts[case.no_baseline_because] = counts.get(case.no_baseline_because, 0) + 1
    return counts


MAX_ANNOTATIONS = 10
"""GitHub shows this many errors per step."""
MAX_TEXT = 300


@dataclass(frozen=True, slots=True)
class Finding:
    """A case that did not pass, with its file and line, or what else makes the build red."""

    suite: str
    case_id: str
    """The case; empty for what concerns the whole suite."""
    outcome: Outcome
    reason: str
    path: str | None
    """The file of the case, relative to the root of the repository; `None` for a file outside of it."""
    line: int | None
    decides: bool
    """Whether it makes the build red; the criteria of a suite may let some cases fail."""
    is_unclear: bool = False
    """Whether the gate could not decide about it."""
    is_regression: bool = False
    """Whether the gate found that it got worse."""
    is_world_change: bool = False
    """Whether it fails with the old version as well, where the baseline did not."""

    @property
    def name(self) -> str:
        """The suite and the case."""
        return f"{self.suite}/{self.case_id}" if self.case_id else self.suite


def reasons_besides_cases(run: Run, verdict: RunVerdict, *, case_failed: bool) -> dict[tuple[str, str], str]:
    """Why the build is red, apart from cases that failed, by suite and case (empty: the whole suite).

    These are expired quarantines and a suite-wide regression. `case_failed` says whether the report shows a failure
    that makes the build red; if it shows none, and there is no such reason either, the reason of the run is one: no
    report is silent about a red build. A gate that could not decide is one too: its exit code is not 0.
    """
    old = suites_of_old_version(run)
    reasons = {
        (info.name, item.case): expired_quarantine_text(item)
        for info in run.suites
        for item in info.quarantined
        if item.expired and info.name not in old
    }
    if not run.suites:
        return reasons
    whole = _whole_suite(run)
    if run.gate is not None and run.gate.suite_wide.proven:
        reasons[whole] = suite_wide_text(run.gate)
    is_red = verdict.outcome is Outcome.FAILED or (run.gate is not None and verdict.outcome is not Outcome.PASSED)
    if is_red and not reasons and not case_failed:
        red = next((suite.name for suite in verdict.suites if suite.outcome is verdict.outcome), whole[0])
        reasons[red, ""] = verdict.reason
    return reasons


def _whole_suite(run: Run) -> CaseAddress:
    """Where what concerns all cases is reported: the first suite."""
    old = suites_of_old_version(run)
    return next(info.name for info in run.suites if info.name not in old), ""


def findings(run: Run, verdict: RunVerdict, environ: Mapping[str, str]) -> list[Finding]:
    """The cases that did not pass, suite by suite, failures before errors; without those in quarantine.

    In a gated run, a case is a finding if the gate says so, not if it failed. Cases that fail because the world changed
    are findings that do not decide.
    """
    failing = _failing_cases(run, verdict)
    reasons = _reasons(run, verdict, set(failing))
    if run.gate is not None and run.gate.world is not None and not run.gate.world.cases:
        whole = _whole_suite(run)
        failing[whole], reasons[whole] = _Failing(Outcome.FAILED, is_world_change=True), world_text(run.gate)
    besides = reasons_besides_cases(run, verdict, case_failed=any(item.is_shown for item in failing.values()))
    red = Outcome.ERROR if verdict.outcome is Outcome.ERROR else Outcome.FAILED
    is_unclear = verdict.outcome is Outcome.PENDING
    failing |= dict.fromkeys(besides, _Failing(red, decides=not is_unclear, is_unclear=is_unclear))
    reasons |= besides
    infos = {info.name: info for info in run.suites}
    positions = {suite: case_positions_in(infos[suite]) for suite in dict.fromkeys(suite for suite, _ in failing)}
    items = []
    for (suite, case_id), item in failing.items():
        # What went wrong, then how sure the gate is that it was not always so.
        reason = "; ".join(text for text in (reasons.get((suite, case_id), ""), item.evidence) if text)
        position = positions[suite].get(case_id)
        path = _repository_path(infos[suite].path if position is None else str(position.path), environ)
        line = None if position is None else position.line
        items.append(
            Finding(
                suite,
                case_id,
                item.outcome,
                reason,
                path,
                line,
                item.decides,
                is_unclear=item.is_unclear,
                is_regression=item.is_regression,
                is_world_change=item.is_world_change,
            )
        )
    return sorted(items, key=lambda item: (not item.decides, item.outcome is Outcome.ERROR))


def decisive_cases(run: Run, verdict: RunVerdict) -> set[CaseAddress]:
    """The cases because of which a gated run is not green: they regressed, may have, or could not be measured."""
    return {
        address for address, item in _failing_cases(run, verdict).items() if item.is_shown and not item.is_world_change
    }


@dataclass(frozen=True, slots=True)
class _Failing:
    """A case that did not pass, and what that means for the build."""

    outcome: Outcome
    decides: bool = False
    evidence: str = ""
    """What the gate says about it."""
    is_unclear: bool = False
    is_regression: bool = False
    is_world_change: bool = False

    @property
    def is_shown(self) -> bool:
        """Whether a reader of the report sees with it why the build is not green."""
        return self.decides or self.is_unclear or self.is_world_change


def _failing_cases(run: Run, verdict: RunVerdict) -> dict[CaseAddress, _Failing]:
    """The cases that did not pass; in a gated run, those that the gate counts.

    Cases of arms that are there for comparison are no findings, unless such an arm is why the run has no verdict.
    """
    if run.gate is not None:
        return _gate_findings(run, verdict)
    is_error = verdict.outcome is Outcome.ERROR
    deciding = {info.name for info in run.suites} if is_error else deciding_suites(run.suites)
    return {
        (suite.name, case.case_id): _Failing(case.outcome, decides=suite.outcome is not Outcome.PASSED)
        for suite in verdict.suites
        for case in suite.cases
        if case.outcome in (Outcome.FAILED, Outcome.ERROR) and not case.quarantined and suite.name in deciding
    }


def _gate_findings(run: Run, verdict: RunVerdict) -> dict[CaseAddress, _Failing]:
    """The cases without a baseline that fail, those without a result, and those that look worse."""
    assert run.gate is not None
    gate, items = run.gate, dict[CaseAddress, _Failing]()
    measured = _new_case_outcomes(run) | {case.address: Outcome.ERROR for case in gate.cases if is_unmeasured(case)}
    for suite in verdict.suites:
        for case in suite.cases:
            outcome = measured.get((suite.name, case.case_id))
            if outcome in (Outcome.FAILED, Outcome.ERROR):
                is_red = suite.outcome is not Outcome.PASSED
                items[suite.name, case.case_id] = _Failing(outcome, decides=is_red)
    for found in gate.with_status(CaseStatus.REGRESSED, CaseStatus.UNDECIDED, CaseStatus.FAILS_ON_BOTH):
        items[found.address] = _Failing(
            Outcome.FAILED,
            decides=found.status is CaseStatus.REGRESSED,
            evidence=evidence_text(found, gate.against),
            is_unclear=found.status is CaseStatus.UNDECIDED,
            is_regression=found.status is CaseStatus.REGRESSED,
            is_world_change=found.status is CaseStatus.FAILS_ON_BOTH,
        )
    return items


def _new_case_outcomes(run: Run) -> dict[CaseAddress, Outcome]:
    """The outcomes of the cases without a baseline, as the gate sees them."""
    assert run.gate is not None
    new = {case.address for case in run.gate.with_status(CaseStatus.NEW)}
    outcomes: dict[CaseAddress, Outcome] = {}
    for info in run.suites:
        trials = [item for item in run.summaries if item.suite == info.name and (item.suite, item.case_id) in new]
        outcomes |= {(info.name, case.case_id): case.outcome for case in new_cases_verdict(info, trials).cases}
    return outcomes


def _reasons(run: Run, verdict: RunVerdict, addresses: set[CaseAddress]) -> dict[CaseAddress, str]:
    """By suite and id: why each of these cases did not pass."""
    cases = failing_cases(run, verdict, only=addresses, limit=MAX_TEXT) if addresses else []
    return {(case.suite, case.case_id): case.headline for case in cases}


def _repository_path(path: str | None, environ: Mapping[str, str]) -> str | None:
    """The path of a suite relative to the root of the repository."""
    if path is None:
        return None
    root = Path(environ.get("GITHUB_WORKSPACE") or environ.get("CI_PROJECT_DIR") or ".").resolve()
    try:
        absolute = Path(path).resolve()
    except (OSError, ValueError):  # not a path, in a run from elsewhere
        return None
    return absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else None


def annotation_lines(findings: list[Finding]) -> Iterator[str]:
    """GitHub's workflow commands that show each finding at its line; the text of a finding is escaped."""
    for item in findings[:MAX_ANNOTATIONS]:
        kind = "error" if item.decides else "warning"
        location = {} if item.path is None else {"file": item.path, "line": str(item.line or 1)}
        result = "may have regressed" if item.is_unclear else "failed"
        result = "ended in an error" if item.outcome is Outcome.ERROR else result
        result = "fails with the old version as well" if item.is_world_change else result
        values = {**location, "title": f"{item.name} {result}"}
        properties = ",".join(f"{name}={_property(value)}" for name, value in values.items())
        yield f"::{kind} {properties}::{_data(item.reason or result)}"
    if len(findings) > MAX_ANNOTATIONS:
        more = plural(len(findings) - MAX_ANNOTATIONS, "more case")
        yield f"::notice title=Proctor::{more} did not pass; the reports have all of them"


def secret_lines(findings: list[Finding], environment: Mapping[str, str]) -> Iterator[str]:
    """Where to set each key that is missing in this job, on GitHub and GitLab; nothing elsewhere."""
    reasons = [item.reason for item in findings if item.outcome is Outcome.ERROR]
    for name in dict.fromkeys(name for reason in reasons for name in missing_keys(reason)[:1]):
        if environment.get("GITHUB_ACTIONS") == "true":
            advice = (
                f"Add a secret called {name} under Settings > Secrets and variables > Actions, and pass it to the step "
                f"as env: {{{name}: ${{{{ secrets.{name} }}}}}}. Pull requests from forks get no secrets."
            )
            yield f"::error title={name} is not set::{_data(advice)}"
        elif environment.get("GITLAB_CI") == "true":
            yield f"error: {name} is not set; add it as a masked variable under Settings > CI/CD > Variables"


def _data(text: str) -> str:
    return escape_control(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text[:MAX_TEXT]).replace(":", "%3A").replace(",", "%2C")


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write GitLab's code quality report: a JSON list with one entry per case that did not pass."""
    entries = [_code_quality_entry(item) for item in findings(run, verdict, os.environ)]
    out.write(json.dumps(entries, indent=2) + "\n")


def _code_quality_entry(item: Finding) -> dict[str, Json]:
    return {
        "description": f"{item.name}: {item.reason}" if item.reason else item.name,
        "check_name": "proctor",
        "fingerprint": hashlib.sha256(f"{item.path}\0{item.name}".encode("utf-8", "backslashreplace")).hexdigest(),
        "severity": "minor" if item.outcome is Outcome.ERROR or not item.decides else "major",
        "location": {"path": item.path or item.suite, "lines": {"begin": item.line or 1}},
    }
