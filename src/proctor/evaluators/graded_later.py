"""Evaluators whose verdict comes later, from a person or an agent that reads the answer: `proctor grade` takes it."""

from __future__ import annotations

from typing import NoReturn

from proctor.base.errors import UsageError
from proctor.base.json_data import fingerprint
from proctor.base.records import record
from proctor.evaluators.evaluation import Evaluable, EvaluationPending


class AgentEvaluationPending(EvaluationPending):
    """No grade was given yet; carries the criteria for the grader."""

    def __init__(self, evaluator_name: str, criteria: str) -> None:
        self.evaluator_name = evaluator_name
        super().__init__(f"{evaluator_name} waits for a grade: {criteria}", criteria=criteria)


@record
class GradedLater:
    """Leaves every answer to a grader; the outcome is `pending` until there is a grade."""

    name: str
    criteria: str

    @property
    def version(self) -> str:
        """Changes with what graders are asked."""
        return fingerprint(self.name, self.criteria)

    def __call__(self, evaluable: Evaluable) -> NoReturn:
        raise AgentEvaluationPending(self.name, self.criteria)


def create_agent_evaluator(name: str, criteria: str) -> GradedLater:
    """An evaluator for what no formula can score: `criteria` tells the grader, a person or an agent, what is good."""
    for label, text in (("name", name), ("criteria", criteria)):
        if not isinstance(text, str) or not text.strip():
            raise UsageError(f"create_agent_evaluator needs a {label} that says something, not {text!r}")
    return GradedLater(name.strip(), criteria.strip())
