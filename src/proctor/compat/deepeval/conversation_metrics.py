"""DeepEval's metrics that look at a whole conversation or a whole text, and its graphs of judgements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from proctor.base.json_data import UNSET
from proctor.cases.suite import NamedData
from proctor.compat.deepeval import dag as dag_nodes
from proctor.compat.deepeval.dag import JudgementDAG
from proctor.compat.deepeval.evaluators import GoalAccuracy
from proctor.compat.deepeval.metric_base import ConversationMetric, SingleTurnMetric, judge_named
from proctor.evaluators.agent import StepEfficiency
from proctor.evaluators.evaluation import Evaluable, Evaluation, NothingToCompare
from proctor.evaluators.geval import GEval
from proctor.evaluators.judge_questions import text_question, verdicts_in_order, yes_no_questions
from proctor.evaluators.judged_evaluator import Finding, JudgedEvaluator, findings_as_details, mean, summarize_findings
from proctor.evaluators.material import answer_text, question_text, transcript
from proctor.evaluators.retrieval import Faithfulness
from proctor.evaluators.values import require_int
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
        eval_output=(NamedData("output", "\n".join(transcript(seen.turns))),),
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
        evaluator = GEval(
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
        require_int("truths_extraction_limit", limit, least=0)


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
class Summarization(JudgedEvaluator):
    """The lower of two shares: of the summary's claims that hold, and of the questions that it answers as well."""

    n: int = 5
    assessment_questions: tuple[str, ...] = ()
    """Questions that a good summary answers with yes; without any, the judge works out `n` of them."""

    def __post_init__(self) -> None:
        require_int("n", self.n, least=1)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        original, summary = question_text(evaluable), answer_text(evaluable)
        if not original.strip():
            raise NothingToCompare("needs the original (`input`), and it is empty")
        if not summary.strip():
            return Evaluation(0.0, "the summary is empty")
        covered = await self._covered(original, summary, judge)
        seen = replace(evaluable, retrieval_context=(original,), context=None, tool_calls=())
        aligned = await Faithfulness(mode="grounded").assess(seen, judge)
        coverage = mean(float(item.counts) for item in covered)
        said = f"{aligned.reasoning}; {summarize_findings(covered, 'questions are answered by the summary as well')}"
        details = {"alignment": aligned.score, "coverage": coverage, "questions": findings_as_details(covered)}
        return Evaluation(min(aligned.score, coverage), said, {**aligned.details, **details})

    async def _covered(self, original: str, summary: str, judge: Judge) -> list[Finding]:
        questions = list(self.assessment_questions)
        if questions:
            known = await self._answers(questions, original, judge)
            questions = [one for one, (is_yes, _) in zip(questions, known, strict=True) if is_yes]
            if not questions:
                raise NothingToCompare("the original answers none of the assessment_questions with yes")
        else:
            asked = text_question("summary-questions", QUESTIONS.format(n=self.n), {"original": original})
            lines = [line.strip() for line in (await judge.ask(asked)).output.splitlines()]
            questions = [line for line in lines if line][: self.n]
            if not questions:
                raise NothingToCompare("the judge found nothing in the original to ask about")
        found = await self._answers(questions, summary, judge)
        words = {True: "answered", False: "not answered"}
        return [Finding(one, words[yes], yes, why) for one, (yes, why) in zip(questions, found, strict=True)]

    async def _answers(self, questions: Sequence[str], text: str, judge: Judge) -> list[tuple[bool, str]]:
        material = {"text": text, "question": list(questions)}
        return verdicts_in_order(
            await judge.ask(yes_no_questions("summary-answers", ANSWERS, material, len(questions)))
        )


@dataclass(eq=False)
class VerdictNode:
    """What a judgement may come to: a score from 0 to 10, or the next judgement."""

    verdict: bool | str
    score: int | None = None
    child: Any = None


@dataclass(eq=False)
class BinaryJudgementNode:
    """A question answered by yes or no."""

    criteria: str
    children: Sequence[VerdictNode]
    evaluation_params: Sequence[Any] | None = None
    label: str | None = None


@dataclass(eq=False)
class NonBinaryJudgementNode:
    """A question answered by one of several verdicts."""

    criteria: str
    children: Sequence[VerdictNode]
    evaluation_params: Sequence[Any] | None = None
    label: str | None = None


@dataclass(eq=False)
class TaskNode:
    """Something to find out first, which its children use."""

    instructions: str
    output_label: str
    children: Sequence[Any]
    evaluation_params: Sequence[Any] | None = None
    label: str | None = None


@dataclass(eq=False)
class DeepAcyclicGraph:
    """Where to begin."""

    root_nodes: Sequence[Any] = field(default_factory=list)


class _OfConversation:
    """A node that looks at a conversation; what it is shown goes by the names of `MultiTurnParams`."""

    turn_window: Any = None

    def __post_init__(self) -> None:
        if self.turn_window is not None:
            raise ValueError("turn_window has no effect here: a node sees the whole conversation; leave it out")


@dataclass(eq=False)
class ConversationalVerdictNode(VerdictNode):
    """What a judgement on a conversation may come to."""


@dataclass(eq=False)
class ConversationalBinaryJudgementNode(_OfConversation, BinaryJudgementNode):
    """A question about a conversation, answered by yes or no."""

    turn_window: Any = None


@dataclass(eq=False)
class ConversationalNonBinaryJudgementNode(_OfConversation, NonBinaryJudgementNode):
    """A question about a conversation, answered by one of several verdicts."""

    turn_window: Any = None


@dataclass(eq=False)
class ConversationalTaskNode(_OfConversation, TaskNode):
    """Something to find out about a conversation first."""

    turn_window: Any = None


class DAGMetric(SingleTurnMetric):
    """One judgement after another, down to a verdict with a score."""

    def __init__(
        self, name: str, dag: DeepAcyclicGraph, threshold: float | None = 0.5, model: Any = None, **options: Any
    ) -> None:
        self.name = name
        evaluator = JudgementDAG(nodes=_Named().of(dag), name=name, model=judge_named(model))
        super().__init__(evaluator, threshold=threshold, **options)

    @property
    def __name__(self) -> str:
        return f"{self.name} (DAG)"


class ConversationalDAGMetric(ConversationMetric):
    """One judgement on a conversation after another, down to a verdict with a score."""

    def __init__(
        self, name: str, dag: DeepAcyclicGraph, threshold: float | None = 0.5, model: Any = None, **options: Any
    ) -> None:
        self.name = name
        evaluator = JudgementDAG(
            nodes=_Named().of(dag), name=name, model=judge_named(model), evaluation_params=("actual_output",)
        )
        super().__init__(evaluator, threshold=threshold, **options)

    def evaluable(self, test_case: Any) -> Evaluable:
        return conversation_as_answer(super().evaluable(test_case))

    @property
    def __name__(self) -> str:
        return f"{self.name} (ConversationalDAG)"


class _Named:
    """Nodes that hold each other become nodes that name each other."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._uses: dict[int, list[str]] = {}
        self._nodes: list[Any] = []

    def of(self, graph: DeepAcyclicGraph) -> dict[str, dag_nodes.Node]:
        for node in graph.root_nodes:
            self._walk(node, ())
        return {self._names[id(node)]: self._node(node) for node in self._nodes}

    def _walk(self, node: Any, above: tuple[int, ...]) -> str:
        if id(node) in above:
            raise ValueError("the graph leads back to where it came from")
        if not isinstance(node, (TaskNode, BinaryJudgementNode, NonBinaryJudgementNode)):
            raise TypeError(f"a graph is made of tasks and judgements, not of a {type(node).__name__}")
        if id(node) not in self._names:
            label = node.label or (node.output_label if isinstance(node, TaskNode) else node.criteria)
            taken = set(self._names.values())
            self._names[id(node)] = label if label not in taken else f"{label} #{len(taken) + 1}"
            self._nodes.append(node)
        for child in node.children:
            following = child.child if isinstance(child, VerdictNode) else child
            if following is not None:
                self._walk(following, (*above, id(node)))
            if isinstance(node, TaskNode) and self._names[id(node)] not in self._uses.setdefault(id(child), []):
                self._uses[id(child)].append(self._names[id(node)])
        return self._names[id(node)]

    def _node(self, node: Any) -> dag_nodes.Node:
        named = node.evaluation_params
        read = parts_of_conversation if isinstance(node, _OfConversation) else _parts
        parts = None if named is None else read(named)
        uses = tuple(self._uses.get(id(node), ()))
        if isinstance(node, TaskNode):
            return dag_nodes.TaskNode(node.instructions, uses, parts)
        kind = dag_nodes.BinaryJudgement if isinstance(node, BinaryJudgementNode) else dag_nodes.NonBinaryJudgement
        return kind(node.criteria, tuple(self._verdict(child) for child in node.children), uses, parts)

    def _verdict(self, node: VerdictNode) -> dag_nodes.Verdict:
        child = None if node.child is None else self._names[id(node.child)]
        return dag_nodes.Verdict(node.verdict, node.score, child)


def _parts(given: Sequence[Any]) -> tuple[str, ...]:
    return tuple(getattr(part, "value", part) for part in given)
