"""GitHub's annotations and GitLab's code quality report: each failing case at its line; an agent's words do nothing."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from lxml import etree
from reporting_samples import ERROR, FAILED, make_run, trial
from tool_marks import needing

from proctor.cases.formats.loading import case_positions
from proctor.cases.suite import Criteria
from proctor.reporting import build_findings, junit
from proctor.reporting.build_findings import MAX_ANNOTATIONS, annotation_lines, findings
from proctor.results.gate_result import GatedSuite, GateResult, GateVerdict, SuiteWideResult
from proctor.results.run import Run
from proctor.results.suite_info import QuarantinedCase
from proctor.results.verdict import verdict

YAML = """name: support
agent: a.py:agent
cases:
  - {id: one, input: a, expected: b}

  - id: two
    input: a
    expected: b
  # why
  -
    id: three
    input: a
    expected: b
"""
ADK = {
    "eval_set_id": "support",
    "eval_cases": [
        {
            "eval_id": name,
            "conversation": [
                {"user_content": {"parts": [{"text": "a"}]}, "final_response": {"parts": [{"text": "b"}]}},
            ],
        }
        for name in ("one", "two")
    ],
}


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("support.yaml", YAML, {"one": 4, "two": 6, "three": 11}),
        ("rows.jsonl", '{"suite": {"name": "x"}}\n\n{"id": "one", "input": "a", "expected": "b"}\n', {"one": 3}),
        ("rows.csv", 'id,input,expected\none,a,b\ntwo,"a\nb",c\nthree,a,b\n', {"one": 2, "two": 3, "three": 5}),
        ("words.json", '[\n{"id": "one", "input": "a", "expected_output_contains": ["b"]}\n]', {"one": 2}),
        needing("adk", "set.test.json", json.dumps(ADK, indent=1), {"one": 5, "two": 26}),
        ("broken.yaml", "cases: [", {}),
        ("other.py", "TEST_CASES = []", {}),
    ],
)
def test_each_case_is_found_at_its_line(tmp_path: Path, name: str, text: str, lines: dict[str, int]) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert {name: position.line for name, position in case_positions(path).items()} == lines


def _two_failures(tmp_path: Path, reason: str = "") -> list[str]:
    (tmp_path / "support.yaml").write_text(YAML, encoding="utf-8")
    trials = [trial("one"), trial("two", FAILED), trial("three", ERROR, reason=reason or "no connection")]
    run = make_run(trials)
    return list(annotation_lines(findings(run, verdict(run), {"GITHUB_WORKSPACE": str(tmp_path.parent)})))


def test_failures_are_annotated_at_their_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = f"file={tmp_path.name}/support.yaml"
    assert _two_failures(tmp_path) == [
        f"::error {place},line=6,title=support/two failed::ExactMatch 0.00 < 0.50",
        f"::error {place},line=11,title=support/three ended in an error::no connection",
    ]


def test_words_of_an_agent_end_no_command_and_begin_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hostile = "bad\n::stop-commands::x\r\n::add-mask::y%0A::set-output name=a::b\x1b[2J"
    lines = _two_failures(tmp_path, hostile)
    assert len(lines) == 2
    assert not any(re.search(r"[\r\n\x1b]", line) for line in lines)
    assert "%250A" in lines[1]
    names = [trial("a,line=1::x\n::error::y", FAILED), trial("b" * 5_000, FAILED)]
    run = make_run(names)
    for line in annotation_lines(findings(run, verdict(run), {})):
        head, _, _ = line.removeprefix("::error ").partition("::")
        assert set(re.findall(r"(?:^|,)(\w+)=", head)) == {"file", "line", "title"}
        assert len(line) < 2_000


def test_a_case_that_its_suite_lets_fail_is_a_warning() -> None:
    trials = [trial("one"), trial("two"), trial("three", FAILED)]
    run = make_run(trials, criteria=Criteria(pct=0.5))
    assert verdict(run).exit_code == 0
    [line] = annotation_lines(findings(run, verdict(run), {}))
    assert line.startswith("::warning ")
    assert "title=support/three failed::" in line


def test_no_more_annotations_are_written_than_are_shown() -> None:
    run = make_run([trial(f"c{number}", FAILED) for number in range(25)])
    lines = list(annotation_lines(findings(run, verdict(run), {})))
    assert len(lines) == MAX_ANNOTATIONS + 1
    assert lines[-1].startswith("::notice title=Proctor::15 more cases did not pass")


def test_the_code_quality_report_has_an_entry_for_each_case_that_did_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    (tmp_path / "support.yaml").write_text(YAML, encoding="utf-8")
    run = make_run([trial("one"), trial("two", FAILED), trial("three", ERROR, reason="no connection")])

    def written() -> list[dict[str, object]]:
        out = io.StringIO()
        build_findings.write(run, verdict(run), out)
        return json.loads(out.getvalue())

    entries = written()
    assert [(e["severity"], e["check_name"], e["location"]) for e in entries] == [
        ("major", "proctor", {"path": "support.yaml", "lines": {"begin": 6}}),
        ("minor", "proctor", {"path": "support.yaml", "lines": {"begin": 11}}),
    ]
    assert entries[0]["description"] == "support/two: ExactMatch 0.00 < 0.50"
    assert len({entry["fingerprint"] for entry in entries}) == 2
    assert written() == entries


def _expired_quarantine() -> Run:
    """A run whose only case passes, in a quarantine that has expired."""
    run = make_run([trial("one")])
    item = QuarantinedCase("one", "flaky tool", "2020-01-31", "ops", expired=True)
    return replace(run, suites=(replace(run.suites[0], quarantined=(item,)),))


def _suite_wide_regression() -> Run:
    """A gated run without a case that is proven to be worse, and with a suite that is."""
    gate = GateResult(
        GateVerdict.REGRESSION,
        "the suite as a whole fails more often",
        suites=(GatedSuite("support", GateVerdict.REGRESSION, "the suite as a whole fails more often"),),
        cases=(),
        suite_wide=SuiteWideResult(2, 0.01, 0.9, proven=True, in_doubt=False),
        baseline="proctor.baseline",
        alpha=0.05,
        max_trials=6,
        extra_trials=0,
        stopped=None,
    )
    return make_run([trial("one")], gate=gate)


@pytest.mark.parametrize(
    ("make", "reason"),
    [(_expired_quarantine, "expired on 2020-01-31"), (_suite_wide_regression, "the suite as a whole")],
)
def test_no_report_for_ci_is_silent_about_a_red_build(make: Callable[[], Run], reason: str) -> None:
    run = make()
    judged = verdict(run)
    assert judged.exit_code == 1
    [line] = annotation_lines(findings(run, judged, {}))
    assert line.startswith("::error ")
    assert reason in line
    quality, xml = io.StringIO(), io.StringIO()
    build_findings.write(run, judged, quality)
    [entry] = json.loads(quality.getvalue())
    assert entry["severity"] == "major"
    assert reason in entry["description"]
    junit.write(run, judged, xml)
    root = etree.fromstring(xml.getvalue().encode())
    [failure] = root.iter("failure")
    assert reason in failure.get("message", "")
    assert [root[0].get(name) for name in ("tests", "failures")] == ["2", "1"]


def test_a_gated_run_has_no_pass_hat_k_since_only_suspects_were_repeated() -> None:
    trials = [trial("one"), trial("two", FAILED), trial("two", FAILED, number=2)]
    plain, gated = make_run(trials), make_run(trials, gate=_suite_wide_regression().gate)
    assert verdict(plain).suites[0].pass_hat_k is not None
    [suite] = verdict(gated).suites
    assert (suite.pass_hat_k, suite.pass_at_k, suite.reliability) == (None, None, ())
