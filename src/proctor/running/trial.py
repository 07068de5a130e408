"""Runs one trial: skips it, reuses a stored answer, or holds the conversation; then re-runs tools and scores."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from proctor.agents.agent import BaseAgent
from proctor.agents.opened_files import recording_opened_files
from proctor.agents.trial_context import TrialContext, current_trial
from proctor.base.clock import Clock
from proctor.base.output_capture import OutputCapture, capture_output
from proctor.judging.cache import judged_afresh
from proctor.results.score import Outcome, Score, Scores
from proctor.results.trial import Trial
from proctor.running.answer_times import SentTurn
from proctor.running.attachments import AttachedFiles
from proctor.running.conversation import ConversationResult, RunStopped, ScriptedUser, User, converse
from proctor.running.hedging import Hedging, can_be_hedged
from proctor.running.masked_answers import parts_in_force
from proctor.running.plan import PlannedSuite, PlannedTrial
from proctor.running.rate_limit import AgentLimiters, RateLimit
from proctor.running.retrieval import with_passages
from proctor.running.reuse import EarlierAnswer, conversation_result
from proctor.running.scoring import (
    WITHOUT_MODEL,
    ScoringContext,
    case_as_held,
    needs_only_models,
    score,
    with_outcome,
)
from proctor.running.settings import RunOptions, limits_for
from proctor.running.simulated_user import user_factory, user_model_for, why_not_simulated
from proctor.running.tool_rerun import mocked_tools, with_rerun_tools


@dataclass(frozen=True, slots=True)
class TrialRunner:
    """Runs single trials; holds what all trials of a run share."""

    options: RunOptions
    scoring: ScoringContext
    files: AttachedFiles
    rate: RateLimit | None
    limiters: AgentLimiters
    hedging: Hedging | None
    """Asks again if an answer is late; `None` without `--hedge`."""
    earlier: EarlierAnswer | None
    """Finds the stored answer for a trial, if there is one."""
    unavailable: dict[BaseAgent, str]
    """Why an agent could not start."""
    on_answer: Callable[[PlannedSuite], None]
    """Called when the agent of a suite has been able to work on a trial."""
    is_stopping: Callable[[], bool]
    """Whether the run is stopping, so that no trial may start."""
    problems: dict[int, str] = field(default_factory=dict)
    """By position: the problem of a finished trial, if the next trial would have it too."""

    async def run(self, planned: PlannedTrial) -> Trial:
        """The result of the trial; raises `RunStopped` if the run cannot continue."""
        if (reason := self._why_skipped(planned)) is not None:
            return result_without_answer(planned, Outcome.SKIPPED, reason)
        stored = None if self.earlier is None else self.earlier(planned)
        if stored is not None:
            self.on_answer(planned.suite)
            return await self._score(planned, conversation_result(stored), reused=True)
        if reason := self._why_user_is_missing(planned):
            return result_without_answer(planned, Outcome.SKIPPED, reason)
        if planned.suite.agent in self.unavailable:
            return result_without_answer(planned, Outcome.ERROR, self.unavailable[planned.suite.agent])
        if self.hedging is not None and can_be_hedged(planned):
            answer = await self.hedging.converse(planned.suite, partial(self._answer, planned))
        else:
            answer = await self._answer(planned, SentTurn())
        self.problems[planned.position] = answer.lasting_problem
        if not answer.lasting_problem:
            self.on_answer(planned.suite)
        return await self._score(planned, answer, reused=False)

    async def _answer(self, planned: PlannedTrial, sent: SentTurn) -> ConversationResult:
        """The conversation, with what the agent printed, the files that it read, and the results of its tools."""
        with capture_output(live=self.options.live_output) as output:
            with recording_opened_files() as opened:
                answer = await self._converse(planned, sent)
            answer = replace(answer, files_read=opened.digests())
            if planned.suite.suite.rerun_tools is not None and answer.outcome is None:
                answer = await with_rerun_tools(answer, planned.case, planned.suite)
        return with_output(answer, output)

    def _why_skipped(self, planned: PlannedTrial) -> str | None:
        if planned.case.skip is not None:
            return planned.case.skip
        return WITHOUT_MODEL if self.options.fast and needs_only_models(planned) else None

    def _why_user_is_missing(self, planned: PlannedTrial) -> str:
        if planned.case.scenario is None:
            return ""
        return why_not_simulated(planned.case, self.options, planned.suite.suite)

    async def _converse(self, planned: PlannedTrial, sent: SentTurn) -> ConversationResult:
        suite, case = planned.suite, planned.case
        limits = suite.limits if case.timeout is None else limits_for(self.options, suite.suite, case)
        new_user = self._users(planned)
        files = self.files.of(planned)
        if files is not None:
            new_user = files.user(new_user)
        if self.rate is not None:
            await self.rate.wait(suite.agent, len(case.turns))
            if self.is_stopping():
                raise RunStopped("")
        current_trial.set(TrialContext(planned.number))
        limiter = self.limiters.limiter_of(suite.agent)
        answer = await converse(
            *(suite.agent, case, limits, self.options.backoff, self.scoring.watchdog, new_user, limiter),
            wait_for_rate=None if self.rate is None else partial(self.rate.wait, suite.agent, 1),
            sent=sent,
        )
        answer = replace(answer, replies=with_passages(answer.replies, suite.suite.retrieval_tools))
        return answer if files is None else files.with_notes(answer)

    def _users(self, planned: PlannedTrial) -> Callable[[], User]:
        """Makes the user of the conversation, a new one for each attempt."""
        case = planned.case
        if case.scenario is None:
            return lambda: ScriptedUser(case)
        player = user_model_for(case, self.options, planned.suite.suite)
        return user_factory(case, planned.number - 1, player, self.scoring.judges)

    async def _score(self, planned: PlannedTrial, answer: ConversationResult, *, reused: bool) -> Trial:
        suite = planned.suite
        if answer.outcome is not None:
            return trial_result(planned, answer, reused=reused, ended_early=True)
        with capture_output(live=self.options.live_output) as output, contextlib.ExitStack() as stack:
            if planned.case.mocks:
                stack.enter_context(mocked_tools(planned.case))
            if self.scoring.fresh_for:
                stack.enter_context(judged_afresh(f"{self.scoring.fresh_for} {planned.position}"))
            scores, notes = await score(planned, answer, self.scoring)
        answer = replace(answer, captured=replace(answer.captured, evaluators=output.combined()))
        warnings = (*notes.warnings, *([suite.not_reused_because] if suite.not_reused_because else []))
        if reused and suite.unknown_to_reuse:
            warnings = (*warnings, suite.unknown_to_reuse)
        done = with_outcome(suite.suite, answer, scores)
        if self.options.fast and not scores and any(True for _ in planned.evaluators):
            done = replace(done, outcome=Outcome.SKIPPED, reason=WITHOUT_MODEL)
        if done.outcome is Outcome.ERROR and notes.problems:
            self.problems[planned.position] = notes.problems[0]
        return trial_result(planned, done, scores, warnings, reused=reused)


def with_output(answer: ConversationResult, output: OutputCapture) -> ConversationResult:
    """The answer with what was printed, and a warning if the agent asked for input and went on without."""
    refused = [f"the agent {problem}" for problem in dict.fromkeys(output.refused_reads)]
    warnings = [problem for problem in refused if problem not in answer.reason]
    return replace(answer, captured=output.result(), warnings=(*answer.warnings, *warnings))


def trial_result(
    planned: PlannedTrial,
    answer: ConversationResult,
    scores: tuple[Score, ...] = (),
    warnings: tuple[str, ...] = (),
    *,
    reused: bool = False,
    ended_early: bool = False,
) -> Trial:
    """The result of a trial, as stored."""
    case, stored = case_as_held(planned, answer), answer.stored
    return Trial(
        suite=planned.suite.suite.name,
        case=case,
        number=planned.number,
        position=planned.position,
        outcome=answer.outcome or Outcome.ERROR,
        end_reason=answer.reason,
        replies=answer.replies,
        scores=Scores(scores),
        started_at=answer.started_at,
        duration_ms=answer.duration_ms,
        attempts=answer.attempts,
        agent=planned.suite.agent_fingerprint,
        warnings=(*answer.warnings, *warnings),
        reused=reused,
        ended_early=ended_early,
        arm=planned.suite.arm,
        masked=() if stored is None else tuple(sorted(parts_in_force(stored, case))),
        masked_case="" if stored is None else stored.masked_case,
        files_read=answer.files_read,
        captured=answer.captured,
        spans=answer.spans,
    )


def result_without_answer(planned: PlannedTrial, outcome: Outcome, reason: str) -> Trial:
    """The result of a trial in which the agent was not called."""
    answer = ConversationResult((), outcome, reason, attempts=0, started_at=Clock.time(), duration_ms=0.0)
    return trial_result(planned, answer, ended_early=True)


def internal_error(planned: PlannedTrial, error: BaseException) -> Trial:
    """The result of a trial that ended in an unexpected exception, even one that cannot be turned into text."""
    reason = f"internal error: {traceback.format_exception_only(error)[-1].strip()}"
    return result_without_answer(planned, Outcome.ERROR, reason)
