"""Graphs of judgements: each verdict has a score or leads to the next judgement.

The nodes come from a suite file or from Python. `read_nodes` checks them and their links and reports all problems. For
an answer, `_Walk` follows the verdicts from the root to a score; a task runs when a judgement that uses its result is
reached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias

from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation
from proctor.evaluators.geval import CASE_PARTS, MATERIAL_NAMES
from proctor.evaluators.judge_questions import text_question, yes_no_question
from proctor.evaluators.judged_evaluator import JudgedEvaluator
from proctor.judging.judge import Judge, Texts
from proctor.judging.questions import choose

MAX_SCORE = 10
"""The highest score of a verdict."""

_KEYS = {
    "task": ("task", "uses", "evaluation_params"),
    "judge": ("judge", "verdicts", "uses", "evaluation_params"),
}
"""The keys of each kind of node in a file."""


@dataclass(frozen=True, slots=True)
class DagTask:
    """A task whose result other nodes use."""

    instructions: str
    uses: tuple[str, ...] = ()
    evaluation_params: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class DagVerdict:
    """One possible result of a judgement, and what follows: a score from 0 to 10, or the next judgement."""

    verdict: bool | str
    score: float | None = None
    child: str | None = None


@dataclass(frozen=True, slots=True)
class BinaryJudgement:
    """A yes-or-no question."""

    criteria: str
    verdicts: tuple[DagVerdict, ...]
    uses: tuple[str, ...] = ()
    evaluation_params: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class NonBinaryJudgement:
    """A question with several possible verdicts."""

    criteria: str
    verdicts: tuple[DagVerdict, ...]
    uses: tuple[str, ...] = ()
    evaluation_params: tuple[str, ...] | None = None


Judgement: TypeAlias = BinaryJudgement | NonBinaryJudgement
Node: TypeAlias = DagTask | BinaryJudgement | NonBinaryJudgement


def read_nodes(data: Any, default_parts: Sequence[str]) -> dict[str, Node]:
    """The nodes by name; raises `ValueError` with all problems of the nodes and their graph.

    `default_parts` are the `evaluation_params` of nodes that do not set them.
    """
    if not isinstance(data, Mapping) or not data:
        raise ValueError("nodes must be an object with a node under each name")
    problems: list[str] = []
    nodes = {str(name): _read_node(str(name), node, tuple(default_parts), problems) for name, node in data.items()}
    valid = {name: node for name, node in nodes.items() if node is not None}
    for name, node in valid.items():
        problems += _link_problems(name, node, nodes)
        if not isinstance(node, DagTask):
            problems += _verdict_problems(name, node)
    if not problems:
        problems += _graph_problems(valid)
    if problems:
        raise ValueError("; ".join(problems))
    return valid


def root_node(nodes: Mapping[str, Node]) -> str:
    """The judgement that no verdict leads to."""
    return _roots(nodes)[0]


def _read_node(name: str, data: Any, default_parts: tuple[str, ...], problems: list[str]) -> Node | None:
    node = data
    if isinstance(data, Mapping):
        kind = "task" if "task" in data else "judge"
        unknown = [key for key in data if key not in _KEYS[kind]]
        if kind not in data or unknown:
            wrong = f"has no {unknown[0]!r}" if unknown else "has neither 'task' nor 'judge'"
            problems.append(
                f"{name} {wrong}; a node is a task ({_keys_text('task')}) or a judgement ({_keys_text('judge')})"
            )
            return None
        node = _node_from_data(name, data, kind, problems)
    elif not isinstance(data, (DagTask, BinaryJudgement, NonBinaryJudgement)):
        problems.append(f"{name} must be a node, not {data!r:.80}")
        return None
    text = node.instructions if isinstance(node, DagTask) else node.criteria
    if not isinstance(text, str) or not text.strip():
        problems.append(f"{name} needs a text: the task to do or the question to judge")
    parts = default_parts if node.evaluation_params is None else tuple(node.evaluation_params)
    problems += [f"{name}: {part!r} must be one of {', '.join(CASE_PARTS)}" for part in parts if part not in CASE_PARTS]
    rest = (tuple(node.uses), parts)
    return DagTask(text, *rest) if isinstance(node, DagTask) else type(node)(text, tuple(node.verdicts), *rest)


def _keys_text(kind: str) -> str:
    return ", ".join(_KEYS[kind])


def _node_from_data(name: str, data: Mapping[str, Any], kind: str, problems: list[str]) -> Node:
    parts = data.get("evaluation_params")
    rest = (
        _read_names(name, "uses", data.get("uses") or (), problems),
        None if parts is None else _read_names(name, "evaluation_params", parts, problems),
    )
    if kind == "task":
        return DagTask(data["task"], *rest)
    verdicts = _read_verdicts(name, data.get("verdicts"), problems)
    binary = bool(verdicts) and all(isinstance(verdict.verdict, bool) for verdict in verdicts)
    return (BinaryJudgement if binary else NonBinaryJudgement)(data["judge"], verdicts, *rest)


def _read_names(name: str, key: str, value: Any, problems: list[str]) -> tuple[str, ...]:
    """Read one name or a list of names."""
    names = (value,) if isinstance(value, str) else value
    if isinstance(names, (list, tuple)) and all(isinstance(item, str) for item in names):
        return tuple(names)
    problems.append(f"{name}: {key} must be a list of names, not {value!r:.80}")
    return ()


def _read_verdicts(name: str, data: Any, problems: list[str]) -> tuple[DagVerdict, ...]:
    """Read `{yes: 10, no: other_node}`, or a list of objects with `verdict` and `score` or `child`."""
    if isinstance(data, Mapping):
        items = [
            (answer, {"child" if isinstance(consequence, str) else "score": consequence})
            for answer, consequence in data.items()
        ]
    elif isinstance(data, Sequence) and not isinstance(data, str) and all(isinstance(i, Mapping) for i in data):
        items = [(item.get("verdict"), {k: v for k, v in item.items() if k != "verdict"}) for item in data]
    else:
        problems.append(f"{name}: verdicts must be an object from verdict to score or next node, or a list of objects")
        return ()
    verdicts: list[DagVerdict] = []
    for answer, consequence in items:
        if consequence.keys() - {"score", "child"} or not isinstance(answer, (str, bool)):
            wrong = f"{answer!r:.40}: {consequence!r:.80}"
            problems.append(f"{name}: a verdict has 'verdict' and either 'score' or 'child', not {wrong}")
        else:
            verdicts.append(DagVerdict(answer, **consequence))
    words = {"yes": True, "true": True, "no": False, "false": False}
    plain = [
        words.get(v.verdict.strip().lower(), v.verdict) if isinstance(v.verdict, str) else v.verdict for v in verdicts
    ]
    if all(isinstance(answer, bool) for answer in plain):
        return tuple(DagVerdict(answer, v.score, v.child) for answer, v in zip(plain, verdicts, strict=True))
    return tuple(verdicts)


def _link_problems(name: str, node: Node, nodes: Mapping[str, Node | None]) -> list[str]:
    """References to nodes that do not exist or are of the wrong kind."""
    problems = []
    for task in node.uses:
        if task not in nodes:
            problems.append(f"{name} uses {task!r}, which is not a node")
        elif nodes[task] is not None and not isinstance(nodes[task], DagTask):
            problems.append(f"{name} uses {task!r}, which is a judgement; only the result of a task can be used")
    for verdict in () if isinstance(node, DagTask) else node.verdicts:
        if verdict.child is not None and verdict.child not in nodes:
            problems.append(f"{name}: the verdict {verdict.verdict!r} leads to {verdict.child!r}, which is not a node")
        elif verdict.child is not None and isinstance(nodes[verdict.child], DagTask):
            problems.append(
                f"{name}: the verdict {verdict.verdict!r} leads to the task {verdict.child!r}, not to a judgement"
            )
    return problems


def _verdict_problems(name: str, node: Judgement) -> list[str]:
    """Missing, duplicate or incomplete verdicts of a judgement."""
    problems = []
    answers = [verdict.verdict for verdict in node.verdicts]
    problems += [
        f"{name} has the verdict {answer!r} twice" for answer in dict.fromkeys(answers) if answers.count(answer) > 1
    ]
    if isinstance(node, BinaryJudgement) and set(answers) != {True, False}:
        problems.append(f"{name} needs a verdict for yes and one for no")
    if isinstance(node, NonBinaryJudgement):
        if len(answers) < 2:
            problems.append(f"{name} needs at least two verdicts")
        blank = [answer for answer in answers if not isinstance(answer, str) or not answer.strip()]
        problems += [f"{name}: a verdict must be a non-empty string, not {answer!r}" for answer in blank]
    for verdict in node.verdicts:
        if (verdict.score is None) == (verdict.child is None):
            problems.append(f"{name}: the verdict {verdict.verdict!r} must have either a score or a child")
        elif verdict.score is not None and not _is_score(verdict.score):
            problems.append(f"{name}: the score of {verdict.verdict!r} must be a number from 0 to {MAX_SCORE}")
    return problems


def _is_score(score: Any) -> bool:
    return not isinstance(score, bool) and isinstance(score, (int, float)) and 0 <= score <= MAX_SCORE


def _graph_problems(nodes: Mapping[str, Node]) -> list[str]:
    """Problems of the graph as a whole: cycles, more or less than one root, nodes that are never reached."""
    try:
        tuple(TopologicalSorter({name: _next(node) for name, node in nodes.items()}).static_order())
    except CycleError as error:
        return [f"the nodes form a cycle: {' -> '.join(error.args[1])}"]
    roots = _roots(nodes)
    if len(roots) != 1:
        roots_text = f"there are {', '.join(roots)}" if roots else "there is none"
        return [f"exactly one judgement must be the root (no verdict leads to it); {roots_text}"]
    reached: set[str] = set()
    queue = list(roots)
    while queue:
        name = queue.pop()
        if name not in reached:
            reached.add(name)
            queue += _next(nodes[name])
    return [f"{name} is never reached" for name in nodes if name not in reached]


def _next(node: Node) -> list[str]:
    """The nodes that a node uses or leads to."""
    children = [] if isinstance(node, DagTask) else [v.child for v in node.verdicts if v.child is not None]
    return [*node.uses, *children]


def _roots(nodes: Mapping[str, Node]) -> list[str]:
    children = {v.child for node in nodes.values() if not isinstance(node, DagTask) for v in node.verdicts}
    return [name for name, node in nodes.items() if not isinstance(node, DagTask) and name not in children]


__all__ = ["BinaryJudgement", "DagTask", "DagVerdict", "JudgementDAG", "NonBinaryJudgement", "TaskNode", "Verdict"]

TaskNode = DagTask
Verdict = DagVerdict
"""The names of these two in `proctor`."""

TASK_PROMPT = (
    "Do the task below with the material, and reply with its result as text. Do only what the task says; do not assess "
    "anything.\n\nThe task:\n{task}"
)
JUDGEMENT_PROMPT = (
    "Answer the question below about the material. Use only the material; findings are results of earlier tasks about "
    "it.\n\nThe question:\n{criteria}"
)


@evaluator(
    family="rubric",
    judge="model",
    variant_of="GEval",
    example={"nodes": {"polite": {"judge": "Is the answer polite?", "verdicts": {"yes": 10, "no": 0}}}},
)
@dataclass(frozen=True, kw_only=True)
class JudgementDAG(JudgedEvaluator):
    """A graph of judgements, each chosen by the verdict before it, that ends in a verdict with a score from 0 to 10.

    The score of the verdict that the judgements lead to, divided by 10. Skipped if the case lacks a part that
    `evaluation_params` names.
    """

    nodes: Mapping[str, Any]
    """By name: tasks whose result others use, and judgements whose verdicts have a score or name the next one."""
    evaluation_params: tuple[str, ...] = ("input", "actual_output")
    """The parts of the case shown to nodes that do not set their own."""
    name: str | None = None
    """The name in reports if the evaluator is built in Python; in a file, `name` works for every evaluator."""

    def __post_init__(self) -> None:
        nodes = read_nodes(self.nodes, self.evaluation_params)
        object.__setattr__(self, "nodes", nodes)
        root_node(nodes)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        walk = _Walk(self.nodes, evaluable, judge)
        path: list[dict[str, Any]] = []
        name: str | None = root_node(self.nodes)
        score = 0.0
        while name is not None:
            verdict, reason = await walk.judge(name)
            path.append({"node": name, "verdict": verdict.verdict, "reason": reason})
            name, score = verdict.child, verdict.score or 0.0
        reasoning = "; ".join(f"{step['node']}: {_verdict_text(step['verdict'])} ({step['reason']})" for step in path)
        return Evaluation(score / MAX_SCORE, reasoning, {"path": path, "findings": walk.findings})


class _Walk:
    """One answer on its way through the graph; a task that several judgements use runs once."""

    def __init__(self, nodes: Mapping[str, Node], evaluable: Evaluable, judge: Judge) -> None:
        self.findings: dict[str, str] = {}
        self._tasks: dict[str, asyncio.Task[str]] = {}
        self._nodes = nodes
        self._evaluable = evaluable
        self._judge = judge

    async def judge(self, name: str) -> tuple[DagVerdict, str]:
        """The verdict of a judgement, and why."""
        node = self._nodes[name]
        assert isinstance(node, (BinaryJudgement, NonBinaryJudgement))
        material = await self._material(node)
        prompt = JUDGEMENT_PROMPT.format(criteria=node.criteria)
        if isinstance(node, BinaryJudgement):
            reply = await self._judge.ask(yes_no_question("dag-judgement", prompt, material))
            return _verdict_for(node, reply.verdict == "yes"), reply.reason
        options = {str(verdict.verdict): "" for verdict in node.verdicts}
        choice = await self._judge.ask(choose("dag-choice", prompt, options, material))
        return _verdict_for(node, choice.choice), choice.reason

    async def _material(self, node: Node) -> dict[str, Texts]:
        material = {MATERIAL_NAMES[part]: CASE_PARTS[part](self._evaluable)[1] for part in node.evaluation_params or ()}
        results = await asyncio.gather(*(self._task_result(name) for name in node.uses))
        findings = [f"{name}: {text}" for name, text in zip(node.uses, results, strict=True)]
        return {**material, **({"finding": findings} if findings else {})}

    def _task_result(self, name: str) -> asyncio.Task[str]:
        """The result of a task; independent tasks run in parallel."""
        if name not in self._tasks:
            self._tasks[name] = asyncio.ensure_future(self._run_task(name))
        return self._tasks[name]

    async def _run_task(self, name: str) -> str:
        task = self._nodes[name]
        assert isinstance(task, DagTask)
        question = text_question("dag-task", TASK_PROMPT.format(task=task.instructions), await self._material(task))
        self.findings[name] = (await self._judge.ask(question)).output
        return self.findings[name]


def _verdict_for(node: Judgement, answer: bool | str) -> DagVerdict:
    return next(verdict for verdict in node.verdicts if verdict.verdict == answer)


def _verdict_text(verdict: bool | str) -> str:
    return {True: "yes", False: "no"}.get(verdict, str(verdict)) if isinstance(verdict, bool) else verdict
