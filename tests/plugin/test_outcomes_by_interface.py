"""The table of `docs/pytest.md`: one suite of five cases, and what each interface makes of each outcome."""

from __future__ import annotations

import asyncio
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served_viewer import serve_viewer

import proctor as package
from proctor.base import open_checks
from proctor.base.open_checks import collect_open_checks

pytest_plugins = "pytester"

Command = Callable[..., Any]

AGENT = """
import proctor

def agent(question):
    return "Hello." if question != "broken" else ""

def check(evaluable):
    if evaluable.input == "failed": return 0.0
    if evaluable.input == "error": raise ZeroDivisionError("no luck")
    if evaluable.input == "pending": raise proctor.EvaluationPending("a person looks at it")
    return 1.0
"""
OUTCOMES = ("passed", "failed", "error", "skipped", "pending")


def suite(*names: str) -> dict[str, Any]:
    cases: list[dict[str, Any]] = [{"id": name, "input": name} for name in names]
    for case in cases:
        if case["id"] == "skipped":
            case["skip"] = "not now"
    return {"name": "five", "agent": "agent.py:agent", "evaluators": ["agent.py:check"], "cases": cases}


@pytest.fixture
def five(project: Path) -> Path:
    (project / "agent.py").write_text(AGENT, encoding="utf-8")
    (project / "five.proctor.json").write_text(json.dumps(suite(*OUTCOMES)), encoding="utf-8")
    for name in OUTCOMES:
        (project / f"{name}.json").write_text(json.dumps(suite(name)), encoding="utf-8")
    return project


VERDICTS = {
    "passed": ("passed", 0),
    "failed": ("failed", 1),
    "error": ("error", 4),
    "skipped": ("error", 4),
    "pending": ("inconclusive", 3),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_command_line_and_its_reports(proctor: Command, five: Path, name: str) -> None:
    done = proctor("test", f"{name}.json", "--json", "r.json", "--html", "r.html", "--junit", "r.xml")
    word, code = VERDICTS[name]
    label = {"passed": "PASS", "failed": "FAIL", "error": "ERROR", "skipped": "SKIP", "pending": "PEND"}[name]
    assert done.code == code
    assert f"{label:<7}five/{name}" in done.out
    assert re.search(rf"^{word.upper()}  ?", done.out, re.MULTILINE)
    report = json.loads((five / "r.json").read_text(encoding="utf-8"))
    assert (report["verdict"]["outcome"], report["trials"][0]["outcome"]) == (word, name)
    page = (five / "r.html").read_text(encoding="utf-8")
    assert f"<h1>{word.capitalize()}</h1>" in page
    assert f'data-outcome="{name}"' in page
    assert junit_tags(five / "r.xml") == {name: TAGS[name]}
    assert f"  {word} " in proctor("runs").out


TAGS = {"passed": "", "failed": "failure", "error": "error", "skipped": "skipped", "pending": "failure"}


def junit_tags(path: Path) -> dict[str, str]:
    cases = ElementTree.parse(path).iter("testcase")
    kinds = ("failure", "error", "skipped")
    return {case.attrib["name"]: next((child.tag for child in case if child.tag in kinds), "") for case in cases}


def test_the_viewer(proctor: Command, five: Path) -> None:
    for name in OUTCOMES:
        proctor("test", f"{name}.json", "--name", name)
    with serve_viewer(five / ".proctor") as client:
        for name in OUTCOMES:
            run_id = re.search(r"^(\S+) .*\[" + name + r"\]$", proctor("runs").out, re.MULTILINE)
            assert run_id is not None
            page = client.get(f"/runs/{run_id[1]}").text
            assert f">{VERDICTS[name][0].capitalize()}</h1>" in page
            assert f'class="badge {name}"' in page


def test_pytest_and_its_junit_report(pytester: pytest.Pytester, five: Path) -> None:
    done = pytester.runpytest(str(five / "five.proctor.json"), f"--junitxml={five / 'own.xml'}", "--rootdir", str(five))
    assert done.parseoutcomes() == {"passed": 1, "failed": 1, "errors": 1, "skipped": 1, "pending": 1}
    assert junit_tags(five / "own.xml") == TAGS


@pytest.mark.parametrize("name", OUTCOMES)
def test_runs_from_python(five: Path, name: str) -> None:
    run = package.run(str(five / f"{name}.json"))
    assert (run.verdict.word, run.verdict.exit_code) == VERDICTS[name]
    assert bool(run) is (name == "passed")
    assert result_of(run.assert_passed) == (
        "passed" if name == "passed" else "pending" if name == "pending" else "raised"
    )


def result_of(assertion: Callable[[], Any]) -> str:
    with collect_open_checks() as checks:
        try:
            assertion()
        except AssertionError:
            return "raised"
    return "pending" if checks else "passed"


@pytest.fixture
def in_a_script(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(open_checks, "_collections", [])
    yield


@pytest.mark.usefixtures("in_a_script")
@pytest.mark.parametrize("name", OUTCOMES)
def test_a_script_raises_for_everything_that_did_not_pass(five: Path, name: str) -> None:
    run = package.run(str(five / f"{name}.json"))
    if name == "passed":
        run.assert_passed()
    else:
        with pytest.raises(AssertionError):
            run.assert_passed()


ANSWERS = {
    "passed": "Refunds take 5 days.",
    "failed": "Refunds take 15 days.",
    "pending": "Somebody who paid gets everything back 5 days later.",
}


@pytest.mark.needs("deepeval")
@pytest.mark.usefixtures("open_checks")
@pytest.mark.parametrize(
    ("name", "success"), [("passed", True), ("failed", False), ("pending", None)], ids=["passed", "failed", "pending"]
)
def test_deepeval(name: str, success: bool | None) -> None:
    import proctor.compat.deepeval as d

    case = d.LLMTestCase(
        input="How long do refunds take?", actual_output=ANSWERS[name], retrieval_context=["Refunds take 5 days."]
    )
    metric = d.FaithfulnessMetric(0.7)
    metric.measure(case)
    assert (metric.success, metric.is_successful(), metric.pending) == (success, success, name == "pending")
    [result] = d.evaluate([case], [metric], display_config=d.DisplayConfig(print_results=False)).test_results
    assert result.success is success
    assert (
        result_of(lambda: d.assert_test(case, [metric])) == {True: "passed", False: "raised", None: "pending"}[success]
    )


@pytest.mark.needs("adk")
@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ({"response_match_score": 0.5}, "passed"),
        ({"tool_trajectory_avg_score": 1.0}, "raised"),
        ({"final_response_match_v2": 0.5}, "pending"),
    ],
)
def test_adk(criteria: dict[str, float], expected: str) -> None:
    from proctor.compat.adk import AgentEvaluator

    turn = {
        "userContent": {"parts": [{"text": "Weather?"}]},
        "finalResponse": {"parts": [{"text": "It is sunny."}]},
        "intermediateData": {"toolUses": [{"name": "look_up", "args": {}}]},
    }
    eval_set = {"evalSetId": "weather", "evalCases": [{"evalId": "a", "conversation": [turn]}]}

    def evaluate() -> Any:
        return asyncio.run(AgentEvaluator.evaluate_eval_set(lambda question: "It is sunny.", eval_set, criteria, 1))

    assert result_of(evaluate) == expected


@pytest.mark.needs("holodeck")
@pytest.mark.parametrize("name", OUTCOMES)
def test_holodeck(five: Path, name: str) -> None:
    from proctor.compat.holodeck.result_builder import build_report

    run = package.run(str(five / f"{name}.json"))
    report = build_report(run, run.verdict, "five")
    [result] = report.results
    assert (result.passed, result.outcome, report.outcome) == (name == "passed", name, VERDICTS[name][0])
    assert report.summary.failed == (0 if name == "passed" else 1)


@pytest.mark.needs("holodeck")
def test_a_holodeck_evaluator_without_its_model() -> None:
    from proctor.compat.holodeck.evaluators import CoherenceEvaluator, EvaluationError

    with pytest.raises(EvaluationError, match="needs a model") as raised:
        asyncio.run(CoherenceEvaluator().evaluate(response="Hello there.", query="Hello?"))
    assert isinstance(raised.value, open_checks.Undecided)  # pytest shows a test that raises it as pending
