"""GEval: the judge turns criteria into steps once, and then gives each answer a mark by these steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.judge_questions import mark_question, steps_question, yes_no_question
from proctor.evaluators.judged_evaluator import JudgedEvaluator
from proctor.evaluators.material import answer_text, expected_text, question_text, tool_call_lines
from proctor.evaluators.observation import require_observed
from proctor.evaluators.tools.calls import expected_text as call_text
from proctor.evaluators.values import as_text, require_bool
from proctor.judging.judge import InvalidReply, Judge, Texts

MAX_MARK = 10

STEPS_PROMPT = (
    "Plan how to assess an answer by the criteria below, in three or four short steps. Each step must be possible by "
    "looking at these parts: {parts}. The steps must work for any answer, so give no examples. Do not carry them out "
    "yet.\n\n"
    "The criteria:\n"
    "{criteria}"
)
MARK_PROMPT = (
    "Assess the answer by following the steps below in order. Give a mark from {lowest} to {highest}: {highest} if it "
    "does everything they ask for, {lowest} if it does none of it. Consider nothing else.\n\n"
    "{criteria}The steps:\n"
    "{steps}"
)
STRICT_PROMPT = (
    "Assess the answer by following the steps below in order. Say whether it does everything they ask for: 'yes' only "
    "if nothing is missing. Consider nothing else.\n\n"
    "{criteria}The steps:\n"
    "{steps}"
)
BANDS_PROMPT = "\n\nWhat the marks mean:\n{bands}"


@dataclass(frozen=True, slots=True)
class ScoreBand:
    """The meaning of the marks from `lowest` to `highest`."""

    lowest: int
    highest: int
    outcome: str


@evaluator(family="rubric", judge="model", example={"criteria": "The answer names the deadline and the fee."})
@dataclass(frozen=True, kw_only=True)
class GEval(JudgedEvaluator):
    """The answer meets your criteria, by steps that are the same for every case.

    A mark from 0 to 10, divided by 10. Without `evaluation_steps`, the judge derives them from the criteria once. With
    a `rubric`, its ranges set the scale. Skipped if the case lacks one of the `evaluation_params`.
    """

    name: str | None = None
    """The name in reports, if it is created in Python. In files, every evaluator has `name`."""
    criteria: str | None = None
    evaluation_steps: tuple[str, ...] = ()
    """The steps of the assessment. Without any, the judge derives them from the criteria once."""
    evaluation_params: tuple[str, ...] = ("input", "actual_output")
    """What the judge sees: input, actual_output, expected_output, context, retrieval_context, tools_called,
    expected_tools, metadata."""
    rubric: tuple[Any, ...] = ()
    """The meaning of marks: objects with `score_range` and `expected_outcome`. Ranges must not overlap."""
    strict_mode: bool = False
    """Whether only a perfect answer scores 1, and any other 0."""

    def __post_init__(self) -> None:
        require_bool(strict_mode=self.strict_mode)
        object.__setattr__(self, "evaluation_steps", _texts("evaluation_steps", self.evaluation_steps))
        object.__setattr__(self, "evaluation_params", _parts(self.evaluation_params))
        object.__setattr__(self, "rubric", read_bands(self.rubric))
        if self.criteria is not None and not (isinstance(self.criteria, str) and self.criteria.strip()):
            raise ValueError("criteria must be a non-empty string")
        if self.criteria is None and not self.evaluation_steps:
            raise ValueError("set criteria or evaluation_steps")
        if self.strict_mode and self.rubric:
            raise ValueError("strict_mode and rubric cannot be combined")

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        material = {name: text for part in self.evaluation_params for name, text in [CASE_PARTS[part](evaluable)]}
        steps = await self._steps(judge)
        details: dict[str, Any] = {"steps": list(steps)}
        words = {
            "criteria": f"The criteria:\n{self.criteria}\n\n" if self.criteria and steps != (self.criteria,) else "",
            "steps": "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1)),
        }
        if self.strict_mode:
            strict = yes_no_question("geval-strict", STRICT_PROMPT.format(**words), material)
            reply = await judge.ask(strict)
            return Evaluation(float(reply.verdict == "yes"), reply.reason, details)
        lowest, highest = self.ends
        prompt = MARK_PROMPT.format(lowest=lowest, highest=highest, **words) + self._meaning()
        # 12 of 10 means full marks; 85 of 10 is another scale and is refused.
        slack = (highest - lowest) / 2
        question = mark_question("geval", prompt, material, lowest, highest, slack)
        mark = await judge.ask(question)
        return Evaluation(mark.share(lowest, highest), mark.reason, {**details, "mark": mark.mark})

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest mark."""
        return (self.rubric[0].lowest, self.rubric[-1].highest) if self.rubric else (0, MAX_MARK)

    async def _steps(self, judge: Judge) -> tuple[str, ...]:
        """The steps, set by the user or derived from the criteria. All cases share them."""
        if self.evaluation_steps:
            return self.evaluation_steps
        parts = ", ".join(MATERIAL_NAMES[part] for part in self.evaluation_params)
        criteria = str(self.criteria)
        question = steps_question("geval-steps", STEPS_PROMPT.format(parts=parts, criteria=criteria), criteria, parts)
        try:
            reply = await judge.ask(question)
        except InvalidReply as error:
            raise InvalidReply(f"{error}; you can write the steps yourself in evaluation_steps", error.reply) from error
        return tuple(step for step in reply.steps if step.strip())

    def _meaning(self) -> str:
        lines = [f"{band.lowest} to {band.highest}: {band.outcome}" for band in self.rubric]
        return BANDS_PROMPT.format(bands="\n".join(lines)) if lines else ""


def read_bands(value: Any) -> tuple[ScoreBand, ...]:
    """The bands of a rubric in order; raises `ValueError` if they overlap, or leave no room between the ends."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        raise ValueError("rubric must be a list of objects with score_range and expected_outcome")
    bands = sorted((_band(item, index) for index, item in enumerate(value)), key=lambda band: band.lowest)
    for before, after in pairwise(bands):
        if after.lowest <= before.highest:
            ranges = f"{before.lowest} to {before.highest} and {after.lowest} to {after.highest}"
            raise ValueError(f"rubric: the ranges {ranges} overlap")
    if bands and bands[0].lowest == bands[-1].highest:
        raise ValueError(f"rubric allows only the mark {bands[0].lowest}; use a range of marks")
    return tuple(bands)


def _band(item: Any, index: int) -> ScoreBand:
    if isinstance(item, ScoreBand):
        return item
    ends = item.get("score_range") if isinstance(item, Mapping) else getattr(item, "score_range", None)
    outcome = item.get("expected_outcome") if isinstance(item, Mapping) else getattr(item, "expected_outcome", None)
    whole = isinstance(ends, Sequence) and len(ends) == 2 and all(type(end) is int for end in ends)
    if not whole or not 0 <= ends[0] <= ends[1] <= MAX_MARK:  # type: ignore[index]
        raise ValueError(
            f"rubric[{index}]: score_range must be two whole numbers from 0 to {MAX_MARK}, the lower one first"
        )
    if not isinstance(outcome, str) or not outcome.strip():
        raise ValueError(f"rubric[{index}]: expected_outcome must say what such an answer is like")
    return ScoreBand(ends[0], ends[1], outcome)  # type: ignore[index]


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str) or not all(isinstance(item, str) and item.strip() for item in value):
        raise ValueError(f"{name} must be a list of texts, not {value!r:.80}")
    return tuple(value)


def _parts(value: Any) -> tuple[str, ...]:
    """The parts by name; enumerations of other tools say theirs by `value`."""
    parts = _texts("evaluation_params", [getattr(part, "value", part) for part in value or ()])
    unknown = [part for part in parts if part not in CASE_PARTS]
    if unknown or not parts:
        hint = f", not {unknown[0]!r}" if unknown else ""
        raise ValueError(f"evaluation_params must be some of {', '.join(CASE_PARTS)}{hint}")
    return tuple(dict.fromkeys(parts))


def _context(evaluable: Evaluable) -> tuple[str, Texts]:
    if not evaluable.context:
        raise NothingToCompare("evaluation_params include `context`, and the case has none")
    return MATERIAL_NAMES["context"], list(evaluable.context)


def _retrieval_context(evaluable: Evaluable) -> tuple[str, Texts]:
    if not evaluable.retrieval_context:
        raise NothingToCompare("evaluation_params include `retrieval_context`, and there is none")
    return MATERIAL_NAMES["retrieval_context"], list(evaluable.retrieval_context)


def _expected_tools(evaluable: Evaluable) -> tuple[str, Texts]:
    if evaluable.expected_tool_calls is None:
        raise NothingToCompare("evaluation_params include `expected_tools`, and the case has none")
    return MATERIAL_NAMES["expected_tools"], [call_text(call) for call in evaluable.expected_tool_calls]


def _tools_called(evaluable: Evaluable) -> tuple[str, Texts]:
    require_observed(evaluable)
    return MATERIAL_NAMES["tools_called"], tool_call_lines(evaluable.tool_calls)


def _metadata(evaluable: Evaluable) -> tuple[str, Texts]:
    return MATERIAL_NAMES["metadata"], as_text({**(evaluable.eval_metadata or {}), **evaluable.turn_metadata})


MATERIAL_NAMES = {
    "input": "question",
    "actual_output": "answer",
    "expected_output": "reference",
    "context": "fact",
    "retrieval_context": "passage",
    "tools_called": "step",
    "expected_tools": "expected-step",
    "metadata": "metadata",
}
"""What the parts are called in the material."""

CASE_PARTS: Mapping[str, Callable[[Evaluable], tuple[str, Texts]]] = {
    "input": lambda evaluable: ("question", question_text(evaluable)),
    "actual_output": lambda evaluable: ("answer", answer_text(evaluable)),
    "expected_output": lambda evaluable: ("reference", expected_text(evaluable)),
    "context": _context,
    "retrieval_context": _retrieval_context,
    "tools_called": _tools_called,
    "expected_tools": _expected_tools,
    "metadata": _metadata,
}
