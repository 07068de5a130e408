"""DeepEval's graphs of judgements, as Proctor's `JudgementDAG` understands them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from proctor.compat.deepeval.conversation_metrics import conversation_as_answer, parts_of_conversation
from proctor.compat.deepeval.metric_base import ConversationMetric, SingleTurnMetric, judge_named
from proctor.evaluators.evaluation import Evaluable
from proctor.evaluators.rubric import dag as dag_nodes
from proctor.evaluators.rubric.dag import JudgementDAG


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
