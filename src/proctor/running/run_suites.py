"""Runs suites, continues interrupted runs, and scores the answers of kept runs anew."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite, StoreError, UsageError
from proctor.base.json_data import canonical, plain
from proctor.base.records import record
from proctor.base.secrets import mask
from proctor.base.threads import run_sync
from proctor.cases.formats.loading import load
from proctor.cases.suite import NOTHING, Case, EvaluatorSpec, Suite
from proctor.results.run import Outcome, Run, TrialResult
from proctor.results.run_info import DirtyCheck, RunInfo, RunRow, git_state
from proctor.results.store import Store
from proctor.results.verdict import RunVerdict
from proctor.running.engine.earlier_answers import answers_first, kept_answers, still_asked
from proctor.running.engine.execute import execute
from proctor.running.engine.judges import judge_identity
from proctor.running.engine.plan import Plan, PlannedTrial, Selection, make_plan
from proctor.running.engine.store_writer import OpenRun, evaluator_keys, resume_run, running, scoring_key, start_run
from proctor.running.options import NO_OPTIONS, Listener, RunOptions
from proctor.running.suite_hooks import hooks_of

if TYPE_CHECKING:
    from proctor.results.gate_outcome import GateOutcome
    from proctor.running.cluster.worker_pool import WorkerPool
    from proctor.running.gate import GateRequest, GateRounds


@record
class Request:
    """What is to be run, and how."""

    suites: Sequence[Suite]
    options: RunOptions = NO_OPTIONS
    agent: Any = None
    """Instead of the agents that suites name."""
    select: Selection | None = None
    store: Path | None = None
    """The folder of the store; `None` keeps results in memory only."""
    resume: bool = False
    reuse: bool = False
    name: str = ""
    """What the user calls the run."""
    key: str = ""
    """What else must be the same for one run to continue another: the selection, as the caller wrote it."""
    gate: GateRequest | None = None
    """Ask only suspects again, and hold the run against what is usual."""
    agents: Mapping[str, Any] = NOTHING
    """Instead of the agents that suites name, several of them by name: each is asked every case."""


def run_suites(request: Request, listener: Listener | None = None) -> tuple[Run, RunVerdict]:
    """Run, and come back with everything that was found."""
    return run_sync(run_suites_async(request, listener))


async def run_suites_async(request: Request, listener: Listener | None = None) -> tuple[Run, RunVerdict]:
    if not request.suites:
        raise UsageError("there is no suite to run")
    with _variables_of(request.suites):
        return await _run(request, listener)


def _variables_of(suites: Sequence[Suite]) -> AbstractContextManager[None]:
    """What the `.env` files of suites hold, which the environment has while they are run."""
    hooked = [suite for suite in suites if suite.hooks]
    if not hooked:
        return nullcontext()
    return environment_from(path for suite in hooked for path in hooks_of(suite).env_files(suite))


async def _run(request: Request, listener: Listener | None) -> tuple[Run, RunVerdict]:
    plan = make_plan(
        request.suites,
        request.options,
        agent=request.agent,
        agents=request.agents,
        select=request.select,
        key="|".join([request.key, *(_title(agent) for agent in (request.agent, *request.agents.values()))]),
    )
    if not plan.trials:
        raise UsageError(f"no case is selected, so nothing was run{_choices(request.suites)}")
    store = None if request.store is None else Store(request.store)
    plan, rounds, possible = (plan, None, plan) if request.gate is None else _gated(plan, request, store)
    async with _workers(plan, request.options, listener) as workers:
        opened = resume_run(possible, store) if store is not None and request.resume else None
        info = _info(plan, request)
        opened = opened or start_run(plan, store, info, name=request.name)
        earlier = kept_answers(store) if request.reuse and store is not None else None
        if earlier is not None:
            _say_what_is_not_reused(plan)
        if opened.answers:
            earlier = answers_first(opened.answers, earlier)
        with _recorded(plan, opened, info) as close, _separated(plan, request.options):
            run, verdict = await execute(
                plan, request.options, opened, listener=listener, earlier=earlier, rounds=rounds, workers=workers
            )
            close(run, verdict)
    return run, verdict


def _gated(plan: Plan, request: Request, store: Store | None) -> tuple[Plan, GateRounds, Plan]:
    """The first round, what asks for the further ones, and everything that an interrupted run may have made."""
    from proctor.running.gate import GateRounds, all_possible, spaced

    assert request.gate is not None
    if request.reuse:
        raise UsageError("the gate needs fresh answers, so it cannot take those of earlier runs (--reuse)")
    plan = spaced(plan, request.gate)
    rounds = GateRounds(plan, request.gate, store, fast=request.options.fast)
    return plan, rounds, all_possible(plan, request.gate) if request.resume else plan


def _separated(plan: Plan, options: RunOptions) -> AbstractContextManager[None]:
    if not options.isolate:
        return nullcontext()
    from proctor.running.engine.isolate import isolated

    return isolated(plan)


def _workers(
    plan: Plan, options: RunOptions, listener: Listener | None
) -> AbstractAsyncContextManager[WorkerPool | None]:
    """The processes that ask the agents, where that is not this one; a run begins when they are there."""
    if options.cluster is None:
        return nullcontext()
    from proctor.running.cluster.connection import workers_for

    return workers_for(plan, options.cluster, listener)


def rescore(
    store_folder: Path,
    run: str,
    *,
    options: RunOptions,
    evaluators: tuple[EvaluatorSpec, ...] = (),
    suites: Sequence[str] = (),
    select: Selection | None = None,
    listener: Listener | None = None,
) -> tuple[Run, RunVerdict]:
    """Score the answers of an earlier run anew, as a run of its own; no agent is asked.

    Expectations and evaluators are those of the suites as they are now, where they can still be read; `evaluators`
    replaces them all.
    """
    with planned_again(store_folder, run, options, evaluators=evaluators, suites=suites, select=select) as again:
        plan, answers = again.plan, again.answers
        info = replace(_info(plan, again.request), rescored=again.row.id)
        opened = start_run(plan, Store(store_folder), info)
        with _recorded(plan, opened, info) as close:
            result, verdict = run_sync(
                execute(plan, options, opened, listener=listener, earlier=lambda p: still_asked(p, answers[p.address]))
            )
            close(result, verdict)
    return result, verdict


@record
class PlannedAgain:
    """The answers of a kept run, and the plan by which the suites as they are now score them."""

    row: RunRow
    plan: Plan
    answers: Mapping[tuple[str, str, int], TrialResult]
    request: Request


@contextmanager
def planned_again(
    store_folder: Path,
    run: str,
    options: RunOptions,
    *,
    evaluators: tuple[EvaluatorSpec, ...] = (),
    suites: Sequence[str] = (),
    select: Selection | None = None,
) -> Iterator[PlannedAgain]:
    """Plan to score a kept run anew, while the variables that its suites ask for are set."""
    from proctor.results.run_files import open_run

    source, row = open_run(store_folder, run)
    paths = {info.name: info.path for info in row.info.suites}
    answers = {
        (t.suite, t.case.id, t.number): t
        for t in source.trials(row.no)
        if select is None or select(Suite(t.suite, (), path=Path(paths.get(t.suite) or "")), t.case)
    }
    if not answers:
        what = "no trials to score" if select is None else "no case that is selected, so nothing was scored"
        raise (StoreError if select is None else UsageError)(f"run {row.id} has {what}")
    now = _suites_now(row, answers, suites)
    if evaluators:
        now = [_scored_by(suite, evaluators) for suite in now]
    asked = [replace(suite, agent=_Absent(row, suite.name)) for suite in now]
    with _variables_of(now):
        plan = make_plan(asked, replace(options, given=replace(options.given, repeat=1)))
        plan = _only_answered(plan, answers)
        for item in plan.suites:
            item.source = next((info.source for info in row.info.suites if info.name == item.suite.name), "")
        yield PlannedAgain(row, plan, answers, Request(asked, options))


def judge_again(
    store: Store, run: str, wanted: Collection[tuple[str, str]], options: RunOptions
) -> dict[tuple[str, str, int], Outcome]:
    """Score the answers of some cases once more, as if they had never been judged; nothing is kept."""
    row = store.find_run(run)
    answers = {(t.suite, t.case.id, t.number): t for t in store.trials(row.no) if (t.suite, t.case.id) in wanted}
    now = [replace(suite, agent=_Absent(row, suite.name)) for suite in _suites_now(row, answers, ())]
    plan = _only_answered(make_plan(now, replace(options, given=replace(options.given, repeat=1))), answers)
    open_run = start_run(plan, None, _info(plan, Request(now, options)))
    again, _ = run_sync(execute(plan, options, open_run, earlier=lambda p: still_asked(p, answers[p.address])))
    return {(trial.suite, trial.case.id, trial.number): trial.outcome for trial in again.trials}


def _title(agent: Any) -> str:
    """What tells one given agent from another in any process; whether it has changed, its fingerprint tells."""
    if agent is None or isinstance(agent, (str, Mapping)):
        return canonical(agent)
    return str(getattr(agent, "__qualname__", None) or type(agent).__qualname__)


class _Absent:
    """The agent of a rescored run: its name and fingerprint remain, but it is never asked."""

    def __init__(self, row: RunRow, suite: str) -> None:
        info = next((item for item in row.info.suites if item.name == suite), None)
        self.name = "unknown" if info is None else info.agent
        self.fingerprint = "" if info is None else info.agent_fingerprint

    def session(self, case: Case) -> Any:
        raise UsageError("a rescored run asks no agent")


def _choices(suites: Sequence[Suite]) -> str:
    """The cases and tags that can be selected, as the end of a sentence."""
    cases = [case for suite in suites for case in suite.cases]
    tags = sorted({tag for case in cases for tag in case.tags})
    ids = [case.id for case in cases]
    more = f" and {len(ids) - 20} more" if len(ids) > 20 else ""
    told = f"; there {'is' if len(ids) == 1 else 'are'} {', '.join(ids[:20])}{more}" if ids else ""
    return told + (f"; tags: {', '.join(tags[:20])}" if tags else "")


def _say_what_is_not_reused(plan: Plan) -> None:
    """Trials of agents that cannot be compared with those of earlier runs say why they were asked anew."""
    for item in plan.suites:
        if item.agent.unknown_parts:
            held = ", ".join(item.agent.unknown_parts)
            item.asked_anew = f"asked anew: the agent holds {held}, which cannot be compared with an earlier run"


def _suites_now(row: RunRow, answers: dict[Any, TrialResult], paths: Sequence[str]) -> list[Suite]:
    """The suites of a run as their files say today; as they were kept, where a file is gone or broken."""
    wanted = list(paths) or sorted({info.path for info in row.info.suites if info.path})
    fresh = {suite.name: suite for suite in load(wanted if paths else [path for path in wanted if _is_readable(path)])}
    names = dict.fromkeys(suite for suite, _, _ in answers)
    sources = {info.name: info.source for info in row.info.suites if info.source}
    found = ((name, fresh.get(sources.get(name, name))) for name in names)
    return [
        _as_kept(name, row, answers) if suite is None else replace(suite, name=name, agents=NOTHING)
        for name, suite in found
    ]


def _is_readable(path: str) -> bool:
    try:
        load([path])
    except InvalidSuite:
        return False
    return True


def _as_kept(name: str, row: RunRow, answers: dict[Any, TrialResult]) -> Suite:
    info = next((item for item in row.info.suites if item.name == name), None)
    cases = {trial.case.id: trial.case for (suite, _, _), trial in answers.items() if suite == name}
    suite = Suite(name, tuple(cases.values()), path=Path(info.path) if info and info.path else None)
    return suite if info is None else replace(suite, criteria=info.criteria, format=info.format)


def _scored_by(suite: Suite, evaluators: tuple[EvaluatorSpec, ...]) -> Suite:
    def bare(case: Case) -> Case:
        return replace(case, evaluators=None, turns=tuple(replace(turn, evaluators=None) for turn in case.turns))

    return replace(suite.with_cases(bare), evaluators=evaluators)


def _only_answered(plan: Plan, answers: dict[tuple[str, str, int], TrialResult]) -> Plan:
    """The trials there are answers for, repeats included."""
    trials: list[PlannedTrial] = []
    repeats: dict[tuple[str, str], list[int]] = defaultdict(list)
    for suite, case_id, number in sorted(answers):
        repeats[suite, case_id].append(number)
    for planned in plan.trials:
        numbers = repeats[planned.address[:2]]
        first = len(trials)
        trials.extend(replace(planned, number=n, position=first + i) for i, n in enumerate(numbers))
    for item in plan.suites:
        item.planned = sum(trial.suite is item for trial in trials)
    return Plan(plan.suites, trials, plan.key)


def _info(plan: Plan, request: Request) -> RunInfo:
    return RunInfo(
        suites=tuple(item.info for item in plan.suites),
        options={
            "fast": request.options.fast,
            "maxfail": request.options.maxfail,
            "judge": None if request.options.judge is None else judge_identity(request.options.judge),
            "budget_usd": request.options.budget_usd,
            **_given_agents(request),
            **plain(request.options.given),
        },
        planned=len(plan.trials),
        scoring=scoring_key(plan.suites),
        git=git_state(Path.cwd()),
        evaluator_keys=evaluator_keys(plan, fast=request.options.fast),
    )


def _given_agents(request: Request) -> dict[str, Any]:
    """The agents that were given instead of those of the suites, as far as text can name them: to run a case again."""
    one = {"agent": mask(request.agent)} if isinstance(request.agent, str) else {}
    several = {name: mask(agent) for name, agent in request.agents.items() if isinstance(agent, str)}
    return one | ({"agents": several} if several else {})


@contextmanager
def _recorded(plan: Plan, open_run: OpenRun, info: RunInfo) -> Iterator[Any]:
    """Holds the run's lock, and closes its row in the store with what came of it."""
    dirty = DirtyCheck(Path.cwd(), info.git)

    def close(run: Run, verdict: RunVerdict) -> None:
        run.git, run.options = dirty.result(), info.options
        if open_run.store is None:
            return
        status = (
            "interrupted" if run.interrupted or (run.note and len(run.summaries) < len(plan.trials)) else "finished"
        )
        ended = replace(
            info.judged(verdict),
            note=run.note,
            environment=run.environment,
            judges=tuple(run.judges),
            uncounted=run.uncounted,
            git=run.git,
            gate=None if run.gate is None else _gate_data(run.gate),
        )
        try:
            open_run.store.finish_run(open_run.no, status, ended)
        except StoreError:
            if not run.note:
                raise
            return  # the run's note says already that the store fails; its results are in the report

    with running(open_run):
        try:
            yield close
        except asyncio.CancelledError:  # as of a cell of a notebook; what was made is kept, and can be continued
            if open_run.store is not None:
                open_run.store.finish_run(open_run.no, "interrupted", replace(info, note="interrupted"))
            raise


def _gate_data(gate: GateOutcome) -> dict[str, Any]:
    from proctor.results.gate_outcome import gate_to_json

    return gate_to_json(gate)
