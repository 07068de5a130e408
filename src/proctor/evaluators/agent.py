"""Evaluators of an agent's work: was the task completed, were the tools, arguments and steps right?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from proctor.agents.reply import ToolCall
from proctor.base.errors import NeedsModel
from proctor.base.json_data import canonical, to_json, to_text
from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.judge_questions import NumberedRuling, Rulings, verdicts_in_order, yes_no_questions
from proctor.evaluators.judged_evaluator import CANNOT_TELL, Finding, JudgedEvaluator, mean_of_findings
from proctor.evaluators.material import (
    answer_text,
    previous_turns,
    question_text,
    tool_call_lines,
    tools_offered,
    transcript,
)
from proctor.evaluators.observation import require_observed
from proctor.evaluators.tools.calls import actual_text
from proctor.evaluators.values import as_text, require_text
from proctor.judging.judge import Judge, NothingFound, Question, Texts
from proctor.judging.questions import EachOnce


@evaluator(family="agent", judge="model", scope="case")
@dataclass(frozen=True, kw_only=True)
class TaskCompletion(JudgedEvaluator):
    """How much of its task the agent completed, judged by its actions and not by its claims.

    The judge gives the completed share of the task, from 0 to 1. Skipped if there is neither an input nor a `task`.
    """

    task: str | None = None
    """The task; without it, the judge infers it from the user's messages."""

    def __post_init__(self) -> None:
        require_text("task", self.task)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        given: dict[str, Texts] = {} if self.task is None else {"task": self.task}
        reply = await judge.ask(
            task_completion({**given, **case_material(evaluable, task_given=self.task is not None)})
        )
        details = {"task": self.task or reply.task, "outcome": reply.outcome}
        return Evaluation(reply.verdict, reply.reason.strip() or reply.outcome.strip(), details)


def case_material(evaluable: Evaluable, *, task_given: bool = False) -> dict[str, Texts]:
    """The material for a judge: the transcript of a conversation, or the question, the tool calls and the answer.

    Raises `NothingToCompare` if there is no question, unless the task is given.
    """
    if len(evaluable.turns) > 1:
        return {"line": transcript(evaluable.turns)}
    question = question_text(evaluable)
    if not question.strip() and not task_given:
        raise NothingToCompare("needs an input, and it is empty")
    return {"question": question, "step": tool_call_lines(evaluable.tool_calls), "answer": answer_text(evaluable)}


@evaluator(family="agent", needs="tool calls", judge="model")
@dataclass(frozen=True, kw_only=True)
class ArgumentCorrectness(JudgedEvaluator):
    """The share of tool calls with the right arguments, given the question and earlier results.

    Arguments that are not a JSON object are wrong.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        calls = calls_of(evaluable)
        unreadable = {
            number: "the arguments are not a JSON object"
            for number, call in enumerate(calls, 1)
            if call.raw_arguments is not None
        }
        verdicts: dict[int, tuple[bool, str]] = {}
        if len(unreadable) < len(calls):
            verdicts = await self._verdicts(evaluable, calls, judge)
        return mean_of_findings(
            _call_findings(calls, verdicts, unreadable, ("right", "wrong")), "tool calls have the right arguments"
        )

    async def _verdicts(
        self, evaluable: Evaluable, calls: Sequence[ToolCall], judge: Judge
    ) -> dict[int, tuple[bool, str]]:
        material = {
            **_question_material(evaluable),
            **_tools_material(tools_offered(evaluable)),
            "step": tool_call_lines(calls),
        }
        reply = await judge.ask(argument_correctness(material, len(calls)))
        return dict(enumerate(verdicts_in_order(reply), 1))


@evaluator(family="agent", judge="model")
@dataclass(frozen=True, kw_only=True)
class ToolSelection(JudgedEvaluator):
    """The share of right choices of tools.

    The number of calls of the right tool, divided by the number of all calls plus the tools that were needed and not
    used. A tool that is not in `available_tools` is a wrong choice. Skipped if the agent used no tools and the
    available ones are unknown.
    """

    available_tools: tuple[Any, ...] = ()
    """Names, or objects with `name` and `description`. Without them, the tools in the trace."""

    def __post_init__(self) -> None:
        given = self.available_tools
        if isinstance(given, (str, Mapping)) or not all(_tool_name(tool) for tool in given):
            raise ValueError(f"available_tools must be a list of names, or of objects with a name, not {given!r:.80}")
        object.__setattr__(self, "available_tools", tuple(given))

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        known = [_tool_name(tool) for tool in self.available_tools]
        shown = [to_text(to_json(tool)) for tool in self.available_tools] or tools_offered(evaluable)
        require_observed(evaluable)
        calls = evaluable.tool_calls
        if not calls and not shown:
            raise NothingToCompare(
                "the agent used no tools, and the available tools are unknown; set `available_tools`"
            )
        steps = tool_call_lines(calls) if calls else []
        material = {
            **_question_material(evaluable),
            **_tools_material(shown),
            "step": steps,
            "answer": answer_text(evaluable),
        }
        reply = await judge.ask(tool_selection(material, len(calls), known))
        verdicts = {item.number: (item.verdict == "yes", item.reason) for item in reply.verdicts}
        unknown = {
            number: "no such tool is available"
            for number, call in enumerate(calls, 1)
            if known and call.name not in known
        }
        found = _call_findings(calls, verdicts, unknown, ("right tool", "wrong tool"))
        found += [Finding(item.tool, "not used", False, item.reason) for item in reply.missing]
        if not found:
            return Evaluation(1.0, "no tool was needed, and none was used")
        return mean_of_findings(found, "choices of tools were right")


@evaluator(family="agent", needs="tool calls", judge="rules or model", scope="case")
@dataclass(frozen=True, kw_only=True)
class StepEfficiency(JudgedEvaluator):
    """The share of tool calls that were needed.

    A call that exactly repeats another one of the same turn, with the same result, is not needed. Without a model, only
    such repetitions are found: enough of them fail the case, otherwise it is pending.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        calls = calls_of(evaluable)
        repeated = repetitions(calls_by_turn(evaluable))
        material = {
            **_question_material(evaluable, before=False),
            "step": _labelled(evaluable),
            "answer": answer_text(evaluable),
        }
        try:
            reply = await judge.ask(step_efficiency(material, len(calls)))
        except NeedsModel as error:
            if not repeated:
                raise NothingFound(judge.name, "no step repeats another") from error
            found = [
                Finding(actual_text(call), "repeated", False, repeated[number])
                if number in repeated
                else Finding(actual_text(call), CANNOT_TELL, False, unclear=True)
                for number, call in enumerate(calls, 1)
            ]
            by_rule = mean_of_findings(found, "steps are known to be needed", patterns_only=True)
            return Evaluation(by_rule.score, f"checked for repetitions only: {by_rule.reasoning}", by_rule.details)
        found = _call_findings(calls, dict(enumerate(verdicts_in_order(reply), 1)), repeated, ("needed", "not needed"))
        return mean_of_findings(found, "steps were needed")


def calls_of(evaluable: Evaluable) -> tuple[ToolCall, ...]:
    """The agent's tool calls; raises `NothingToCompare` if there are none."""
    require_observed(evaluable)
    if not evaluable.tool_calls:
        raise NothingToCompare("the agent called no tools")
    return evaluable.tool_calls


def calls_by_turn(evaluable: Evaluable) -> list[tuple[ToolCall, ...]]:
    """The calls of each turn, if the whole conversation is evaluated; otherwise all calls in one group."""
    turns = [exchange.reply.tool_calls for exchange in evaluable.turns]
    together = tuple(call for calls in turns for call in calls)
    return turns if together == evaluable.tool_calls else [evaluable.tool_calls]


def repetitions(turns: Sequence[Sequence[ToolCall]]) -> dict[int, str]:
    """Numbers of duplicate calls, with the reason: same tool, same arguments, same result, in the same turn.

    A call after a failed one is another try, and a call with another result brought something new.
    """
    found: dict[int, str] = {}
    number = 0
    for calls in turns:
        seen: dict[str, int] = {}
        for call in calls:
            number += 1
            key = canonical(to_json([call.name, call.arguments, call.raw_arguments, call.result]))
            if call.error is None and key in seen:
                found[number] = f"repeats step {seen[key]} with the same result"
            elif call.error is None:
                seen[key] = number
    return found


def _call_findings(
    calls: Sequence[ToolCall],
    verdicts: Mapping[int, tuple[bool, str]],
    wrong_by_rule: Mapping[int, str],
    words: tuple[str, str],
) -> list[Finding]:
    """One finding per call: wrong by a rule, or else the verdict of the judge."""
    found = []
    for number, call in enumerate(calls, 1):
        holds, reason = verdicts.get(number, (True, ""))
        if number in wrong_by_rule:
            holds, reason = False, wrong_by_rule[number]
        found.append(Finding(actual_text(call), words[0] if holds else words[1], holds, reason))
    return found


def _question_material(evaluable: Evaluable, *, before: bool = True) -> dict[str, Texts]:
    """The question; all questions, if the whole conversation is evaluated."""
    asked = evaluable.input
    question: Texts = question_text(evaluable)
    if len(evaluable.turns) > 1 and isinstance(asked, list) and len(asked) == len(evaluable.turns):
        question = [as_text(item) for item in asked]
    said_before = previous_turns(evaluable) if before and isinstance(question, str) else []
    return {**({"earlier": said_before} if said_before else {}), "question": question}


def _labelled(evaluable: Evaluable) -> list[str]:
    turns = calls_by_turn(evaluable)
    if len(turns) == 1:
        return tool_call_lines(turns[0])
    return [
        f"turn {number}: {step}" for number, calls in enumerate(turns, 1) if calls for step in tool_call_lines(calls)
    ]


def _tools_material(shown: Sequence[str]) -> dict[str, Texts]:
    return {"available-tool": list(shown)} if shown else {}


def _tool_name(tool: Any) -> str:
    name = tool.get("name") if isinstance(tool, Mapping) else tool
    return name.strip() if isinstance(name, str) else ""


STEPS = "The numbered steps are the agent's tool calls in order, each with its arguments and its result."


class TaskVerdict(BaseModel):
    task: str = Field(description="the task, in one sentence")
    outcome: str = Field(description="what was actually achieved, in one or two sentences")
    reason: str = Field(description="which part of the task the outcome fulfills, and what is missing")
    verdict: float = Field(ge=0, le=1, description="how much of the task is fulfilled, from 0 to 1")


def task_completion(material: Mapping[str, Texts]) -> Question[TaskVerdict]:
    """The task, the outcome, and how much of the task it fulfills, in one call."""
    named = "The task is given. " if "task" in material else "State the task: what the user wanted done. "
    return Question(
        kind="task-completion",
        version=1,
        instructions=(
            f"Assess whether an agent completed its task. {named}Then state the outcome. Go by the results of the "
            "tools and by what the user was told, not by what the agent claims or intends: a booking that no step "
            "made was not made. Finally, say how much of the task the outcome fulfills: 1 for all of it, 0 if nothing "
            "useful was done, and the completed share in between. How the agent did it does not matter here."
        ),
        material=material,
        reply=TaskVerdict,
    )


def argument_correctness(material: Mapping[str, Texts], count: int) -> Question[Rulings]:
    """Whether the arguments of each call are right."""
    return yes_no_questions(
        "arguments",
        "For each numbered step, say whether its arguments are right: 'yes' or 'no'. "
        f"{STEPS} Arguments are right if their values follow from the question, the conversation before it or the "
        "results of earlier steps: nothing made up, nothing changed, and nothing missing that the user said and the "
        "tool needs. A call without arguments is right if the tool needs none. Whether it was the right tool, and "
        "whether the call worked, does not matter here.",
        material,
        count,
    )


class MissingTool(BaseModel):
    reason: str = Field(description="in one sentence, what the tool was needed for")
    tool: str = Field(description="the name of the tool")


class ToolChoices(BaseModel):
    verdicts: list[NumberedRuling]
    missing: list[MissingTool]


def tool_selection(material: Mapping[str, Texts], count: int, known: Sequence[str]) -> Question[ToolChoices]:
    """Whether each tool was the right one, and which tools were needed and not used."""
    numbered = EachOnce(count)

    def check(reply: Any) -> str | None:
        unknown = [item.tool for item in reply.missing if known and item.tool not in known]
        complaint: str | None = numbered(reply)
        if complaint is None and unknown:
            complaint = f"missing names {unknown[0]!r}, which is not an available tool; available: {', '.join(known)}"
        return complaint

    return Question(
        kind="tool-selection",
        version=1,
        instructions=(
            "Assess whether an agent chose the right tools for the request. "
            f"{STEPS} For each step, say whether its tool was the right one: 'yes' if it helps with the question and "
            "no other available tool would have been better, 'no' otherwise. The arguments do not matter here. If no "
            "steps are shown, there are no verdicts. Then list the available tools that were needed and not used. If "
            "none was needed, or the available tools are unknown, the list is empty."
        ),
        material=material,
        reply=ToolChoices,
        check=check,
    )


def step_efficiency(material: Mapping[str, Texts], count: int) -> Question[Rulings]:
    """Whether each step was needed."""
    return yes_no_questions(
        "step-efficiency",
        "For each numbered step, say whether it was needed: 'yes' or 'no'. "
        f"{STEPS} A step was needed if its result was used for the request, or if it was worth trying at the time: a "
        "search that found nothing, another try after a failure, a query whose result changes. A step was not needed "
        "if it does not serve the request, if an earlier step returned the same result, or if one step could have "
        "replaced several.",
        material,
        count,
    )
