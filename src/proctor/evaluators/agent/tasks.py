"""Whether an agent did what it was to do: the task of a case, or the goals of a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from proctor.evaluators.agent.transcript import dialogue_of, steps_of
from proctor.evaluators.evaluation import Evaluable, Evaluation, NothingToCompare, require_text
from proctor.evaluators.judged_evaluator import Judged, answer_text, question_text
from proctor.evaluators.judged_items import JudgedItem, items_as_details, mean, reasons_of_items
from proctor.judging.judge import Judge, Texts

REACHED_FROM = 0.5
"""From which score on a goal is counted as reached in the reason; the score itself is the mean."""


@dataclass(frozen=True, kw_only=True)
class TaskCompletion(Judged):
    """How much of its task the agent completed, judged by what it did and not by what it says."""

    task: str | None = None
    """What was to be done; without it, the judge gathers it from what the user asked."""
    scope: ClassVar[Literal["turn", "case"]] = "case"

    def __post_init__(self) -> None:
        require_text("task", self.task)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        from proctor.evaluators.agent.task_questions import task_completion

        given: dict[str, Texts] = {} if self.task is None else {"task": self.task}
        reply = await judge.ask(task_completion({**given, **case_material(evaluable, told=self.task is not None)}))
        details = {"task": self.task or reply.task, "outcome": reply.outcome}
        return Evaluation(reply.verdict, reply.reason.strip() or reply.outcome.strip(), details)


@dataclass(frozen=True, kw_only=True)
class GoalAccuracy(Judged):
    """How far the user's goals were reached, and how sound the way there was: the mean of both, over all goals."""

    goal: str | None = None
    """What the user is after; without it, the judge gathers the goals from the conversation."""
    scope: ClassVar[Literal["turn", "case"]] = "case"

    def __post_init__(self) -> None:
        require_text("goal", self.goal)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        from proctor.evaluators.agent.task_questions import goal_accuracy

        given: dict[str, Texts] = {} if self.goal is None else {"goal": self.goal}
        reply = await judge.ask(goal_accuracy({**given, **case_material(evaluable, told=self.goal is not None)}))
        goals = [_judged_goal("goal", item.goal, item.reached, item.reason) for item in reply.goals]
        plans = [_judged_goal("way to it", item.goal, item.plan, item.plan_reason) for item in reply.goals]
        scores = {"goal_score": mean(item.credit for item in goals), "plan_score": mean(item.credit for item in plans)}
        reached = reasons_of_items(goals, "goals were reached")
        said = f"{reached}; {reasons_of_items(plans, 'of the ways to them were sound')}"
        details = {**scores, "goals": items_as_details(goals), "plans": items_as_details(plans)}
        return Evaluation(mean(scores.values()), said, details)


def case_material(evaluable: Evaluable, *, told: bool = False) -> dict[str, Texts]:
    """What a judge is shown of a case: the conversation line by line, or the question, the steps and the answer.

    Without a question the task is unknown, unless it was `told`.
    """
    if len(evaluable.turns) > 1:
        return {"line": dialogue_of(evaluable.turns)}
    question = question_text(evaluable)
    if not question.strip() and not told:
        raise NothingToCompare("needs something that was asked for (`input`), and there is nothing")
    return {"question": question, "step": steps_of(evaluable.tool_calls), "answer": answer_text(evaluable)}


def _judged_goal(what: str, text: str, score: float, reason: str) -> JudgedItem:
    return JudgedItem(text, f"{what} {score:.0%}", score >= REACHED_FROM, reason, score)
