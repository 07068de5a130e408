"""Scores the answers of a stored run again, without calling the agent.

Expectations and evaluators come from the suite files as they are now, or from the store if a file cannot be read any
more. The plan is an ordinary one: its agents are `RecordedAgent`s, its trials are those that have an answer, and the
engine takes every answer from the store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from proctor.base.errors import InvalidSuite, StoreError, UsageError
from proctor.base.event_loops import run_blocking, run_sync
from proctor.cases.evaluator_specs import read_evaluators
from proctor.cases.formats.loading import load
from proctor.cases.identity import TrialAddress
from proctor.cases.mappings import EvaluatorLike, JudgeLike
from proctor.cases.suite import Case, EvaluatorSpec, Suite
from proctor.results.run import Run
from proctor.results.score import MASKED_TEXT, Outcome
from proctor.results.store.run_files import open_run
from proctor.results.store.store import Store
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict
from proctor.running.execution import execute
from proctor.running.plan import Plan, PlannedSuite, PlannedTrial, Selection, make_plan
from proctor.running.resume import start_run
from proctor.running.reuse import same_question_or_error
from proctor.running.run import RunRequest, finish_run_on_exit, new_run, raise_if_stopped, suite_environment
from proctor.running.settings import Listener, RunOptions


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
    """Score the answers of a stored run again, as a new run, without calling the agent.

    `evaluators` replaces those of the suites; `suites` are files to use instead of those of the run.
    """
    with plan_rescore(store_folder, run, options, evaluators=evaluators, suites=suites, select=select) as rescore_plan:
        new = replace(new_run(rescore_plan.plan, rescore_plan.request), rescored=rescore_plan.run.id)
        opened = start_run(new, Store(store_folder))
        with finish_run_on_exit(opened):
            result = execute(rescore_plan.plan, options, opened, listener=listener, earlier=rescore_plan.answer_to)
            return run_sync(result)


def rescore_run(run: Run, *, evaluators: Sequence[EvaluatorLike] | None = None, judge: JudgeLike | None = None) -> Run:
    """Score the answers of a run again, as a new run in memory, without calling the agent.

    `evaluators` replaces those of the suites; without it, they are those of the suites that ran, or of their files if
    the run comes from a store. `judge` answers for evaluators that need a model.
    """
    in_memory = (trial.original or trial for trial in run.trials)  # the original has its secrets
    answers = {(trial.suite, trial.case.id, trial.number): trial for trial in in_memory}
    if not answers:
        raise UsageError("the run has no trials to score")
    suites = list(run.source) or _current_suites(run, answers, ())
    if evaluators is not None:
        specs = read_evaluators(evaluators)
        suites = [_with_evaluators(suite, specs) for suite in suites]
    options = RunOptions(judge=judge)
    with _make_rescore_plan(run, answers, suites, options) as rescore_plan:
        opened = start_run(replace(new_run(rescore_plan.plan, rescore_plan.request), rescored=run.id), None)
        result, _ = run_blocking(execute(rescore_plan.plan, options, opened, earlier=rescore_plan.answer_to))
    raise_if_stopped(result)
    return result


def rejudge(
    store: Store, run: str, cases: Collection[tuple[str, str]], options: RunOptions
) -> dict[TrialAddress, Outcome]:
    """Score the answers of some cases again, without cached verdicts of judges; nothing is stored.

    Answers that cannot be judged again, because secrets in them are masked, are missing.
    """
    row = store.find_run(run)
    trials = (trial for trial in store.trials(row.no) if (trial.suite, trial.case.id) in cases)
    answers = {(trial.suite, trial.case.id, trial.number): trial for trial in trials}
    with _make_rescore_plan(row, answers, _current_suites(row, answers, ()), options) as rescore_plan:
        opened = start_run(new_run(rescore_plan.plan, rescore_plan.request), None)
        result, _ = run_sync(execute(rescore_plan.plan, options, opened, earlier=rescore_plan.answer_to))
    raise_if_stopped(result)
    return {
        (trial.suite, trial.case.id, trial.number): trial.outcome
        for trial in result.trials
        if not any(MASKED_TEXT in score.details for score in trial.scores)
    }


@dataclass(frozen=True, slots=True)
class RescorePlan:
    """The answers of a stored run, and the plan that scores them with the current suites."""

    run: Run
    plan: Plan
    answers: Mapping[TrialAddress, Trial]
    request: RunRequest

    def answer_to(self, planned: PlannedTrial) -> Trial:
        """The stored answer, or an error if the input of the case has changed."""
        return same_question_or_error(planned, self.answers[planned.address])


@contextmanager
def plan_rescore(
    store_folder: Path,
    run: str,
    options: RunOptions,
    *,
    evaluators: tuple[EvaluatorSpec, ...] = (),
    suites: Sequence[str] = (),
    select: Selection | None = None,
) -> Iterator[RescorePlan]:
    """Plan to rescore a stored run; inside, the variables of its suites' `.env` files are set."""
    source, row = open_run(store_folder, run)
    paths = {info.name: info.path for info in row.suites}
    answers = {
        (t.suite, t.case.id, t.number): t
        for t in source.trials(row.no)
        if select is None or select(Suite(t.suite, (), path=Path(paths.get(t.suite) or "")), t.case)
    }
    if not answers:
        what = "no trials to score" if select is None else "no matching case"
        raise (StoreError if select is None else UsageError)(f"run {row.id} has {what}")
    current = _current_suites(row, answers, suites)
    if evaluators:
        current = [_with_evaluators(suite, evaluators) for suite in current]
    with _make_rescore_plan(row, answers, current, options) as rescore_plan:
        yield rescore_plan


@contextmanager
def _make_rescore_plan(
    row: Run, answers: Mapping[TrialAddress, Trial], suites: Sequence[Suite], options: RunOptions
) -> Iterator[RescorePlan]:
    recorded = [replace(suite, agent=RecordedAgent(row, suite.name)) for suite in suites]
    sources = {info.name: info.source for info in row.suites}

    def with_source(item: PlannedSuite) -> PlannedSuite:
        return replace(item, source=sources.get(item.suite.name, ""))

    with suite_environment(suites):
        plan = make_plan(recorded, replace(options, overrides=replace(options.overrides, repeat=1)))
        plan = _only_answered(plan, answers).with_suites(with_source)
        yield RescorePlan(row, plan, answers, RunRequest(recorded, options))


class RecordedAgent:
    """The agent of a rescored run: has the name and fingerprint of the real one, and is never called."""

    def __init__(self, row: Run, suite: str) -> None:
        info = next((item for item in row.suites if item.name == suite), None)
        self.name = "unknown" if info is None else info.agent
        self.fingerprint = "" if info is None else info.agent_fingerprint

    def session(self, case: Case) -> Any:
        raise UsageError("a rescored run does not call the agent")


def _current_suites(row: Run, answers: Mapping[TrialAddress, Trial], paths: Sequence[str]) -> list[Suite]:
    """The suites of a run from their current files; from the store if a file is missing or invalid."""
    files = list(paths) or sorted({info.path for info in row.suites if info.path})
    config = next((Path(info.config) for info in row.suites if info.config), None)
    readable = files if paths else [path for path in files if _is_readable(path, config)]
    fresh = {suite.name: suite for suite in (load(readable, config) if readable else ())}
    names = dict.fromkeys(suite for suite, _, _ in answers)
    sources = {info.name: info.source for info in row.suites if info.source}
    current = ((name, fresh.get(sources.get(name, name))) for name in names)
    return [
        _as_stored(name, row, answers) if suite is None else replace(suite, name=name, arms={})
        for name, suite in current
    ]


def _is_readable(path: str, config: Path | None) -> bool:
    try:
        load([path], config)
    except InvalidSuite:
        return False
    return True


def _as_stored(name: str, row: Run, answers: Mapping[TrialAddress, Trial]) -> Suite:
    info = next((item for item in row.suites if item.name == name), None)
    cases = {trial.case.id: trial.case for (suite, _, _), trial in answers.items() if suite == name}
    suite = Suite(name, tuple(cases.values()), path=Path(info.path) if info and info.path else None)
    return suite if info is None else replace(suite, criteria=info.criteria, format=info.format)


def _with_evaluators(suite: Suite, evaluators: tuple[EvaluatorSpec, ...]) -> Suite:
    def without_evaluators(case: Case) -> Case:
        turns = tuple(replace(turn, evaluators=None) for turn in case.turns)
        return replace(case, evaluators=None, turns=turns, implied=False)

    return replace(suite.map_cases(without_evaluators), evaluators=evaluators)


def _only_answered(plan: Plan, answers: Mapping[TrialAddress, Trial]) -> Plan:
    """The trials that have an answer, repeats included."""
    numbers: dict[tuple[str, str], list[int]] = defaultdict(list)
    for suite, case_id, number in sorted(answers):
        numbers[suite, case_id].append(number)
    trials: list[PlannedTrial] = []
    for planned in plan.trials:
        trials += [
            replace(planned, number=number, position=len(trials) + at)
            for at, number in enumerate(numbers[planned.address[:2]])
        ]
    return plan.with_trials(trials)
