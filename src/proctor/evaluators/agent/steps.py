"""Whether an agent's tool calls were right one by one: their arguments, the choice of tool, and the need for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from proctor.agents.agent import ToolCall
from proctor.base.errors import NeedsModel
from proctor.base.json_data import canonical, plain, show
from proctor.evaluators.agent.transcript import earlier, steps_of, tools_offered
from proctor.evaluators.evaluation import Evaluable, Evaluation, NothingToCompare
from proctor.evaluators.judged_evaluator import Judged, answer_text, as_text, question_text
from proctor.evaluators.judged_items import JudgedItem, score_of_items
from proctor.evaluators.tools.call_comparison import actual_text
from proctor.judging.judge import Judge, Texts


@dataclass(frozen=True, kw_only=True)
class ArgumentCorrectness(Judged):
    """The share of tool calls whose arguments are what the question and earlier results call for."""

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        calls = calls_of(evaluable)
        unreadable = {
            number: "the arguments are not a JSON object"
            for number, call in enumerate(calls, 1)
            if call.raw_arguments is not None
        }
        said: dict[int, tuple[bool, str]] = {}
        if len(unreadable) < len(calls):
            said = await self._verdicts(evaluable, calls, judge)
        return score_of_items(
            _judged_calls(calls, said, unreadable, ("right", "wrong")), "tool calls have the right arguments"
        )

    async def _verdicts(
        self, evaluable: Evaluable, calls: Sequence[ToolCall], judge: Judge
    ) -> dict[int, tuple[bool, str]]:
        from proctor.evaluators.agent.task_questions import argument_correctness
        from proctor.evaluators.general_questions import verdicts_in_order

        material = {**_asked(evaluable), **_tools(tools_offered(evaluable)), "step": steps_of(calls)}
        reply = await judge.ask(argument_correctness(material, len(calls)))
        return dict(enumerate(verdicts_in_order(reply), 1))


@dataclass(frozen=True, kw_only=True)
class ToolSelection(Judged):
    """The share of right choices: calls of the right tool, among all calls and the tools that were wrongly left out."""

    available_tools: tuple[Any, ...] = ()
    """Names, or objects with `name` and `description`; without them, the tools that the trace shows."""

    def __post_init__(self) -> None:
        given = self.available_tools
        if isinstance(given, (str, Mapping)) or not all(_tool_name(tool) for tool in given):
            raise ValueError(f"available_tools must be a list of names, or of objects with a name, not {given!r:.80}")
        object.__setattr__(self, "available_tools", tuple(given))

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        from proctor.evaluators.agent.task_questions import tool_selection

        known = [_tool_name(tool) for tool in self.available_tools]
        shown = [show(plain(tool)) for tool in self.available_tools] or tools_offered(evaluable)
        calls = evaluable.tool_calls
        if not calls and not shown:
            raise NothingToCompare("no tools were used, and it is not known which were available (`available_tools`)")
        steps = steps_of(calls) if calls else []
        material = {**_asked(evaluable), **_tools(shown), "step": steps, "answer": answer_text(evaluable)}
        reply = await judge.ask(tool_selection(material, len(calls), known))
        said = {item.number: (item.verdict == "yes", item.reason) for item in reply.verdicts}
        unknown = {
            number: "no such tool is available"
            for number, call in enumerate(calls, 1)
            if known and call.name not in known
        }
        found = _judged_calls(calls, said, unknown, ("right tool", "wrong tool"))
        found += [JudgedItem(item.tool, "not used", False, item.reason) for item in reply.missing]
        if not found:
            return Evaluation(1.0, "no tool was needed, and none was used")
        return score_of_items(found, "tools were chosen rightly")


@dataclass(frozen=True, kw_only=True)
class StepEfficiency(Judged):
    """The share of tool calls that were needed; one that repeats an earlier one to the letter never is."""

    scope: ClassVar[Literal["turn", "case"]] = "case"

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        from proctor.evaluators.agent.task_questions import step_efficiency
        from proctor.evaluators.general_questions import verdicts_in_order

        calls = calls_of(evaluable)
        again = repetitions(calls_by_turn(evaluable))
        material = {**_asked(evaluable, before=False), "step": _labelled(evaluable), "answer": answer_text(evaluable)}
        try:
            reply = await judge.ask(step_efficiency(material, len(calls)))
        except NeedsModel:
            found = _judged_calls(calls, {}, again, ("no repetition", "repeated"))
            by_rule = score_of_items(found, "steps repeat no other", patterns_only=True)
            return Evaluation(by_rule.score, f"patterns only: {by_rule.reasoning}", by_rule.details)
        found = _judged_calls(calls, dict(enumerate(verdicts_in_order(reply), 1)), again, ("needed", "not needed"))
        return score_of_items(found, "steps were needed")


def calls_of(evaluable: Evaluable) -> tuple[ToolCall, ...]:
    """The calls to judge; without any there is no verdict, neither a good nor a bad one."""
    if not evaluable.tool_calls:
        raise NothingToCompare("no tools were used, so that there is nothing to judge")
    return evaluable.tool_calls


def calls_by_turn(evaluable: Evaluable) -> list[tuple[ToolCall, ...]]:
    """The calls of each turn, where the whole conversation is seen; else all that are seen."""
    turns = [exchange.reply.tool_calls for exchange in evaluable.turns]
    together = tuple(call for calls in turns for call in calls)
    return turns if together == evaluable.tool_calls else [evaluable.tool_calls]


def repetitions(turns: Sequence[Sequence[ToolCall]]) -> dict[int, str]:
    """Numbers of duplicate calls, with the reason: same tool, same arguments, same result, in the same turn.

    A call after one that failed is another try, and one with another result has learnt something.
    """
    found: dict[int, str] = {}
    number = 0
    for calls in turns:
        seen: dict[str, int] = {}
        for call in calls:
            number += 1
            key = canonical(plain([call.name, call.arguments, call.raw_arguments, call.result]))
            if call.error is None and key in seen:
                found[number] = f"it repeats step {seen[key]}, with the same result"
            elif call.error is None:
                seen[key] = number
    return found


def _judged_calls(
    calls: Sequence[ToolCall],
    said: Mapping[int, tuple[bool, str]],
    known_wrong: Mapping[int, str],
    words: tuple[str, str],
) -> list[JudgedItem]:
    """One per call: what is known to be wrong by rule, else what the judge said of it."""
    found = []
    for number, call in enumerate(calls, 1):
        holds, reason = said.get(number, (True, ""))
        if number in known_wrong:
            holds, reason = False, known_wrong[number]
        found.append(JudgedItem(actual_text(call), words[0] if holds else words[1], holds, reason))
    return found


def _asked(evaluable: Evaluable, *, before: bool = True) -> dict[str, Texts]:
    """What was asked; all that was, where the whole conversation is seen."""
    asked = evaluable.input
    question: Texts = question_text(evaluable)
    if len(evaluable.turns) > 1 and isinstance(asked, list) and len(asked) == len(evaluable.turns):
        question = [as_text(item) for item in asked]
    said_before = earlier(evaluable) if before and isinstance(question, str) else []
    return {**({"earlier": said_before} if said_before else {}), "question": question}


def _labelled(evaluable: Evaluable) -> list[str]:
    turns = calls_by_turn(evaluable)
    if len(turns) == 1:
        return steps_of(turns[0])
    return [f"turn {number}: {step}" for number, calls in enumerate(turns, 1) if calls for step in steps_of(calls)]


def _tools(shown: Sequence[str]) -> dict[str, Texts]:
    return {"available-tool": list(shown)} if shown else {}


def _tool_name(tool: Any) -> str:
    name = tool.get("name") if isinstance(tool, Mapping) else tool
    return name.strip() if isinstance(name, str) else ""
