"""DeepEval's metrics that look at a whole conversation or a whole text: criteria, goals, steps and summaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from proctor.base.json_data import UNSET
from proctor.cases.suite import NamedData
from proctor.compat.deepeval.metric_base import ConversationMetric, SingleTurnMetric, judge_named
from proctor.evaluators.agent.tasks import GoalAccuracy, StepEfficiency
from proctor.evaluators.evaluation import Evaluable, Evaluation, NothingToCompare, require_whole
from proctor.evaluators.judged_evaluator import Judged, JudgedItem, items_as_details, mean, reasons_of_items
from proctor.evaluators.judged_texts import answer_text, dialogue_of, question_text
from proctor.evaluators.rag import Faithfulness
from proctor.evaluators.rubric import marks
from proctor.judging.judge import Judge

SEEN_AS = {
    "role": "actual_output",
    "content": "actual_output",
    "scenario": "input",
    "expected_outcome": "expected_output",
    "context": "context",
    "retrieval_context": "retrieval_context",
    "tools_called": "tools_called",
    "metadata": "metadata",
    "tags": "metadata",
    "user_description": "metadata",
    "chatbot_role": "metadata",
}
"""What criteria about a conversation look at: here the conversation is the answer, and its scenario the question."""


def parts_of_conversation(given: Iterable[Any] | None) -> tuple[str, ...]:
    """The parts of an answer that stand for parts of a conversation, which is always shown."""
    named = [str(getattr(part, "value", part)) for part in given or ()]
    unknown = [part for part in named if part not in SEEN_AS]
    if unknown:
        raise ValueError(f"evaluation_params must be some of {', '.join(SEEN_AS)}, not {unknown[0]!r}")
    return tuple(dict.fromkeys(["actual_output", *(SEEN_AS[part] for part in named)]))


def conversation_as_answer(seen: Evaluable) -> Evaluable:
    """What criteria about a conversation are measured by."""
    scenario = (seen.eval_metadata or {}).get("scenario", "")
    return replace(
        seen,
        eval_input=(NamedData("input", scenario),),
        eval_output=(NamedData("output", "\n".join(dialogue_of(seen.turns))),),
        expectation=UNSET if seen.expectation is None else seen.expectation,
    )


class ConversationalGEval(ConversationMetric):
    """A conversation meets criteria of your own, marked by steps that are the same for every test case."""

    def __init__(
        self,
        name: str,
        evaluation_params: Sequence[Any] | None = None,
        criteria: str | None = None,
        evaluation_steps: Sequence[str] | None = None,
        model: Any = None,
        threshold: float | None = 0.5,
        rubric: Sequence[Any] | None = None,
        strict_mode: bool = False,
        **options: Any,
    ) -> None:
        self.name = name
        evaluator = marks.GEval(
            name=name,
            criteria=criteria,
            evaluation_steps=tuple(evaluation_steps or ()),
            evaluation_params=parts_of_conversation(evaluation_params),
            rubric=tuple(rubric or ()),
            model=judge_named(model),
            strict_mode=strict_mode,
        )
        super().__init__(evaluator, threshold=threshold, strict_mode=strict_mode, **options)

    def evaluable(self, test_case: Any) -> Evaluable:
        return conversation_as_answer(super().evaluable(test_case))

    @property
    def __name__(self) -> str:
        return f"{self.name} (ConversationalGEval)"


class GoalAccuracyMetric(ConversationMetric):
    """How far the user's goals were reached, and how sound the way there was."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(GoalAccuracy(model=judge_named(model)), threshold=threshold, **options)


class StepEfficiencyMetric(SingleTurnMetric):
    """The share of tool calls that were needed."""

    needs = ("input", "tools_called")

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(StepEfficiency(model=judge_named(model)), threshold=threshold, **options)


class SummarizationMetric(SingleTurnMetric):
    """A summary (`actual_output`) says nothing its original (`input`) does not, and leaves nothing important out."""

    def __init__(
        self,
        threshold: float | None = 0.5,
        n: int = 5,
        model: Any = None,
        assessment_questions: Sequence[str] | None = None,
        truths_extraction_limit: int | None = None,
        **options: Any,
    ) -> None:
        require_limit(truths_extraction_limit)
        evaluator = Summarization(n=n, assessment_questions=tuple(assessment_questions or ()), model=judge_named(model))
        super().__init__(evaluator, threshold=threshold, **options)


def require_limit(limit: int | None) -> None:
    """DeepEval lists truths before it judges, so many at most; here passages are read whole, and none is left out."""
    if limit is not None:
        require_whole("truths_extraction_limit", limit, least=0)


QUESTIONS = (
    "Write {n} questions about what is most important in the original, each to be answered by yes or no, and each with "
    "the answer yes by the original. A summary that leaves nothing important out answers all of them as well. Write "
    "one question a line, without numbers, and nothing else."
)
ANSWERS = (
    "Answer each numbered question by the text alone: 'yes' if the text says so, 'no' if it says otherwise or does not "
    "tell. Know nothing that the text does not say."
)


@dataclass(frozen=True, kw_only=True)
class Summarization(Judged):
    """The lower of two shares: of the summary's claims that hold, and of the questions that it answers as well."""

    n: int = 5
    assessment_questions: tuple[str, ...] = ()
    """Questions that a good summary answers with yes; without any, the judge works out `n` of them."""

    def __post_init__(self) -> None:
        require_whole("n", self.n, least=1)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        original, summary = question_text(evaluable), answer_text(evaluable)
        if not original.strip():
            raise NothingToCompare("needs the original (`input`), and it is empty")
        if not summary.strip():
            return Evaluation(0.0, "the summary is empty")
        covered = await self._covered(original, summary, judge)
        seen = replace(evaluable, retrieval_context=(original,), context=None, tool_calls=())
        aligned = await Faithfulness(mode="grounded").assess(seen, judge)
        coverage = mean(float(item.holds) for item in covered)
        said = f"{aligned.reasoning}; {reasons_of_items(covered, 'questions are answered by the summary as well')}"
        details = {"alignment": aligned.score, "coverage": coverage, "questions": items_as_details(covered)}
        return Evaluation(min(aligned.score, coverage), said, {**aligned.details, **details})

    async def _covered(self, original: str, summary: str, judge: Judge) -> list[JudgedItem]:
        questions = list(self.assessment_questions)
        if questions:
            known = await self._answers(questions, original, judge)
            questions = [one for one, (is_yes, _) in zip(questions, known, strict=True) if is_yes]
            if not questions:
                raise NothingToCompare("the original answers none of the assessment_questions with yes")
        else:
            from proctor.evaluators.judge_questions import text_question

            asked = text_question("summary-questions", QUESTIONS.format(n=self.n), {"original": original})
            lines = [line.strip() for line in (await judge.ask(asked)).output.splitlines()]
            questions = [line for line in lines if line][: self.n]
            if not questions:
                raise NothingToCompare("the judge found nothing in the original to ask about")
        found = await self._answers(questions, summary, judge)
        words = {True: "answered", False: "not answered"}
        return [JudgedItem(one, words[yes], yes, why) for one, (yes, why) in zip(questions, found, strict=True)]

    async def _answers(self, questions: Sequence[str], text: str, judge: Judge) -> list[tuple[bool, str]]:
        from proctor.evaluators.judge_questions import verdicts_in_order, yes_no_questions

        material = {"text": text, "question": list(questions)}
        return verdicts_in_order(
            await judge.ask(yes_no_questions("summary-answers", ANSWERS, material, len(questions)))
        )
