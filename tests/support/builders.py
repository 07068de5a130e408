"""Small cases, suites, trials and evaluables for tests; every argument has a sensible default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from proctor.agents.reply import Reply
from proctor.base.json_data import UNSET
from proctor.cases.suite import Case, Criteria, EvaluatorSpec, Expected, NamedData, Settings, Suite, Turn
from proctor.evaluators.evaluation import Evaluable
from proctor.results.score import Outcome, Score
from proctor.results.trial import Trial

EXACT = (EvaluatorSpec("ExactMatch"),)
START = 1_767_225_600.0
"""When all trials started: midnight of 1 January 2026, UTC."""


def case(case_id: str, answer: Any = None, **rest: Any) -> Case:
    """A case whose input is its own id, which is also the expected answer unless another one is passed."""
    return Case(id=case_id, turns=(Turn(case_id, Expected(output=case_id if answer is None else answer)),), **rest)


def cases(count: int, start: int = 0) -> tuple[Case, ...]:
    return tuple(case(f"case-{number}") for number in range(start, start + count))


def suite(
    of: Iterable[Case],
    *,
    name: str = "suite",
    evaluators: tuple[EvaluatorSpec, ...] = EXACT,
    criteria: Criteria | None = None,
    **settings: Any,
) -> Suite:
    return Suite(name, tuple(of), evaluators=evaluators, criteria=criteria or Criteria(), settings=Settings(**settings))


def single(case_id: str, question: Any = "How long do refunds take?", **expected: Any) -> Case:
    """A case of one turn; keywords are what is expected."""
    return Case(id=case_id, turns=(Turn(question, Expected(**expected)),))


def score(
    outcome: Outcome = Outcome.PASSED, value: float | None = 1.0, evaluator: str = "ExactMatch", **rest: Any
) -> Score:
    return Score(evaluator, outcome, value, **{"threshold": 0.5, "duration_ms": 0.4, **rest})


def trial(
    of: Case | str,
    outcome: Outcome = Outcome.PASSED,
    answer: str | None = "Five days.",
    *scores: Score,
    reason: str = "",
    **rest: Any,
) -> Trial:
    """A trial of a case, or of the simplest case with that id; without scores, ExactMatch has the outcome."""
    if isinstance(of, str):
        of = single(of, output="Five days.")
    if not scores and outcome in (Outcome.PASSED, Outcome.FAILED) and not reason:
        scores = (score(outcome, float(outcome is Outcome.PASSED)),)
    fields = {"number": 1, "position": 0, "started_at": START, "duration_ms": 120.0, "suite": "support", **rest}
    fields.setdefault("replies", () if answer is None else (Reply(answer),))
    return Trial(case=of, outcome=outcome, scores=scores, end_reason=reason, **fields)


def evaluable(output: Any, question: Any = "What is asked?", expectation: Any = UNSET, **more: Any) -> Evaluable:
    """One answer to one question as an evaluator gets it."""
    named = [] if question is None else [NamedData("input", question)]
    return Evaluable(eval_input=named, eval_output=[NamedData("output", output)], expectation=expectation, **more)
