"""What CI systems show of a gated run follows the gate: JUnit, annotations, code quality, step summary and comment."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace

import pytest
from lxml import etree
from reporting_samples import ERROR, FAILED, make_run, trial

from proctor.reporting import build_findings, junit
from proctor.reporting.build_findings import annotation_lines, findings
from proctor.reporting.html import report_page
from proctor.reporting.markdown.ci_pages import Comment, write_comment, write_step_summary
from proctor.results.gate_result import (
    CaseStatus,
    GatedCaseResult,
    GatedSuite,
    GateResult,
    GateVerdict,
    SuiteWideResult,
    WorldChange,
)
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.suite_info import QuarantinedCase
from proctor.results.trial import Trial
from proctor.results.verdict import verdict

NEW, OLD = "support", "support [old]"


def gated_run(
    status: CaseStatus,
    outcome: GateVerdict,
    trials: list[Trial] | None = None,
    *,
    suite_wide: bool = False,
    world: WorldChange | None = None,
    strict_world: bool = False,
) -> Run:
    """A run of two versions in which the case `two` failed on both; the suite of the old version comes first."""
    case = GatedCaseResult(NEW, "two", status, FAILED, 6, 6, rerun_trials=2, old_trials=2)
    fine = GatedCaseResult(NEW, "one", CaseStatus.UNCHANGED, Outcome.PASSED, 6, 6)
    gate = GateResult(
        outcome,
        "the gate's reason",
        suites=(GatedSuite(NEW, outcome, "the gate's reason"),),
        cases=(fine, case),
        suite_wide=SuiteWideResult(2, 0.01, 0.9, proven=suite_wide, in_doubt=False),
        baseline="none",
        alpha=0.05,
        max_trials=14,
        extra_trials=4,
        stopped=None,
        against="main",
        world=world,
        strict_world=strict_world,
    )
    old = [trial("two", FAILED, suite=OLD), trial("two", FAILED, number=2, suite=OLD)]
    new = trials or [trial("one"), trial("two", FAILED), trial("two", FAILED, number=2), trial("two", number=3)]
    run = make_run([*old, *new], gate=gate)
    arms = {NEW: "new", OLD: "old"}
    suites = tuple(replace(info, agent=arms[info.name], source=NEW, reference="faq-bot") for info in run.suites)
    return replace(run, suites=suites)


@dataclass(frozen=True)
class Reports:
    """What each report shows."""

    failures: list[str]
    """The testcases with a failure or an error in JUnit."""
    annotations: list[str]
    """Kind and title."""
    quality: list[tuple[str, str]]
    """Severity and description."""
    summary: str
    comment: str
    page: str


def reports(run: Run) -> Reports:
    judged, xml, quality, summary, comment, page = verdict(run), *(io.StringIO() for _ in range(5))
    junit.write(run, judged, xml)
    root = etree.fromstring(xml.getvalue().encode())
    failures = [str(item.getparent().get("name")) for tag in ("failure", "error") for item in root.iter(tag)]
    counted = sum(int(suite.get(name)) for suite in root for name in ("failures", "errors"))
    assert counted == len(failures)
    assert all(item.get("message").startswith("for comparison") for item in root[0].iter("skipped")), "the old version"
    build_findings.write(run, judged, quality)
    write_step_summary(run, judged, summary)
    write_comment(Comment(run, judged), comment)
    report_page.write(run, judged, page)
    lines = [line.partition("::")[2].partition("::")[0] for line in annotation_lines(findings(run, judged, {}))]
    texts = Reports(
        failures,
        [f"{line.split()[0]} {line.partition('title=')[2]}" for line in lines],
        [(entry["severity"], entry["description"]) for entry in json.loads(quality.getvalue())],
        summary.getvalue(),
        comment.getvalue(),
        page.getvalue(),
    )
    shown = f"{texts.annotations}{texts.quality}{texts.summary}{texts.comment}"
    assert "[old" not in shown.replace("\\", ""), "nothing of the old version is a finding"
    return texts


@pytest.mark.parametrize("status", [CaseStatus.CLEARED, CaseStatus.UNCHANGED, CaseStatus.QUARANTINED])
def test_a_green_gate_has_no_failure_although_cases_failed_on_both_versions(status: CaseStatus) -> None:
    shown = reports(gated_run(status, GateVerdict.NO_REGRESSION))
    assert (shown.failures, shown.annotations, shown.quality) == ([], [], [])
    assert "## Proctor: ✅ PASSED" in shown.summary and "### Failures" not in shown.summary
    assert "### Not counted by the gate" in shown.summary
    assert "2 passed, 2 failed; 2 more with main" in shown.summary
    assert "❌" not in shown.comment and "Re-run a case" not in shown.comment
    assert "<title>✓ passed: faq-bot</title>" in shown.page, "the agent, not the names of both versions"
    assert "<h1>Passed</h1>" in shown.page and 'class="badge failed"' not in shown.page.partition("<h2")[0]


def test_an_error_that_was_repeated_with_success_is_no_error_of_a_green_build() -> None:
    trials = [trial("one"), trial("two", ERROR, reason="busy"), trial("two", number=2)]
    shown = reports(gated_run(CaseStatus.CLEARED, GateVerdict.NO_REGRESSION, trials))
    assert (shown.failures, shown.annotations, shown.quality) == ([], [], [])


def test_a_regression_is_the_only_failure() -> None:
    trials = [trial("one"), trial("one", FAILED, number=2), trial("two", FAILED), trial("two", FAILED, number=2)]
    shown = reports(gated_run(CaseStatus.REGRESSED, GateVerdict.REGRESSION, trials))
    assert shown.failures == ["two", "two #2"]
    assert shown.annotations == ["error support/two failed"]
    assert [severity for severity, _ in shown.quality] == ["major"]
    failures, _, others = shown.summary.partition("### Not counted by the gate")
    assert "support/two" in failures.partition("### Failures")[2] and "support/one" in others
    assert shown.comment.count("| support/two | ❌ regressed") == 1


def test_a_suite_wide_regression_is_one_failure_of_the_new_version() -> None:
    shown = reports(gated_run(CaseStatus.CLEARED, GateVerdict.REGRESSION, suite_wide=True))
    assert shown.failures == ["verdict"]
    assert shown.annotations == ["error support failed"]
    assert len(shown.quality) == 1 and "fails more often than with main" in shown.quality[0][1]
    assert shown.comment.count("| support | ❌") == 1


def test_a_new_case_that_never_passes_is_a_failure_and_one_that_mostly_passes_is_not() -> None:
    never = [trial("two", FAILED, number=number) for number in range(1, 6)]
    mostly = [trial("three", FAILED), *(trial("three", number=number) for number in range(2, 6))]
    run = gated_run(CaseStatus.NEW, GateVerdict.NEW_CASE_FAILS, [trial("one"), *never, *mostly])
    assert run.gate is not None
    third = GatedCaseResult(NEW, "three", CaseStatus.NEW, FAILED)
    shown = reports(replace(run, gate=replace(run.gate, cases=(*run.gate.cases, third))))
    assert set(shown.failures) == {"two", *(f"two #{number}" for number in range(2, 6))}
    assert shown.annotations == ["error support/two failed"]
    assert "❌ a new case fails" in shown.comment


def test_a_world_that_changed_is_a_warning_and_no_failure() -> None:
    world = WorldChange(0.001, ((NEW, "two"),))
    shown = reports(gated_run(CaseStatus.FAILS_ON_BOTH, GateVerdict.WORLD_CHANGED, world=world))
    assert shown.failures == []
    assert shown.annotations == ["warning support/two fails with the old version as well"]
    assert [severity for severity, _ in shown.quality] == ["minor"]
    assert "the world changed" in shown.comment.splitlines()[1] and "| support/two | 🌍" in shown.comment
    assert "### Gate: the world changed" in shown.summary and "### Failures" not in shown.summary

    whole = reports(gated_run(CaseStatus.CLEARED, GateVerdict.WORLD_CHANGED, world=WorldChange(0.001, ())))
    assert (whole.failures, whole.annotations) == ([], ["warning support fails with the old version as well"])


def test_a_strict_world_is_shown_in_every_report_since_its_exit_code_is_not_0() -> None:
    world = WorldChange(0.001, ((NEW, "two"),))
    run = gated_run(CaseStatus.FAILS_ON_BOTH, GateVerdict.WORLD_CHANGED, world=world, strict_world=True)
    assert verdict(run).exit_code == 3
    shown = reports(run)
    assert shown.failures == ["verdict"] and len(shown.annotations) == 1
    assert "## Proctor: ⏳ INCONCLUSIVE" in shown.summary


@pytest.mark.parametrize(
    ("status", "outcome", "failures", "annotation"),
    [
        (CaseStatus.UNDECIDED, GateVerdict.INCONCLUSIVE, ["two", "two #2"], "warning support/two may have regressed"),
        (CaseStatus.CLEARED, GateVerdict.INCONCLUSIVE, ["verdict"], "warning support may have regressed"),
        (CaseStatus.CLEARED, GateVerdict.ERROR, ["verdict"], "error support ended in an error"),
    ],
)
def test_no_report_is_silent_about_a_gate_that_could_not_decide(
    status: CaseStatus, outcome: GateVerdict, failures: list[str], annotation: str
) -> None:
    shown = reports(gated_run(status, outcome))
    assert (shown.failures, shown.annotations) == (failures, [annotation])
    assert len(shown.quality) == 1


def test_an_expired_quarantine_is_one_failure_although_both_versions_have_it() -> None:
    run = gated_run(CaseStatus.QUARANTINED, GateVerdict.REGRESSION)
    item = QuarantinedCase("two", "flaky tool", "2020-01-31", "ops", expired=True)
    shown = reports(replace(run, suites=tuple(replace(info, quarantined=(item,)) for info in run.suites)))
    assert shown.failures == ["quarantine of two"]
    assert shown.annotations == ["error support/two failed"]
    assert "expired on 2020-01-31" in shown.quality[0][1]
