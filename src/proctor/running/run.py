"""Runs suites: a new run, a resumed one, or one that reuses stored answers.

The order matters. The plan is made first, so that every problem is reported before anything happens. Then the agents
move to where they run: `isolated` and `on_workers` return the same plan with other agents in it, and nothing after that
knows the difference. Then the run is opened in the store, under its lock, and executed. Its row is completed at the
end, also if the run was stopped.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from proctor.base.clock import Clock
from proctor.base.environment import environment_from
from proctor.base.errors import StoreError, UsageError
from proctor.base.event_loops import run_sync
from proctor.base.git import git_state
from proctor.base.json_data import canonical, to_json
from proctor.base.masking import mask
from proctor.cases.suite import Suite
from proctor.gate.settings import GateSettings
from proctor.judging.choosing import judge_record
from proctor.results.judge_usage import JudgeUsage
from proctor.results.run import Run, RunStatus
from proctor.results.store.store import STORE_FOLDER, Store
from proctor.results.verdict import RunVerdict
from proctor.running.arms.worktrees import remove_abandoned
from proctor.running.execution import execute
from proctor.running.plan import Plan, Selection, make_plan
from proctor.running.resume import (
    OpenRun,
    holding_lock,
    new_run_id,
    resume_run,
    run_environment,
    scoring_key,
    scoring_keys,
    start_run,
)
from proctor.running.reuse import EarlierAnswer, resumed_answers_first, stored_answers, with_reuse
from proctor.running.settings import NO_OPTIONS, Listener, RunOptions


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run, and how."""

    suites: Sequence[Suite]
    options: RunOptions = NO_OPTIONS
    agent: Any = None
    """The agent to run instead of those that suites name."""
    select: Selection | None = None
    store: Path | None = None
    """The folder of the store; without it, results stay in memory."""
    resume: bool = False
    reuse: bool = False
    name: str = ""
    """The user's name for the run."""
    key: str = ""
    """What else must be the same for one run to resume another: the selection, as the caller wrote it."""
    command: str = ""
    """The command line of the run, if it has one; reports show how to run it again."""
    gate: GateSettings | None = None
    """Re-run only suspects, and compare the run with the baseline."""
    skipped_files: Mapping[str, str] = field(default_factory=dict)
    """Files in the folders of the suites that are not suites, each with the reason."""
    arms: Mapping[str, Any] = field(default_factory=dict)
    """Versions of the agent by name, instead of the arms of suites: each runs every case (`cases/arms.py`)."""


def run_suites(request: RunRequest, listener: Listener | None = None) -> tuple[Run, RunVerdict]:
    """Run the suites and return the run and its verdict. A run that Ctrl-C stops is returned too, as interrupted."""
    return run_sync(run_suites_async(request, listener))


def raise_if_stopped(run: Run) -> None:
    """Raise what ends a script if a signal stopped the run: the signal was meant for the script too.

    Ctrl-C is `KeyboardInterrupt`; SIGTERM is `SystemExit` with the exit code that shells use for it.
    """
    if run.stopped_by == signal.SIGINT.name:
        raise KeyboardInterrupt
    if run.stopped_by == signal.SIGTERM.name:
        raise SystemExit(128 + signal.SIGTERM)


async def run_suites_async(request: RunRequest, listener: Listener | None = None) -> tuple[Run, RunVerdict]:
    """The same as `run_suites`, for code that has an event loop."""
    if not request.suites:
        raise UsageError("no suite to run")
    if request.gate is not None and request.reuse:
        raise UsageError("--gate and --reuse cannot be combined: the gate needs new answers")
    if request.gate is not None and (request.arms or any(suite.arms for suite in request.suites)):
        raise UsageError(
            "the gate tests one agent, so it cannot be combined with arms; to compare with another version, use "
            "--gate --against main"
        )
    with suite_environment(request.suites):
        return await _run(request, listener)


def suite_environment(suites: Sequence[Suite]) -> AbstractContextManager[None]:
    """Set the variables of the suites' `.env` files while the suites are run or scored."""
    files = [path for suite in suites for path in suite.env_files]
    return environment_from(files) if files else nullcontext()


async def _run(request: RunRequest, listener: Listener | None) -> tuple[Run, RunVerdict]:
    plan, gate, options = _plan(request), request.gate, request.options
    store = None if request.store is None else Store(request.store)
    baselines = None if gate is None else _gate_trials().baselines_for(plan, gate.baseline, store, fast=options.fast)
    if store is not None:
        remove_abandoned(store.folder)
    has_processes = any(item.process is not None for item in plan.suites)
    if has_processes and (options.isolate or options.cluster is not None):
        raise UsageError(
            "arms from git run in their own processes, and cannot be combined with --isolate, --workers or --cluster"
        )
    async with AsyncExitStack() as stack:
        if has_processes:
            from proctor.running.arms.processes import in_processes  # needed only for arms

            plan = await stack.enter_async_context(in_processes(plan, request.store or Path(STORE_FOLDER), listener))
        elif options.cluster is not None:
            # The cluster is an extra, and its modules are needed only with it.
            from proctor.running.cluster.connection import on_workers

            plan = await stack.enter_async_context(on_workers(plan, options.cluster, listener))
        elif options.isolate:
            from proctor.running.isolation import isolated_plan  # needed only with --isolate

            plan = stack.enter_context(isolated_plan(plan))
        open_run = _open_run(plan, request, store)
        stack.enter_context(finish_run_on_exit(open_run))
        session = None
        if gate is not None and baselines is not None:
            session = _gate_trials().gate_session(plan, gate, baselines, store, open_run.run.id)
        earlier = _earlier_answers(request, store, open_run)
        return await execute(plan, options, open_run, listener=listener, earlier=earlier, gate=session)


def _gate_trials() -> ModuleType:
    """The module `gate_trials`. It imports slowly because of its statistics, and most runs are not gated."""
    from proctor.running import gate_trials

    return gate_trials


def _plan(request: RunRequest) -> Plan:
    arms = request.arms
    if request.gate is not None and request.gate.against is not None:
        arms = _gate_trials().arms_to_compare(request.gate.against)
    plan = make_plan(
        request.suites,
        request.options,
        agent=request.agent,
        arms=arms,
        select=request.select,
        key="|".join([request.key, *(_agent_key(agent) for agent in (request.agent, *arms.values()))]),
    )
    if not plan.trials:
        raise UsageError(f"no case matches{_available_cases(request.suites)}")
    if request.gate is not None:
        plan = _gate_trials().reserve_positions(plan, request.gate)
    return with_reuse(plan) if request.reuse and request.store is not None else plan


def _open_run(plan: Plan, request: RunRequest, store: Store | None) -> OpenRun:
    """The run to resume, if `--resume` was requested and there is one, else a new run."""
    run, resumed = new_run(plan, request), None
    if store is not None and request.resume:
        possible = plan if request.gate is None else _gate_trials().with_every_follow_up(plan, request.gate)
        resumed = resume_run(run, possible, store)
    return resumed or start_run(run, store)


def _earlier_answers(request: RunRequest, store: Store | None, open_run: OpenRun) -> EarlierAnswer | None:
    earlier = stored_answers(store) if request.reuse and store is not None else None
    return resumed_answers_first(open_run.answers, earlier) if open_run.answers else earlier


def _agent_key(agent: Any) -> str:
    """A name for a passed agent that is the same in every process. Its fingerprint says whether it has changed."""
    if agent is None or isinstance(agent, (str, Mapping)):
        return canonical(agent)
    return str(getattr(agent, "__qualname__", None) or type(agent).__qualname__)


def _available_cases(suites: Sequence[Suite]) -> str:
    """The cases and tags that can be selected, as the end of a sentence."""
    cases = [case for suite in suites for case in suite.cases]
    tags = sorted({tag for case in cases for tag in case.tags})
    ids = [case.id for case in cases]
    more = f" and {len(ids) - 20} more" if len(ids) > 20 else ""
    listed = f"; available: {', '.join(ids[:20])}{more}" if ids else ""
    return listed + (f"; tags: {', '.join(tags[:20])}" if tags else "")


def new_run(plan: Plan, request: RunRequest) -> Run:
    """The run of a plan, before its first trial."""
    return Run(
        id=new_run_id(),
        started_at=Clock.time(),
        name=_stored_name(request),
        plan=plan.key,
        environment=run_environment(),
        suites=tuple(item.info for item in plan.suites),
        options={
            "fast": request.options.fast,
            "maxfail": request.options.maxfail,
            "judge": None if request.options.judge is None else judge_record(request.options.judge),
            "budget_usd": request.options.budget_usd,
            **_rerun_options(request),
            **to_json(request.options.overrides),
        },
        planned=len(plan.trials),
        scoring=scoring_key(plan.suites),
        git=git_state(Path.cwd()),
        scoring_keys=scoring_keys(plan, fast=request.options.fast),
        source=tuple(item.suite for item in plan.suites),
        skipped_files=request.skipped_files,
    )


def _stored_name(request: RunRequest) -> str:
    return request.name if request.options.keep_secrets else mask(request.name)


def _rerun_options(request: RunRequest) -> dict[str, Any]:
    """The agent and arms that replace those of the suites, if they are text; reports show how to re-run a case.

    With them the command line, by which reports show how to run the errors again.
    """
    agent = {"agent": mask(request.agent)} if isinstance(request.agent, str) else {}
    arms = {name: mask(item) for name, item in request.arms.items() if isinstance(item, str)}
    command = {"command": mask(request.command)} if request.command else {}
    return agent | ({"arms": arms} if arms else {}) | command


@contextmanager
def finish_run_on_exit(open_run: OpenRun) -> Iterator[None]:
    """Hold the run's lock, and complete the run's row in the store on exit."""
    run, store = open_run.run, open_run.store
    with holding_lock(open_run):
        try:
            yield
        except asyncio.CancelledError:  # such as an interrupted notebook cell; the run can be resumed
            if store is not None:
                run.status, run.interrupted, run.note = RunStatus.INTERRUPTED, True, "interrupted"
                run.judges = tuple(JudgeUsage(store.trials(run.no)))
                store.finish_run(run)
            raise
        if store is None:
            return
        try:
            store.finish_run(run)
        except StoreError:
            if not run.note:
                raise
            # The run's note already says that the store failed; its results are in the report.
        store.rest()
