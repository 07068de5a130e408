"""The run as JUnit XML, one testcase per trial, in the subset that every common schema of it accepts.

Of a gated run, only trials of cases that the gate counts are failures: a green gate has none. What makes the run fail
and is not a trial, such as an expired quarantine, is a testcase too. In that subset a passing testcase has no content.
So the scores of all trials are in the suite's `system-out`, together with what the trials that did not pass printed,
and the mean scores in its properties.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TextIO

from proctor.cases.identity import CaseAddress
from proctor.reporting.build_findings import decisive_cases, gate_case_text, reasons_besides_cases
from proctor.reporting.explain import as_text, explain
from proctor.reporting.wording import (
    flaky_text,
    shown_path,
    suite_counts,
    suites_with_trials,
    trial_name,
    without_machine_paths,
)
from proctor.results.reasons import headline_reason
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict, SuiteVerdict, deciding_suites, suites_of_old_version

_ILLEGAL = re.compile(
    r"[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""Characters that XML does not allow, and those that reorder text."""
_TAGS = {Outcome.FAILED: "failure", Outcome.ERROR: "error", Outcome.SKIPPED: "skipped", Outcome.PENDING: "failure"}
"""JUnit has no word for pending. A skip would be green, so it is a failure of the type `pending`, as in pytest."""


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the report one trial at a time; the counts at the start come from the summaries."""
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n')
    shown = _cases_with_failures(run, verdict)
    reasons = reasons_besides_cases(run, verdict, case_failed=_shows_failure(run, verdict, shown))
    deciding = _suites_with_failures(run, verdict)
    for index, (info, suite_verdict, trials) in enumerate(suites_with_trials(run, verdict)):
        besides = [(case_id, reason) for (suite, case_id), reason in reasons.items() if suite == info.name]
        is_compared = info.name not in deciding
        _open_suite(run, info, suite_verdict, shown, index, len(besides), out, is_compared=is_compared)
        printed: list[str] = []
        for trial in trials:
            if is_compared and trial.outcome in _TAGS:
                _write_compared(trial, out)
                continue
            passes = _counts_as_passed(trial.outcome, (trial.suite, trial.case.id), shown)
            _write_trial(trial, out, printed, passes=passes)
        for case_id, reason in besides:
            _write_failure(info, f"quarantine of {case_id}" if case_id else "verdict", reason, out)
        _close_suite(run, info, suite_verdict, printed, out)
    out.write("</testsuites>\n")


def _suites_with_failures(run: Run, verdict: RunVerdict) -> set[str]:
    """The suites whose trials may fail the build: not those of arms that are there for comparison.

    If such an arm has no result at all, that is why the run has no verdict, and its errors are shown. A gate names that
    reason itself.
    """
    if run.gate is None and verdict.outcome is not Outcome.ERROR:
        return deciding_suites(run.suites)
    return {info.name for info in run.suites} - suites_of_old_version(run)


def _cases_with_failures(run: Run, verdict: RunVerdict) -> set[CaseAddress]:
    """The cases whose trials are shown as they ended: those that did not pass, or that the gate counts.

    The other trials count as passed: by the mean, because of other trials of their case, or because of the gate.
    """
    if run.gate is None:
        deciding = _suites_with_failures(run, verdict)
        cases = (case for suite in verdict.suites for case in suite.cases if suite.name in deciding)
        return {(case.suite, case.case_id) for case in cases if case.outcome is not Outcome.PASSED}
    red = {suite.name for suite in verdict.suites if suite.outcome is not Outcome.PASSED}
    pending = {
        (item.suite, item.case_id) for item in run.summaries if item.outcome is Outcome.PENDING and item.suite in red
    }
    return decisive_cases(run, verdict) | pending


def _shows_failure(run: Run, verdict: RunVerdict, shown: set[CaseAddress]) -> bool:
    """Whether the testcase of a trial shows why the build is red; those of quarantined cases do not."""
    quarantined = {(case.suite, case.case_id) for suite in verdict.suites for case in suite.cases if case.quarantined}
    deciding = shown - quarantined
    kinds = {Outcome.FAILED} if run.gate is None else {Outcome.FAILED, Outcome.ERROR, Outcome.PENDING}
    return any(item.outcome in kinds and (item.suite, item.case_id) in deciding for item in run.summaries)


def _open_suite(
    run: Run,
    info: SuiteInfo,
    suite_verdict: SuiteVerdict,
    shown: set[CaseAddress],
    index: int,
    besides: int,
    out: TextIO,
    *,
    is_compared: bool = False,
) -> None:
    outcomes, milliseconds = suite_counts(run, info.name)
    counts = Counter(
        Outcome.PASSED
        if _counts_as_passed(summary.outcome, (summary.suite, summary.case_id), shown)
        else summary.outcome
        for summary in run.summaries
        if summary.suite == info.name
    )
    if is_compared:
        passes = outcomes[Outcome.PASSED]
        counts = Counter({Outcome.PASSED: passes, Outcome.SKIPPED: counts.total() - passes})
    attributes = {
        "id": str(index),
        "package": _name(shown_path(info.path) if info.path else info.name),
        "name": _name(info.name),
        "timestamp": _timestamp(run.started_at),
        "hostname": "localhost",
        "tests": str(counts.total() + besides),
        "failures": str(counts[Outcome.FAILED] + counts[Outcome.PENDING] + besides),
        "errors": str(counts[Outcome.ERROR]),
        "skipped": str(counts[Outcome.SKIPPED]),
        "time": _seconds(milliseconds),
    }
    out.write(f"  <testsuite{_attributes(attributes)}>\n    <properties>\n")
    for name, value in _properties(run, info, suite_verdict):
        out.write(f"      <property{_attributes({'name': _name(name), 'value': value})}/>\n")
    out.write("    </properties>\n")


def _counts_as_passed(outcome: Outcome, case: CaseAddress, shown: set[CaseAddress]) -> bool:
    """Whether a trial passed, or did not although its case passed."""
    return outcome is Outcome.PASSED or (case not in shown and outcome is not Outcome.SKIPPED)


def _properties(run: Run, info: SuiteInfo, suite_verdict: SuiteVerdict) -> list[tuple[str, str]]:
    properties = [
        ("proctor.run", run.id),
        ("proctor.agent", info.agent),
        ("proctor.verdict", f"{suite_verdict.word}: {suite_verdict.reason}"),
    ]
    if suite_verdict.pass_rate is not None:
        properties.append(("proctor.pass_rate", str(suite_verdict.pass_rate)))
    if suite_verdict.pass_hat_k is not None:
        properties.append((f"proctor.pass^{suite_verdict.repeats}", f"{suite_verdict.pass_hat_k:.3f}"))
    properties += [(f"proctor.flaky.{case.case_id}", flaky_text(case)) for case in suite_verdict.cases if case.is_flaky]
    properties += [
        (f"proctor.quarantined.{item.case}", f"until {item.until}: {item.reason}") for item in info.quarantined
    ]
    if run.gate is not None:
        properties.append(("proctor.gate", f"{run.gate.verdict}: {run.gate.reason}"))
        cases = (case for case in run.gate.cases if case.suite == info.name and case.is_notable)
        properties += [
            (f"proctor.gate.{case.case}", f"{case.status}: {gate_case_text(run.gate, case)}") for case in cases
        ]
    properties += [
        (f"proctor.score.{item.evaluator}", str(item.scores)) for item in suite_verdict.evaluators if item.scores
    ]
    return properties


def _write_trial(trial: Trial, out: TextIO, printed: list[str], *, passes: bool) -> None:
    """Write the testcase of a trial; adds what a trial that did not pass printed to `printed`."""
    attributes = {
        "name": _name(trial_name(trial.case.id, trial.number)),
        "classname": _name(trial.suite),
        "time": _seconds(trial.duration_ms),
    }
    tag = _TAGS.get(trial.outcome)
    if tag is None or passes:
        out.write(f"    <testcase{_attributes(attributes)}/>\n")
        return
    out.write(f"    <testcase{_attributes(attributes)}>\n")
    if tag == "skipped":
        parts = [part for part in (trial.outcome.value, headline_reason(trial)) if part]
        out.write(f"      <skipped{_attributes({'message': ': '.join(parts)})}/>\n")
    else:
        reason = headline_reason(trial)
        if trial.outcome is Outcome.PENDING:
            reason = f"pending: {reason}"
        inner = {"type": trial.outcome.value, "message": reason or trial.outcome.value}
        printed.extend(
            f"----- {title} of {trial_name(trial.case.id, trial.number)} -----\n{text.rstrip()}\n"
            for title, text in trial.captured.sections()
        )
        out.write(f"      <{tag}{_attributes(inner)}>{_escape(as_text(explain(trial)))}</{tag}>\n")
    out.write("    </testcase>\n")


def _write_compared(trial: Trial, out: TextIO) -> None:
    """Write a trial of an arm that is there for comparison: whatever its outcome, it does not fail the build."""
    attributes = {
        "name": _name(trial_name(trial.case.id, trial.number)),
        "classname": _name(trial.suite),
        "time": _seconds(trial.duration_ms),
    }
    parts = [part for part in ("for comparison", trial.outcome.value, headline_reason(trial)) if part]
    inner = _attributes({"message": ": ".join(parts)})
    out.write(f"    <testcase{_attributes(attributes)}>\n      <skipped{inner}/>\n    </testcase>\n")


def _write_failure(info: SuiteInfo, name: str, reason: str, out: TextIO) -> None:
    """Write a testcase that fails for a reason that is not a trial."""
    out.write(f"    <testcase{_attributes({'name': _name(name), 'classname': _name(info.name), 'time': '0.000'})}>\n")
    inner = {"type": Outcome.FAILED.value, "message": reason}
    out.write(f"      <failure{_attributes(inner)}>{_escape(reason)}</failure>\n    </testcase>\n")


def _close_suite(run: Run, info: SuiteInfo, suite_verdict: SuiteVerdict, printed: Sequence[str], out: TextIO) -> None:
    out.write("    <system-out>")
    for summary in run.summaries:
        if summary.suite == info.name:
            scores = ", ".join(
                f"{row.evaluator} {row.outcome.value if row.value is None else f'{row.value:.3f}'}"
                for row in summary.scores
            )
            name = trial_name(summary.case_id, summary.number)
            out.write(_escape(f"{name}: {summary.outcome.value}{f' ({scores})' if scores else ''}\n"))
    for text in printed:
        out.write(_escape(text))
    out.write("</system-out>\n    <system-err>")
    if suite_verdict.outcome is not Outcome.PASSED:
        out.write(_escape(suite_verdict.reason))
    out.write("</system-err>\n  </testsuite>\n")


def _attributes(values: dict[str, str]) -> str:
    return "".join(f' {name}="{_quote(value)}"' for name, value in values.items())


def _escape(text: str) -> str:
    """Text as XML character data; characters that XML does not allow become `\\u` escapes."""
    legal = _ILLEGAL.sub(lambda match: f"\\u{ord(match.group()):04x}", without_machine_paths(text))
    return legal.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")


def _quote(text: str) -> str:
    return _escape(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def _name(text: str) -> str:
    """Text as an XML token: no leading, trailing or repeated white space, and not empty."""
    return " ".join(text.split()) or "unnamed"


def _seconds(milliseconds: float) -> str:
    """Three decimals and no sign or exponent, which is all that the schemas allow."""
    return f"{milliseconds / 1000:.3f}" if 0 <= milliseconds < 1e15 else "0.000"


def _timestamp(moment: float) -> str:
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return "1970-01-01T00:00:00"
