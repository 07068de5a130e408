"""Measures a judge against people: it judges every labelled row, and some of them twice.

An exception of an evaluator has the same meaning for a row as for a score of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import Json, to_json
from proctor.calibration.labelled_rows import LabelledRow, LabelledRows
from proctor.cases.suite import EvaluatorSpec
from proctor.evaluators.calling import evaluate
from proctor.evaluators.evaluation import Evaluation
from proctor.evaluators.registry import ResolvedEvaluator, resolve_evaluator
from proctor.judging.call_log import WaitTimer, count_waits
from proctor.judging.choosing import COMMAND_LINE, JudgeChoice, JudgeSources, WrittenJudge
from proctor.judging.judge import JudgeCall, is_rule_based
from proctor.judging.judges import Judges
from proctor.judging.panel import Panel
from proctor.judging.session import JudgeSession, judge_session
from proctor.results.judge_calibration import (
    VALID_DAYS,
    Binding,
    Calibration,
    Calibrations,
    LabelledScore,
    file_digest,
    prompt_versions,
    served_models,
)
from proctor.results.score import Outcome
from proctor.results.store.judge_cache import StoredJudgeCalls
from proctor.results.store.store import Store
from proctor.running.scoring import outcome_of_exception
from proctor.running.settings import DEFAULTS
from proctor.running.suite_judges import why_unavailable

Progress = Callable[["CalibrationProgress"], None]
JudgeSpec = str | Mapping[str, Json]
"""A judge as the command line or a suite writes it."""


@dataclass(frozen=True, slots=True)
class UnjudgedRow:
    """A row that the judge did not score; it counts neither as right nor as wrong."""

    id: str
    outcome: str
    """`error`, `skipped`, or `pending` if the judge abstained."""
    reason: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of judging the rows."""

    calibration: Calibration
    rows: tuple[LabelledRow, ...]
    """The rows that were judged, in the order of those in `calibration`."""
    unjudged: tuple[UnjudgedRow, ...]
    again: tuple[tuple[float, float], ...] | None
    """Both scores of the rows that were judged twice; `None` for a judge that always answers the same."""


@dataclass(frozen=True, slots=True)
class CalibrationProgress:
    """The progress of a calibration."""

    done: int
    planned: int
    calls: int
    """Calls to models so far."""
    cached: int
    """Calls that were answered from the cache."""
    is_retest: bool = False
    """Whether rows are being judged for the second time."""


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """How a judge is measured."""

    parallel: int = DEFAULTS.parallel or 1
    retest: int = 20
    valid_days: float = VALID_DAYS
    """How long reports of runs use the result."""
    progress: Progress = lambda step: None


async def calibrate(
    judge: JudgeSpec, data: LabelledRows, spec: EvaluatorSpec, store: Path, options: CalibrationOptions
) -> Measurement:
    """Judge every row, and store the result; replies in the cache are used."""
    bound, choice = _resolve_evaluator(judge, spec)
    with closing(Store(store)) as opened, closing(StoredJudgeCalls(opened.path)) as call_store:
        panel = Judges(call_store).panel(choice.panel)
        scoring = _RowJudging(bound, panel, options)
        results = await scoring.judge_rows(data.rows)
        judged = [
            (row, result) for row, result in zip(data.rows, results, strict=True) if isinstance(result, Evaluation)
        ]
        again = await scoring.judge_again(judged)
        measured = tuple(LabelledScore(row.id, result.score, row.label) for row, result in judged)
        calibration = Calibration(
            judge=panel.name,
            evaluator=bound.title,
            fingerprint=bound.fingerprint,
            threshold=bound.threshold,
            versions=prompt_versions(result.details for _, result in judged),
            data=data.fingerprint,
            source=data.path.name,
            rows=measured,
            again=again,
            binding=Binding(
                judge=choice.identity,
                arguments=to_json(bound.spec.arguments),
                rows_file=str(data.path.resolve()),
                rows_digest=file_digest(data.path),
                valid_days=options.valid_days,
                served=served_models(result.details for _, result in judged),
            ),
        )
        if measured:
            with closing(Calibrations(opened.path)) as calibrations:
                calibrations.add(calibration)
    unjudged = tuple(result for result in results if isinstance(result, UnjudgedRow))
    return Measurement(calibration, tuple(row for row, _ in judged), unjudged, again)


def _resolve_evaluator(judge: JudgeSpec, spec: EvaluatorSpec) -> tuple[ResolvedEvaluator, JudgeChoice]:
    """The evaluator, and the judge that is measured with it."""
    bound = resolve_evaluator(spec, sources=JudgeSources(command_line=WrittenJudge(judge, "JUDGE")))
    if bound.judge is None:
        raise UsageError(f"{spec.name} does not use a judge, so there is nothing to calibrate")
    if reason := why_unavailable(bound.judge):
        raise UsageError(reason)
    return bound, bound.judge


class _RowJudging:
    """Judges rows, several in parallel."""

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
        """Both scores of the first rows, the second from an independent call; rows that fail now are dropped."""
        panel = self._panel
        if all(is_rule_based(judge.name) for judge in panel.judges):
            return None
        chosen = judged[: self._options.retest]
        other = replace(panel, judges=tuple(_FreshSamples(judge, panel.samples) for judge in panel.judges))
        results = await self._all([row for row, _ in chosen], other, is_retest=True)
        both = zip(chosen, results, strict=True)
        return tuple((first.score, second.score) for (_, first), second in both if isinstance(second, Evaluation))

    async def _all(
        self, rows: Sequence[LabelledRow], panel: Panel, *, is_retest: bool = False
    ) -> list[Evaluation | UnjudgedRow]:
        free = asyncio.Semaphore(self._options.parallel)
        done = 0

        async def one(row: LabelledRow) -> Evaluation | UnjudgedRow:
            nonlocal done
            waits = WaitTimer()
            async with free:
                with count_waits(waits):
                    result = await self._judge_row(row, panel)
            done += 1
            self._count(waits.calls)
            self._options.progress(CalibrationProgress(done, len(rows), self._calls, self._cached, is_retest))
            return result

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(row)) for row in rows]
        return [task.result() for task in tasks]

    def _count(self, calls: Sequence[JudgeCall]) -> None:
        model_calls = [call for call in calls if not is_rule_based(call.model)]
        cached = sum(call.cached for call in model_calls)
        self._calls, self._cached = self._calls + len(model_calls) - cached, self._cached + cached

    async def _judge_row(self, row: LabelledRow, panel: Panel) -> Evaluation | UnjudgedRow:
        # As if the command line named this judge, which overrides any judge of the evaluator itself.
        sources = JudgeSources(command_line=WrittenJudge(panel, COMMAND_LINE))
        try:
            with judge_session(JudgeSession(Judges(), sources, threshold=self._bound.threshold)):
                evaluation = await evaluate(self._bound.call, row.evaluable)
        except Exception as error:  # a user's own evaluator may raise anything
            failure = outcome_of_exception(error)
            return UnjudgedRow(row.id, failure.outcome.value, failure.reason)
        return evaluation or UnjudgedRow(row.id, Outcome.SKIPPED.value, "nothing to compare")


class _FreshSamples:
    """A judge with new samples: its replies are independent of those in the cache."""

    def __init__(self, judge: Any, first_sample: int) -> None:
        self.name = judge.name
        self._judge = judge
        self._first_sample = first_sample

    async def ask(self, question: Any, *, sample: int = 0) -> Any:
        return await self._judge.ask(question, sample=self._first_sample + sample)
