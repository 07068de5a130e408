"""ADK's rubric-based metrics: a yes or no for each rubric, the majority of samples for each, the mean over all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from proctor.evaluators.adk.final_response import full_answer
from proctor.evaluators.adk.judge_samples import AdkJudged, Tally
from proctor.evaluators.agent.transcript import dialogue_of, earlier, instructions_of, steps_of, tools_offered
from proctor.evaluators.evaluation import Evaluable, Evaluation, NothingToCompare, require_flags
from proctor.evaluators.judged_evaluator import answer_text, question_text
from proctor.evaluators.rubric.rubrics import Rubric, numbered, own_rubrics, read_rubrics
from proctor.judging.judge import Judge, Texts

ANSWER = (
    "The properties below are wanted of the answer. For each, say whether the answer has it: 'yes' or 'no'. The steps "
    "the agent took show what it could know; a property that depends on facts is met only if they bear it out."
)
TOOLS = (
    "The properties below are wanted of the way in which the agent used its tools, shown as steps. For each, say "
    "whether the steps have it: 'yes' or 'no'. A step that is merely announced has not been taken, and what the final "
    "answer says matters only as far as a property speaks of it."
)
CONVERSATION = (
    "The properties below are wanted of the conversation as a whole, shown line by line with the tools that were "
    "used. For each, say whether the agent's part in it has it: 'yes' or 'no'. Look at all turns."
)
CONDITION = (
    "A property with a condition that did not arise is met. If the material does not show that a property is met, it "
    "is not."
)


@dataclass(frozen=True, kw_only=True)
class RubricBased(AdkJudged):
    """The base of evaluators that go through a list of rubrics; those of case and turn join the evaluator's own."""

    rubrics: tuple[Any, ...] = ()
    """What is wanted: texts, objects with `text` and `id`, or rubrics as ADK writes them."""
    include_intermediate_responses_in_final: bool = False
    """Whether what the agent said before its final answer counts as part of it, where the trace shows it."""

    kind: ClassVar[str]
    asked: ClassVar[str]
    type: ClassVar[str]
    """ADK's name for rubrics of cases and turns that are for this evaluator."""

    def __post_init__(self) -> None:
        AdkJudged.__post_init__(self)
        object.__setattr__(self, "rubrics", read_rubrics(self.rubrics))
        require_flags(include_intermediate_responses_in_final=self.include_intermediate_responses_in_final)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        from proctor.evaluators.general_questions import verdicts_in_order, yes_no_questions

        listed = self.in_force(evaluable)
        instructions = f"{self.asked} {CONDITION}\n\n{numbered(listed)}"
        question = yes_no_questions(self.kind, instructions, self.material(evaluable), len(listed))
        return mean_of(listed, await self.vote(judge, question, verdicts_in_order))

    def in_force(self, evaluable: Evaluable) -> list[Rubric]:
        """The evaluator's own rubrics and those of case and turn that are for it, each once."""
        theirs = [rubric for rubric in self._theirs(evaluable) if rubric.type in (None, self.type)]
        listed = list({(rubric.id, rubric.text): rubric for rubric in (*self.rubrics, *theirs)}.values())
        if not listed:
            raise NothingToCompare("needs rubrics, here or in the metadata of case or turn, and there are none")
        return listed

    def _theirs(self, evaluable: Evaluable) -> list[Rubric]:
        of_turn = own_rubrics(evaluable.turn_metadata, "turn")
        return [*own_rubrics(evaluable.eval_metadata, "case"), *of_turn]

    def material(self, evaluable: Evaluable) -> dict[str, Texts]:
        """What the judge is shown."""
        answer = full_answer(evaluable, intermediate=self.include_intermediate_responses_in_final)
        return {
            **agent_of(evaluable),
            **({"earlier": before} if (before := earlier(evaluable)) else {}),
            "question": question_text(evaluable),
            "step": steps_of(evaluable.tool_calls),
            "answer": answer,
        }


@dataclass(frozen=True, kw_only=True)
class FinalResponseQuality(RubricBased):
    """The answer has the properties that the rubrics name (`rubric_based_final_response_quality_v1`)."""

    kind: ClassVar[str] = "answer-rubrics"
    asked: ClassVar[str] = ANSWER
    type: ClassVar[str] = "FINAL_RESPONSE_QUALITY"


@dataclass(frozen=True, kw_only=True)
class ToolUseQuality(RubricBased):
    """The tools were used as the rubrics ask for (`rubric_based_tool_use_quality_v1`)."""

    kind: ClassVar[str] = "tool-rubrics"
    asked: ClassVar[str] = TOOLS
    type: ClassVar[str] = "TOOL_USE_QUALITY"


@dataclass(frozen=True, kw_only=True)
class TrajectoryQuality(RubricBased):
    """The conversation as a whole goes as the rubrics ask for (`rubric_based_multi_turn_trajectory_quality_v1`)."""

    kind: ClassVar[str] = "conversation-rubrics"
    asked: ClassVar[str] = CONVERSATION
    type: ClassVar[str] = "TRAJECTORY_QUALITY"
    scope: ClassVar[Literal["turn", "case"]] = "case"

    def material(self, evaluable: Evaluable) -> dict[str, Texts]:
        if not evaluable.turns:
            return RubricBased.material(self, evaluable)
        answer = full_answer(evaluable, intermediate=self.include_intermediate_responses_in_final)
        spoken = dialogue_of(evaluable.turns)
        added = {} if answer == answer_text(evaluable) else {"last-answer-in-full": answer}
        return {**agent_of(evaluable), "line": spoken, **added}

    def _theirs(self, evaluable: Evaluable) -> list[Rubric]:
        """Those of every turn: this evaluator sees them all."""
        if not evaluable.turns:
            return RubricBased._theirs(self, evaluable)
        of_turns = [rubric for each in evaluable.turns for rubric in own_rubrics(each.turn.metadata, "turn")]
        return [*own_rubrics(evaluable.eval_metadata, "case"), *of_turns]


def agent_of(evaluable: Evaluable) -> dict[str, Texts]:
    """The agent's instructions and tools, where the trace shows them."""
    told, tools = instructions_of(evaluable), tools_offered(evaluable)
    return {**({"agent-instructions": told} if told else {}), **({"agent-tool": tools} if tools else {})}


def mean_of(rubrics: Sequence[Rubric], tallies: Sequence[Tally]) -> Evaluation:
    """The share of rubrics that are met, and why the others are not."""
    found = [
        {
            "rubric": rubric.text,
            **({"id": rubric.id} if rubric.id else {}),
            "met": tally.carried,
            "votes": tally.votes,
            "reason": tally.reason,
        }
        for rubric, tally in zip(rubrics, tallies, strict=True)
    ]
    unmet = [f"{entry.get('id') or entry['rubric']} ({entry['reason']})" for entry in found if not entry["met"]]
    said = f"not met: {'; '.join(unmet)}" if unmet else "every rubric is met"
    return Evaluation((len(found) - len(unmet)) / len(found), said, {"rubrics": found})
