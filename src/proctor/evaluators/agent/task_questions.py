"""What judges are asked about an agent at work: what it was to do, what came of it, whether each step was right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from proctor.evaluators.general_questions import NumberedRuling, Rulings, yes_no_questions
from proctor.judging.judge import Question, Texts
from proctor.judging.questions import EachOnce

STEPS_ARE_DATA = (
    "The numbered steps are the tools the agent used, in order, each with what it was given and what came of it."
)


class TaskVerdict(BaseModel):
    task: str = Field(description="what was to be done, in one sentence")
    outcome: str = Field(description="what was achieved in fact, in one or two sentences")
    reason: str = Field(description="what of the task the outcome fulfils, and what it lacks")
    verdict: float = Field(ge=0, le=1, description="how much of the task is fulfilled, from 0 to 1")


def task_completion(material: Mapping[str, Texts]) -> Question[TaskVerdict]:
    """What the task was, what came of it, and how far the one fulfils the other: all in one call."""
    named = "The task is given. " if "task" in material else "State the task: what the user wanted to have done. "
    return Question(
        kind="task-completion",
        version=1,
        instructions=(
            f"Assess whether an agent did its task. {named}Then state the outcome by what the tools brought back and "
            "by what the user was told, not by what the agent claims or intends: a booking that no step made has not "
            "been made. Last, say how much of the task the outcome fulfils: 1 if all of it, 0 if nothing of use, and "
            "in between the part that is done. How the agent went about it does not matter here."
        ),
        material=material,
        reply=TaskVerdict,
    )


class GoalVerdict(BaseModel):
    goal: str = Field(description="what the user wanted, in one sentence")
    reason: str = Field(description="in one or two sentences, what shows that it was reached, or what is lacking")
    reached: float = Field(ge=0, le=1, description="how far the goal was reached, from 0 to 1")
    plan_reason: str = Field(description="in one or two sentences, what was sound in the way to it, and what was not")
    plan: float = Field(ge=0, le=1, description="how sound the way to it was, from 0 to 1")


class GoalVerdicts(BaseModel):
    goals: list[GoalVerdict]


def goal_accuracy(material: Mapping[str, Texts]) -> Question[GoalVerdicts]:
    """Each goal of the user's, how far it was reached, and whether the way there made sense."""
    given = "goal" in material
    which = (
        "The goal is given; judge that one alone, in a list of one."
        if given
        else "List what the user wanted to reach in the conversation as a whole; a wish that replaces an earlier one "
        "stands in its place, and what belongs together is one goal."
    )
    return Question(
        kind="goal-accuracy",
        version=1,
        instructions=(
            f"Assess whether an agent reached what a user wanted. {which} For each goal say how far it was reached, "
            "by what was done and told, not by what was promised. Then say how sound the agent's way was: whether it "
            "asked for what it had to know, took steps that lead to the goal in an order that makes sense, and "
            "changed course when something failed. A goal may be reached on a poor way, or missed on a sound one."
        ),
        material=material,
        reply=GoalVerdicts,
        check=_one_goal if given else _some_goal,
    )


def _one_goal(reply: GoalVerdicts) -> str | None:
    return (
        None if len(reply.goals) == 1 else f"goals must have one entry, for the goal given; it has {len(reply.goals)}"
    )


def _some_goal(reply: GoalVerdicts) -> str | None:
    return None if reply.goals else "goals is empty; whoever writes to an agent wants something"


def argument_correctness(material: Mapping[str, Texts], count: int) -> Question[Rulings]:
    """Whether the arguments of each call are right."""
    return yes_no_questions(
        "arguments",
        "Say of each numbered step whether its arguments are right: 'yes' or 'no'. "
        f"{STEPS_ARE_DATA} Arguments are right if the values are those that the question, the conversation before it "
        "or the results of earlier steps call for: nothing made up, nothing changed, nothing missing that the user "
        "said and the tool needs. A call without arguments is right if the tool needs none. Whether the tool was the "
        "right one, and whether it worked, does not matter here.",
        material,
        count,
    )


class MissingTool(BaseModel):
    reason: str = Field(description="in one sentence, what it would have been needed for")
    tool: str = Field(description="the name of the tool")


class ToolChoices(BaseModel):
    verdicts: list[NumberedRuling]
    missing: list[MissingTool]


def tool_selection(material: Mapping[str, Texts], count: int, known: Sequence[str]) -> Question[ToolChoices]:
    """Whether each tool was the right one to use, and which ones should have been used and were not."""
    numbered = EachOnce(count)

    def check(reply: Any) -> str | None:
        unknown = [item.tool for item in reply.missing if known and item.tool not in known]
        complaint: str | None = numbered(reply)
        if complaint is None and unknown:
            complaint = f"missing names {unknown[0]!r}, which is none of the available tools: {', '.join(known)}"
        return complaint

    return Question(
        kind="tool-selection",
        version=1,
        instructions=(
            "Assess whether an agent chose the right tools for what it was asked. "
            f"{STEPS_ARE_DATA} Say of each step whether its tool was the right one: 'yes' if it serves the question "
            "and no other available tool would have served better, 'no' otherwise; its arguments do not matter here. "
            "If no steps are shown there are no verdicts. Then list the available tools that were needed and not "
            "used; if none was needed, or it is not known which are available, the list is empty."
        ),
        material=material,
        reply=ToolChoices,
        check=check,
    )


def step_efficiency(material: Mapping[str, Texts], count: int) -> Question[Rulings]:
    """Whether each step was needed."""
    return yes_no_questions(
        "step-efficiency",
        "Say of each numbered step whether it was needed: 'yes' or 'no'. "
        f"{STEPS_ARE_DATA} A step was needed if what it brought was used for what was asked, or if it had to be tried "
        "at the time: a search that found nothing, another try after a failure, a question whose answer changes. It "
        "was not needed if nothing was asked for that it serves, if an earlier step had brought the same already, or "
        "if one step would have done for several.",
        material,
        count,
    )
