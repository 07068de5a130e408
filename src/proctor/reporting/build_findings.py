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
from proctor.gate.verdict import case_text, evidence_text, suite_wide_text, world_text
from proctor.reporting.failing_cases import case_positions_in, failing_cases
from proctor.reporting.terminal.screen import escape_control
from proctor.reporting.wording import plural
from proctor.results.gate_result import CaseStatus, GatedCaseResult, GateResult, GateVerdict
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.verdict import RunVerdict, deciding_suites, expired_quarantine_text

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


def _two_version_lines(gate: GateResult) -> list[GateLine]:
    """What to know about a comparison of two versions."""
    lines = []
    if gate.world is not None:
        lines.append(GateLine("world", world_text(gate), Outcome.PENDING))
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

    @property
    def name(self) -> str:
        """The suite and the case."""
        return f"{self.suite}/{self.case_id}" if self.case_id else self.suite


def reasons_besides_cases(run: Run, verdict: RunVerdict, *, case_failed: bool) -> dict[tuple[str, str], str]:
    """Why the build is red, apart from cases that failed, by suite and case (empty: the whole suite).

    These are expired quarantines and a suite-wide regression. `case_failed` says whether the report shows a failure
    that makes the build red; if it shows none, and there is no such reason either, the reason of the run is one: no
    report is silent about a red build.
    """
    reasons = {
        (info.name, item.case): expired_quarantine_text(item)
        for info in run.suites
        for item in info.quarantined
        if item.expired
    }
    if not run.suites:
        return reasons
    whole = (run.suites[0].name, "")
    if run.gate is not None and run.gate.suite_wide.proven:
        reasons[whole] = suite_wide_text(run.gate)
    if verdict.outcome is Outcome.FAILED and not reasons and not case_failed:
        red = next((suite.name for suite in verdict.suites if suite.outcome is Outcome.FAILED), whole[0])
        reasons[red, ""] = verdict.reason
    return reasons


def findings(run: Run, verdict: RunVerdict, environ: Mapping[str, str]) -> list[Finding]:
    """The cases that did not pass, suite by suite, failures before errors; without those in quarantine.

    In a gated run, a case with a baseline is a finding if the gate says so, not if it failed.
    """
    failing, gated = _failing_cases(run, verdict), _gate_findings(run)
    if run.gate is not None:
        ungated = {case.address for case in run.gate.with_status(CaseStatus.NEW, CaseStatus.UNMEASURED)}
        failing = {address: item for address, item in failing.items() if address in ungated}
        failing |= {address: (Outcome.FAILED, not is_unclear) for address, (_, is_unclear) in gated.items()}
    reasons = _reasons(run, verdict, set(failing))
    case_failed = any(decides and outcome is Outcome.FAILED for outcome, decides in failing.values())
    besides = reasons_besides_cases(run, verdict, case_failed=case_failed)
    failing |= dict.fromkeys(besides, (Outcome.FAILED, True))
    reasons |= besides
    red = {suite for suite, _ in failing}
    infos = {info.name: info for info in run.suites}
    positions = {name: case_positions_in(info) for name, info in infos.items() if name in red}
    items = []
    for (suite, case_id), (outcome, decides) in failing.items():
        reason, is_unclear = reasons.get((suite, case_id), ""), False
        if (suite, case_id) in gated and (suite, case_id) not in besides:
            evidence, is_unclear = gated[suite, case_id]
            # What went wrong, then how sure the gate is that it was not always so.
            reason = f"{reason}; {evidence}" if reason else evidence
        position = positions.get(suite, {}).get(case_id)
        path = infos[suite].path if position is None else str(position.path)
        line = None if position is None else position.line
        path = _repository_path(path, environ)
        is_regression = (suite, case_id) in gated and not is_unclear
        items.append(Finding(suite, case_id, outcome, reason, path, line, decides, is_unclear, is_regression))
    return sorted(items, key=lambda item: (not item.decides, item.outcome is Outcome.ERROR))


def _failing_cases(run: Run, verdict: RunVerdict) -> dict[tuple[str, str], tuple[Outcome, bool]]:
    """By suite and id: the outcome, and whether the suite is red for it.

    Cases of arms that are there for comparison are no findings, unless such an arm is why the run has no verdict.
    """
    is_error = verdict.outcome is Outcome.ERROR
    deciding = {info.name for info in run.suites} if is_error else deciding_suites(run.suites)
    return {
        (suite.name, case.case_id): (case.outcome, suite.outcome is not Outcome.PASSED)
        for suite in verdict.suites
        for case in suite.cases
        if case.outcome in (Outcome.FAILED, Outcome.ERROR) and not case.quarantined and suite.name in deciding
    }


def _gate_findings(run: Run) -> dict[tuple[str, str], tuple[str, bool]]:
    """By suite and id: what the gate says about cases that look worse, and whether it could not decide."""
    if run.gate is None:
        return {}
    against, cases = run.gate.against, run.gate.with_status(CaseStatus.REGRESSED, CaseStatus.UNDECIDED)
    return {case.address: (evidence_text(case, against), case.status == CaseStatus.UNDECIDED) for case in cases}


def _reasons(run: Run, verdict: RunVerdict, addresses: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
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
