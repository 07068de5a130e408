"""The engine: makes the trials of a plan, many at once, and returns a run, whatever happens on the way."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from proctor.agents.agent import BaseAgent
from proctor.agents.sessions import TRIAL
from proctor.base.errors import InvalidSuite, StoreError
from proctor.base.guard import is_guarded
from proctor.base.secrets import mask
from proctor.base.threads import CLOCK
from proctor.results.encoding import with_masked_note
from proctor.results.run import Outcome, Run, TrialResult
from proctor.results.verdict import RunVerdict, judge
from proctor.running.engine.ask import Answer, RunStopped, User, WrittenUser, ask
from proctor.running.engine.deadline import (
    RateLimit,
    Watchdog,
    handling_signals,
    limits_of,
    loaded_code_uncollected,
    start_agents,
    stop_agents,
    unforeseen,
    working_folder_kept,
)
from proctor.running.engine.earlier_answers import EarlierAnswer, answer_of
from proctor.running.engine.plan import Plan, PlannedTrial, PlannedTrials, queues_of
from proctor.running.engine.run_budget import RunCosts
from proctor.running.engine.score import (
    WITHOUT_MODEL,
    ScoringContext,
    has_evaluators,
    needs_only_a_judge,
    score,
    settled,
)
from proctor.running.engine.store_writer import OpenRun, TrialWriter, case_of, environment, result_of
from proctor.running.engine.tool_reruns import answering_for_tools, reexecuted
from proctor.running.options import Limits, Listener, RunOptions
from proctor.running.suite_hooks import hooks_of
from proctor.tracing.watching import carry_context_into_threads, instrumenting


class Dispatcher:
    """Hands out trials in the order of the plan; a suite that is at its limit does not hold up the ones behind it."""

    def __init__(self, queues: Mapping[int, Iterator[PlannedTrial]]) -> None:
        self.closed = False
        self._queues = dict(queues)
        self._running: Counter[int] = Counter()
        self._next: dict[int, PlannedTrial] = {}
        self._freed = asyncio.Event()

    async def take(self) -> PlannedTrial | None:
        """The next trial that may start; waits while all suites are at their limits, `None` when nothing is left."""
        while self._queues:
            for key in list(self._queues):
                trial = self._next.pop(key, None) or next(self._queues[key], None)
                if trial is None:
                    del self._queues[key]
                elif self._running[key] < trial.suite.limits.parallel:
                    self._running[key] += 1
                    return trial
                else:
                    self._next[key] = trial
            if self._queues:
                self._freed.clear()
                await self._freed.wait()
        return None

    def give_back(self, trial: PlannedTrial) -> None:
        """The trial is over: its suite has room for another."""
        self._running[id(trial.suite)] -= 1
        self._freed.set()

    def close(self) -> None:
        """Nothing more is handed out."""
        self.closed = True
        self._queues.clear()
        self._freed.set()


if TYPE_CHECKING:
    from proctor.running.cluster.worker_pool import WorkerPool
    from proctor.running.engine.attach_files import AttachedFiles, TrialFiles
    from proctor.running.gate import GateRounds


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
        self._workers, self._rounds = workers, rounds
        self._options = options
        self._open_run = open_run
        self._listener, self._earlier = listener, earlier
        self._writer = TrialWriter(
            open_run.store, open_run.no, listener, self._keeping_failed, keep_secrets=options.keep_secrets
        )
        self._dispatcher = Dispatcher(self._waiting())
        self._note, self._interrupted = "", False
        self._started, self._bad = False, 0
        self._tasks: list[asyncio.Task[None]] = []
        self._agents = {item.agent: item for item in plan.suites}
        self._broken_agents: dict[BaseAgent, str] = {}
        self._watchdog = Watchdog()
        self._parallel = max((item.limits.parallel for item in plan.suites), default=1)
        if workers is not None:
            workers.only_while(lambda: not self._dispatcher.closed)
        counted = options.budget_usd is not None or any(item.asks_models for item in plan.suites)
        self._costs = RunCosts(plan, options, open_run) if counted else None
        self._run_judges = None if self._costs is None else self._costs.run_judges
        self._files: AttachedFiles | None = None
        self._rate = None if options.rate is None else RateLimit(options.rate)
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
            judged_by="" if self._costs is None else self._costs.judged_by(self._plan, self._options),
            repeats=_repeats(self._plan),
        )
        if self._listener is not None:
            self._listener.started(run, len(self._plan.trials), len(open_run.kept))
        with self._watchdog, handling_signals(self._on_signal), working_folder_kept(), loaded_code_uncollected():
            try:
                if not open_run.kept or any(True for queue in self._waiting().values() for _ in queue):
                    await self._start_agents()
                await self._stoppable([self._worker() for _ in range(min(self._parallel, len(self._plan.trials)))])
                await self._further_rounds()
            finally:
                self._writer.flush()
                if self._started:
                    await self._stop_agents()
                self._note = self._note or self._writer.check()
                if self._costs is not None:
                    await self._costs.close()
        if self._writer.listener_error is not None:
            raise self._writer.listener_error
        self._writer.summaries.sort("position")
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
            await self._start_agents()
            self._dispatcher = Dispatcher(queues_of(trials))
            await self._stoppable([self._worker() for _ in range(min(self._parallel, len(trials)))])

    async def _worker(self) -> None:
        while (planned := await self._next()) is not None:
            try:
                trial = await self._trial(planned)
            except asyncio.CancelledError:
                raise
            except RunStopped as stopped:
                if str(stopped):
                    self._stop(str(stopped), interrupted=True)
                return
            except BaseException as error:
                trial = result_of(planned, _unasked(Outcome.ERROR, unforeseen(error)))
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

    async def _next(self) -> PlannedTrial | None:
        """The next trial; a suite whose file is read as the run goes on may have been changed meanwhile."""
        try:
            return await self._dispatcher.take()
        except InvalidSuite as error:
            self._stop(str(error))
            return None

    async def _trial(self, planned: PlannedTrial) -> TrialResult:
        suite, case = planned.suite, planned.case
        if case.skip is not None:
            return result_of(planned, _unasked(Outcome.SKIPPED, case.skip))
        if self._options.fast and needs_only_a_judge(suite, case):
            return result_of(planned, _unasked(Outcome.SKIPPED, WITHOUT_MODEL))
        past = None if self._earlier is None else self._earlier(planned)
        if past is not None:
            return await self._scored(planned, answer_of(past), reused=True)
        if case.scenario is not None:
            from proctor.running.simulation.simulated_user import why_unplayable

            if reason := why_unplayable(case, self._options, suite.suite):
                return result_of(planned, _unasked(Outcome.SKIPPED, reason))
        if suite.agent in self._broken_agents:
            return result_of(planned, _unasked(Outcome.ERROR, self._broken_agents[suite.agent]))
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
            return result_of(planned, answer, reused=reused)
        with answering_for_tools(planned.case) if planned.case.doubles else contextlib.nullcontext():
            if answer.scores is None:
                scores, warnings = await score(suite, case_of(planned, answer), answer, self._scoring)
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
        return result_of(planned, done, scores, warnings, reused=reused)

    def _waiting(self) -> dict[int, Iterator[PlannedTrial]]:
        """The trials that are to be made, of each suite."""
        kept, queues = self._open_run.kept, self._plan.queues()
        if not kept:
            return queues
        return {suite: (trial for trial in queue if trial.position not in kept) for suite, queue in queues.items()}

    async def _start_agents(self) -> None:
        """Before the first trial that is made: a resumed run may make none, or only further ones of the gate."""
        if not self._started and self._workers is None:
            await self._stoppable([start_agents(self._agents, self._broken_agents)])
        self._started = True

    async def _stop_agents(self) -> None:
        started = [agent for agent in self._agents if agent not in self._broken_agents]
        problems = await (stop_agents(started) if self._workers is None else self._workers.close())
        self._note = self._note or "; ".join(problems)

    def _keeping_failed(self, error: BaseException) -> None:
        if isinstance(error, StoreError):
            self._stop(f"{error}; what was finished before is kept, the rest is only in this report")
        else:
            self._stop("the results could not be shown")

    def _stop(self, note: str, *, interrupted: bool = False) -> None:
        """Make no further trials; those under way are dropped, so that a resumed run makes them again."""
        self._note = self._note or note
        self._interrupted = self._interrupted or interrupted
        self._dispatcher.close()
        self._cancel()

    def _cancel(self) -> None:
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    def _on_signal(self, number: signal.Signals) -> None:
        """The first Ctrl-C stops cleanly; the second one ends the process."""
        asyncio.get_running_loop().remove_signal_handler(number)
        # The guard ends the process at the second signal, and passes on one that the whole group got already.
        signal.signal(number, signal.SIG_IGN if is_guarded() else signal.SIG_DFL)
        self._stop("interrupted; run the same command with --resume to continue", interrupted=True)


def _repeats(plan: Plan) -> Mapping[tuple[str, str], int]:
    """How many trials each case has, of those with more than one."""
    repeated = any(item.cases.repeats is not None or item.limits.repeat > 1 for item in plan.suites)
    if not repeated and isinstance(plan.trials, PlannedTrials):
        return {}
    counts = Counter((trial.suite.suite.name, trial.case.id) for trial in plan.trials)
    return {address: count for address, count in counts.items() if count > 1}


def _unasked(outcome: Outcome, reason: str) -> Answer:
    return Answer((), outcome, reason, attempts=0, started_at=CLOCK.time(), duration_ms=0.0)
