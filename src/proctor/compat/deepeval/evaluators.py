"""The evaluators behind DeepEval's metrics that nothing else needs: tool correctness, hallucination, goal accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum

from pydantic import BaseModel, Field

from proctor.agents.reply import ToolCall
from proctor.base.json_data import UNSET
from proctor.cases.matchers import Difference, Equals, InvalidMatcher, Matcher, differences_of, json_equal, parse
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.agent import case_material
from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.judged_evaluator import (
    CANNOT_TELL,
    Finding,
    JudgedEvaluator,
    findings_as_details,
    mean,
    mean_of_findings,
    summarize_findings,
)
from proctor.evaluators.material import answer_text, known_facts, nonblank_passages
from proctor.evaluators.tools.calls import (
    counted_calls,
    credit_matrix,
    expand_counts,
    expected_calls,
    expected_text,
    mismatches,
    name_matrix,
    require_failed_calls,
    wrong_arguments,
)
from proctor.evaluators.tools.differences import Differences, differences, fault
from proctor.evaluators.tools.pairing import Pairs, Weights, best_pairs, best_pairs_in_order, is_exact
from proctor.evaluators.values import require_bool, require_text
from proctor.judging.judge import Judge, Question, Texts
from proctor.judging.questions import agreements


@evaluator(family="tools", needs="tools", variant_of="ExpectedTools")
@dataclass(frozen=True, slots=True)
class ToolCorrectness:
    """The share of the expected tool calls that were made; further calls cost nothing unless `exact`.

    The share of expected calls that were made, by name; `ordered`: as far as they come in order; `exact`: 0 unless
    these calls, in this order, and no others; `compare_arguments`: each counts by the share of its arguments that are
    right; `compare_results`: only with the expected result, where one is given.
    """

    ordered: bool = False
    """Whether only calls that come in the expected order count."""
    exact: bool = False
    """Whether anything but the expected calls, all of them, in their order and nothing else, scores 0."""
    compare_arguments: bool = False
    """Whether a call counts only as far as its arguments are the expected ones."""
    compare_results: bool = False
    """Whether a call counts only if its result is the expected one, where one is given."""
    failed_calls: str = "count"
    """`ignore` leaves calls that ended in an error out of the comparison."""

    def __post_init__(self) -> None:
        require_bool(
            ordered=self.ordered,
            exact=self.exact,
            compare_arguments=self.compare_arguments,
            compare_results=self.compare_results,
        )
        require_failed_calls(self.failed_calls)

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected = expected_calls(evaluable)
        places = counted_calls(evaluable.tool_calls, self.failed_calls)
        actual = [evaluable.tool_calls[index] for index in places]
        if not expected:
            reason = "tools were called and none was to be" if actual else "no tool was to be called, and none was"
            return Evaluation(float(not actual), reason, differences(expected, actual, []).details(places=places))
        fit = self._fitting(expected, actual)
        worth = self._worths(expected, actual, fit)
        units = expand_counts(expected, len(actual))
        weights = [worth[index] for index in units]
        found = self._pair([fit[index] for index in units], weights)
        pairs = [(units[unit], column) for unit, column in found]
        earned = [worth[i][c] for i, c in pairs]
        left = differences(expected, actual, pairs, fit if self.ordered or self.exact else (), self._reasons)
        evaluation = self._verdict(left, earned, places)
        if self.ordered or self.exact or is_exact(weights):
            return evaluation
        return replace(evaluation, details={**evaluation.details, "approximate": True})

    def _fitting(self, expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
        """Which calls may be paired at all."""
        if not self.compare_results:
            return name_matrix(expected, actual)
        return [[float(self._fits(wanted, call)) for call in actual] for wanted in expected]

    def _worths(self, expected: Sequence[ExpectedCall], actual: Sequence[ToolCall], fit: Weights) -> Weights:
        if not self.compare_arguments:
            return fit
        earned = credit_matrix(expected, actual)
        if not self.compare_results:
            return earned
        return [[f * c for f, c in zip(row, credit, strict=True)] for row, credit in zip(fit, earned, strict=True)]

    def _fits(self, expected: ExpectedCall, call: ToolCall) -> bool:
        """Whether the two may be paired at all."""
        if not expected.accepts_name(call.name):
            return False
        return not self.compare_results or not any(_differences(expected, call))

    def _pair(self, fit: Weights, worth: Weights) -> Pairs:
        if self.exact:
            places = range(min(len(fit), len(fit[0]) if fit else 0))
            return [(index, index) for index in places if fit[index][index]]
        return (best_pairs_in_order if self.ordered else best_pairs)(worth)

    def _verdict(self, left: Differences, earned: list[float], places: Sequence[int]) -> Evaluation:
        wanted = sum(call.count for call in left.expected)
        share = fsum(earned) / wanted if wanted else 1.0
        details = {**left.details(extra_allowed=not self.exact, places=places), "credit": earned}
        if share == 1.0 and not (self.exact and len(left.actual) > wanted):
            return Evaluation(1.0, f"all {wanted} expected calls were made", details)
        partly = [pair for pair, worth in zip(left.pairs, earned, strict=True) if worth < 1.0]
        phrases = [left.explain(extra_allowed=not self.exact)]
        for index, column in partly[:8]:
            likely, call = left.expected[index], left.actual[column]
            phrases.append(f"{call.name}: {', '.join(self._reasons(likely, call))}")
            wrong = wrong_arguments(likely, call)
            details["faults"].append(
                fault("arguments", call.name, places[column], call=expected_text(likely), arguments=wrong)
            )
        return Evaluation(0.0 if self.exact else share, "; ".join(filter(None, phrases)), details)

    def _reasons(self, expected: ExpectedCall, call: ToolCall) -> Iterator[str]:
        if self.compare_arguments:
            yield from mismatches(expected, call)
        if self.compare_results:
            yield from map(str, _differences(expected, call))


def _differences(expected: ExpectedCall, call: ToolCall) -> Iterator[Difference]:
    """How the result of a call differs from what is expected of it, in which matchers may stand."""
    if expected.result is UNSET or json_equal(expected.result, call.result):
        return
    try:
        matcher: Matcher = parse(expected.result)
    except InvalidMatcher:  # not from a file of ours, so that a key with a `$` is only a key
        matcher = Equals(expected.result)
    yield from differences_of(matcher, call.result, "result")


@evaluator(family="passages", needs="passages", judge="rules or model", variant_of="Faithfulness")
@dataclass(frozen=True)
class Hallucination(JudgedEvaluator):
    """The share of the passages that the answer does not contradict; what it leaves out is not held against it.

    The share of passages that the answer does not contradict; what it leaves out does not matter. Skipped if the
    answer is empty.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = nonblank_passages(evaluable, prefer_context=True)
        answer = answer_text(evaluable)
        if not answer.strip():
            raise NothingToCompare("the answer is empty and contradicts nothing")
        reply = await judge.ask(replace(agreements(answer, texts, known_facts(evaluable)), accepts_abstentions=True))
        found = [
            Finding(texts[item.number - 1], CANNOT_TELL, False, item.reason, unclear=True)
            if item.unclear
            else Finding(texts[item.number - 1], _AGREES[item.verdict], item.verdict == "yes", item.reason)
            for item in sorted(reply.verdicts, key=lambda verdict: verdict.number)
        ]
        return mean_of_findings(found, "passages agree with the answer")


_AGREES = {"yes": "agrees", "no": "contradicts"}


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


REACHED_FROM = 0.5
"""From which score on a goal is counted as reached in the reason; the score itself is the mean."""


@evaluator(family="agent", judge="model", variant_of="TaskCompletion", scope="case")
@dataclass(frozen=True, kw_only=True)
class GoalAccuracy(JudgedEvaluator):
    """How far the user's goals were reached, and how sound the way there was: the mean of both, over all goals.

    The mean of how far the user's goals were reached and how sound the way to them was. Without `goal` the judge
    gathers them from the conversation. Skipped if nothing was asked and no `goal` is given.
    """

    goal: str | None = None
    """What the user is after; without it, the judge gathers the goals from the conversation."""

    def __post_init__(self) -> None:
        require_text("goal", self.goal)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        given: dict[str, Texts] = {} if self.goal is None else {"goal": self.goal}
        reply = await judge.ask(goal_accuracy({**given, **case_material(evaluable, task_given=self.goal is not None)}))
        goals = [_judged_goal("goal", item.goal, item.reached, item.reason) for item in reply.goals]
        plans = [_judged_goal("way to it", item.goal, item.plan, item.plan_reason) for item in reply.goals]
        scores = {"goal_score": mean(item.credit for item in goals), "plan_score": mean(item.credit for item in plans)}
        reached = summarize_findings(goals, "goals were reached")
        said = f"{reached}; {summarize_findings(plans, 'of the ways to them were sound')}"
        details = {**scores, "goals": findings_as_details(goals), "plans": findings_as_details(plans)}
        return Evaluation(mean(scores.values()), said, details)


def _judged_goal(what: str, text: str, score: float, reason: str) -> Finding:
    return Finding(text, f"{what} {score:.0%}", score >= REACHED_FROM, reason, score)
