"""Judgements that lead to one another, from files or Python, until a verdict has a score."""

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

TOP = 10

_KEYS = {
    "task": ("task", "uses", "evaluation_params"),
    "judge": ("judge", "verdicts", "uses", "evaluation_params"),
}


@dataclass(frozen=True, slots=True)
class TaskNode:
    """Something to find out first, which other nodes use."""

    instructions: str
    uses: tuple[str, ...] = ()
    evaluation_params: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judgement may come to, and what follows: a score from 0 to 10, or the next judgement."""

    verdict: bool | str
    score: float | None = None
    child: str | None = None


@dataclass(frozen=True, slots=True)
class BinaryJudgement:
    """A question answered by yes or no."""

    criteria: str
    verdicts: tuple[Verdict, ...]
    uses: tuple[str, ...] = ()
    evaluation_params: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class NonBinaryJudgement:
    """A question answered by one of several verdicts."""

    criteria: str
    verdicts: tuple[Verdict, ...]
    uses: tuple[str, ...] = ()
    evaluation_params: tuple[str, ...] | None = None


Judgement: TypeAlias = BinaryJudgement | NonBinaryJudgement
Node: TypeAlias = TaskNode | BinaryJudgement | NonBinaryJudgement


def read_nodes(given: Any, usual_parts: Sequence[str]) -> dict[str, Node]:
    """The nodes by name; raises `ValueError` with everything that is wrong with them or their graph."""
    if not isinstance(given, Mapping) or not given:
        raise ValueError("nodes must be an object that has each node by its name")
    problems: list[str] = []
    nodes = {str(name): _node(str(name), node, tuple(usual_parts), problems) for name, node in given.items()}
    sound = {name: node for name, node in nodes.items() if node is not None}
    for name, node in sound.items():
        problems += _links(name, node, nodes)
        if not isinstance(node, TaskNode):
            problems += _branches(name, node)
    if not problems:
        problems += _shape(sound)
    if problems:
        raise ValueError("; ".join(problems))
    return sound


def root_of(nodes: Mapping[str, Node]) -> str:
    """The judgement that no verdict leads to."""
    return _roots(nodes)[0]


def _node(name: str, given: Any, usual: tuple[str, ...], problems: list[str]) -> Node | None:
    node = given
    if isinstance(given, Mapping):
        kind = "task" if "task" in given else "judge"
        unknown = [key for key in given if key not in _KEYS[kind]]
        if kind not in given or unknown:
            wrong = f"has no {unknown[0]!r}" if unknown else "has neither 'task' nor 'judge'"
            problems.append(f"{name} {wrong}; a node is a task ({_listed('task')}) or a judgement ({_listed('judge')})")
            return None
        node = _from_file(name, given, kind, problems)
    elif not isinstance(given, (TaskNode, BinaryJudgement, NonBinaryJudgement)):
        problems.append(f"{name} must be a node, not {given!r:.80}")
        return None
    words = node.instructions if isinstance(node, TaskNode) else node.criteria
    if not isinstance(words, str) or not words.strip():
        problems.append(f"{name} does not say what is to be done or judged")
    parts = usual if node.evaluation_params is None else tuple(node.evaluation_params)
    problems += [f"{name}: {part!r} is none of {', '.join(CASE_PARTS)}" for part in parts if part not in CASE_PARTS]
    rest = (tuple(node.uses), parts)
    return TaskNode(words, *rest) if isinstance(node, TaskNode) else type(node)(words, tuple(node.verdicts), *rest)


def _listed(kind: str) -> str:
    return ", ".join(_KEYS[kind])


def _from_file(name: str, given: Mapping[str, Any], kind: str, problems: list[str]) -> Node:
    parts = given.get("evaluation_params")
    rest = (
        _names(name, "uses", given.get("uses") or (), problems),
        None if parts is None else _names(name, "evaluation_params", parts, problems),
    )
    if kind == "task":
        return TaskNode(given["task"], *rest)
    verdicts = _verdicts(name, given.get("verdicts"), problems)
    binary = bool(verdicts) and all(isinstance(verdict.verdict, bool) for verdict in verdicts)
    return (BinaryJudgement if binary else NonBinaryJudgement)(given["judge"], verdicts, *rest)


def _names(name: str, key: str, given: Any, problems: list[str]) -> tuple[str, ...]:
    """One name or several."""
    listed = (given,) if isinstance(given, str) else given
    if isinstance(listed, (list, tuple)) and all(isinstance(item, str) for item in listed):
        return tuple(listed)
    problems.append(f"{name}: {key} must be a list of names, not {given!r:.80}")
    return ()


def _verdicts(name: str, given: Any, problems: list[str]) -> tuple[Verdict, ...]:
    """`{yes: 10, no: other_node}`, or a list of objects with `verdict` and `score` or `child`."""
    if isinstance(given, Mapping):
        items = [(said, {"child" if isinstance(then, str) else "score": then}) for said, then in given.items()]
    elif isinstance(given, Sequence) and not isinstance(given, str) and all(isinstance(i, Mapping) for i in given):
        items = [(item.get("verdict"), {k: v for k, v in item.items() if k != "verdict"}) for item in given]
    else:
        problems.append(f"{name}: verdicts must be an object from verdict to score or next node, or a list of objects")
        return ()
    found: list[Verdict] = []
    for said, then in items:
        if then.keys() - {"score", "child"} or not isinstance(said, (str, bool)):
            problems.append(
                f"{name}: a verdict has 'verdict' and either 'score' or 'child', not {said!r:.40}: {then!r:.80}"
            )
        else:
            found.append(Verdict(said, **then))
    words = {"yes": True, "true": True, "no": False, "false": False}
    plain = [
        words.get(v.verdict.strip().lower(), v.verdict) if isinstance(v.verdict, str) else v.verdict for v in found
    ]
    if all(isinstance(said, bool) for said in plain):
        return tuple(Verdict(said, v.score, v.child) for said, v in zip(plain, found, strict=True))
    return tuple(found)


def _links(name: str, node: Node, nodes: Mapping[str, Node | None]) -> list[str]:
    problems = []
    for used in node.uses:
        if used not in nodes:
            problems.append(f"{name} uses {used!r}, which is no node")
        elif nodes[used] is not None and not isinstance(nodes[used], TaskNode):
            problems.append(f"{name} uses {used!r}, which is a judgement; only the outcome of a task can be used")
    for verdict in () if isinstance(node, TaskNode) else node.verdicts:
        if verdict.child is not None and verdict.child not in nodes:
            problems.append(f"{name}: the verdict {verdict.verdict!r} leads to {verdict.child!r}, which is no node")
        elif verdict.child is not None and isinstance(nodes[verdict.child], TaskNode):
            problems.append(
                f"{name}: the verdict {verdict.verdict!r} leads to the task {verdict.child!r}; name a judgement"
            )
    return problems


def _branches(name: str, node: Judgement) -> list[str]:
    problems = []
    said = [verdict.verdict for verdict in node.verdicts]
    problems += [f"{name} has the verdict {one!r} twice" for one in dict.fromkeys(said) if said.count(one) > 1]
    if isinstance(node, BinaryJudgement) and set(said) != {True, False}:
        problems.append(f"{name} needs a verdict for yes and one for no")
    if isinstance(node, NonBinaryJudgement):
        if len(said) < 2:
            problems.append(f"{name} needs at least two verdicts")
        blank = [one for one in said if not isinstance(one, str) or not one.strip()]
        problems += [f"{name}: a verdict must be a text, not {one!r}" for one in blank]
    for verdict in node.verdicts:
        if (verdict.score is None) == (verdict.child is None):
            problems.append(f"{name}: the verdict {verdict.verdict!r} must have either a score or a child")
        elif verdict.score is not None and not _is_score(verdict.score):
            problems.append(f"{name}: the score of {verdict.verdict!r} must be a number from 0 to {TOP}")
    return problems


def _is_score(score: Any) -> bool:
    return not isinstance(score, bool) and isinstance(score, (int, float)) and 0 <= score <= TOP


def _shape(nodes: Mapping[str, Node]) -> list[str]:
    """A graph has one beginning, no circles, and nothing that is never reached."""
    try:
        tuple(TopologicalSorter({name: _next(node) for name, node in nodes.items()}).static_order())
    except CycleError as error:
        return [f"the nodes lead in a circle: {' -> '.join(error.args[1])}"]
    roots = _roots(nodes)
    if len(roots) != 1:
        found = f"there are {', '.join(roots)}" if roots else "there is none"
        return [f"there must be exactly one judgement to begin with, which no verdict leads to; {found}"]
    reached: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _next(nodes[name])
    return [f"{name} is never reached" for name in nodes if name not in reached]


def _next(node: Node) -> list[str]:
    children = [] if isinstance(node, TaskNode) else [v.child for v in node.verdicts if v.child is not None]
    return [*node.uses, *children]


def _roots(nodes: Mapping[str, Node]) -> list[str]:
    led_to = {v.child for node in nodes.values() if not isinstance(node, TaskNode) for v in node.verdicts}
    return [name for name, node in nodes.items() if not isinstance(node, TaskNode) and name not in led_to]


__all__ = ["BinaryJudgement", "JudgementDAG", "NonBinaryJudgement", "TaskNode", "Verdict"]

TOP_DAG = 10

TASK = (
    "Carry out the task below on the material, and give its outcome as text. Do only what the task says; assess "
    "nothing.\n\nThe task:\n{task}"
)
JUDGEMENT = (
    "Answer the question below about the material. Go by the material alone; findings are what was found out about it "
    "before.\n\nThe question:\n{criteria}"
)


@evaluator(
    family="rubric",
    judge="model",
    variant_of="GEval",
    example={"nodes": {"polite": {"judge": "Is the answer polite?", "verdicts": {"yes": 10, "no": 0}}}},
)
@dataclass(frozen=True, kw_only=True)
class JudgementDAG(JudgedEvaluator):
    """One judgement after another, each chosen by the verdict before, down to a verdict with a score from 0 to 10.

    The score of the verdict at which the judgements arrive, divided by 10. Skipped without what `evaluation_params`
    name.
    """

    nodes: Mapping[str, Any]
    """By name: tasks whose outcome others use, and judgements whose verdicts have a score or name the next one."""
    evaluation_params: tuple[str, ...] = ("input", "actual_output")
    """What every node is shown that does not say so itself."""
    name: str | None = None
    """What reports call it, where it is made in Python; a file's `name` does that for every evaluator."""

    def __post_init__(self) -> None:
        nodes = read_nodes(self.nodes, self.evaluation_params)
        object.__setattr__(self, "nodes", nodes)
        root_of(nodes)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        walk = _Walk(self.nodes, evaluable, judge)
        path: list[dict[str, Any]] = []
        name: str | None = root_of(self.nodes)
        score = 0.0
        while name is not None:
            verdict, reason = await walk.judge(name)
            path.append({"node": name, "verdict": verdict.verdict, "reason": reason})
            name, score = verdict.child, verdict.score or 0.0
        said = "; ".join(f"{step['node']}: {_word(step['verdict'])} ({step['reason']})" for step in path)
        return Evaluation(score / TOP_DAG, said, {"path": path, "findings": walk.findings})


class _Walk:
    """One answer on its way through the graph; a task that several judgements use is carried out once."""

    def __init__(self, nodes: Mapping[str, Node], evaluable: Evaluable, judge: Judge) -> None:
        self.findings: dict[str, str] = {}
        self._tasks: dict[str, asyncio.Task[str]] = {}
        self._nodes = nodes
        self._evaluable = evaluable
        self._judge = judge

    async def judge(self, name: str) -> tuple[Verdict, str]:
        """The verdict that a judgement comes to, and why."""
        node = self._nodes[name]
        assert isinstance(node, (BinaryJudgement, NonBinaryJudgement))
        material = await self._material(node)
        asked = JUDGEMENT.format(criteria=node.criteria)
        if isinstance(node, BinaryJudgement):
            reply = await self._judge.ask(yes_no_question("dag-judgement", asked, material))
            return _winner(node, reply.verdict == "yes"), reply.reason
        options = {str(verdict.verdict): "" for verdict in node.verdicts}
        chosen = await self._judge.ask(choose("dag-choice", asked, options, material))
        return _winner(node, chosen.choice), chosen.reason

    async def _material(self, node: Node) -> dict[str, Texts]:
        shown = {MATERIAL_NAMES[part]: CASE_PARTS[part](self._evaluable)[1] for part in node.evaluation_params or ()}
        found = await asyncio.gather(*(self._found(name) for name in node.uses))
        findings = [f"{name}: {text}" for name, text in zip(node.uses, found, strict=True)]
        return {**shown, **({"finding": findings} if findings else {})}

    def _found(self, name: str) -> asyncio.Task[str]:
        """What a task finds out; tasks that do not wait for each other are under way at the same time."""
        if name not in self._tasks:
            self._tasks[name] = asyncio.ensure_future(self._carry_out(name))
        return self._tasks[name]

    async def _carry_out(self, name: str) -> str:
        task = self._nodes[name]
        assert isinstance(task, TaskNode)
        question = text_question("dag-task", TASK.format(task=task.instructions), await self._material(task))
        self.findings[name] = (await self._judge.ask(question)).output
        return self.findings[name]


def _winner(node: Judgement, said: bool | str) -> Verdict:
    return next(verdict for verdict in node.verdicts if verdict.verdict == said)


def _word(verdict: bool | str) -> str:
    return {True: "yes", False: "no"}.get(verdict, str(verdict)) if isinstance(verdict, bool) else verdict
