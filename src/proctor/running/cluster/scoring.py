"""Scores answers where they were given (`--score-on-workers`), so that evaluators which compute use other processes.

What asks a judge stays in the process of the run: one cache, one rate limit and one budget hold for all of it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import replace

from proctor.agents.agent import BaseAgent
from proctor.cases.suite import Case, EvaluatorSpec, Suite
from proctor.evaluators.registry import Bound, build
from proctor.running.cluster.messages import SuiteOrder
from proctor.running.engine.ask import Answer
from proctor.running.engine.deadline import Watchdog
from proctor.running.engine.plan import PlannedSuite, PlannedTrial, spec_key, told_apart
from proctor.running.engine.score import ScoringContext, score
from proctor.running.engine.tool_reruns import answering_for_tools


def can_be_scored_there(planned: PlannedTrial) -> bool:
    """Whether no evaluator of a trial asks a judge, and nothing is added to its answer in the process of the run."""
    suite, case = planned.suite, planned.case
    if suite.suite.reexecute is not None or any(turn.attachments for turn in case.turns):
        return False
    lists = (suite.suite.evaluators_of(case, turn) for turn in case.turns)
    bounds = [bound for specs in (suite.suite.evaluators_of(case), *lists) for bound in suite.evaluators(specs)]
    return not any(bound.needs_judge or bound.judged for bound in bounds)


class SuiteOnWorker(PlannedSuite):
    """A suite whose evaluators are made when a case first names them: its cases come one by one."""

    def __init__(self, suite: Suite, agent: BaseAgent, order: SuiteOrder) -> None:
        super().__init__(suite, agent, order.fingerprint, order.limits, None)
        self._lists: dict[tuple[str, ...], list[Bound]] = {}

    def evaluators(self, specs: Iterable[EvaluatorSpec]) -> list[Bound]:
        wanted = list(specs)
        key = tuple(spec_key(spec) for spec in wanted)
        if key not in self._lists:
            made: list[Bound] = []
            for spec in wanted:
                made.append(told_apart(build(spec, self.suite.base), {bound.title for bound in made}))
            self._lists[key] = made
        return self._lists[key]


class WorkerScoring:
    """All scoring on one worker."""

    def __init__(self, watchdog: Watchdog, parallel: int) -> None:
        self._context = ScoringContext(asyncio.Semaphore(parallel), watchdog, fast=False)

    async def scored(self, suite: PlannedSuite, case: Case, answer: Answer) -> Answer:
        """The answer with its scores; one that was not given has none."""
        if answer.outcome is not None:
            return answer
        with answering_for_tools(case) if case.doubles else contextlib.nullcontext():
            scores, warnings = await score(suite, case, answer, self._context)
        return replace(answer, scores=scores, warnings=(*answer.warnings, *warnings))
