"""How few calls the shipped evaluators make: the numbers that the design promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from judge_server import ModelRequest, judge_server
from judged_projects import judge_at

from proctor.cases.suite import Case, EvaluatorSpec, Expected, Suite, Turn
from proctor.results.score import Outcome
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions

STATEMENT = {"text": "Refunds take five days.", "claim": "yes", "relevant": "yes", "reason": ""}


def _as_asked(asked: ModelRequest) -> dict[str, Any]:
    """A favourable reply to whichever question it is."""
    schema = asked.prompt
    if '"relevant"' in schema and '"statements"' in schema:
        return {"statements": [STATEMENT]}
    if '"supported"' in schema:
        return {"verdicts": [{"number": 1, "verdict": "supported", "reason": ""}]}
    return {"verdicts": [{"number": 1, "verdict": "yes", "reason": ""}]}


@pytest.mark.needs("deepeval")
@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "in memory"])
def test_relevancy_faithfulness_and_hallucination_cost_three_calls_and_none_again(
    tmp_path: Path, is_kept: bool
) -> None:
    names = ("AnswerRelevancy", "Faithfulness", "Hallucination")
    turn = Turn(
        "How long do refunds take?",
        Expected(context=("Refunds take five days.",)),
        retrieval_context=("Refunds take five days.",),
    )
    with judge_server(_as_asked) as server:
        suite = Suite(
            "desk",
            (Case(id="one", turns=(turn,)),),
            evaluators=tuple(map(EvaluatorSpec, names)),
            judge=judge_at(server),
        )
        store = tmp_path / "s" if is_kept else None
        request = RunRequest([suite], RunOptions(), agent=lambda question: "Refunds take five days.", store=store)
        run, verdict = run_suites(request)
        assert verdict.outcome is Outcome.PASSED, [trial.scores for trial in run.trials]
        assert len(server.requests) <= 3
        before = len(server.requests)
        run_suites(request)
        assert len(server.requests) == (before if is_kept else 2 * before)


def test_the_rule_based_judge_is_named_and_makes_no_calls(tmp_path: Path) -> None:
    turn = Turn("How long do refunds take?", retrieval_context=("Refunds take five days.",))
    suite = Suite("desk", (Case(id="one", turns=(turn,)),), evaluators=(EvaluatorSpec("Faithfulness"),), judge="rules")
    run, verdict = run_suites(RunRequest([suite], RunOptions(), agent=lambda question: "Refunds take five days."))
    assert verdict.outcome is Outcome.PASSED
    assert [(judge.model, judge.scores, judge.calls) for judge in run.judges] == [("rules", 1, 0)]

    from proctor.reporting.judge_report import judge_lines

    assert judge_lines(run) == [("rules", "1 score; not calibrated")]
