"""What judges are asked about an agent at work: what came of its task, whether each step was right, how it talked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from proctor.evaluators.judge_questions import NumberedRuling, Rulings, yes_no_questions
from proctor.judging.judge import Question, Texts
from proctor.judging.questions import EachOnce, YesNo

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


LINES = (
    "The numbered lines are a conversation. Each says who speaks, in which turn; a turn is what the user said and what "
    "the agent answered to it."
)


class Fact(BaseModel):
    turn: int = Field(description="the number of the turn in which the user said it")
    text: str = Field(description="what the user told, in one short sentence")


class Retention(BaseModel):
    number: int = Field(description="the number of the turn")
    reason: str = Field(description="in one sentence, what was forgotten or contradicted, or that nothing was")
    forgot: YesNo


class Retentions(BaseModel):
    facts: list[Fact]
    verdicts: list[Retention]


def knowledge_retention(lines: Sequence[str], turns: int) -> Question[Retentions]:
    """What the user told, and in which turns the agent no longer knew it: one call for the whole conversation."""
    numbered = EachOnce(turns)

    def check(reply: Retentions) -> str | None:
        strange = [fact.turn for fact in reply.facts if not 1 <= fact.turn <= turns]
        complaint: str | None = numbered(reply)
        if complaint is None and strange:
            complaint = f"facts name turn {strange[0]}; the turns are numbered from 1 to {turns}"
        return complaint

    return Question(
        kind="knowledge-retention",
        version=1,
        instructions=(
            f"{LINES}\n"
            "First list the facts that the user told and that may matter later: names, numbers, places, dates, wishes, "
            "conditions, corrections of what they said before. Questions and greetings tell nothing.\n"
            "Then say of the agent's answer in each turn whether it forgot something that the user had told in that "
            "turn or before: 'yes' if it asks again for what it was told, contradicts it, or acts as if it had not "
            "been told; 'no' otherwise. Asking to confirm, and not mentioning what is not needed, is no forgetting. "
            "What the user corrected later counts in its corrected form from then on."
        ),
        material={"line": list(lines)},
        reply=Retentions,
        check=check,
    )


class Intention(BaseModel):
    text: str = Field(description="what the user wanted, in one sentence")
    reason: str = Field(description="in one sentence, what shows that it was satisfied, or what is lacking")
    satisfied: YesNo


class Intentions(BaseModel):
    intentions: list[Intention]


def completeness(material: dict[str, Texts]) -> Question[Intentions]:
    """What the user wanted, and whether each of it was satisfied by the end."""
    return Question(
        kind="conversation-completeness",
        version=1,
        instructions=(
            f"{LINES} Lines about tools show what the agent did.\n"
            "List what the user wanted from the conversation, each intention once and only what the user expressed. "
            "For each say whether it was satisfied when the conversation ended: 'yes' if the user has what they wanted "
            "or was told truthfully that it cannot be had; 'no' if it was passed over, left half done, or only "
            "promised. An intention that the user gave up is left out."
        ),
        material=material,
        reply=Intentions,
    )


ROLE = (
    "The role describes who the agent is to be. Say of the agent's answer in each turn whether it keeps to the role: "
    "'no' if it speaks, knows, offers or refuses something in a way that one in this role would not, or drops the "
    "role; 'yes' otherwise. What the role says nothing about is free, and so is saying what the user does not like. "
    "The number of a verdict is the number of the turn."
)

RELEVANT = (
    "Say of the agent's answer in each turn whether it is relevant to what the user said in that turn: 'yes' if it "
    "responds to it, given all that was said before; a question back that is needed, a plain refusal, and a courtesy "
    "for a courtesy are relevant. 'no' if it is about something else or passes over what the user said. Whether it is "
    "true or good does not matter here. The number of a verdict is the number of the turn; lines of `earlier`, if "
    "there are any, came before and get none."
)
