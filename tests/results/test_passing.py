"""A score that misses its threshold by a rounding error passes, wherever it is held against one."""

from __future__ import annotations

import asyncio
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.cases.suite import Criteria
from proctor.cases.threshold import passes
from proctor.results.judge_calibration import Calibration, LabelledScore
from proctor.results.score import Outcome, ScoreRow
from proctor.results.trial import TrialSummary
from proctor.results.verdict import case_outcome

ALMOST = 0.7999999999999999
SOURCE = Path(proctor.__file__).parent

CHECKS = """
import proctor

facts = proctor.create_agent_evaluator("facts", "It is true.")

def almost(evaluable):
    return 0.7999999999999999

def short(evaluable):
    return 0.7999
"""


@proctor.observe
def echo(question: str) -> str:
    return question


def just_above(score: float) -> float:
    return math.nextafter(score, 2.0)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "checks.py").write_text(CHECKS)
    (tmp_path / "agent.py").write_text("def agent(question):\n    return question\n")
    return tmp_path


def run(project: Path, *words: str, given: str | None = None) -> int:
    command = [sys.executable, "-m", "proctor", *words]
    done = subprocess.run(command, cwd=project, input=given, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode


def test_a_rounding_error_passes_and_a_real_difference_does_not() -> None:
    assert passes(ALMOST, 0.8)
    assert passes(0.8, 0.8)
    assert not passes(0.7999, 0.8)
    assert not passes(math.nan, 0.0)


@pytest.mark.process
@pytest.mark.parametrize(("evaluator", "code"), [("almost", 0), ("short", 1)])
@pytest.mark.parametrize(
    "rule",
    ["evaluators: [checks.py:{}: {{threshold: 0.8}}]", "criteria: {{threshold: 0.8}}\nevaluators: [checks.py:{}]",
     "criteria: {{trials: mean}}\nevaluators: [checks.py:{}: {{threshold: 0.8}}]"],
    ids=["threshold", "criteria", "mean"],
)  # fmt: skip
def test_in_a_suite(project: Path, rule: str, evaluator: str, code: int) -> None:
    rules = rule.format(evaluator)
    (project / "s.yaml").write_text(f"agent: agent.py:agent\n{rules}\ncases:\n  - {{id: a, input: hi}}\n")
    assert run(project, "test", "s.yaml", "--repeat", "3") == code


@pytest.mark.process
@pytest.mark.parametrize(("score", "code"), [(ALMOST, 0), (0.7999, 1)])
def test_in_a_grade(project: Path, score: float, code: int) -> None:
    (project / "s.yaml").write_text(
        "agent: agent.py:agent\nevaluators: [checks.py:facts: {threshold: 0.8}]\ncases:\n  - {id: a, input: hi}\n"
    )
    assert run(project, "test", "s.yaml") == 3
    row = {"suite": "s", "case": "a", "evaluator": "facts", "score": score, "reasoning": "so"}
    assert run(project, "grade", "--from", "-", given=json.dumps([row])) == code


def test_in_score_threshold() -> None:
    met, _ = proctor.ScoreThreshold(0.8)([[proctor.Evaluation(ALMOST, "")]])
    assert met
    met, _ = proctor.ScoreThreshold(0.8)([[proctor.Evaluation(0.7999, "")]])
    assert not met


def test_in_assert_pass() -> None:
    def almost(evaluable: Any) -> float:
        return ALMOST

    def short(evaluable: Any) -> float:
        return 0.7999

    rule = proctor.ScoreThreshold(0.8)
    asyncio.run(proctor.assert_pass(echo, ["a"], [almost], pass_criteria=rule))
    with pytest.raises(proctor.EvalAssertionError) as caught:
        asyncio.run(proctor.assert_pass(echo, ["a"], [almost, short], pass_criteria=rule))
    assert "short scored" in str(caught.value)
    assert "almost scored" not in str(caught.value)


@pytest.mark.needs("holodeck")
def test_in_holodecks_evaluators() -> None:
    from proctor.compat.holodeck.evaluators import ROUGEEvaluator

    def asked(threshold: float) -> dict[str, Any]:
        evaluator = ROUGEEvaluator(threshold=threshold)
        return asyncio.run(evaluator.evaluate(response="the cat sat down", ground_truth="the cat sat up"))

    score = asked(0.5)["score"]
    assert 0 < score < 1
    assert asked(just_above(score))["passed"]
    assert not asked(score + 0.01)["passed"]


@pytest.mark.needs("deepeval")
def test_in_deepevals_metrics() -> None:
    from proctor.compat.deepeval import BaseMetric

    class Almost(BaseMetric):
        def __init__(self, score: float) -> None:
            self.threshold = 0.8
            self.score = score

    assert Almost(ALMOST).is_successful()
    assert not Almost(0.7999).is_successful()


@pytest.mark.needs("adk")
def test_in_adks_agent_evaluator(tmp_path: Path) -> None:
    from proctor.compat.adk import AgentEvaluator

    content = {"parts": [{"text": "the cat sat"}]}
    invocation = {"user_content": content, "final_response": {"parts": [{"text": "the cat ran"}]}}
    eval_set = {"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation": [invocation]}]}

    async def examine(threshold: float) -> None:
        criteria = {"response_match_score": threshold}
        await AgentEvaluator.evaluate_eval_set(echo, eval_set, criteria, num_runs=1)

    asyncio.run(examine(just_above(2 / 3)))
    with pytest.raises(AssertionError, match="response_match_score"):
        asyncio.run(examine(2 / 3 + 0.01))


@pytest.mark.needs("pixie")
def test_in_a_scorecard() -> None:
    from proctor.compat.pixie.scorecard import DatasetEntryResult, DatasetScorecard, generate_dataset_scorecard_html

    def page(score: float) -> str:
        entry = DatasetEntryResult(["e"], [proctor.Evaluation(score, "")], "a", {"eval_input": "a"})
        return generate_dataset_scorecard_html(DatasetScorecard("d", [entry]))

    assert "1 of 1 cases passed" in page(math.nextafter(0.5, 0))
    assert "0 of 1 cases passed" in page(0.4999)


def test_in_the_mean_of_trials() -> None:
    trials = [
        TrialSummary("s", "c", n, n, Outcome.FAILED, (ScoreRow("e", Outcome.FAILED, value, 0.8, False),), 0.0)
        for n, value in enumerate([0.7, 0.8, 0.9])
    ]
    assert math.fsum([0.7, 0.8, 0.9]) / 3 < 0.8
    assert case_outcome(trials, Criteria("mean")) is Outcome.PASSED


def test_in_what_is_said_of_a_calibrated_judge() -> None:
    rows = (LabelledScore("a", ALMOST, True), LabelledScore("b", 0.2, False))
    calibration = Calibration("j", "e", "f", 0.8, {}, "d", "s", rows)
    assert calibration.agreement_at(0.8).accuracy.mean == 1.0


def test_no_other_place_compares_a_score_with_its_threshold_by_hand() -> None:
    by_hand = re.compile(
        r"(>=|<)\s*(self\.)?_?(threshold|needs)\b|\bthreshold\s*(<=|>)\s*\w*\.?score|1e-12\)?\s*(else|$)"
    )
    allowed = {"cases/threshold.py", "evaluators/data.py"}
    found = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if by_hand.search(line) and "scored >= " not in line and str(path.relative_to(SOURCE)) not in allowed
    ]
    assert found == []
