"""The evaluators that only DeepEval's metrics use: tool correctness, hallucination, goal accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum

from pydantic import BaseModel, Field

from proctor.agents.reply import ToolCall
from proctor.base.json_data import UNSET
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.agent import case_material
from proctor.evaluators.declaration import ScoreSettings, evaluator
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
from proctor.evaluators.material import answer_text, nonblank_passages, user_messages
from proctor.evaluators.observation import settle_comparison
from proctor.evaluators.tools.calls import (
    argument_differences,
    counted_calls,
    credit_matrix,
    expand_counts,
    expected_calls,
    expected_text,
    name_matrix,
    require_failed_calls,
    result_differences,
    wrong_arguments,
)
from proctor.evaluators.tools.differences import Differences, differences, fault
from proctor.evaluators.tools.pairing import Pairs, Weights, best_pairs, best_pairs_in_order, is_exact
from proctor.evaluators.values import require_bool, require_text
from proctor.judging.judge import Judge, Question, Texts
from proctor.judging.questions import agreements
from proctor.judging.rule_judge.claims import makes_claim, split_statements


@evaluator(family="tools", needs="tools", variant_of="ExpectedTools")
@dataclass(frozen=True, slots=True)
class ToolCorrectness(ScoreSettings):
    """The share of the expected tool calls that were made; additional calls do not matter unless `exact`.

    The share of expected calls that were made, by name. `ordered`: only calls in the expected order count. `exact`: 0
    unless these calls, in this order, and no others were made. `compare_arguments`: each call counts by its share of
    correct arguments. `compare_results`: a call counts only if it has the expected result, if there is one.
    """

    ordered: bool = False
    """Whether only calls in the expected order count."""
    exact: bool = False
    """Whether anything other than exactly the expected calls in their order scores 0."""
    compare_arguments: bool = False
    """Whether a call counts only by its share of expected arguments."""
    compare_results: bool = False
    """Whether a call counts only if it has the expected result, if there is one."""
    failed_calls: str = "count"
    """`ignore` leaves out calls that returned an error."""

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
        if not self.compare_results:
            expected = tuple(replace(call, result=UNSET) for call in expected)
        places = counted_calls(evaluable.tool_calls, self.failed_calls)
        actual = [evaluable.tool_calls[index] for index in places]
        if not expected:
            reason = "tools were called although none were expected" if actual else "no tool was expected or called"
            details = differences(expected, actual, []).details(places=places)
            return settle_comparison(evaluable, Evaluation(float(not actual), reason, details), extra_allowed=False)
        pairable = self._pairable(expected, actual)
        pair_credits = self._pair_credits(expected, actual, pairable)
        units = expand_counts(expected, len(actual))
        weights = [pair_credits[index] for index in units]
        unit_pairs = self._pair([pairable[index] for index in units], weights)
        pairs = [(units[unit], column) for unit, column in unit_pairs]
        earned = [pair_credits[i][c] for i, c in pairs]
        comparison = differences(expected, actual, pairs, pairable if self.ordered or self.exact else (), self._reasons)
        verdict = self._verdict(comparison, earned, places)
        evaluation = settle_comparison(evaluable, verdict, extra_allowed=not self.exact)
        if self.ordered or self.exact or is_exact(weights):
            return evaluation
        return replace(evaluation, details={**evaluation.details, "approximate": True})

    def _pairable(self, expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
        """Which expected and actual calls may be paired."""
        if not self.compare_results:
            return name_matrix(expected, actual)
        return [[float(self._is_pairable(expected_call, call)) for call in actual] for expected_call in expected]

    def _pair_credits(self, expected: Sequence[ExpectedCall], actual: Sequence[ToolCall], pairable: Weights) -> Weights:
        """How much each pair is worth, from 0 to 1."""
        if not self.compare_arguments:
            return pairable
        earned = credit_matrix(expected, actual)
        if not self.compare_results:
            return earned
        return [[f * c for f, c in zip(row, credit, strict=True)] for row, credit in zip(pairable, earned, strict=True)]

    def _is_pairable(self, expected: ExpectedCall, call: ToolCall) -> bool:
        """Whether the two calls may be paired."""
        if not expected.accepts_name(call.name):
            return False
        return not self.compare_results or not any(result_differences(expected, call))

    def _pair(self, pairable: Weights, pair_credits: Weights) -> Pairs:
        if self.exact:
            places = range(min(len(pairable), len(pairable[0]) if pairable else 0))
            return [(index, index) for index in places if pairable[index][index]]
        return (best_pairs_in_order if self.ordered else best_pairs)(pair_credits)

    def _verdict(self, comparison: Differences, earned: list[float], places: Sequence[int]) -> Evaluation:
        expected_count = sum(call.count for call in comparison.expected)
        share = fsum(earned) / expected_count if expected_count else 1.0
        details = {**comparison.details(extra_allowed=not self.exact, places=places), "credit": earned}
        if share == 1.0 and not (self.exact and len(comparison.actual) > expected_count):
            return Evaluation(1.0, f"all {expected_count} expected calls were made", details)
        partly = [pair for pair, credit in zip(comparison.pairs, earned, strict=True) if credit < 1.0]
        phrases = [comparison.explain(extra_allowed=not self.exact)]
        for index, column in partly[:8]:
            expected, call = comparison.expected[index], comparison.actual[column]
            phrases.append(f"{call.name}: {', '.join(self._reasons(expected, call))}")
            wrong = wrong_arguments(expected, call)
            details["faults"].append(
                fault("arguments", call.name, places[column], call=expected_text(expected), arguments=wrong)
            )
        return Evaluation(0.0 if self.exact else share, "; ".join(filter(None, phrases)), details)

    def _reasons(self, expected: ExpectedCall, call: ToolCall) -> Iterator[str]:
        if self.compare_arguments:
            yield from map(str, argument_differences(expected, call))
        if self.compare_results:
            yield from map(str, result_differences(expected, call))


@evaluator(family="passages", needs="passages", judge="rules or model", variant_of="Faithfulness")
@dataclass(frozen=True)
class Hallucination(JudgedEvaluator):
    """The share of the passages that the answer does not contradict; omissions do not matter.

    The share of passages that the answer does not contradict; omissions do not matter. Skipped if the answer
    makes no claim.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = nonblank_passages(evaluable, prefer_context=True)
        answer = answer_text(evaluable)
        if not answer.strip():
            raise NothingToCompare("the answer is empty")
        if not any(map(makes_claim, split_statements(answer))):
            raise NothingToCompare("the answer makes no claim")
        reply = await judge.ask(replace(agreements(answer, texts, user_messages(evaluable)), accepts_abstentions=True))
        findings = [
            Finding(texts[item.number - 1], CANNOT_TELL, False, item.reason, unclear=True)
            if item.unclear
            else Finding(texts[item.number - 1], _AGREES[item.verdict], item.verdict == "yes", item.reason)
            for item in sorted(reply.verdicts, key=lambda verdict: verdict.number)
        ]
        return mean_of_findings(findings, "passages agree with the answer")


_AGREES = {"yes": "agrees", "no": "contradicts"}


class GoalVerdict(BaseModel):
    """The judge's scores for one goal."""

    goal: str = Field(description="what the user wanted, in one sentence")
    reason: str = Field(description="in one or two sentences, what shows that it was reached, or what is missing")
    reached: float = Field(ge=0, le=1, description="how far the goal was reached, from 0 to 1")
    plan_reason: str = Field(description="in one or two sentences, what was sound in the plan, and what was not")
    plan: float = Field(ge=0, le=1, description="how sound the plan was, from 0 to 1")


class GoalVerdicts(BaseModel):
    """The judge's scores for all goals."""

    goals: list[GoalVerdict]


def goal_accuracy(material: Mapping[str, Texts]) -> Question[GoalVerdicts]:
    """The question about each goal of the user, how far it was reached, and how sound the plan was."""
    has_goal = "goal" in material
    which = (
        "The goal is given; judge only that one, in a list with one entry."
        if has_goal
        else "List the user's goals in the conversation as a whole. A wish that replaces an earlier one takes its "
        "place, and wishes that belong together are one goal."
    )
    return Question(
        kind="goal-accuracy",
        version=2,
        instructions=(
            f"Assess whether an agent reached a user's goals. {which} For each goal say how far it was reached, "
            "judging by what the agent did and said, not by what it promised. Then say how sound the agent's plan was: "
            "whether it asked for what it had to know, took steps toward the goal in a sensible order, and changed "
            "course when something failed. A goal may be reached with a poor plan, or missed with a sound one."
        ),
        material=material,
        reply=GoalVerdicts,
        check=_one_goal if has_goal else _some_goal,
    )


def _one_goal(reply: GoalVerdicts) -> str | None:
    return (
        None if len(reply.goals) == 1 else f"goals must have one entry, for the given goal; it has {len(reply.goals)}"
    )


def _some_goal(reply: GoalVerdicts) -> str | None:
    return None if reply.goals else "goals is empty; list at least one goal of the user"


REACHED_THRESHOLD = 0.5
"""From this score on, the reason counts a goal as reached; the score itself is the mean."""


@evaluator(family="agent", judge="model", variant_of="TaskCompletion", scope="case")
@dataclass(frozen=True, kw_only=True)
class GoalAccuracy(JudgedEvaluator):
    """How far the user's goals were reached, and how sound the plan was: the mean of both, over all goals.

    The mean of how far the user's goals were reached and how sound the plan was. Without `goal`, the judge takes the
    goals from the conversation. Skipped if there is neither a question nor a `goal`.
    """

    goal: str | None = None
    """The user's goal; without it, the judge takes the goals from the conversation."""

    def __post_init__(self) -> None:
        require_text("goal", self.goal)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        goal: dict[str, Texts] = {} if self.goal is None else {"goal": self.goal}
        reply = await judge.ask(goal_accuracy({**goal, **case_material(evaluable, task_given=self.goal is not None)}))
        goals = [_goal_finding("goal", item.goal, item.reached, item.reason) for item in reply.goals]
        plans = [_goal_finding("plan", item.goal, item.plan, item.plan_reason) for item in reply.goals]
        scores = {"goal_score": mean(item.credit for item in goals), "plan_score": mean(item.credit for item in plans)}
        reached = summarize_findings(goals, "goals were reached")
        reasoning = f"{reached}; {summarize_findings(plans, 'of the plans were sound')}"
        details = {**scores, "goals": findings_as_details(goals), "plans": findings_as_details(plans)}
        return Evaluation(mean(scores.values()), reasoning, details)


def _goal_finding(what: str, text: str, score: float, reason: str) -> Finding:
    return Finding(text, f"{what} {score:.0%}", score >= REACHED_THRESHOLD, reason, score)
