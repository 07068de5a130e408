"""Scores one answered trial: calls its evaluators and turns what they return or raise into scores and an outcome.

Shipped evaluators are quick and trusted, so they run right on the event loop, watched by the watchdog. All others may
block or hang: they run in the background, a bounded number of them at once, each within its own time limit, in a thread
unless they are async. An evaluator that asks a judge waits for the judge alone, and that waiting is not its own time.

`outcome_of_exception` is the one place that says what an exception of an evaluator means.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from proctor.base.clock import Clock
from proctor.base.errors import NeedsModel, ProctorError, one_line, truncate_middle, user_location
from proctor.base.json_data import Json, to_json
from proctor.base.threads import run_in_thread
from proctor.cases.evaluator_specs import TOOL_EVALUATORS
from proctor.cases.suite import Case, Suite
from proctor.cases.threshold import passes
from proctor.evaluators.evaluation import (
    UNCLAMPED,
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
from proctor.results.judge_usage import JUDGE_DETAIL as JUDGED
from proctor.results.run import Outcome, Score
from proctor.results.verdict import apply_mean_thresholds, trial_outcome
from proctor.running.conversation import ConversationResult
from proctor.running.evaluables import conversation_evaluable, turn_evaluables
from proctor.running.plan import PlannedTrial
from proctor.running.settings import TrialLimits
from proctor.running.suite_judges import judge_session_for
from proctor.running.timeouts import Cancelled, TimedOut, Watchdog, WatchdogInterrupt, run_with_timeout
from proctor.tracing.capture import suppress_tracing

WITHOUT_MODEL = "all of its evaluators need a language model (--fast)"
RETRIES = "retries"
"""The detail of a score that took more than one try."""


@dataclass(frozen=True, slots=True)
class ScoringContext:
    """What all scoring of a run shares."""

    evaluator_slots: asyncio.Semaphore
    """How many evaluators other than the shipped ones may run at once."""
    watchdog: Watchdog
    fast: bool
    judges: Judges | None = None
    """The judges of the run, or `None` if no evaluator asks one."""


@dataclass(frozen=True, slots=True)
class _Job:
    """One evaluator and what it looks at."""

    bound: ResolvedEvaluator
    evaluable: Evaluable
    turn: int | None
    """The index of the turn, or `None` for the whole conversation."""
    limits: TrialLimits

    @property
    def timeout(self) -> float:
        usual = self.limits.judged_timeout if self.bound.asks_judge else self.limits.evaluator_timeout
        return self.bound.spec.timeout or usual


async def score(
    planned: PlannedTrial, answer: ConversationResult, scoring: ScoringContext
) -> tuple[tuple[Score, ...], tuple[str, ...]]:
    """The scores of a trial in the order its evaluators are listed, and warnings for their authors."""
    jobs = _jobs(planned, answer, scoring.fast)
    warnings: list[str] = []
    inline = {
        at: _score_inline(job, scoring.watchdog, warnings) for at, job in enumerate(jobs) if job.bound.runs_inline
    }
    others = [at for at in range(len(jobs)) if at not in inline]
    in_background: Sequence[Score | None] = ()
    if others:
        in_background = await asyncio.gather(*(_score_in_background(jobs[at], scoring, warnings) for at in others))
    by_position = {**inline, **dict(zip(others, in_background, strict=True))}
    scores = tuple(item for at in range(len(jobs)) if (item := by_position[at]) is not None)
    if planned.suite.suite.criteria.trials == "mean":
        scores = apply_mean_thresholds(scores)
    return scores, tuple(dict.fromkeys(warnings))


def with_outcome(suite: Suite, answer: ConversationResult, scores: tuple[Score, ...]) -> ConversationResult:
    """The answer with the outcome that its scores and its failed turns come to."""
    outcome, reason = trial_outcome(scores, suite.criteria)
    if answer.failed_turns is not None:
        failed = Outcome.FAILED in (answer.failed_turns, outcome)
        return replace(answer, outcome=Outcome.FAILED if failed else Outcome.ERROR)
    if not scores:
        outcome = Outcome(suite.unscored)
    return replace(answer, outcome=outcome, reason=reason)


def needs_only_models(planned: PlannedTrial) -> bool:
    """Whether nothing of a case can be scored without a language model."""
    bounds = list(planned.evaluators)
    return bool(bounds) and all(bound.needs_model for bound in bounds)


def case_as_held(planned: PlannedTrial, answer: ConversationResult) -> Case:
    """The case with the turns that a simulated user made of it, if its user is simulated."""
    return planned.case if answer.turns is None else replace(planned.case, turns=answer.turns)


@dataclass(frozen=True, slots=True)
class NoScore:
    """Why there is no score, and what that means for the outcome."""

    outcome: Outcome
    reason: str
    details: Mapping[str, Json] = field(default_factory=dict)


def outcome_of_exception(error: BaseException) -> NoScore:
    """What an exception of an evaluator means: nothing to compare, a verdict yet to come, or an evaluator that broke.

    Skipped and pending say so by their own exceptions; everything else is an error, never a failure of the agent.
    """
    account = getattr(error, "account", None)
    details: Mapping[str, Json] = {JUDGED: account} if account else {}
    if isinstance(error, NothingToCompare):
        return NoScore(Outcome.SKIPPED, str(error) or "it had nothing to compare")
    if isinstance(error, EvaluationPending):
        criteria = {"criteria": error.criteria} if error.criteria else {}
        return NoScore(Outcome.PENDING, str(error), details or criteria)
    if isinstance(error, (InvalidScore, ProctorError)):
        return NoScore(Outcome.ERROR, str(error), details)
    return NoScore(Outcome.ERROR, f"raised {one_line(error)}{user_location(error)}")


def _jobs(planned: PlannedTrial, answer: ConversationResult, fast: bool) -> list[_Job]:
    """Which evaluator looks at what: those of turns at each turn, those of the case at the whole conversation."""
    case = case_as_held(planned, answer)
    limits = planned.suite.limits
    of_turns, of_case = planned.evaluators.assign(len(case.turns))
    turns = turn_evaluables(case, answer.replies, answer.spans)
    views: list[tuple[ResolvedEvaluator, Evaluable, int | None]] = [
        (bound, evaluable, index if len(case.turns) > 1 else None)
        for index, (bounds, evaluable) in enumerate(zip(of_turns, turns, strict=False))
        for bound in bounds
        if answer.replies[index].error is None
    ]
    if of_case and turns and answer.failed_turns is None:
        whole = conversation_evaluable(case, turns)
        views += [view for bound in of_case for view in _views_of_case(bound, whole, turns)]
    return [_Job(*view, limits) for view in views if not (fast and view[0].needs_model)]


def _views_of_case(
    bound: ResolvedEvaluator, whole: Evaluable, turns: list[Evaluable]
) -> list[tuple[ResolvedEvaluator, Evaluable, int | None]]:
    """One look at the whole conversation; a turn in which no tool is to be called is looked at by itself as well.

    The calls expected of all turns together have no place for "no calls in this turn": it would be lost beside the
    calls of another turn, or forbid those of a turn that expects nothing in particular.
    """
    expected = [item.expected_tool_calls for item in turns]
    silent = [index for index, calls in enumerate(expected) if calls == ()]
    if bound.spec.name not in TOOL_EVALUATORS or not silent or len(silent) == len(turns):
        return [(bound, whole, None)]
    views: list[tuple[ResolvedEvaluator, Evaluable, int | None]] = [(bound, turns[index], index) for index in silent]
    return [*views, (bound, whole, None)] if any(expected) else views


def _score_inline(job: _Job, watchdog: Watchdog, warnings: list[str]) -> Score:
    timeout = job.bound.spec.timeout or job.limits.evaluator_timeout
    task = asyncio.current_task()
    clock = Clock.perf_counter()
    try:
        try:
            watchdog.watch(task, timeout)
            verdict = to_evaluation(job.bound.call(select_output(job.bound, job.evaluable)))
        finally:
            watchdog.forget(task)  # inside the outer `try`, since time may be up at any moment before this
        return _score_from(job, verdict, clock, warnings)
    except WatchdogInterrupt:
        watchdog.forget(task)
        return _missing_score(job, InvalidScore(f"gave no score within {timeout:g} s"), clock)
    except OutputMissing as error:
        return _score_from(job, Evaluation(0.0, str(error)), clock, warnings)
    except (Exception, SystemExit) as error:
        return _missing_score(job, error, clock)


async def _score_in_background(job: _Job, scoring: ScoringContext, warnings: list[str]) -> Score | None:
    """The score of an evaluator that may block or hang, or `None` if it turned out to need a model under `--fast`."""
    async with contextlib.nullcontext() if job.bound.asks_judge else scoring.evaluator_slots:
        clock = Clock.perf_counter()
        try:
            return _score_from(job, await _call_with_timeout(job, scoring), clock, warnings)
        except TimedOut:
            return _missing_score(job, InvalidScore(f"gave no score within {job.timeout:g} s"), clock)
        except Cancelled:
            return _missing_score(job, InvalidScore("cancelled itself"), clock)
        except OutputMissing as error:
            return _score_from(job, Evaluation(0.0, str(error)), clock, warnings)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # such as GeneratorExit: whatever an evaluator raises concerns its own score
            left_out = scoring.fast and isinstance(error, NeedsModel)
            return None if left_out else _missing_score(job, error, clock)


async def _call_with_timeout(job: _Job, scoring: ScoringContext) -> Evaluation | None:
    """What an evaluator returns; the time in which it waits for the judge to be free does not count."""
    bound = job.bound
    judges = scoring.judges
    if judges is None or not bound.needs_judge:
        return await run_with_timeout(_call(bound, job.evaluable), job.timeout, scoring.watchdog)
    waits = WaitTimer()

    async def call_in_session() -> Evaluation | None:
        with judge_session(judge_session_for(judges, bound)), count_waits(waits):
            return await _call(bound, job.evaluable)

    try:
        return await run_with_timeout(call_in_session(), job.timeout, scoring.watchdog, lambda: waits.seconds)
    except TimedOut:
        raise evaluator_timeout(job.timeout, waits) from None


async def _call(bound: ResolvedEvaluator, evaluable: Evaluable) -> Evaluation | None:
    """What it returns, after as many tries as its file allows."""
    seen = select_output(bound, evaluable)
    for retry in range(bound.spec.retries):
        try:
            return _with_retry_count(retry, await _call_once(bound, seen))
        except (NothingToCompare, EvaluationPending):
            raise
        except Exception:  # noqa: S112  the last try, below, raises
            continue
    return _with_retry_count(bound.spec.retries, await _call_once(bound, seen))


def _with_retry_count(retries: int, verdict: Evaluation | None) -> Evaluation | None:
    if not retries or verdict is None:
        return verdict
    return replace(verdict, details={**verdict.details, RETRIES: retries})


async def _call_once(bound: ResolvedEvaluator, seen: Evaluable) -> Evaluation | None:
    call: Callable[..., Any] = bound.call
    extra = {"trace": seen.trace} if bound.takes_trace else {}
    try:
        with suppress_tracing():
            verdict = call(seen, **extra) if bound.asynchronous else await run_in_thread(call, seen, **extra)
            return _as_plain_data(to_evaluation(await verdict if inspect.isawaitable(verdict) else verdict))
    except (SystemExit, KeyboardInterrupt) as error:
        raise InvalidScore(f"raised {one_line(error)}{user_location(error)}") from error


def _as_plain_data(verdict: Evaluation | None) -> Evaluation | None:
    """The evaluation as text and data, made while the evaluator's time still runs: a `__str__` may take long."""
    if verdict is None or (type(verdict.reasoning) is str and not verdict.details):
        return verdict
    return replace(verdict, reasoning=str(verdict.reasoning or ""), details=to_json(verdict.details))


def _score_from(job: _Job, verdict: Evaluation | None, clock: float, warnings: list[str]) -> Score:
    if verdict is None:
        return _missing_score(job, NothingToCompare("it had nothing to compare"), clock)
    details = to_json(verdict.details) if verdict.details else {}
    if UNCLAMPED in details:
        warnings.append(f"{job.bound.title}: {clamp_notice(verdict)}")
    return Score(
        evaluator=job.bound.title,
        outcome=Outcome.PASSED if passes(verdict.score, job.bound.threshold, verdict.passed) else Outcome.FAILED,
        value=verdict.score,
        threshold=job.bound.threshold,
        reasoning=truncate_middle(str(verdict.reasoning or "")),
        turn=job.turn,
        report_only=job.bound.spec.report_only,
        details=details,
        fingerprint=job.bound.fingerprint,
        duration_ms=(Clock.perf_counter() - clock) * 1000,
    )


def _missing_score(job: _Job, error: BaseException, clock: float) -> Score:
    """A score without a value. An evaluator that may be left out (`optional`) is skipped if it could not measure."""
    found = outcome_of_exception(error)
    if job.bound.spec.optional and (found.outcome is Outcome.ERROR or JUDGED in found.details):
        found = replace(found, outcome=Outcome.SKIPPED, reason=f"could not be measured: {found.reason}")
    return Score(
        evaluator=job.bound.title,
        outcome=found.outcome,
        threshold=job.bound.threshold,
        reasoning=truncate_middle(found.reason),
        turn=job.turn,
        report_only=job.bound.spec.report_only,
        details=found.details,
        fingerprint=job.bound.fingerprint,
        duration_ms=(Clock.perf_counter() - clock) * 1000,
    )
