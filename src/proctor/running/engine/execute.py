"""The engine: makes the trials of a plan, many at once, and returns a run, whatever happens on the way."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from proctor.agents.agent import BaseAgent
from proctor.agents.sessions import TRIAL
from proctor.base.errors import StoreError
from proctor.base.guard import is_guarded
from proctor.base.secrets import mask
from proctor.base.threads import CLOCK
from proctor.cases.suite import Case
from proctor.results.encoding import with_masked_note
from proctor.results.run import Outcome, Run, Score, TrialResult
from proctor.results.verdict import NOTHING_SCORES, RunVerdict, judge
from proctor.running.engine.ask import Answer, RunStopped, User, WrittenUser, ask
from proctor.running.engine.deadline import Watchdog, problem_of_step, unforeseen
from proctor.running.engine.judges import judge_names
from proctor.running.engine.plan import Plan, PlannedTrial, limits_of
from proctor.running.engine.run_budget import RunCosts
from proctor.running.engine.score import (
    WITHOUT_MODEL,
    ScoringContext,
    has_evaluators,
    needs_only_a_judge,
    score,
    settled,
)
from proctor.running.engine.store_writer import OpenRun, TrialWriter, environment
from proctor.running.engine.tool_reruns import answering_for_tools, reexecuted
from proctor.running.options import Limits, Listener, RunOptions
from proctor.running.suite_hooks import hooks_of
from proctor.tracing.watching import carry_context_into_threads, instrumenting


class Dispatcher:
    """Hands out trials in the order of the plan; a suite that is at its limit does not hold up the ones behind it."""

    def __init__(self, trials: Iterable[PlannedTrial]) -> None:
        self.closed = False
        self._queues: dict[int, deque[PlannedTrial]] = {}
        self._room: dict[int, int] = {}
        for trial in trials:
            key = id(trial.suite)
            self._queues.setdefault(key, deque()).append(trial)
            self._room[key] = trial.suite.limits.parallel
        self._freed = asyncio.Event()

    async def take(self) -> PlannedTrial | None:
        """The next trial that may start; waits while all suites are at their limits, `None` when nothing is left."""
        while self._queues:
            for key, queue in self._queues.items():
                if self._room[key] > 0:
                    self._room[key] -= 1
                    trial = queue.popleft()
                    if not queue:
                        del self._queues[key]
                    return trial
            self._freed.clear()
            await self._freed.wait()
        return None

    def give_back(self, trial: PlannedTrial) -> None:
        """The trial is over: its suite has room for another."""
        self._room[id(trial.suite)] += 1
        self._freed.set()

    def close(self) -> None:
        """Nothing more is handed out."""
        self.closed = True
        self._queues.clear()
        self._freed.set()


if TYPE_CHECKING:
    from proctor.running.cluster.worker_pool import WorkerPool
    from proctor.running.engine.attach_files import AttachedFiles, TrialFiles
    from proctor.running.engine.rate_limit import RateLimit
    from proctor.running.gate import GateRounds

STOP_SECONDS = 10.0
"""How long an agent may take to shut down."""

EarlierAnswer = Callable[[PlannedTrial], TrialResult | None]
"""Answers that are there already: from an earlier run, or from the run that is scored anew."""


async def execute(
    plan: Plan,
    options: RunOptions,
    open_run: OpenRun,
    *,
    listener: Listener | None = None,
    earlier: EarlierAnswer | None = None,
    rounds: GateRounds | None = None,
    workers: WorkerPool | None = None,
) -> tuple[Run, RunVerdict]:
    """Make every trial of `plan` that is not kept already, and those that the gate asks for then."""
    return await _Execution(plan, options, open_run, listener, earlier, rounds, workers).run()


class _Execution:
    """One run while it lasts."""

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        open_run: OpenRun,
        listener: Listener | None,
        earlier: EarlierAnswer | None,
        rounds: GateRounds | None,
        workers: WorkerPool | None,
    ) -> None:
        self._plan = plan
        self._workers = workers
        self._rounds = rounds
        self._options = options
        self._open_run = open_run
        self._listener = listener
        self._earlier = earlier
        self._writer = TrialWriter(
            open_run.store, open_run.no, listener, self._keeping_failed, keep_secrets=options.keep_secrets
        )
        self._dispatcher = Dispatcher(self._waiting())
        self._missing = sum(1 for _ in self._waiting()) if open_run.kept else len(plan.trials)
        self._note = ""
        self._interrupted = False
        self._bad = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._agents = {item.agent: item for item in plan.suites}
        self._broken_agents: dict[BaseAgent, str] = {}
        self._watchdog = Watchdog()
        self._parallel = max((item.limits.parallel for item in plan.suites), default=1)
        if workers is not None:
            workers.only_while(lambda: not self._dispatcher.closed)
        asks_models = any(item.asks_models for item in plan.suites)
        counted = asks_models or options.budget_usd is not None
        self._costs = RunCosts(plan, options, open_run) if counted else None
        self._run_judges = None if self._costs is None else self._costs.run_judges
        self._files: AttachedFiles | None = None
        self._rate = _rate_limit(options)
        self._scoring = ScoringContext(
            asyncio.Semaphore(self._parallel), self._watchdog, options.fast, self._run_judges
        )

    async def run(self) -> tuple[Run, RunVerdict]:
        open_run = self._open_run
        if open_run.store is not None and open_run.kept:
            self._writer.summaries.extend(open_run.store.summaries(open_run.no))
            if self._rounds is not None:
                self._rounds.replay(self._writer.summaries)
        run = Run(
            id=open_run.run_id,
            started_at=open_run.started_at,
            suites=tuple(item.info for item in self._plan.suites),
            summaries=self._writer.summaries,
            trials=self._writer.trials(),
            environment=environment(),
            store=None if open_run.store is None else str(open_run.store.folder),
            name=open_run.name,
            uncounted="" if self._costs is None else self._costs.unknown(self._plan),
            judged_by="" if self._costs is None else self._judged_by(),
            repeats=_repeats(self._plan.trials),
        )
        if self._listener is not None:
            self._listener.started(run, len(self._plan.trials), len(open_run.kept))
        with self._watchdog, self._signals(), _working_folder():
            try:
                if self._missing and self._workers is None:
                    await self._stoppable([self._start_agents()])
                await self._stoppable([self._worker() for _ in range(min(self._parallel, len(self._plan.trials)))])
                await self._further_rounds()
            finally:
                self._writer.flush()
                if self._missing:
                    await self._stop_agents()
                self._check_store()
                if self._costs is not None:
                    await self._costs.close()
        if self._writer.listener_error is not None:
            raise self._writer.listener_error
        self._writer.summaries.sort(key=lambda summary: summary.position)
        run.note = self._note if self._options.keep_secrets or not self._note else mask(self._note)
        run.finished_at, run.interrupted = CLOCK.time(), self._interrupted
        if self._costs is not None:
            self._costs.sum_up(run, len(self._plan.trials))
        if self._rounds is not None:
            run.gate = self._rounds.conclude(run)
        verdict = judge(run)
        if self._listener is not None:
            self._listener.finished(run, verdict)
        return run, verdict

    def _judged_by(self) -> str:
        asked = ((item.bound.values(), item.judge) for item in self._plan.suites)
        return judge_names(asked, fast=self._options.fast)

    async def _stoppable(self, work: list[Coroutine[Any, Any, None]]) -> None:
        """Wait for work that `_stop` may end before its time."""
        self._tasks = [asyncio.create_task(item) for item in work]
        if self._interrupted:
            self._cancel()
        with instrumenting(), carry_context_into_threads():
            results = await asyncio.gather(*self._tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result

    async def _further_rounds(self) -> None:
        """Make what the gate asks for, round by round; one that is stopped says what it knows by then."""
        while self._rounds is not None and not self._note:
            if self._costs is not None and self._costs.is_spent:
                self._rounds.stop("the budget is spent")
            self._writer.flush()
            if not (trials := self._rounds.next_trials()):
                break
            self._dispatcher = Dispatcher(trials)
            await self._stoppable([self._worker() for _ in range(min(self._parallel, len(trials)))])

    async def _worker(self) -> None:
        while (planned := await self._dispatcher.take()) is not None:
            try:
                trial = await self._trial(planned)
            except asyncio.CancelledError:
                raise
            except RunStopped as stopped:
                if str(stopped):
                    self._stop(str(stopped), interrupted=True)
                return
            except BaseException as error:
                trial = _result(planned, _unasked(Outcome.ERROR, unforeseen(error)))
            finally:
                self._dispatcher.give_back(planned)
            self._writer.add(trial)
            if self._rounds is not None:
                self._rounds.trial_done(trial)
            if planned.suite.limits.parallel == 1:
                self._writer.flush()  # where trials follow each other, one is told of before the next begins
            if self._costs is not None:
                self._costs.count(trial)
                if self._costs.is_spent:
                    self._dispatcher.close()
            self._bad += trial.outcome in (Outcome.FAILED, Outcome.ERROR)
            if self._options.maxfail is not None and self._bad >= self._options.maxfail:
                self._stop(f"stopped after {self._bad} trials that did not pass (--maxfail)")

    async def _trial(self, planned: PlannedTrial) -> TrialResult:
        suite, case = planned.suite, planned.case
        if case.skip is not None:
            return _result(planned, _unasked(Outcome.SKIPPED, case.skip))
        if self._options.fast and needs_only_a_judge(suite, case):
            return _result(planned, _unasked(Outcome.SKIPPED, WITHOUT_MODEL))
        past = None if self._earlier is None else self._earlier(planned)
        if past is not None:
            return await self._scored(planned, answer_of(past), reused=True)
        if case.scenario is not None and (reason := self._unplayable(planned)):
            return _result(planned, _unasked(Outcome.SKIPPED, reason))
        if suite.agent in self._broken_agents:
            return _result(planned, _unasked(Outcome.ERROR, self._broken_agents[suite.agent]))
        limits = suite.limits if case.timeout is None else limits_of(self._options, suite.suite, case)
        new_user, files = self._user_for(planned), self._files_of(planned)
        if files is not None:
            new_user = files.user(new_user)
        goes_on = bool(suite.suite.hooks) and hooks_of(suite.suite).goes_on_after_failed_turns(case)
        if self._rate is not None:
            await self._rate.wait(suite.agent, len(case.turns))
            if self._dispatcher.closed:
                raise RunStopped("")
        if self._workers is None:
            TRIAL.set(planned.number)
            answer = await ask(
                suite.agent, case, limits, self._options.backoff, self._watchdog, new_user, goes_on=goes_on
            )
        else:
            answer = await self._asked_elsewhere(planned, limits, new_user, goes_on, self._workers)
        if files is not None:
            answer = files.noted(answer)
        if suite.suite.reexecute is not None and answer.outcome is None:
            answer = await reexecuted(answer, case, suite)
        return await self._scored(planned, answer, reused=False)

    async def _asked_elsewhere(
        self, planned: PlannedTrial, limits: Limits, new_user: Callable[[], User], goes_on: bool, workers: WorkerPool
    ) -> Answer:
        """Have the whole conversation on a worker; if its user is simulated, only the agent is there."""
        backoff = self._options.backoff
        if planned.case.scenario is None:
            return await workers.ask(planned, limits, backoff, new_user, goes_on=goes_on)
        from proctor.running.cluster.conversations import agent_on_worker

        async with agent_on_worker(workers, planned, limits) as agent:
            return await ask(agent, planned.case, limits, backoff, self._watchdog, new_user, goes_on=goes_on)

    def _files_of(self, planned: PlannedTrial) -> TrialFiles | None:
        """What reads files is loaded where there are some."""
        if not any(turn.attachments for turn in planned.case.turns):
            return None
        if self._files is None:
            from proctor.running.engine.attach_files import AttachedFiles

            self._files = AttachedFiles()
        return self._files.of(planned)

    def _user_for(self, planned: PlannedTrial) -> Callable[[], User]:
        """Who talks to the agent, anew for each try; nothing about simulated users is loaded where there are none."""
        case, suite = planned.case, planned.suite.suite
        if case.scenario is None:
            return lambda: WrittenUser(case)
        from proctor.running.simulation.simulated_user import player_of, users_of

        player = player_of(case, self._options, suite)
        return users_of(case, planned.number - 1, player, self._run_judges)

    async def _scored(self, planned: PlannedTrial, answer: Answer, *, reused: bool) -> TrialResult:
        suite = planned.suite
        if answer.outcome is not None:
            return _result(planned, answer, reused=reused)
        with answering_for_tools(planned.case) if planned.case.doubles else contextlib.nullcontext():
            if answer.scores is None:
                scores, warnings = await score(suite, _case_of(planned, answer), answer, self._scoring)
            else:
                scores, warnings = answer.scores, ()
        if reused:
            scores = with_masked_note(scores, answer.replies)
        if suite.asked_anew:
            warnings += (suite.asked_anew,)
        left_out = self._options.fast and not scores and has_evaluators(suite, planned.case)
        done = settled(suite.suite, answer, scores)
        if left_out:
            done = replace(done, outcome=Outcome.SKIPPED, reason=WITHOUT_MODEL)
        return _result(planned, done, scores, warnings, reused=reused)

    def _unplayable(self, planned: PlannedTrial) -> str:
        """Why the user of a conversation cannot be simulated; empty where it can."""
        if self._options.fast:
            return "its user is simulated, which needs a language model (--fast)"
        from proctor.running.simulation.simulated_user import WITHOUT_MODEL, cannot_play, player_of

        return WITHOUT_MODEL if cannot_play(player_of(planned.case, self._options, planned.suite.suite)) else ""

    def _waiting(self) -> Iterator[PlannedTrial]:
        kept = self._open_run.kept
        for planned in self._plan.trials:
            if not kept or (planned.suite.suite.name, planned.case.id, planned.number) not in kept:
                yield planned

    async def _start_agents(self) -> None:
        """An agent that cannot start leaves its own suites unmeasured, and no others."""
        for agent, item in self._agents.items():
            self._broken_agents[agent] = f"the agent {agent.name} was not started"
            problem = await problem_of_step(agent.start, max(item.limits.timeout, agent.start_seconds))
            if problem is None:
                del self._broken_agents[agent]
            else:
                self._broken_agents[agent] = f"the agent {agent.name} could not start: {problem}"

    async def _stop_agents(self) -> None:
        if self._workers is not None:
            problems = await self._workers.close()
            self._note = self._note or "; ".join(problems)
            return
        for agent in self._agents:
            problem = None if agent in self._broken_agents else await problem_of_step(agent.stop, STOP_SECONDS)
            if problem is not None:
                self._note = self._note or f"the agent {agent.name} could not stop: {problem}"

    def _keeping_failed(self, error: BaseException) -> None:
        if isinstance(error, StoreError):
            self._stop(f"{error}; what was finished before is kept, the rest is only in this report")
        else:
            self._stop("the results could not be shown")

    def _check_store(self) -> None:
        """What was kept must still be there, or the verdict would be all that is left of the run."""
        if self._open_run.store is None:
            return
        try:
            self._open_run.store.check_present()
        except StoreError as error:
            self._note = self._note or f"{error}; the results are only in this report"

    def _stop(self, note: str, *, interrupted: bool = False) -> None:
        """Make no further trials; those under way are dropped, so that a resumed run makes them again."""
        self._note = self._note or note
        self._interrupted = self._interrupted or interrupted
        self._dispatcher.close()
        self._cancel()

    def _cancel(self) -> None:
        current = asyncio.current_task()
        for task in self._tasks:
            if task is not current:
                task.cancel()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """The first Ctrl-C stops cleanly; the second one ends the process. Signals that others handle stay theirs."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        before = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler not in (signal.SIG_DFL, signal.default_int_handler):
                continue
            with contextlib.suppress(NotImplementedError, ValueError):
                loop.add_signal_handler(number, self._on_signal, number)
                before[number] = handler
        try:
            yield
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, handler)

    def _on_signal(self, number: signal.Signals) -> None:
        asyncio.get_running_loop().remove_signal_handler(number)
        # The guard ends the process at the second signal, and passes on one that the whole group got already.
        signal.signal(number, signal.SIG_IGN if is_guarded() else signal.SIG_DFL)
        self._stop("interrupted; run the same command with --resume to continue", interrupted=True)


@contextlib.contextmanager
def _working_folder() -> Iterator[None]:
    """The folder in which the run began is the one in which its reports are written, wherever an agent went."""
    try:
        folder = os.getcwd()  # noqa: PTH109  starting a run should not take longer for what is hardly ever needed
    except OSError:
        folder = ""
    try:
        yield
    finally:
        if folder:
            with contextlib.suppress(OSError):
                os.chdir(folder)


def _rate_limit(options: RunOptions) -> RateLimit | None:
    if options.rate is None:
        return None
    from proctor.running.engine.rate_limit import RateLimit

    return RateLimit(options.rate)


def _result(
    planned: PlannedTrial,
    answer: Answer,
    scores: tuple[Score, ...] = (),
    warnings: tuple[str, ...] = (),
    *,
    reused: bool = False,
) -> TrialResult:
    return TrialResult(
        suite=planned.suite.suite.name,
        case=_case_of(planned, answer),
        number=planned.number,
        position=planned.position,
        outcome=answer.outcome or Outcome.ERROR,
        reason=answer.reason,
        replies=answer.replies,
        scores=scores,
        started_at=answer.started_at,
        duration_ms=answer.duration_ms,
        attempts=answer.attempts,
        agent=planned.suite.agent_fingerprint,
        warnings=(*answer.warnings, *warnings),
        reused=reused,
        spans=answer.spans,
    )


def _repeats(trials: Sequence[PlannedTrial]) -> Mapping[tuple[str, str], int]:
    """How many trials each case has, of those with more than one."""
    if not any(trial.number > 1 for trial in trials):
        return {}
    counts = Counter((trial.suite.suite.name, trial.case.id) for trial in trials)
    return {address: count for address, count in counts.items() if count > 1}


def _case_of(planned: PlannedTrial, answer: Answer) -> Case:
    """The case with what was said, where a simulated user said it."""
    return planned.case if answer.turns is None else replace(planned.case, turns=answer.turns)


def _unasked(outcome: Outcome, reason: str) -> Answer:
    return Answer((), outcome, reason, attempts=0, started_at=CLOCK.time(), duration_ms=0.0)


def broke_down(past: TrialResult) -> bool:
    """Whether an earlier trial ended before evaluators had the word."""
    return bool(past.reason) and not past.scores and past.reason != NOTHING_SCORES


def answer_of(past: TrialResult) -> Answer:
    """What an earlier trial heard; an agent that broke down then has still broken down."""
    broke = past.outcome if broke_down(past) else None
    went_on = broke is None and any(reply.error is not None for reply in past.replies)
    failed = None if not went_on else Outcome.ERROR if past.outcome is Outcome.ERROR else Outcome.FAILED
    reason = past.reason if broke or failed else ""
    said = None if past.case.scenario is None else past.case.turns
    times = past.attempts, past.started_at, past.duration_ms
    return Answer(past.replies, broke, reason, *times, spans=past.spans, turns=said, failed_turns=failed)
