"""Scores one answered case: builds what evaluators see, calls them, and turns what they say into outcomes."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from proctor.agents.agent import Reply, Usage
from proctor.base.errors import JudgeFailed, NeedsModel, ProctorError
from proctor.base.json_data import Json, plain
from proctor.base.records import changed, record
from proctor.base.references import describe, place_of, shortened
from proctor.base.threads import CLOCK, call_in_thread
from proctor.cases.evaluator_specs import TOOL_EVALUATORS
from proctor.cases.suite import NOTHING, Case, Criteria, ExpectedCall, NamedData, Suite, passes
from proctor.evaluators.evaluation import (
    UNCLAMPED,
    BadVerdict,
    Evaluable,
    Evaluation,
    EvaluationPending,
    Exchange,
    NothingToCompare,
    clamp_notice,
    read_verdict,
)
from proctor.evaluators.registry import Bound, NothingThere, seen_by
from proctor.results.judge_calls import DETAIL as JUDGED
from proctor.results.run import Outcome, Score
from proctor.results.verdict import NOTHING_SCORES, judged_by_mean, trial_outcome
from proctor.running.engine.ask import Answer
from proctor.running.engine.deadline import Cancelled, TimeIsUp, TooLate, Watchdog, in_time
from proctor.running.engine.judges import RunJudges, needs_model
from proctor.running.engine.plan import PlannedSuite
from proctor.running.suite_hooks import hooks_of
from proctor.tracing.capture import untraced

if TYPE_CHECKING:
    from proctor.tracing.spans import ObservationNode


Jobs = list[tuple[Bound, Evaluable, int | None]]

WITHOUT_MODEL = "all of its evaluators need a language model (--fast)"
RETRIES = "retries"
"""The detail of a score that took more than one try."""


@record
class ScoringContext:
    """What all scoring of a run shares."""

    gate: asyncio.Semaphore
    """How many evaluators other than the shipped ones may run at once."""
    watchdog: Watchdog
    fast: bool
    run_judges: RunJudges | None = None
    """Where judges are found; `None` where no evaluator asks one."""


async def score(
    suite: PlannedSuite, case: Case, answer: Answer, scoring: ScoringContext
) -> tuple[tuple[Score, ...], tuple[str, ...]]:
    """The scores of a case in the order its evaluators are listed, and warnings for their authors."""
    jobs = _jobs(suite, case, answer, scoring.fast)
    warnings: list[str] = []
    found: list[Score | None] = [None] * len(jobs)
    waiting = []
    for index, (bound, evaluable, turn) in enumerate(jobs):
        if bound.inline:
            found[index] = _score_inline(bound, evaluable, turn, suite, scoring.watchdog, warnings)
        else:
            waiting.append((index, _score_apart(bound, evaluable, turn, suite, scoring, warnings)))
    if waiting:
        later = await asyncio.gather(*(job for _, job in waiting))
        for (index, _), score_ in zip(waiting, later, strict=True):
            found[index] = score_
    scores = tuple(item for item in found if item is not None)
    if suite.suite.criteria.trials == "mean":
        scores = judged_by_mean(scores)
    return scores, tuple(dict.fromkeys(warnings))


def settled(suite: Suite, answer: Answer, scores: tuple[Score, ...]) -> Answer:
    """The answer with the outcome that its scores and its failed turns come to."""
    outcome, reason = trial_outcome(scores, suite.criteria)
    if answer.failed_turns is not None:
        failed = Outcome.FAILED in (answer.failed_turns, outcome)
        return replace(answer, outcome=Outcome.FAILED if failed else Outcome.ERROR)
    if reason == NOTHING_SCORES:
        outcome = hooks_of(suite).outcome_unscored()
    return changed(answer, outcome=outcome, reason=reason)


def needs_only_a_judge(suite: PlannedSuite, case: Case) -> bool:
    """Whether nothing of a case can be scored without a language model."""
    of_turns, of_case = _bounds(suite, case)
    bounds = [bound for bounds in of_turns for bound in bounds] + of_case
    return bool(bounds) and all(needs_model(bound, suite.judge) for bound in bounds)


def has_evaluators(suite: PlannedSuite, case: Case) -> bool:
    """Whether anything at all was to score a case."""
    of_turns, of_case = _bounds(suite, case)
    return bool(of_case) or any(of_turns)


def _bounds(suite: PlannedSuite, case: Case) -> tuple[list[list[Bound]], list[Bound]]:
    """The evaluators of each turn, and those of the whole conversation.

    A turn with evaluators of its own replaces the case's for that turn, but not those that look at the whole. The only
    turn of a case is the whole conversation, so that its evaluators stay in the order they are listed in.
    """
    shared = suite.evaluators(suite.suite.evaluators_of(case))
    inherits = [turn.evaluators is None for turn in case.turns]
    if inherits == [True]:
        return [shared], []
    of_turn = [bound for bound in shared if bound.scope == "turn"]
    of_case = [bound for bound in shared if bound.scope == "case"]
    return [of_turn if turn.evaluators is None else suite.evaluators(turn.evaluators) for turn in case.turns], of_case


def _jobs(suite: PlannedSuite, case: Case, answer: Answer, fast: bool) -> Jobs:
    """Which evaluator looks at what: those of turns at each turn, those of the case at the whole conversation."""
    of_turns, of_case = _bounds(suite, case)
    turns = _evaluables(case, answer)
    jobs: Jobs = [
        (bound, evaluable, index if len(case.turns) > 1 else None)
        for index, (bounds, evaluable) in enumerate(zip(of_turns, turns, strict=False))
        for bound in bounds
        if answer.replies[index].error is None
    ]
    if of_case and turns and answer.failed_turns is None:
        jobs += [job for bound in of_case for job in _jobs_of_case(bound, case, turns)]
    return [job for job in jobs if not needs_model(job[0], suite.judge)] if fast else jobs


def _jobs_of_case(bound: Bound, case: Case, turns: list[Evaluable]) -> Jobs:
    """One look at the whole conversation; a turn in which no tool is to be called is looked at by itself as well.

    What is expected of all turns together has no place for that: it would be forgotten beside the calls of another
    turn, or forbid those of a turn of which nothing is said.
    """
    expected = [item.expected_tool_calls for item in turns]
    silent = [index for index, calls in enumerate(expected) if calls == ()]
    if bound.spec.name not in TOOL_EVALUATORS or not silent or len(silent) == len(turns):
        return [(bound, _whole(case, turns), None)]
    jobs: Jobs = [(bound, turns[index], index) for index in silent]
    return [*jobs, (bound, _whole(case, turns), None)] if any(expected) else jobs


def _evaluables(case: Case, answer: Answer) -> list[Evaluable]:
    exchanges = tuple(Exchange(turn, reply) for turn, reply in zip(case.turns, answer.replies, strict=False))
    last, trace = len(case.turns) - 1, _trace(answer)
    return [_evaluable(case, exchanges[: i + 1], trace, final=i == last) for i in range(len(exchanges))]


def _trace(answer: Answer) -> list[ObservationNode] | None:
    """What happened inside the application, as a tree; `None` where nothing was seen."""
    if not answer.spans:
        return None
    from proctor.tracing.spans import build_tree

    return build_tree(answer.spans)


def _evaluable(
    case: Case, exchanges: tuple[Exchange, ...], trace: list[ObservationNode] | None, *, final: bool
) -> Evaluable:
    turn, reply = exchanges[-1].turn, exchanges[-1].reply
    return Evaluable(
        eval_input=case.inputs or (NamedData("input", turn.input),),
        eval_output=_outputs(reply),
        expectation=turn.expected.output,
        eval_metadata=case.told or None,
        description=case.description or None,
        tool_calls=reply.tool_calls,
        expected_tool_calls=turn.expected.tool_calls,
        keywords=turn.expected.keywords,
        context=turn.expected.context,
        retrieval_context=reply.retrieval_context if turn.retrieval_context is None else turn.retrieval_context,
        turns=exchanges,
        usage=reply.usage,
        duration_ms=reply.duration_ms,
        state=reply.state,
        expected_state=case.final_state if final else None,
        turn_metadata=turn.metadata,
        trace=trace,
    )


def _whole(case: Case, turns: list[Evaluable]) -> Evaluable:
    """The conversation as one: the last answer, all tool calls, the sum of what it cost."""
    last = turns[-1]
    if len(turns) == 1:
        return last
    expected: list[ExpectedCall] | None = None
    usage: Usage | None = None
    for item in turns:
        if item.expected_tool_calls is not None:
            expected = [*(expected or []), *item.expected_tool_calls]
        if item.usage is not None:
            usage = item.usage if usage is None else usage + item.usage
    passages = [passage for item in turns for passage in item.retrieval_context or ()]
    return replace(
        last,
        eval_input=case.inputs or (NamedData("input", [turn.input for turn in case.turns]),),
        tool_calls=tuple(call for item in turns for call in item.tool_calls),
        expected_tool_calls=None if expected is None else tuple(expected),
        retrieval_context=tuple(passages) or None,
        usage=usage,
        duration_ms=sum(item.duration_ms or 0.0 for item in turns),
    )


def _outputs(reply: Reply) -> tuple[NamedData, ...]:
    if reply.outputs:
        return reply.outputs
    return (NamedData("output", reply.text if reply.structured is None else reply.structured),)


def _score_inline(
    bound: Bound, evaluable: Evaluable, turn: int | None, suite: PlannedSuite, watchdog: Watchdog, warnings: list[str]
) -> Score:
    criteria = suite.suite.criteria
    timeout = bound.spec.timeout or suite.limits.evaluator_timeout
    task = asyncio.current_task()
    clock = CLOCK.perf_counter()
    try:
        try:
            watchdog.watch(task, timeout)
            verdict = read_verdict(bound.call(seen_by(bound, evaluable)))
        finally:
            watchdog.forget(task)  # inside the outer `try`, since time may be up at any moment before this
        return _scored(bound, turn, verdict, criteria, clock, warnings)
    except TimeIsUp:
        watchdog.forget(task)
        return _unscored(bound, turn, BadVerdict(f"gave no score within {timeout:g} s"), criteria, clock)
    except NothingThere as error:
        return _scored(bound, turn, Evaluation(0.0, str(error)), criteria, clock, warnings)
    except (Exception, SystemExit) as error:
        return _unscored(bound, turn, error, criteria, clock)


async def _score_apart(
    bound: Bound,
    evaluable: Evaluable,
    turn: int | None,
    suite: PlannedSuite,
    scoring: ScoringContext,
    warnings: list[str],
) -> Score | None:
    """An evaluator that may block or hang: bounded in number and in time, in a thread unless it is async.

    One that asks the judge waits for the judge alone, and does not count towards that number. `None`: it turned out to
    need a language model, and those are left out.
    """
    criteria = suite.suite.criteria
    timeout = bound.spec.timeout or (suite.limits.judged_timeout if bound.judged else suite.limits.evaluator_timeout)
    async with contextlib.nullcontext() if bound.judged else scoring.gate:
        clock = CLOCK.perf_counter()
        try:
            verdict = await _in_time(bound, evaluable, suite, scoring, timeout)
            return _scored(bound, turn, verdict, criteria, clock, warnings)
        except TooLate:
            return _unscored(bound, turn, BadVerdict(f"gave no score within {timeout:g} s"), criteria, clock)
        except Cancelled:
            return _unscored(bound, turn, BadVerdict("cancelled itself"), criteria, clock)
        except NothingThere as error:
            return _scored(bound, turn, Evaluation(0.0, str(error)), criteria, clock, warnings)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # such as GeneratorExit: whatever an evaluator raises is its own score's
            left_out = scoring.fast and isinstance(error, NeedsModel)
            return None if left_out else _unscored(bound, turn, error, criteria, clock)


async def _in_time(
    bound: Bound, evaluable: Evaluable, suite: PlannedSuite, scoring: ScoringContext, timeout: float
) -> Evaluation | None:
    """What an evaluator says; the time in which it waits for the judge to be free is not its own."""
    if scoring.run_judges is None or not bound.needs_judge:
        return await in_time(_call(bound, evaluable), timeout, scoring.watchdog)
    waits = scoring.run_judges.waits()
    threshold = _threshold(bound, suite.suite.criteria)
    work = scoring.run_judges.with_judge(lambda: _call(bound, evaluable), suite.judge, threshold, waits)
    try:
        return await in_time(work, timeout, scoring.watchdog, lambda: waits.seconds)
    except TooLate:
        raise scoring.run_judges.too_late(timeout, waits) from None


async def _call(bound: Bound, evaluable: Evaluable) -> Evaluation | None:
    """What it says, after as many tries as its file allows."""
    seen = seen_by(bound, evaluable)
    for retry in range(bound.spec.retries):
        try:
            return _after(retry, await _call_once(bound, seen))
        except (NothingToCompare, EvaluationPending):
            raise
        except Exception:  # noqa: S112  the last try, below, says what is wrong
            continue
    return _after(bound.spec.retries, await _call_once(bound, seen))


def _after(retries: int, verdict: Evaluation | None) -> Evaluation | None:
    if not retries or verdict is None:
        return verdict
    return replace(verdict, details={**verdict.details, RETRIES: retries})


async def _call_once(bound: Bound, seen: Evaluable) -> Evaluation | None:
    call: Callable[..., Any] = bound.call
    extra = {"trace": seen.trace} if bound.traced else {}
    try:
        with untraced():
            verdict = call(seen, **extra) if bound.asynchronous else await call_in_thread(call, seen, **extra)
            return _in_plain_words(read_verdict(await verdict if inspect.isawaitable(verdict) else verdict))
    except (SystemExit, KeyboardInterrupt) as error:
        raise BadVerdict(f"raised {describe(error)}{place_of(error)}") from error


def _in_plain_words(verdict: Evaluation | None) -> Evaluation | None:
    """The evaluation as text and data, made while the evaluator's time still runs: a `__str__` may take long."""
    if verdict is None or (type(verdict.reasoning) is str and not verdict.details):
        return verdict
    return replace(verdict, reasoning=str(verdict.reasoning or ""), details=plain(verdict.details))


def _scored(
    bound: Bound, turn: int | None, verdict: Evaluation | None, criteria: Criteria, clock: float, warnings: list[str]
) -> Score:
    if verdict is None:
        return _unscored(bound, turn, NothingToCompare("it had nothing to compare"), criteria, clock)
    details = plain(verdict.details) if verdict.details else NOTHING
    if UNCLAMPED in details:
        warnings.append(f"{bound.title}: {clamp_notice(verdict)}")
    threshold = _threshold(bound, criteria)
    return Score(
        evaluator=bound.title,
        outcome=Outcome.PASSED if passes(verdict.score, threshold) else Outcome.FAILED,
        value=verdict.score,
        threshold=threshold,
        reasoning=shortened(str(verdict.reasoning or "")),
        turn=turn,
        gates=bound.spec.gates,
        details=details,
        fingerprint=bound.fingerprint,
        duration_ms=(CLOCK.perf_counter() - clock) * 1000,
    )


def _unscored(bound: Bound, turn: int | None, error: BaseException, criteria: Criteria, clock: float) -> Score:
    """No score, and why: nothing to compare, a verdict still to come, or an instrument that broke."""
    details: Mapping[str, Json] = NOTHING
    if isinstance(error, NothingToCompare):
        outcome, reason = Outcome.SKIPPED, str(error) or "it had nothing to compare"
    elif isinstance(error, EvaluationPending):
        outcome, reason = Outcome.PENDING, str(error)
        details = {"criteria": error.criteria} if error.criteria else NOTHING
        details = {JUDGED: account} if (account := getattr(error, "account", None)) else details
    elif isinstance(error, (BadVerdict, JudgeFailed, ProctorError)):
        outcome, reason = Outcome.ERROR, str(error)
        account = getattr(error, "account", None)
        details = {JUDGED: account} if account else NOTHING
    else:
        outcome, reason = Outcome.ERROR, f"raised {describe(error)}{place_of(error)}"
    if bound.spec.optional and (outcome is Outcome.ERROR or JUDGED in details):
        outcome, reason = Outcome.SKIPPED, f"could not be measured: {reason}"
    return Score(
        evaluator=bound.title,
        outcome=outcome,
        threshold=_threshold(bound, criteria),
        reasoning=shortened(reason),
        turn=turn,
        gates=bound.spec.gates,
        details=details,
        fingerprint=bound.fingerprint,
        duration_ms=(CLOCK.perf_counter() - clock) * 1000,
    )


def _threshold(bound: Bound, criteria: Criteria) -> float:
    return bound.threshold if criteria.threshold is None else criteria.threshold
