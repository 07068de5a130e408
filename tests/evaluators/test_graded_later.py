from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.base.errors import UsageError
from proctor.cases.suite import EvaluatorSpec
from proctor.evaluators.evaluation import Evaluable, EvaluationPending, evaluate
from proctor.evaluators.graded_later import AgentEvaluationPending, create_agent_evaluator
from proctor.evaluators.registry import build

EVALS = """
from proctor.evaluators.graded_later import create_agent_evaluator

tone = create_agent_evaluator("Tone", "Friendly, and never \\ud800 <b>rude</b>.")
"""


def test_an_agent_evaluator_leaves_the_verdict_open_and_says_what_to_look_for() -> None:
    with pytest.raises(EvaluationPending, match="Tone waits for a grade: Is it kind") as raised:
        asyncio.run(evaluate(create_agent_evaluator("Tone", "Is it kind?"), Evaluable()))

    assert isinstance(raised.value, AgentEvaluationPending)
    assert (raised.value.evaluator_name, raised.value.criteria) == ("Tone", "Is it kind?")


@pytest.mark.parametrize("wrong", ["", "  ", None, 7])
def test_a_name_and_criteria_must_say_something(wrong: Any) -> None:
    with pytest.raises(UsageError, match="needs a name"):
        create_agent_evaluator(wrong, "Is it kind?")
    with pytest.raises(UsageError, match="needs a criteria"):
        create_agent_evaluator("Tone", wrong)


def test_other_criteria_are_another_evaluator() -> None:
    versions = {create_agent_evaluator("Tone", criteria).version for criteria in ("kind", "kind ", "brief")}

    assert len(versions) == 2


def test_a_suite_with_nothing_but_pending_scores_is_pending_and_never_passes(tmp_path: Path) -> None:
    (tmp_path / "evals.py").write_text(EVALS)
    case = proctor.Case("greets", (proctor.Turn("Hello"),))
    suite = proctor.Suite("faq", (case,), (EvaluatorSpec(f"{tmp_path}/evals.py:tone"),))

    run = proctor.run(suite, agent=lambda question: question)

    verdict = proctor.judge(run)
    (trial,) = run.trials
    (score,) = trial.scores
    assert (trial.outcome, verdict.outcome, verdict.exit_code) == ("pending", "pending", 3)
    assert (score.outcome, score.value) == ("pending", None)
    assert score.details == {"criteria": "Friendly, and never \ud800 <b>rude</b>."}
    assert json.dumps(score.details)


def test_an_agent_evaluator_needs_no_judge(tmp_path: Path) -> None:
    (tmp_path / "evals.py").write_text(EVALS)

    assert build(EvaluatorSpec(f"{tmp_path}/evals.py:tone")).needs_judge is False
