"""Judgements that lead to one another, from files or Python, until a verdict has a score."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proctor.evaluators.judged import Judged
from proctor.evaluators.model import Evaluable, Evaluation
from proctor.evaluators.rubric.dag_nodes import (
    BinaryJudgement,
    Judgement,
    Node,
    NonBinaryJudgement,
    TaskNode,
    Verdict,
    read_nodes,
    root_of,
)
from proctor.evaluators.rubric.geval import PARTS, SHOWN_AS
from proctor.judging.model import Judge, Texts

__all__ = ["BinaryJudgement", "JudgementDAG", "NonBinaryJudgement", "TaskNode", "Verdict"]

TOP = 10

TASK = (
    "Carry out the task below on the material, and give its outcome as text. Do only what the task says; assess "
    "nothing.\n\nThe task:\n{task}"
)
JUDGEMENT = (
    "Answer the question below about the material. Go by the material alone; findings are what was found out about it "
    "before.\n\nThe question:\n{criteria}"
)


@dataclass(frozen=True, kw_only=True)
class JudgementDAG(Judged):
    """One judgement after another, each chosen by the verdict before, down to a verdict with a score from 0 to 10."""

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
        return Evaluation(score / TOP, said, {"path": path, "findings": walk.findings})


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
        from proctor.evaluators.opinions import ruling
        from proctor.judging.choices import choose

        node = self._nodes[name]
        assert isinstance(node, (BinaryJudgement, NonBinaryJudgement))
        material = await self._material(node)
        asked = JUDGEMENT.format(criteria=node.criteria)
        if isinstance(node, BinaryJudgement):
            reply = await self._judge.ask(ruling("dag-judgement", asked, material))
            return _winner(node, reply.verdict == "yes"), reply.reason
        options = {str(verdict.verdict): "" for verdict in node.verdicts}
        chosen = await self._judge.ask(choose("dag-choice", asked, options, material))
        return _winner(node, chosen.choice), chosen.reason

    async def _material(self, node: Node) -> dict[str, Texts]:
        shown = {SHOWN_AS[part]: PARTS[part](self._evaluable)[1] for part in node.evaluation_params or ()}
        found = await asyncio.gather(*(self._found(name) for name in node.uses))
        findings = [f"{name}: {text}" for name, text in zip(node.uses, found, strict=True)]
        return {**shown, **({"finding": findings} if findings else {})}

    def _found(self, name: str) -> asyncio.Task[str]:
        """What a task finds out; tasks that do not wait for each other are under way at the same time."""
        if name not in self._tasks:
            self._tasks[name] = asyncio.ensure_future(self._carry_out(name))
        return self._tasks[name]

    async def _carry_out(self, name: str) -> str:
        from proctor.evaluators.opinions import finding

        task = self._nodes[name]
        assert isinstance(task, TaskNode)
        question = finding("dag-task", TASK.format(task=task.instructions), await self._material(task))
        self.findings[name] = (await self._judge.ask(question)).output
        return self.findings[name]


def _winner(node: Judgement, said: bool | str) -> Verdict:
    return next(verdict for verdict in node.verdicts if verdict.verdict == said)


def _word(verdict: bool | str) -> str:
    return {True: "yes", False: "no"}.get(verdict, str(verdict)) if isinstance(verdict, bool) else verdict
