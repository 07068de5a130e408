"""Scores one answered trial: calls its evaluators and turns their results or exceptions into scores and an outcome.

Shipped evaluators are fast and trusted, so they run directly on the event loop, under the watchdog. All others may
block or hang: they run in the background, a limited number in parallel, each with its own timeout, and in a thread
unless they are async. An evaluator that uses a judge is limited by the judge instead, and waiting for the judge does
not count towards its timeout.

`outcome_of_exception` decides what an exception of an evaluator means.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from proctor.agents.tools import marked_names
from proctor.base.clock import Clock
from proctor.base.errors import NeedsModel, ProctorError, one_line, truncate_middle, user_location
from proctor.base.infrastructure import diagnose
from proctor.base.json_data import Json, to_json
from proctor.base.threads import run_in_thread
from proctor.cases.suite import TOOL_EVALUATORS, Case, Suite
from proctor.cases.threshold import passes
from proctor.evaluators.evaluation import (
    UNCLAMPED,
    UNREADABLE,
    Evaluable,
    Evaluation,
    EvaluationPending,
    InvalidScore,
    NothingToCompare,
    clamp_notice,
    to_evaluation,
)
from proctor.evaluators.judged_evaluator import evaluator_timeout
from proctor.evaluators.registry import OutputMissing, ResolvedEvaluator, select_output
from proctor.judging.call_log import WaitTimer, count_waits
from proctor.judging.judges import Judges
from proctor.judging.session import judge_session
from proctor.results.score import JUDGE_DETAIL as JUDGED
from proctor.results.score import MASKED_TEXT, Outcome, Score
from proctor.results.verdict import apply_mean_thresholds, trial_outcome
from proctor.running.conversation import ConversationResult
from proctor.running.evaluables import conversation_evaluable, turn_evaluables
from proctor.running.masked_answers import NO_SCORE, MaskedAnswer, MaskedText, masked_answer
from proctor.running.plan import PlannedTrial
from proctor.running.settings import TrialLimits
from proctor.running.suite_judges import judge_session_for
from proctor.running.timeouts import Cancelled, TimedOut, Watchdog, WatchdogInterrupt, run_with_timeout
from proctor.tracing.capture import suppress_tracing

WITHOUT_MODEL = "all of its evaluators need a language model (--fast)"
RETURNED_NONE = "returned None, which means that it had nothing to compare; return True or False"
NO_CALLS = (
    "no tool calls were recorded: Proctor sees calls of functions that are marked with @proctor.tool, calls through "
    "model clients with an instrumentation, and calls that the agent returns with its answer"
)
"""The notice about missing calls if nothing hints at hidden ones."""
RETRIES = "retries"
"""The detail of a score that took more than one attempt."""


@dataclass(frozen=True, slots=True)
class ScoringContext:
    """What the scoring of all trials of a run shares."""

    evaluator_slots: asyncio.Semaphore
    """Limits how many evaluators, other than shipped ones, run in parallel."""
    watchdog: Watchdog
    fast: bool
    judges: Judges | None = None
    """The judges of the run, or `None` if no evaluator uses one."""
    fresh_for: str = ""
    """The id of the run, if every trial is judged afresh; empty if trials with the same answer share a verdict."""
    notices: set[str] = field(default_factory=set)
    """Warnings that a run gives only once."""


@dataclass(frozen=True, slots=True)
class ScoringNotes:
    """What the scoring of a trial reports besides scores."""

    warnings: dict[str, None] = field(default_factory=dict)
    """For the authors of evaluators, each once."""
    problems: list[str] = field(default_factory=list)
    """What kept evaluators from scoring, if it would keep them from scoring the next trial too: a missing key."""


@dataclass(frozen=True, slots=True)
class _Job:
    """One evaluator and what it scores."""

    evaluator: ResolvedEvaluator
    evaluable: Evaluable
    turn: int | None
    """The index of the turn, or `None` for the whole conversation."""
    limits: TrialLimits
    notes: ScoringNotes
    masked: MaskedAnswer | None = None
    """The stored answer that it scores, if there is masked text in it."""

    @property
    def timeout(self) -> float:
        default = self.limits.judged_timeout if self.evaluator.asks_judge else self.limits.evaluator_timeout
        return self.evaluator.spec.timeout or default


async def score(
    planned: PlannedTrial, answer: ConversationResult, scoring: ScoringContext
) -> tuple[tuple[Score, ...], ScoringNotes]:
    """The scores of a trial, in the order of its evaluators, and what else there is to report."""
    notes = ScoringNotes()
    jobs = _jobs(planned, answer, scoring.fast, notes)
    inline = {at: _score_inline(job, scoring.watchdog) for at, job in enumerate(jobs) if job.evaluator.runs_inline}
    others = [at for at in range(len(jobs)) if at not in inline]
    in_background: Sequence[Score | None] = ()
    if others:
        in_background = await asyncio.gather(*(_score_in_background(jobs[at], scoring) for at in others))
    by_position = {**inline, **dict(zip(others, in_background, strict=True))}
    results = (_without_masked_text(job, by_position[at]) for at, job in enumerate(jobs))
    scores = tuple(item for item in results if item is not None)
    if planned.suite.suite.criteria.trials == "mean":
        scores = apply_mean_thresholds(scores)
    if NO_CALLS not in scoring.notices and _misses_calls_that_may_be_invisible(planned, answer, scores):
        scoring.notices.add(NO_CALLS)
        notes.warnings[NO_CALLS] = None
    return scores, notes


def _misses_calls_that_may_be_invisible(
    planned: PlannedTrial, answer: ConversationResult, scores: Sequence[Score]
) -> bool:
    """Whether expected calls are missing and no call was recorded, of an agent that nothing makes calls visible for."""
    if planned.suite.agent.reports_all_tool_calls or any(reply.tool_calls for reply in answer.replies):
        return False
    failed = (item for item in scores if item.outcome is Outcome.FAILED)
    faults = (fault for item in failed for fault in item.details.get("faults") or ())
    return any(fault.get("kind") == "missing" for fault in faults) and not marked_names()


def with_outcome(suite: Suite, answer: ConversationResult, scores: tuple[Score, ...]) -> ConversationResult:
    """The conversation with the outcome that follows from its scores and failed turns."""
    outcome, reason = trial_outcome(scores, suite.criteria)
    if answer.failed_turns is not None:
        failed = Outcome.FAILED in (answer.failed_turns, outcome)
        return replace(answer, outcome=Outcome.FAILED if failed else Outcome.ERROR)
    if not scores:
        outcome = Outcome(suite.unscored)
    return replace(answer, outcome=outcome, reason=reason)


def needs_only_models(planned: PlannedTrial) -> bool:
    """Whether every evaluator of a case needs a language model."""
    group = list(planned.evaluators)
    return bool(group) and all(evaluator.needs_model for evaluator in group)


def case_as_held(planned: PlannedTrial, answer: ConversationResult) -> Case:
    """The case with the turns that were really sent, if they come from a simulated user."""
    return planned.case if answer.turns is None else replace(planned.case, turns=answer.turns)


@dataclass(frozen=True, slots=True)
class NoScore:
    """The outcome of a score that has no value, and the reason."""

    outcome: Outcome
    reason: str
    details: Mapping[str, Json] = field(default_factory=dict)


def outcome_of_exception(error: BaseException) -> NoScore:
    """What an exception of an evaluator means: skipped, pending, or an error of the evaluator.

    Skipped and pending have their own exceptions, and a missing model is pending too. Everything else is an error,
    never a failure of the agent.
    """
    account = getattr(error, "account", None)
    details: Mapping[str, Json] = {JUDGED: account} if account else {}
    if isinstance(error, NothingToCompare):
        return NoScore(Outcome.SKIPPED, str(error) or "nothing to compare")
    if isinstance(error, EvaluationPending):
        criteria = {"criteria": error.criteria} if error.criteria else {}
        return NoScore(Outcome.PENDING, str(error), details or criteria)
    if isinstance(error, NeedsModel):
        return NoScore(Outcome.PENDING, str(error), details)
    if isinstance(error, (InvalidScore, ProctorError)):
        return NoScore(Outcome.ERROR, str(error), details)
    return NoScore(Outcome.ERROR, f"raised {one_line(error)}{user_location(error)}")


def _jobs(planned: PlannedTrial, answer: ConversationResult, fast: bool, notes: ScoringNotes) -> list[_Job]:
    """What each evaluator scores: those of turns each turn, those of the case the whole conversation."""
    case = case_as_held(planned, answer)
    limits = planned.suite.limits
    masked = masked_answer(answer.stored, planned.case, case, answer.replies)
    of_turns, of_case = planned.evaluators.assign(len(case.turns))
    turns = turn_evaluables(case, answer.replies, answer.spans)
    views: list[tuple[ResolvedEvaluator, Evaluable, int | None]] = [
        (evaluator, evaluable, index if len(case.turns) > 1 else None)
        for index, (group, evaluable) in enumerate(zip(of_turns, turns, strict=False))
        for evaluator in group
        if answer.replies[index].error is None
    ]
    if of_case and turns and answer.failed_turns is None:
        whole = conversation_evaluable(case, turns)
        views += [view for evaluator in of_case for view in _views_of_case(evaluator, whole, turns)]
    jobs = [_Job(*view, limits, notes, masked) for view in views if not (fast and view[0].needs_model)]
    if masked is None:
        return jobs
    places = {id(evaluable): at for at, evaluable in enumerate(turns)}  # the whole conversation is not among them
    return [replace(job, evaluable=masked.hide(job.evaluable, places.get(id(job.evaluable)))) for job in jobs]


def _without_masked_text(job: _Job, result: Score | None) -> Score | None:
    """The score of an evaluator, or what stands for it if the evaluator reads masked text."""
    masked = job.masked
    if masked is None or result is None or not masked.is_read_by(job.evaluator, job.evaluable):
        return result
    stored = masked.stored_score(job.evaluator, job.turn)
    if stored is not None:
        return stored
    error = _missing_score(job, MaskedText(masked.reason(job.evaluable)), Clock.perf_counter())
    return replace(error, details={**error.details, MASKED_TEXT: NO_SCORE})


def _views_of_case(
    evaluator: ResolvedEvaluator, whole: Evaluable, turns: list[Evaluable]
) -> list[tuple[ResolvedEvaluator, Evaluable, int | None]]:
    """The whole conversation; and, for evaluators of tool calls, each turn in which no call is expected.

    The expected calls of all turns together cannot express "no calls in this turn": it would get lost among the calls
    of other turns, or forbid calls in a turn that expects nothing in particular.
    """
    expected = [item.expected_tool_calls for item in turns]
    silent = [index for index, calls in enumerate(expected) if calls == ()]
    if evaluator.spec.shipped_name not in TOOL_EVALUATORS or not silent or len(silent) == len(turns):
        return [(evaluator, whole, None)]
    views: list[tuple[ResolvedEvaluator, Evaluable, int | None]] = [
        (evaluator, turns[index], index) for index in silent
    ]
    return [*views, (evaluator, whole, None)] if any(expected) else views


def _score_inline(job: _Job, watchdog: Watchdog) -> Score:
    timeout = job.evaluator.spec.timeout or job.limits.evaluator_timeout
    task = asyncio.current_task()
    clock = Clock.perf_counter()
    try:
        try:
            watchdog.watch(task, timeout)
            evaluation = to_evaluation(job.evaluator.call(select_output(job.evaluator, job.evaluable)))
        finally:
            watchdog.forget(task)  # inside the outer `try`, since the watchdog may interrupt at any moment before this
        return _score_from(job, evaluation, clock)
    except WatchdogInterrupt:
        watchdog.forget(task)
        return _missing_score(job, InvalidScore(f"gave no score within {timeout:g} s"), clock)
    except OutputMissing as error:
        return _score_from(job, Evaluation(0.0, str(error), {UNREADABLE: True}), clock)
    except (Exception, SystemExit) as error:
        return _missing_score(job, error, clock)


async def _score_in_background(job: _Job, scoring: ScoringContext) -> Score | None:
    """The score of an evaluator that may block or hang; `None` if it needs a model and `--fast` is on."""
    async with contextlib.nullcontext() if job.evaluator.asks_judge else scoring.evaluator_slots:
        clock = Clock.perf_counter()
        try:
            return _score_from(job, await _call_with_timeout(job, scoring), clock)
        except TimedOut:
            return _missing_score(job, InvalidScore(f"gave no score within {job.timeout:g} s"), clock)
        except Cancelled:
            return _missing_score(job, InvalidScore("cancelled itself"), clock)
        except OutputMissing as error:
            return _score_from(job, Evaluation(0.0, str(error), {UNREADABLE: True}), clock)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # such as GeneratorExit: whatever an evaluator raises only affects its score
            is_skipped = scoring.fast and isinstance(error, NeedsModel)
            return None if is_skipped else _missing_score(job, error, clock)


async def _call_with_timeout(job: _Job, scoring: ScoringContext) -> Evaluation | None:
    """The result of an evaluator, within its timeout; waiting for a free judge does not count."""
    evaluator = job.evaluator
    judges = scoring.judges
    if judges is None or not evaluator.needs_judge:
        return await run_with_timeout(_call(evaluator, job.evaluable), job.timeout, scoring.watchdog)
    waits = WaitTimer()

    async def call_in_session() -> Evaluation | None:
        with judge_session(judge_session_for(judges, evaluator)), count_waits(waits):
            return await _call(evaluator, job.evaluable)

    try:
        return await run_with_timeout(call_in_session(), job.timeout, scoring.watchdog, lambda: waits.seconds)
    except TimedOut:
        raise evaluator_timeout(job.timeout, waits) from None


async def _call(evaluator: ResolvedEvaluator, evaluable: Evaluable) -> Evaluation | None:
    """The result of an evaluator, after as many retries as its settings allow."""
    selected = select_output(evaluator, evaluable)
    for retry in range(evaluator.spec.retries):
        try:
            return _with_retry_count(retry, await _call_once(evaluator, selected))
        except (NothingToCompare, EvaluationPending):
            raise
        except Exception:  # noqa: S112  the last attempt, below, raises
            continue
    return _with_retry_count(evaluator.spec.retries, await _call_once(evaluator, selected))


def _with_retry_count(retries: int, evaluation: Evaluation | None) -> Evaluation | None:
    if not retries or evaluation is None:
        return evaluation
    return replace(evaluation, details={**evaluation.details, RETRIES: retries})


async def _call_once(evaluator: ResolvedEvaluator, selected: Evaluable) -> Evaluation | None:
    call: Callable[..., Any] = evaluator.call
    arguments, named = evaluator.style.arguments(selected)
    try:
        with suppress_tracing():
            if evaluator.asynchronous:
                result = call(*arguments, **named)
            else:
                result = await run_in_thread(call, *arguments, **named)
            return _as_plain_data(to_evaluation(await result if inspect.isawaitable(result) else result))
    except (SystemExit, KeyboardInterrupt) as error:
        raise InvalidScore(f"raised {one_line(error)}{user_location(error)}") from error


def _as_plain_data(evaluation: Evaluation | None) -> Evaluation | None:
    """The evaluation as plain text and data; converted within the timeout, since a user's `__str__` may be slow."""
    if evaluation is None or (type(evaluation.reasoning) is str and not evaluation.details):
        return evaluation
    return replace(evaluation, reasoning=str(evaluation.reasoning or ""), details=to_json(evaluation.details))


def _score_from(job: _Job, evaluation: Evaluation | None, clock: float) -> Score:
    if evaluation is None:
        return _missing_score(job, NothingToCompare(RETURNED_NONE), clock)
    details = to_json(evaluation.details) if evaluation.details else {}
    if UNCLAMPED in details:
        job.notes.warnings[f"{job.evaluator.title}: {clamp_notice(evaluation)}"] = None
    is_passed = passes(evaluation.score, job.evaluator.threshold, evaluation.passed)
    return Score(
        evaluator=job.evaluator.title,
        outcome=Outcome.PASSED if is_passed else Outcome.FAILED,
        value=evaluation.score,
        threshold=job.evaluator.threshold,
        reasoning=truncate_middle(str(evaluation.reasoning or "")),
        turn=job.turn,
        report_only=job.evaluator.spec.report_only,
        details=details,
        fingerprint=job.evaluator.fingerprint,
        duration_ms=(Clock.perf_counter() - clock) * 1000,
    )


def _missing_score(job: _Job, error: BaseException, clock: float) -> Score:
    """A score without a value. An error of an `optional` evaluator counts as skipped."""
    failure = outcome_of_exception(error)
    if failure.outcome is Outcome.ERROR and (diagnosis := diagnose(error)).lasting:
        job.notes.problems.append(f"{job.evaluator.title}: {diagnosis.cause}")
    needs_model = JUDGED in failure.details or isinstance(error, NeedsModel)
    if job.evaluator.spec.optional and (failure.outcome is Outcome.ERROR or needs_model):
        failure = replace(failure, outcome=Outcome.SKIPPED, reason=f"could not be scored: {failure.reason}")
    return Score(
        evaluator=job.evaluator.title,
        outcome=failure.outcome,
        threshold=job.evaluator.threshold,
        reasoning=truncate_middle(failure.reason),
        turn=job.turn,
        report_only=job.evaluator.spec.report_only,
        details=failure.details,
        fingerprint=job.evaluator.fingerprint,
        duration_ms=(Clock.perf_counter() - clock) * 1000,
    )
