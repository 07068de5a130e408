"""DeepEval's metrics of whole conversations and long texts, and its graphs of judgements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from proctor.base.json_data import UNSET
from proctor.cases.suite import NamedData
from proctor.compat.deepeval import dag as dag_nodes
from proctor.compat.deepeval.dag import JudgementDAG
from proctor.compat.deepeval.evaluators import GoalAccuracy
from proctor.compat.deepeval.metric_base import ConversationMetric, SingleTurnMetric, as_judge
from proctor.evaluators.agent import StepEfficiency
from proctor.evaluators.evaluation import Evaluable, Evaluation, NothingToCompare
from proctor.evaluators.geval import GEval
from proctor.evaluators.judge_questions import text_question, verdicts_in_order, yes_no_questions
from proctor.evaluators.judged_evaluator import Finding, JudgedEvaluator, findings_as_details, mean, summarize_findings
from proctor.evaluators.material import answer_text, question_text, transcript
from proctor.evaluators.retrieval import Faithfulness
from proctor.evaluators.values import require_int
from proctor.judging.judge import Judge

CONVERSATION_PARTS = {
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
"""The part of an answer that stands for each part of a conversation.

To the evaluator, the conversation is the answer and its scenario is the question.
"""


def conversation_parts(params: Iterable[Any] | None) -> tuple[str, ...]:
    """The parts of an answer that stand for parts of a conversation; the conversation itself is always one."""
    names = [str(getattr(part, "value", part)) for part in params or ()]
    unknown = [part for part in names if part not in CONVERSATION_PARTS]
    if unknown:
        raise ValueError(f"evaluation_params must be some of {', '.join(CONVERSATION_PARTS)}, not {unknown[0]!r}")
    return tuple(dict.fromkeys(["actual_output", *(CONVERSATION_PARTS[part] for part in names)]))


def conversation_as_answer(evaluable: Evaluable) -> Evaluable:
    """The conversation with its transcript as the answer and its scenario as the question."""
    scenario = (evaluable.eval_metadata or {}).get("scenario", "")
    return replace(
        evaluable,
        eval_input=(NamedData("input", scenario),),
        eval_output=(NamedData("output", "\n".join(transcript(evaluable.turns))),),
        expectation=UNSET if evaluable.expectation is None else evaluable.expectation,
    )


class ConversationalGEval(ConversationMetric):
    """Whether a conversation meets your criteria, scored by steps that are the same for every test case."""

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
        evaluator = GEval(
            name=name,
            criteria=criteria,
            evaluation_steps=tuple(evaluation_steps or ()),
            evaluation_params=conversation_parts(evaluation_params),
            rubric=tuple(rubric or ()),
            model=as_judge(model),
            strict_mode=strict_mode,
        )
        super().__init__(evaluator, threshold=threshold, strict_mode=strict_mode, **options)

    def evaluable(self, test_case: Any) -> Evaluable:
        return conversation_as_answer(super().evaluable(test_case))

    @property
    def __name__(self) -> str:
        return f"{self.name} (ConversationalGEval)"


class GoalAccuracyMetric(ConversationMetric):
    """How far the user's goals were reached, and how sound the plan was."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(GoalAccuracy(model=as_judge(model)), threshold=threshold, **options)


class StepEfficiencyMetric(SingleTurnMetric):
    """The share of tool calls that were needed."""

    needs = ("input", "tools_called")

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(StepEfficiency(model=as_judge(model)), threshold=threshold, **options)


class SummarizationMetric(SingleTurnMetric):
    """Whether a summary (`actual_output`) adds nothing to its original (`input`) and omits nothing important."""

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
        evaluator = Summarization(n=n, assessment_questions=tuple(assessment_questions or ()), model=as_judge(model))
        super().__init__(evaluator, threshold=threshold, **options)


def require_limit(limit: int | None) -> None:
    """Check DeepEval's limit on extracted truths. It has no effect: Proctor's judge reads passages whole."""
    if limit is not None:
        require_int("truths_extraction_limit", limit, least=0)


QUESTIONS_PROMPT = (
    "Write {n} questions about what is most important in the original. Each must be a yes-or-no question that the "
    "original answers with yes. A summary that leaves out nothing important answers all of them with yes too. Write "
    "one question per line, without numbers, and nothing else."
)
ANSWERS_PROMPT = (
    "Answer each numbered question from the text alone: 'yes' if the text says so, 'no' if it says otherwise or does "
    "not say. Use no knowledge that is not in the text."
)


@dataclass(frozen=True, kw_only=True)
class Summarization(JudgedEvaluator):
    """The lower of two shares: of the summary's claims that are supported, and of the questions it answers."""

    n: int = 5
    assessment_questions: tuple[str, ...] = ()
    """Questions that a good summary answers with yes; without any, the judge writes `n` of them."""

    def __post_init__(self) -> None:
        require_int("n", self.n, least=1)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        original, summary = question_text(evaluable), answer_text(evaluable)
        if not original.strip():
            raise NothingToCompare("needs the original text in `input`, which is empty")
        if not summary.strip():
            return Evaluation(0.0, "the summary is empty")
        covered = await self._covered_questions(original, summary, judge)
        grounded_in_original = replace(evaluable, retrieval_context=(original,), context=None, tool_calls=())
        aligned = await Faithfulness(mode="grounded").assess(grounded_in_original, judge)
        coverage = mean(float(item.counts) for item in covered)
        reasoning = f"{aligned.reasoning}; {summarize_findings(covered, 'questions are answered by the summary')}"
        details = {"alignment": aligned.score, "coverage": coverage, "questions": findings_as_details(covered)}
        return Evaluation(min(aligned.score, coverage), reasoning, {**aligned.details, **details})

    async def _covered_questions(self, original: str, summary: str, judge: Judge) -> list[Finding]:
        questions = list(self.assessment_questions)
        if questions:
            original_answers = await self._answers(questions, original, judge)
            questions = [one for one, (is_yes, _) in zip(questions, original_answers, strict=True) if is_yes]
            if not questions:
                raise NothingToCompare("the original answers none of the assessment_questions with yes")
        else:
            prompt = text_question("summary-questions", QUESTIONS_PROMPT.format(n=self.n), {"original": original})
            lines = [line.strip() for line in (await judge.ask(prompt)).output.splitlines()]
            questions = [line for line in lines if line][: self.n]
            if not questions:
                raise NothingToCompare("the judge wrote no questions about the original")
        summary_answers = await self._answers(questions, summary, judge)
        words = {True: "answered", False: "not answered"}
        return [Finding(one, words[yes], yes, why) for one, (yes, why) in zip(questions, summary_answers, strict=True)]

    async def _answers(self, questions: Sequence[str], text: str, judge: Judge) -> list[tuple[bool, str]]:
        material = {"text": text, "question": list(questions)}
        return verdicts_in_order(
            await judge.ask(yes_no_questions("summary-answers", ANSWERS_PROMPT, material, len(questions)))
        )


@dataclass(eq=False)
class VerdictNode:
    """One possible result of a judgement: a score from 0 to 10, or the next judgement."""

    verdict: bool | str
    score: int | None = None
    child: Any = None


@dataclass(eq=False)
class BinaryJudgementNode:
    """A yes-or-no question."""

    criteria: str
    children: Sequence[VerdictNode]
    evaluation_params: Sequence[Any] | None = None
    label: str | None = None


@dataclass(eq=False)
class NonBinaryJudgementNode:
    """A question with several possible verdicts."""

    criteria: str
    children: Sequence[VerdictNode]
    evaluation_params: Sequence[Any] | None = None
    label: str | None = None


@dataclass(eq=False)
class TaskNode:
    """A task whose result its children use."""

    instructions: str
    output_label: str
    children: Sequence[Any]
    evaluation_params: Sequence[Any] | None = None
    label: str | None = None


@dataclass(eq=False)
class DeepAcyclicGraph:
    """A graph of nodes, by its root nodes."""

    root_nodes: Sequence[Any] = field(default_factory=list)


class _ConversationNode:
    """A node about a conversation; its `evaluation_params` are `MultiTurnParams`."""

    turn_window: Any = None

    def __post_init__(self) -> None:
        if self.turn_window is not None:
            raise ValueError("turn_window is not supported: a node sees the whole conversation; remove it")


@dataclass(eq=False)
class ConversationalVerdictNode(VerdictNode):
    """One possible result of a judgement about a conversation."""


@dataclass(eq=False)
class ConversationalBinaryJudgementNode(_ConversationNode, BinaryJudgementNode):
    """A yes-or-no question about a conversation."""

    turn_window: Any = None


@dataclass(eq=False)
class ConversationalNonBinaryJudgementNode(_ConversationNode, NonBinaryJudgementNode):
    """A question about a conversation with several possible verdicts."""

    turn_window: Any = None


@dataclass(eq=False)
class ConversationalTaskNode(_ConversationNode, TaskNode):
    """A task about a conversation whose result its children use."""

    turn_window: Any = None


class DAGMetric(SingleTurnMetric):
    """A graph of judgements that ends in a verdict with a score."""

    def __init__(
        self, name: str, dag: DeepAcyclicGraph, threshold: float | None = 0.5, model: Any = None, **options: Any
    ) -> None:
        self.name = name
        evaluator = JudgementDAG(nodes=_GraphConverter().convert(dag), name=name, model=as_judge(model))
        super().__init__(evaluator, threshold=threshold, **options)

    @property
    def __name__(self) -> str:
        return f"{self.name} (DAG)"


class ConversationalDAGMetric(ConversationMetric):
    """A graph of judgements about a conversation that ends in a verdict with a score."""

    def __init__(
        self, name: str, dag: DeepAcyclicGraph, threshold: float | None = 0.5, model: Any = None, **options: Any
    ) -> None:
        self.name = name
        evaluator = JudgementDAG(
            nodes=_GraphConverter().convert(dag), name=name, model=as_judge(model), evaluation_params=("actual_output",)
        )
        super().__init__(evaluator, threshold=threshold, **options)

    def evaluable(self, test_case: Any) -> Evaluable:
        return conversation_as_answer(super().evaluable(test_case))

    @property
    def __name__(self) -> str:
        return f"{self.name} (ConversationalDAG)"


class _GraphConverter:
    """Converts nodes that contain each other to nodes that refer to each other by name."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._uses: dict[int, list[str]] = {}
        self._nodes: list[Any] = []

    def convert(self, graph: DeepAcyclicGraph) -> dict[str, dag_nodes.Node]:
        for node in graph.root_nodes:
            self._walk(node, ())
        return {self._names[id(node)]: self._node(node) for node in self._nodes}

    def _walk(self, node: Any, ancestors: tuple[int, ...]) -> str:
        if id(node) in ancestors:
            raise ValueError("the graph has a cycle")
        if not isinstance(node, (TaskNode, BinaryJudgementNode, NonBinaryJudgementNode)):
            raise TypeError(f"a node must be a task or a judgement, not {type(node).__name__}")
        if id(node) not in self._names:
            label = node.label or (node.output_label if isinstance(node, TaskNode) else node.criteria)
            names = set(self._names.values())
            self._names[id(node)] = label if label not in names else f"{label} #{len(names) + 1}"
            self._nodes.append(node)
        for child in node.children:
            next_node = child.child if isinstance(child, VerdictNode) else child
            if next_node is not None:
                self._walk(next_node, (*ancestors, id(node)))
            if isinstance(node, TaskNode) and self._names[id(node)] not in self._uses.setdefault(id(child), []):
                self._uses[id(child)].append(self._names[id(node)])
        return self._names[id(node)]

    def _node(self, node: Any) -> dag_nodes.Node:
        params = node.evaluation_params
        read = conversation_parts if isinstance(node, _ConversationNode) else _case_parts
        parts = None if params is None else read(params)
        uses = tuple(self._uses.get(id(node), ()))
        if isinstance(node, TaskNode):
            return dag_nodes.DagTask(node.instructions, uses, parts)
        kind = dag_nodes.BinaryJudgement if isinstance(node, BinaryJudgementNode) else dag_nodes.NonBinaryJudgement
        return kind(node.criteria, tuple(self._verdict(child) for child in node.children), uses, parts)

    def _verdict(self, node: VerdictNode) -> dag_nodes.DagVerdict:
        child = None if node.child is None else self._names[id(node.child)]
        return dag_nodes.DagVerdict(node.verdict, node.score, child)


def _case_parts(params: Sequence[Any]) -> tuple[str, ...]:
    return tuple(getattr(part, "value", part) for part in params)
