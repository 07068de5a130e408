"""What makes a build red: what the gate found, in words, and the cases with their places, for GitHub and GitLab."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from proctor.base.json_data import Json
from proctor.gate.verdict import case_text, suite_wide_text
from proctor.reporting.failing_cases import case_positions_in, failing_cases
from proctor.reporting.terminal.screen import escape_control
from proctor.reporting.wording import plural
from proctor.results.gate_result import CaseStatus, GatedCaseResult, GateResult, GateVerdict
from proctor.results.run import Outcome, Run
from proctor.results.verdict import RunVerdict

MAX_GATE_CASES = 30
STATUS_LABELS = {
    CaseStatus.REGRESSED: "worse",
    CaseStatus.UNDECIDED: "in doubt",
    CaseStatus.IMPROVED: "better",
    CaseStatus.CLEARED: "as usual after all",
    CaseStatus.UNCHANGED: "as usual",
    CaseStatus.NEW: "new",
    CaseStatus.UNMEASURED: "not measured",
    CaseStatus.QUARANTINED: "in quarantine",
}
STATUS_OUTCOMES = {
    CaseStatus.REGRESSED: Outcome.FAILED,
    CaseStatus.UNDECIDED: Outcome.PENDING,
    CaseStatus.IMPROVED: Outcome.PASSED,
    CaseStatus.UNMEASURED: Outcome.ERROR,
}
GATE_VERDICT_LABELS = {
    GateVerdict.REGRESSION: "REGRESSION",
    GateVerdict.NO_REGRESSION: "NO REGRESSION",
    GateVerdict.INCONCLUSIVE: "INCONCLUSIVE",
    GateVerdict.ERROR: "ERROR",
}


@dataclass(frozen=True, slots=True)
class GateLine:
    """One statement about the gate: what it is about, and what is said."""

    label: str
    text: str
    outcome: Outcome | None = None


def gate_lines(run: Run) -> list[GateLine]:
    """What a person wants to read about the gate, the worst first; empty for a run that was not gated."""
    gate = run.gate
    if gate is None:
        return []
    order = list(STATUS_LABELS)
    told = sorted((case for case in gate.cases if case.is_notable), key=lambda case: order.index(case.status))
    lines = [GateLine(STATUS_LABELS[case.status], _case_line(case), STATUS_OUTCOMES.get(case.status)) for case in told]
    if len(lines) > MAX_GATE_CASES:
        rest = plural(len(lines) - MAX_GATE_CASES, "more case")
        lines = [*lines[:MAX_GATE_CASES], GateLine("and", f"{rest}; the JSON report has all of them")]
    if gate.suite_wide.proven:
        lines.append(GateLine("drift", suite_wide_text(gate), Outcome.FAILED))
    lines += [GateLine("no past", f"{plural(count, 'case')}: {why}") for why, count in _missing_baselines(gate).items()]
    lines.append(GateLine("held against", gate_effort_text(gate)))
    return lines


def gate_effort_text(gate: GateResult) -> str:
    """Where the past comes from and what the answer cost."""
    asked = f"{plural(gate.extra_trials, 'further trial')}, at most {gate.max_trials} a case"
    stopped = f"; stopped: {gate.stopped}" if gate.stopped else ""
    return f"{gate.baseline}; {asked}; chance of a red build without a regression at most {gate.alpha:.1%}{stopped}"


def _case_line(case: GatedCaseResult) -> str:
    text = case_text(case)
    return text if case.divergence is None else f"{text}; parts at {case.divergence}"


def _missing_baselines(gate: GateResult) -> dict[str, int]:
    found: dict[str, int] = {}
    for case in gate.with_status(CaseStatus.NEW):
        found[case.no_baseline_because] = found.get(case.no_baseline_because, 0) + 1
    return found


MAX_ANNOTATIONS = 10
"""GitHub shows so many errors of a step."""
MAX_TEXT = 300


@dataclass(frozen=True, slots=True)
class Finding:
    """One case that did not pass, and where it stands."""

    suite: str
    case_id: str
    outcome: Outcome
    reason: str
    path: str | None
    """Of the file that the case is in, from the root of the repository; `None` for one that is outside of it."""
    line: int | None
    decides: bool
    """Whether it makes the build red; a suite may let some cases fail."""
    in_doubt: bool = False
    """Whether the gate is not sure of it yet."""


def findings(run: Run, verdict: RunVerdict, environ: Mapping[str, str]) -> list[Finding]:
    """What went wrong, suite by suite; failures before errors. Cases in quarantine decide nothing and are left out."""
    wrong, told = _wrong_cases(run, verdict), _gate_findings(run)
    if run.gate is not None:
        unknown = {case.address for case in run.gate.with_status(CaseStatus.NEW, CaseStatus.UNMEASURED)}
        wrong = {address: item for address, item in wrong.items() if address in unknown}
        wrong |= {address: (Outcome.FAILED, not in_doubt) for address, (_, in_doubt) in told.items()}
    reasons = _reasons(run, verdict, {address for address in wrong if address not in told})
    red = {suite for suite, _ in wrong}
    infos = {info.name: info for info in run.suites}
    positions = {name: case_positions_in(info) for name, info in infos.items() if name in red}
    found = []
    for (suite, case_id), (outcome, decides) in wrong.items():
        reason, in_doubt = told.get((suite, case_id), (reasons.get((suite, case_id), ""), False))
        position = positions.get(suite, {}).get(case_id)
        path = infos[suite].path if position is None else str(position.path)
        line = None if position is None else position.line
        found.append(Finding(suite, case_id, outcome, reason, _repository_path(path, environ), line, decides, in_doubt))
    return sorted(found, key=lambda item: (not item.decides, item.outcome is Outcome.ERROR))


def _wrong_cases(run: Run, verdict: RunVerdict) -> dict[tuple[str, str], tuple[Outcome, bool]]:
    """By suite and id: the outcome, and whether the suite is red for it."""
    return {
        (suite.name, case.case_id): (case.outcome, suite.outcome is not Outcome.PASSED)
        for suite in verdict.suites
        for case in suite.cases
        if case.outcome in (Outcome.FAILED, Outcome.ERROR) and not case.quarantined
    }


def _gate_findings(run: Run) -> dict[tuple[str, str], tuple[str, bool]]:
    """By suite and id: what the gate says of cases that got worse, and whether that is in doubt."""
    cases = () if run.gate is None else run.gate.with_status(CaseStatus.REGRESSED, CaseStatus.UNDECIDED)
    return {case.address: (case_text(case), case.status == CaseStatus.UNDECIDED) for case in cases}


def _reasons(run: Run, verdict: RunVerdict, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """By suite and id: why each case went wrong."""
    cases = failing_cases(run, verdict, only=wanted, limit=MAX_TEXT) if wanted else []
    return {(case.suite, case.case_id): case.headline for case in cases}


def _repository_path(path: str | None, environ: Mapping[str, str]) -> str | None:
    """The path of a suite as the repository knows it."""
    if path is None:
        return None
    root = Path(environ.get("GITHUB_WORKSPACE") or environ.get("CI_PROJECT_DIR") or ".").resolve()
    own = Path(path).resolve()
    return own.relative_to(root).as_posix() if own.is_relative_to(root) else None


def annotation_lines(found: list[Finding]) -> Iterator[str]:
    """GitHub's workflow commands, which show each finding at its line; nothing in a finding can end its command."""
    for item in found[:MAX_ANNOTATIONS]:
        kind = "error" if item.decides else "warning"
        place = {} if item.path is None else {"file": item.path, "line": str(item.line or 1)}
        verdict = "may be worse" if item.in_doubt else "failed"
        word = "could not be measured" if item.outcome is Outcome.ERROR else verdict
        told = {**place, "title": f"{item.suite}/{item.case_id} {word}"}
        properties = ",".join(f"{name}={_property(value)}" for name, value in told.items())
        yield f"::{kind} {properties}::{_data(item.reason or word)}"
    if len(found) > MAX_ANNOTATIONS:
        more = plural(len(found) - MAX_ANNOTATIONS, "more case")
        yield f"::notice title=Proctor::{more} did not pass; the reports have all of them"


def _data(text: str) -> str:
    return escape_control(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text[:MAX_TEXT]).replace(":", "%3A").replace(",", "%2C")


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write one entry a case; an empty list where everything passed."""
    entries = [_code_quality_entry(item) for item in findings(run, verdict, os.environ)]
    out.write(json.dumps(entries, indent=2) + "\n")


def _code_quality_entry(item: Finding) -> dict[str, Json]:
    name = f"{item.suite}/{item.case_id}"
    return {
        "description": f"{name}: {item.reason}" if item.reason else name,
        "check_name": "proctor",
        "fingerprint": hashlib.sha256(f"{item.path}\0{name}".encode("utf-8", "backslashreplace")).hexdigest(),
        "severity": "minor" if item.outcome is Outcome.ERROR or not item.decides else "major",
        "location": {"path": item.path or item.suite, "lines": {"begin": item.line or 1}},
    }
