"""Runs the trials of a plan in parallel and returns a run, whatever happens on the way.

A fixed number of tasks take trials from the `Dispatcher`, one after another. Each runs its trial, passes the result to
the `TrialWriter`, and takes the next. An unexpected exception becomes the error of its trial, and the task continues.
The obvious version, one task per trial behind a semaphore, creates all tasks at once and lets a suite with many trials
starve the others.

A run stops early for five reasons: a signal, `--maxfail`, a store or listener that fails, a spent budget, and a problem
that all trials of a suite have in common (`common_problem`). When the budget is spent, or for a common problem, no
trial starts any more and running trials finish. In the other cases running trials are cancelled
too, and nothing of them is recorded, so that a resumed run runs them again: half a trial in the store would look like a
result.

After the first round, the gate (if there is one) looks at the results and may request more trials.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from proctor.agents.agent import BaseAgent
from proctor.agents.reply import Usage
from proctor.base.clock import Clock
from proctor.base.errors import StoreError
from proctor.base.guard import is_guarded
from proctor.base.masking import mask
from proctor.base.output_capture import route_output
from proctor.base.rate_limit import RateLimits
from proctor.results.run import Run, RunStatus
from proctor.results.score import MASKED_TEXT, Outcome, Score
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict, record_verdict, verdict
from proctor.running.agent_lifecycle import start_agents, stop_agents
from proctor.running.arms.interleaving import interleaved
from proctor.running.attachments import AttachedFiles
from proctor.running.common_problem import CommonProblems, stop_note
from proctor.running.conversation import RunStopped
from proctor.running.cost import RunCosts
from proctor.running.hedging import Hedging
from proctor.running.masked_answers import masked_scores_note
from proctor.running.plan import Plan, PlannedSuite, PlannedTrial
from proctor.running.rate_limit import INITIAL_PARALLEL, AgentLimiters, RateLimit
from proctor.running.resume import OpenRun
from proctor.running.reuse import EarlierAnswer
from proctor.running.scoring import ScoringContext
from proctor.running.settings import Listener, OutageListener, RunOptions, TrialListener
from proctor.running.timeouts import Watchdog
from proctor.running.trial import TrialRunner, internal_error
from proctor.running.trial_writer import TrialWriter
from proctor.tracing.instrumentation import instrument_clients

if TYPE_CHECKING:
    from proctor.gate.session import GateSession


class Dispatcher:
    """Returns trials to run, in the order of the plan; a suite at its parallel limit does not delay the others.

    The arms of a suite share one queue, in which their trials are interleaved.
    """

    def __init__(self, trials: Iterable[PlannedTrial]) -> None:
        self.is_closed = False
        self._waiting: dict[PlannedSuite | str, deque[PlannedTrial]] = {}
        for trial in interleaved(trials):
            self._waiting.setdefault(trial.suite.source or trial.suite, deque()).append(trial)
        self._running: Counter[PlannedSuite] = Counter()
        self._held: set[PlannedSuite] = set()
        self._answered: set[PlannedSuite] = set()
        self._freed = asyncio.Event()

    async def next(self) -> PlannedTrial | None:
        """The next trial that may start, or `None` if none is left; waits while all suites are at their limits."""
        while self._waiting:
            for queue, trials in self._waiting.items():
                trial = self._take(trials)
                if trial is not None:
                    self._running[trial.suite] += 1
                    if not trials:
                        del self._waiting[queue]
                    return trial
            self._freed.clear()
            await self._freed.wait()
        return None

    def _take(self, trials: deque[PlannedTrial]) -> PlannedTrial | None:
        """The first trial of a queue whose suite may start one; all trials of a suite without arms are alike."""
        for place, trial in enumerate(trials):
            if trial.suite not in self._held and self._running[trial.suite] < self._most(trial.suite):
                del trials[place]
                return trial
            if not trial.suite.source:
                break
        return None

    def _most(self, suite: PlannedSuite) -> int:
        """How many trials of a suite may run; fewer until one was answered, as all may have the same problem."""
        return suite.max_sessions if suite in self._answered else min(INITIAL_PARALLEL, suite.max_sessions)

    def answered(self, suite: PlannedSuite) -> None:
        """Mark that an agent has answered a trial of the suite."""
        if suite not in self._answered:
            self._answered.add(suite)
            self._freed.set()

    def finished(self, trial: PlannedTrial) -> None:
        """Mark a trial as finished, so that another one of its suite may start."""
        self._running[trial.suite] -= 1
        self._freed.set()

    def hold(self, suite: PlannedSuite) -> None:
        """Start no trial of a suite until it is released; those that run go on."""
        self._held.add(suite)

    def release(self, suite: PlannedSuite) -> None:
        """Start trials of a suite again."""
        self._held.discard(suite)
        self._freed.set()

    def is_running(self, suite: PlannedSuite) -> bool:
        """Whether any trial of a suite runs now."""
        return self._running[suite] > 0

    def drop(self, suite: PlannedSuite) -> int:
        """Return no more trials of a suite; returns how many are dropped."""
        queue = suite.source or suite
        waiting = self._waiting.pop(queue, deque())
        others = deque(trial for trial in waiting if trial.suite is not suite)
        if others:
            self._waiting[queue] = others
        self._freed.set()
        return len(waiting) - len(others)

    def close(self) -> None:
        """Return no more trials."""
        self.is_closed = True
        self._waiting.clear()
        self._freed.set()


async def execute(
    plan: Plan,
    options: RunOptions,
    open_run: OpenRun,
    *,
    listener: Listener | None = None,
    earlier: EarlierAnswer | None = None,
    gate: GateSession | None = None,
    problems: CommonProblems | None = None,
) -> tuple[Run, RunVerdict]:
    """Run every trial of `plan` that is not in the store yet, then those that the gate requests.

    `problems` is what the trials of a run have in common, if it is executed in several parts.
    """
    return await Execution(plan, options, open_run, listener, earlier, gate, problems or CommonProblems()).run()


class Execution:
    """One run in progress."""

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        open_run: OpenRun,
        listener: Listener | None,
        earlier: EarlierAnswer | None,
        gate: GateSession | None,
        problems: CommonProblems,
    ) -> None:
        self._plan = plan
        self._options = options
        self._open_run = open_run
        self._listener = listener
        # Checking an object against a protocol is slow, so it is done once.
        self._trial_listener = listener if isinstance(listener, TrialListener) else None
        self._gate = gate
        self._writer = TrialWriter(
            open_run.store, open_run.run.no, listener, self._on_write_error, keep_secrets=options.keep_secrets
        )
        self._todo = [trial for trial in plan.trials if trial.position not in open_run.stored]
        self._dispatcher = Dispatcher(self._todo)
        self._note = ""
        # The run ends at this moment plus the time that passes: setting the clock meanwhile changes nothing.
        started_at = open_run.run.started_at
        self._began_at = max(started_at, Clock.time()) if open_run.stored else started_at
        self._began = Clock.monotonic()
        self._is_interrupted = False
        self._signal: signal.Signals | None = None
        self._not_passed = 0
        self._masked_scores: list[Score] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._agents_started = False
        self._unavailable: dict[BaseAgent, str] = {}
        self._max_tasks = max((item.max_sessions for item in plan.suites), default=1)
        asks_models = any(item.asks_models for item in plan.suites)
        self._problems = problems
        self._costs = RunCosts(plan, options, open_run) if asks_models or options.budget_usd is not None else None
        self._watchdog = Watchdog()
        self._hedging = Hedging(self._count_lost, self._is_stopping) if options.hedge else None
        retry_seconds = max((item.limits.retry_seconds for item in plan.suites), default=0.0)
        evaluators_at_once = max((item.limits.fixed_parallel for item in plan.suites), default=1)
        judges = None if self._costs is None else self._costs.judges
        self._trials = TrialRunner(
            options=options,
            scoring=ScoringContext(
                asyncio.Semaphore(evaluators_at_once),
                self._watchdog,
                options.fast,
                judges,
                fresh_for="" if gate is None else open_run.run.id,
            ),
            files=AttachedFiles(options.read_file),
            rate=None if options.rate is None else RateLimit(options.rate),
            limiters=AgentLimiters(
                RateLimits(
                    initial=INITIAL_PARALLEL,
                    maximum=self._max_tasks,
                    refusal_pause=options.backoff,
                    max_pause=retry_seconds,
                    max_outage=retry_seconds,
                ),
                self._on_outage,
            ),
            on_answer=lambda suite: self._dispatcher.answered(suite),
            hedging=self._hedging,
            earlier=earlier,
            unavailable=self._unavailable,
            is_stopping=self._is_stopping,
        )

    async def run(self) -> tuple[Run, RunVerdict]:
        run = self._begin()
        if self._listener is not None:
            self._listener.started(run, len(self._plan.trials), len(self._open_run.stored))
        output = route_output(live=self._options.live_output)
        with self._watchdog, handling_signals(self._on_signal), restore_cwd(), output:
            try:
                if self._todo:
                    await self._start_agents()
                await self._run_trials(len(self._todo))
                await self._run_gate_rounds()
            finally:
                self._writer.flush()
                if self._hedging is not None:
                    await self._hedging.close()
                await self._stop_agents()
                if lost := self._writer.check():
                    self._note, run.store = self._note or lost, None
                if self._costs is not None:
                    self._costs.close()
        if self._writer.listener_error is not None:
            raise self._writer.listener_error
        return run, self._conclude(run)

    def _begin(self) -> Run:
        """The run before its first trial, with the trials that are already stored."""
        open_run, costs = self._open_run, self._costs
        if open_run.store is not None and open_run.stored:
            self._writer.summaries.extend(open_run.store.summaries(open_run.run.no))
            if self._gate is not None:
                self._gate.record_stored(self._writer.trials())
        run = open_run.run
        run.suites = tuple(item.info for item in self._plan.suites)
        run.summaries, run.trials = self._writer.summaries, self._writer.trials()
        run.unpriced_note = "" if costs is None else costs.unknown_cost_note(self._plan)
        run.configured_judge = "" if costs is None else costs.judges_text(self._plan)
        run.planned_trials = _repeats(self._plan)
        return run

    def _conclude(self, run: Run) -> RunVerdict:
        self._writer.summaries.sort(key=lambda summary: summary.position)
        run.note = self._note if self._options.keep_secrets or not self._note else mask(self._note)
        run.masked_note = masked_scores_note(self._masked_scores)
        run.endpoints = self._trials.limiters.troubles()
        run.hedging_note = "" if self._hedging is None else self._hedging.summary()
        run.finished_at = self._began_at + Clock.monotonic() - self._began
        run.interrupted = self._is_interrupted
        run.stopped_by = "" if self._signal is None else self._signal.name
        if self._costs is not None:
            self._costs.sum_up(run, len(self._plan.trials))
        is_whole = not run.note or len(run.summaries) >= len(self._plan.trials)
        run.status = RunStatus.FINISHED if is_whole and not run.interrupted else RunStatus.INTERRUPTED
        if self._gate is not None:
            run.gate = self._gate.result(run)
        run_verdict = verdict(run)
        record_verdict(run, run_verdict)
        if self._listener is not None:
            self._listener.finished(run, run_verdict)
        return run_verdict

    async def _run_trials(self, count: int) -> None:
        """Run trials from the dispatcher in parallel until there are none left."""
        await self._run_cancellable([self._take_trials() for _ in range(min(self._max_tasks, count))])

    async def _run_cancellable(self, work: list[Coroutine[Any, Any, None]]) -> None:
        """Run coroutines that `_stop` may cancel."""
        self._tasks = [asyncio.create_task(item) for item in work]
        if self._is_interrupted:
            self._cancel()
        with instrument_clients():
            results = await asyncio.gather(*self._tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result

    async def _run_gate_rounds(self) -> None:
        """Run the trials that the gate requests, round by round; if it is stopped, it decides with what it has."""
        if self._gate is None:
            return
        from proctor.running.gate_trials import planned_trials  # slow to import, and most runs are not gated

        while not self._note:
            if self._costs is not None and self._costs.is_spent:
                self._gate.stop("the budget is spent")
            self._writer.flush()
            if not (trials := planned_trials(self._plan, self._gate.next_trials(), self._gate)):
                break
            await self._start_agents()
            self._dispatcher = Dispatcher(trials)
            await self._run_trials(len(trials))

    async def _take_trials(self) -> None:
        while (planned := await self._dispatcher.next()) is not None:
            if self._trial_listener is not None:
                self._trial_listener.trial_started(planned.case, planned.number)
            try:
                trial = await self._trials.run(planned)
            except asyncio.CancelledError:
                raise
            except RunStopped as stopped:
                if str(stopped):
                    self._stop(str(stopped), interrupted=True)
                return
            except BaseException as error:
                trial = internal_error(planned, error)
            finally:
                self._dispatcher.finished(planned)
            self._record(planned, trial)

    def _record(self, planned: PlannedTrial, trial: Trial) -> None:
        self._writer.add(trial)
        self._check_common_problem(planned)
        if self._gate is not None:
            self._gate.record(trial)
        if planned.suite.limits.parallel == 1:
            self._writer.flush()  # if trials run one after another, report each before the next starts
        if self._costs is not None:
            self._costs.count(trial)
            if self._costs.is_spent:
                self._dispatcher.close()
        self._masked_scores += [score for score in trial.scores if MASKED_TEXT in score.details]
        self._not_passed += trial.outcome in (Outcome.FAILED, Outcome.ERROR)
        if self._options.maxfail is not None and self._not_passed >= self._options.maxfail:
            self._stop(f"stopped after {self._not_passed} trials that did not pass (--maxfail)")

    def _check_common_problem(self, planned: PlannedTrial) -> None:
        """Hold a suite whose trials all hit the same problem, and drop the rest of it when the last of them has."""
        suite, problem = planned.suite, self._trials.problems.pop(planned.position, None)
        if problem is not None:  # it was run, and not skipped
            self._problems.record(suite.suite.name, problem)
        common = self._problems.of(suite.suite.name)
        if not common:
            self._dispatcher.release(suite)
            return
        self._dispatcher.hold(suite)
        if not self._dispatcher.is_running(suite) and (count := self._dispatcher.drop(suite)):
            note = stop_note(common, count)
            self._note = f"{self._note}; {note}" if self._note else note

    def _is_stopping(self) -> bool:
        """Whether no more trials may start."""
        return self._dispatcher.is_closed

    def _count_lost(self, usage: Usage | None) -> None:
        """Count an answer that is in no trial: another one to the same question was sooner."""
        if self._costs is not None:
            self._costs.count_lost(usage)

    async def _start_agents(self) -> None:
        """Start the agents before the first trial; a resumed run may have no trials left, or only those of the gate."""
        if not self._agents_started:
            self._agents_started = True
            seconds: dict[BaseAgent, float] = {}
            for item in self._plan.suites:
                seconds[item.agent] = max(item.limits.timeout, seconds.get(item.agent, 0.0))
            await self._run_cancellable([start_agents(seconds, self._unavailable)])
            missing = [item.agent for item in self._plan.suites if item.source and item.agent in self._unavailable]
            if missing and not self._note:  # without one of the arms there is nothing to compare
                self._note = "; ".join(dict.fromkeys(self._unavailable[agent] for agent in missing))

    async def _stop_agents(self) -> None:
        if self._agents_started:
            agents = dict.fromkeys(item.agent for item in self._plan.suites)
            problems = await stop_agents(agent for agent in agents if agent not in self._unavailable)
            self._note = self._note or "; ".join(problems)

    def _on_outage(self, is_down: bool) -> None:
        if isinstance(self._listener, OutageListener):
            self._listener.outage(is_down=is_down)

    def _on_write_error(self, error: BaseException) -> None:
        if isinstance(error, StoreError):
            self._stop(f"{error}; earlier trials are saved, the rest is only in this report")
        else:
            self._stop("the results could not be displayed")

    def _stop(self, note: str, *, interrupted: bool = False) -> None:
        """Start no more trials and cancel the running ones; a resumed run runs them again."""
        self._note = self._note or note
        self._is_interrupted = self._is_interrupted or interrupted
        self._dispatcher.close()
        self._cancel()

    def _cancel(self) -> None:
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    def _on_signal(self, number: signal.Signals) -> None:
        """The first Ctrl-C stops cleanly; the second one ends the process."""
        asyncio.get_running_loop().remove_signal_handler(number)
        # With a guard process, the guard ends this process at the second signal; and it forwards signals that the whole
        # process group has received already.
        signal.signal(number, signal.SIG_IGN if is_guarded() else signal.SIG_DFL)
        self._signal = number
        self._stop("interrupted; run the same command with --resume to continue", interrupted=True)


@contextlib.contextmanager
def handling_signals(handle: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Call `handle` on Ctrl-C and SIGTERM instead of ending the process, unless other code handles these signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before: dict[signal.Signals, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if handler not in (signal.SIG_DFL, signal.default_int_handler):
            continue
        with contextlib.suppress(NotImplementedError, ValueError):
            loop.add_signal_handler(number, handle, number)
            before[number] = handler
    _HANDLERS_BEFORE.append(before)
    try:
        yield
    finally:
        _HANDLERS_BEFORE.remove(before)
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, handler)


_HANDLERS_BEFORE: list[dict[signal.Signals, Any]] = []
"""The handlers that were in place before each use of `handling_signals`."""


def _handle_no_signals_in_child() -> None:
    """Give the process that an agent forks its own signals back.

    It shares the socket through which the event loop learns of signals. The SIGTERM with which a pool of processes ends
    a worker would arrive here and interrupt the run.
    """
    if not _HANDLERS_BEFORE:
        return
    signal.set_wakeup_fd(-1)
    for before in reversed(_HANDLERS_BEFORE):
        for number, handler in before.items():
            signal.signal(number, handler)
    _HANDLERS_BEFORE.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_handle_no_signals_in_child)


@contextlib.contextmanager
def restore_cwd() -> Iterator[None]:
    """Return to the current working folder at the end, so that reports are written there if an agent changed it."""
    try:
        folder = os.getcwd()  # noqa: PTH109  faster than Path.cwd(), and rarely needed
    except OSError:
        folder = ""
    try:
        yield
    finally:
        if folder:
            with contextlib.suppress(OSError):
                os.chdir(folder)


def _repeats(plan: Plan) -> Mapping[tuple[str, str], int]:
    """The number of trials of each case that has more than one."""
    counts = Counter((trial.suite.suite.name, trial.case.id) for trial in plan.trials)
    return {address: count for address, count in counts.items() if count > 1}
