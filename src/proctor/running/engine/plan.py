"""What is going to happen: which trials, of which agent, scored by what; all that is wrong is found before it runs."""

from __future__ import annotations

import itertools
import os
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.agents.agent import BaseAgent
from proctor.agents.resolving import resolve_agent
from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite, Problem, UsageError
from proctor.base.json_data import fingerprint
from proctor.base.records import changed, mutable_record, record
from proctor.base.references import without_loading
from proctor.cases.evaluator_specs import spec_key, with_implied_evaluators
from proctor.cases.suite import NOTHING, Case, EvaluatorSpec, Quarantine, Suite, ambiguities
from proctor.evaluators.registry import Bound, build, told_apart
from proctor.results.run import QuarantinedCase, SuiteInfo, dated_quarantines
from proctor.running.engine.deadline import limits_of
from proctor.running.engine.judges import judge_problems, line_of_complaint, line_with, with_judge
from proctor.running.options import EMBEDDED, GIVEN, NO_OPTIONS, VARIABLE, Choice, Limits, RunOptions, written_judge
from proctor.running.suite_hooks import agent_hint, hooks_of

if TYPE_CHECKING:
    from proctor.cases.files import Contents


@dataclass(slots=True)
class CaseSurvey:
    """What a plan knows of the cases of a suite after going through them once: a large file is read for each pass."""

    specs: dict[tuple[int, ...], tuple[EvaluatorSpec, ...]] = field(default_factory=dict)
    """The lists of evaluators that there are, by the identities of their specs."""
    scored_alike: dict[tuple[tuple[int, ...], ...], array[int]] = field(default_factory=dict)
    """By the lists of their turns: the places of the cases in the suite."""
    chosen: array[int] | None = None
    """The places of the cases that are to be run, where these are not all."""
    repeats: array[int] | None = None
    """How many trials each of these has, where cases say so themselves."""
    simulated: bool = False
    """Whether the user of a case is simulated."""
    contents: Contents | None = None
    """The files of cases that have some."""
    quarantined: list[tuple[str, Quarantine]] = field(default_factory=list)
    misfits: list[Problem] = field(default_factory=list)


@mutable_record
class PlannedSuite:
    """A suite with its agent and its evaluators ready."""

    suite: Suite
    agent: BaseAgent
    agent_fingerprint: str
    limits: Limits
    judge: Any
    """Who judges for evaluators that name no judge of their own."""
    bound: dict[int, Bound] = field(default_factory=dict)
    """By the identity of the spec, which lives as long as the suite: looked up for every turn of every trial."""
    cases: CaseSurvey = field(default_factory=CaseSurvey)
    planned: int = 0
    asked_anew: str = ""
    """Why earlier answers are not reused, where that was asked for."""
    quarantined: tuple[QuarantinedCase, ...] = ()
    agent_name: str = ""
    """What the user calls the agent, where that is not its own name."""
    source: str = ""
    """What its file calls the suite, where it stands once for each of several agents."""
    given_agent: Any = None
    """The agent that was given instead of the suite's own, as it was given: another process finds it again by this."""

    @property
    def info(self) -> SuiteInfo:
        suite = self.suite
        return SuiteInfo(
            name=suite.name,
            path=None if suite.path is None else str(suite.path),
            format=suite.format,
            agent=self.agent_name or self.agent.name,
            agent_fingerprint=self.agent_fingerprint,
            criteria=suite.criteria,
            cases=len(suite.cases),
            planned=self.planned,
            quarantined=self.quarantined,
            source=self.source,
        )

    @property
    def asks_models(self) -> bool:
        """Whether an evaluator asks a judge, or a model plays the user."""
        return self.cases.simulated or any(b.needs_judge and not b.inline for b in self.bound.values())

    def evaluators(self, specs: Iterable[EvaluatorSpec]) -> list[Bound]:
        return [self.bound[id(spec)] for spec in specs]

    def trials(self, first: int) -> Iterator[PlannedTrial]:
        """The trials of the cases that are chosen, from position `first` on; each case is made ready when it is due."""
        survey, suite = self.cases, self.suite
        cases = suite.cases if survey.chosen is None else (suite.cases[at] for at in survey.chosen)
        for at, case in enumerate(cases):
            whole = case if case.evaluators is not None else changed(case, evaluators=suite.evaluators)
            whole = whole if survey.contents is None else survey.contents.of(whole)
            for number in range(1, (survey.repeats[at] if survey.repeats else self.limits.repeat) + 1):
                yield PlannedTrial(self, whole, number, first)
                first += 1


@record
class PlannedTrial:
    """One trial to be made."""

    suite: PlannedSuite
    case: Case
    number: int
    position: int

    @property
    def address(self) -> tuple[str, str, int]:
        return self.suite.suite.name, self.case.id, self.number


@record
class Plan:
    """All trials, in the order of reports."""

    suites: tuple[PlannedSuite, ...]
    trials: Collection[PlannedTrial]
    key: str
    """Equal for two runs of the same thing, so that one can continue the other."""

    def queues(self) -> dict[int, Iterator[PlannedTrial]]:
        """The trials of each suite, by its identity."""
        return self.trials.queues() if isinstance(self.trials, PlannedTrials) else queues_of(self.trials)


class PlannedTrials(Collection[PlannedTrial]):
    """The trials of suites, made while they are iterated: a million of them are never in memory together."""

    def __init__(self, suites: Sequence[PlannedSuite]) -> None:
        self._suites = suites
        self._first = [0, *itertools.accumulate(item.planned for item in suites)]

    def __len__(self) -> int:
        return self._first[-1]

    def __iter__(self) -> Iterator[PlannedTrial]:
        return itertools.chain.from_iterable(self.queues().values())

    def __contains__(self, trial: object) -> bool:
        return any(planned == trial for planned in self)

    def queues(self) -> dict[int, Iterator[PlannedTrial]]:
        return {id(item): item.trials(first) for item, first in zip(self._suites, self._first, strict=False)}


def queues_of(trials: Iterable[PlannedTrial]) -> dict[int, Iterator[PlannedTrial]]:
    """Trials that are there already, by the identity of their suite."""
    found: dict[int, list[PlannedTrial]] = {}
    for trial in trials:
        found.setdefault(id(trial.suite), []).append(trial)
    return {suite: iter(own) for suite, own in found.items()}


Selection = Callable[[Suite, Case], bool]


def judge_of(options: RunOptions, suite: Suite | None = None) -> Choice:
    """The first who says something wins: caller, suite, configuration, environment; else the embedded judge."""
    if options.judge is not None:
        return Choice(written_judge(options.judge, GIVEN), GIVEN)
    if suite is not None and suite.judge is not None:
        return Choice(suite.judge, f"suite {suite.name!r}", suite.path)
    if options.usual_judge is not None:
        return Choice(written_judge(options.usual_judge, "configuration"), "configuration")
    if os.environ.get(VARIABLE):
        return Choice(written_judge(os.environ[VARIABLE], VARIABLE), VARIABLE)
    return Choice(EMBEDDED, "default")


def make_plan(
    suites: Sequence[Suite],
    options: RunOptions,
    *,
    agent: Any = None,
    agents: Mapping[str, Any] = NOTHING,
    select: Selection | None = None,
    key: str = "",
) -> Plan:
    """Resolve every agent and evaluator, check every case, and lay out the trials; raises with all problems at once.

    `agents`, by name, are asked instead of the suites' own, each of them every case.
    """
    asked = [item for suite in suites for item in _for_each_agent(suite, agent, agents)]
    problems = ambiguities([item.suite for item in asked])
    planned = [_plan_suite(item, options, problems, select) for item in asked]
    if problems:
        raise InvalidSuite(problems)
    ready = [item for item in planned if item is not None]
    kept = tuple(item for item in ready if item.planned)
    key = fingerprint(key, [[item.suite.name, str(item.suite.path)] for item in ready])
    return Plan(kept, PlannedTrials(kept), key)


def _survey(
    suite: Suite, options: RunOptions = NO_OPTIONS, agent: BaseAgent | None = None, select: Selection | None = None
) -> CaseSurvey:
    chosen = array("Q")
    found = CaseSurvey(chosen=None if select is None else chosen)
    _add_list(found, suite.evaluators)
    for place, case in enumerate(suite.cases):
        _add_list(found, suite.evaluators_of(case))
        lists = tuple([_add_list(found, suite.evaluators_of(case, turn)) for turn in case.turns])
        if case.scenario is not None:
            found.simulated = True
            lists = tuple([_add_list(found, suite.evaluators_of(case, turn)) for turn in case.as_planned.turns])
        if agent is not None and case.skip is None and (reason := agent.check(case)):
            line = line_with(suite.path, case.description or case.id)
            found.misfits.append(Problem(reason, suite.path, line, f"case {case.id!r}"))
        if select is not None and not select(suite, case):
            continue
        chosen.append(place)
        found.scored_alike.setdefault(lists, array("Q")).append(place)
        if case.quarantine is not None:
            found.quarantined.append((case.id, case.quarantine))
        if any(turn.attachments for turn in case.turns):
            _look_at_files(found, suite, case)
        if case.repeat is not None or found.repeats is not None:
            usual = limits_of(options, suite).repeat
            found.repeats = found.repeats or array("Q", [usual] * (len(chosen) - 1))
            found.repeats.append(limits_of(options, suite, case).repeat)
    return found


def _add_list(survey: CaseSurvey, specs: tuple[EvaluatorSpec, ...]) -> tuple[int, ...]:
    ids = tuple([id(spec) for spec in specs])
    survey.specs.setdefault(ids, specs)
    return ids


def _look_at_files(survey: CaseSurvey, suite: Suite, case: Case) -> None:
    """What a file says is taken down before anything runs: an agent may change it."""
    if survey.contents is None:
        from proctor.cases.files import Contents

        survey.contents = Contents(suite.base)
    survey.contents.of(case)


def unresolved(suite: Suite, options: RunOptions = NO_OPTIONS, *, load: bool = False) -> list[Problem]:
    """What a suite names and cannot be found: evaluators, their judges, and the agent if it names or describes one.

    Code that it names is run only with `load`: otherwise its file has to be there and to define the name.
    """
    if not load:
        with without_loading():
            return unresolved(suite, options, load=True)
    problems: list[Problem] = []
    with environment_from(hooks_of(suite).env_files(suite)) if suite.hooks else nullcontext():
        _bind_all(suite, _survey(suite), options, problems)
        problems.extend(_unknown_tools(suite))
        for asked in _for_each_agent(suite, None, NOTHING):
            if asked.suite.agent is None and not hooks_of(suite).describes_agent(suite):
                continue
            agent = _agent_of(asked.suite, None, problems)
            problems.extend([] if agent is None else _survey(suite, agent=agent).misfits)
    return problems


@record
class _AskedSuite:
    """A suite and the agent it is put to."""

    suite: Suite
    agent: Any = None
    """Instead of the suite's own."""
    agent_name: str = ""
    source: str = ""


def _for_each_agent(suite: Suite, agent: Any, agents: Mapping[str, Any]) -> Iterable[_AskedSuite]:
    """The suite once for each agent, under a name of its own where there are several."""
    if agent is not None or not (agents or suite.agents):
        yield _AskedSuite(suite, agent)
        return
    chosen = agents or suite.agents
    for name, reference in chosen.items():
        title = f"{suite.name} [{name}]" if len(chosen) > 1 else suite.name
        own = replace(suite, name=title, agent=suite.agent if agents else reference, agents=NOTHING)
        yield _AskedSuite(own, reference if agents else None, name, suite.name if len(chosen) > 1 else "")


def _plan_suite(
    asked: _AskedSuite, options: RunOptions, problems: list[Problem], select: Selection | None
) -> PlannedSuite | None:
    suite = with_implied_evaluators(asked.suite)
    found = _agent_of(suite, asked.agent, problems)
    survey = _survey(suite, options, found, select)
    bound = _bind_all(suite, survey, options, problems)
    problems.extend(_unknown_tools(suite))
    if found is None:
        return None
    problems.extend(survey.misfits)
    limits = limits_of(options, suite)
    planned = PlannedSuite(suite, found, found.identity, limits, judge_of(options, suite).judge, bound, survey)
    chosen = len(suite.cases) if survey.chosen is None else len(survey.chosen)
    planned.planned = chosen * limits.repeat if survey.repeats is None else sum(survey.repeats)
    planned.quarantined = dated_quarantines(survey.quarantined)
    planned.agent_name, planned.source, planned.given_agent = asked.agent_name, asked.source, asked.agent
    return planned


def _unknown_tools(suite: Suite) -> list[Problem]:
    """Tools that a suite names, to be called again, and that cannot be found."""
    if suite.reexecute is None:
        return []
    from proctor.agents.toolbox import toolbox

    try:
        toolbox(suite.reexecute, suite.base)
    except UsageError as error:
        return [Problem(f"reexecute: {error}", suite.path, line_with(suite.path, "reexecute"))]
    return []


def _agent_of(suite: Suite, override: Any, problems: list[Problem]) -> BaseAgent | None:
    reference, base = (override, Path.cwd()) if override is not None else (suite.agent, suite.base)
    if reference is None and hooks_of(suite).describes_agent(suite):
        return _described(suite, problems)
    if reference is None:
        problems.append(Problem(f"names no agent; {agent_hint(suite)}give one with --agent app.py:agent", suite.path))
        return None
    try:
        return resolve_agent(reference, base)
    except UsageError as error:
        where = None if override is not None else suite.path
        problem = Problem(f"agent: {error}", where, line_of_complaint(where, str(reference), str(error)))
        if problem not in problems:
            problems.append(problem)
        return None


def _described(suite: Suite, problems: list[Problem]) -> BaseAgent | None:
    try:
        return hooks_of(suite).described_agent(suite)
    except InvalidSuite as error:
        problems.extend(error.problems)
        return None


def _bind_all(suite: Suite, survey: CaseSurvey, options: RunOptions, problems: list[Problem]) -> dict[int, Bound]:
    """Every evaluator of the suite, made once however many cases name it."""
    choice = judge_of(options, suite)
    made: dict[str, Bound | None] = {}
    bound: dict[int, Bound] = {}
    for specs in survey.specs.values():
        taken = {bound[id(spec)].title for spec in specs if id(spec) in bound}
        for spec in specs:
            if id(spec) in bound:
                continue
            key = spec_key(spec)
            if key not in made:
                made[key] = _bind(spec, suite, choice, problems)
            ready = made[key]
            if ready is not None:
                bound[id(spec)] = told_apart(ready, taken)
                taken.add(bound[id(spec)].title)
    judged = [ready for ready in made.values() if ready is not None and ready.judged]
    if judged or choice.origin == GIVEN or choice.path is not None:
        problems.extend(
            found for found in judge_problems(suite, judged, choice, fast=options.fast) if found not in problems
        )
    if survey.simulated:
        from proctor.running.simulation.simulated_user import player_problems

        told = {problem.message for problem in problems}
        problems.extend(found for found in player_problems(suite, options) if found.message not in told)
    return bound


def _bind(spec: EvaluatorSpec, suite: Suite, choice: Choice, problems: list[Problem]) -> Bound | None:
    try:
        bound = build(spec, suite.base)
        return with_judge(bound, choice) if bound.judged else bound
    except UsageError as error:
        wrong_part = getattr(error.__cause__, "pointer", ())  # of a matcher in the arguments
        line = next(
            (line for part in (*wrong_part[-1:], spec.name) if (line := line_with(suite.path, str(part)))), None
        )
        problems.append(Problem(str(error), suite.path, line))
        return None
