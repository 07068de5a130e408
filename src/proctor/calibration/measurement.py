"""Measures a judge against people: lets it judge every labelled row, and some of them twice.

What an exception of an evaluator means for a row is what it means for a score of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import Json
from proctor.calibration.labelled_rows import LabelledRow, LabelledRows
from proctor.cases.suite import EvaluatorSpec
from proctor.evaluators.evaluation import Evaluation, evaluate
from proctor.evaluators.registry import ResolvedEvaluator, resolve_evaluator
from proctor.judging.call_log import WaitTimer, count_waits
from proctor.judging.choosing import COMMAND_LINE, JudgeChoice, JudgeSources, WrittenJudge
from proctor.judging.judge import JudgeCall, is_rule_based
from proctor.judging.judges import Judges
from proctor.judging.panel import Panel
from proctor.judging.session import JudgeSession, judge_session
from proctor.results.judge_calibration import Calibration, Calibrations, LabelledScore, prompt_versions
from proctor.results.run import Outcome
from proctor.results.store.judge_cache import StoredJudgeCalls
from proctor.results.store.store import Store
from proctor.running.scoring import outcome_of_exception
from proctor.running.settings import DEFAULTS
from proctor.running.suite_judges import why_unavailable

Progress = Callable[["CalibrationProgress"], None]
JudgeSpec = str | Mapping[str, Json]
"""A judge as it is named on the command line or in a suite."""


@dataclass(frozen=True, slots=True)
class UnjudgedRow:
    """A row without a verdict: neither right nor wrong."""

    id: str
    outcome: str
    """`error`, `skipped`, or `pending` where the judge cannot tell."""
    reason: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """What came of putting rows to a judge."""

    calibration: Calibration
    rows: tuple[LabelledRow, ...]
    """Those that were judged, in the order of the calibration's."""
    unjudged: tuple[UnjudgedRow, ...]
    again: tuple[tuple[float, float], ...] | None
    """Of rows that were asked twice, both scores; `None` where the judge answers the same each time."""


@dataclass(frozen=True, slots=True)
class CalibrationProgress:
    """How far a calibration has come."""

    done: int
    planned: int
    calls: int
    """Calls of models so far."""
    cached: int
    """Answers that were kept already."""
    again: bool = False
    """Whether rows are being asked a second time."""


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """How a judge is measured."""

    parallel: int = DEFAULTS.parallel or 1
    retest: int = 20
    progress: Progress = lambda step: None


async def calibrate(
    judge: JudgeSpec, data: LabelledRows, spec: EvaluatorSpec, store: Path, options: CalibrationOptions
) -> Measurement:
    """Put every row to the judge, and keep what comes of it; answers that are kept already are not asked for again."""
    bound, choice = _resolve_evaluator(judge, spec)
    with closing(Store(store)) as opened, closing(StoredJudgeCalls(opened.path)) as call_store:
        panel = Judges(call_store).panel(choice.panel)
        scoring = _RowJudging(bound, panel, options)
        results = await scoring.judge_rows(data.rows)
        judged = [(row, said) for row, said in zip(data.rows, results, strict=True) if isinstance(said, Evaluation)]
        again = await scoring.judge_again(judged)
        measured = tuple(LabelledScore(row.id, said.score, row.label) for row, said in judged)
        calibration = Calibration(
            judge=panel.name,
            evaluator=bound.title,
            fingerprint=bound.fingerprint,
            threshold=bound.threshold,
            versions=prompt_versions(said.details for _, said in judged),
            data=data.fingerprint,
            source=data.path.name,
            rows=measured,
            again=again,
        )
        if measured:
            with closing(Calibrations(opened.path)) as kept:
                kept.add(calibration)
    unjudged = tuple(said for said in results if isinstance(said, UnjudgedRow))
    return Measurement(calibration, tuple(row for row, _ in judged), unjudged, again)


def _resolve_evaluator(judge: JudgeSpec, spec: EvaluatorSpec) -> tuple[ResolvedEvaluator, JudgeChoice]:
    """The evaluator, and the judge that is measured with it."""
    bound = resolve_evaluator(spec, sources=JudgeSources(command_line=WrittenJudge(judge, "JUDGE")))
    if bound.judge is None:
        raise UsageError(f"{spec.name} asks no judge; a measure that is always the same needs no calibration")
    if reason := why_unavailable(bound.judge):
        raise UsageError(reason)
    return bound, bound.judge


class _RowJudging:
    """Puts rows to the judge, a few at once."""

    def __init__(self, bound: ResolvedEvaluator, panel: Panel, options: CalibrationOptions) -> None:
        self._bound = bound
        self._panel = panel
        self._options = options
        self._calls = self._cached = 0

    async def judge_rows(self, rows: Sequence[LabelledRow]) -> list[Evaluation | UnjudgedRow]:
        return await self._all(rows, self._panel)

    async def judge_again(
        self, judged: Sequence[tuple[LabelledRow, Evaluation]]
    ) -> tuple[tuple[float, float], ...] | None:
        """The scores of the first rows, and those of an independent answer; rows it now cannot judge are left out."""
        panel = self._panel
        if all(is_rule_based(judge.name) for judge in panel.judges):
            return None
        chosen = judged[: self._options.retest]
        other = replace(panel, judges=tuple(_FreshSamples(judge, panel.samples) for judge in panel.judges))
        results = await self._all([row for row, _ in chosen], other, again=True)
        both = zip(chosen, results, strict=True)
        return tuple((first.score, said.score) for (_, first), said in both if isinstance(said, Evaluation))

    async def _all(
        self, rows: Sequence[LabelledRow], panel: Panel, *, again: bool = False
    ) -> list[Evaluation | UnjudgedRow]:
        free = asyncio.Semaphore(self._options.parallel)
        done = 0

        async def one(row: LabelledRow) -> Evaluation | UnjudgedRow:
            nonlocal done
            waits = WaitTimer()
            async with free:
                with count_waits(waits):
                    said = await self._judge_row(row, panel)
            done += 1
            self._count(waits.calls)
            self._options.progress(CalibrationProgress(done, len(rows), self._calls, self._cached, again))
            return said

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(row)) for row in rows]
        return [task.result() for task in tasks]

    def _count(self, calls: Sequence[JudgeCall]) -> None:
        asked = [call for call in calls if not is_rule_based(call.model)]
        cached = sum(call.cached for call in asked)
        self._calls, self._cached = self._calls + len(asked) - cached, self._cached + cached

    async def _judge_row(self, row: LabelledRow, panel: Panel) -> Evaluation | UnjudgedRow:
        # The panel that is measured stands for the judge of the command line: whatever the evaluator says is overruled.
        sources = JudgeSources(command_line=WrittenJudge(panel, COMMAND_LINE))
        try:
            with judge_session(JudgeSession(Judges(), sources, threshold=self._bound.threshold)):
                evaluation = await evaluate(self._bound.call, row.evaluable)
        except Exception as error:  # a user's own evaluator may raise anything
            found = outcome_of_exception(error)
            return UnjudgedRow(row.id, found.outcome.value, found.reason)
        return evaluation or UnjudgedRow(row.id, Outcome.SKIPPED.value, "there was nothing to compare")


class _FreshSamples:
    """A judge that is asked for answers it has not given yet."""

    def __init__(self, judge: Any, asked: int) -> None:
        self.name = judge.name
        self._judge = judge
        self._asked = asked

    async def ask(self, question: Any, *, sample: int = 0) -> Any:
        return await self._judge.ask(question, sample=self._asked + sample)
