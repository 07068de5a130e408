"""What is going to happen: which trials, of which agent, scored by what; all that is wrong is found before it runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.agents.agent import BaseAgent
from proctor.agents.resolving import resolve_agent
from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite, Problem, UsageError
from proctor.base.json_data import canonical, fingerprint, plain
from proctor.base.records import record
from proctor.base.references import without_loading
from proctor.cases.evaluator_specs import with_implied
from proctor.cases.suite import NOTHING, Case, EvaluatorSpec, Settings, Suite
from proctor.evaluators.registry import Bound, build
from proctor.results.run import QuarantinedCase, SuiteInfo
from proctor.running.engine.judges import judge_problems, line_of_complaint, line_with, with_judge
from proctor.running.options import (
    DEFAULTS,
    EMBEDDED,
    GIVEN,
    JUDGED_SECONDS,
    NO_SETTINGS,
    VARIABLE,
    Choice,
    Limits,
    RunOptions,
    written_judge,
)
from proctor.running.suite_hooks import agent_hint, hooks_of

if TYPE_CHECKING:
    from proctor.cases.files import Contents

NO_OPTIONS = RunOptions()


@dataclass(slots=True)
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
        judged = any(bound.needs_judge and not bound.inline for bound in self.bound.values())
        return judged or any(case.scenario is not None for case in self.suite.cases)

    def evaluators(self, specs: Iterable[EvaluatorSpec]) -> list[Bound]:
        return [self.bound[id(spec)] for spec in specs]


@record
class PlannedTrial:
    """One trial to be made."""

    suite: PlannedSuite
    case: Case
    number: int
    position: int


@record
class Plan:
    """All trials, in the order of reports."""

    suites: tuple[PlannedSuite, ...]
    trials: Sequence[PlannedTrial]
    key: str
    """Equal for two runs of the same thing, so that one can continue the other."""


def scoring_key(suites: Iterable[PlannedSuite]) -> str:
    """Changes when the same answers could get other scores or another verdict: evaluators, thresholds, criteria."""
    return fingerprint(
        [
            [
                item.suite.name,
                plain(item.suite.criteria),
                sorted({(b.fingerprint, b.threshold) for b in item.bound.values()}),
            ]
            for item in suites
        ]
    )


def evaluator_keys(plan: Plan, *, fast: bool) -> dict[str, dict[str, str]]:
    """By suite and case: changes when the same answer could get another outcome. The case "" stands for the others."""
    found = {item.suite.name: {"": _evaluators_key(item, (item.suite.evaluators,), fast)} for item in plan.suites}
    made: dict[tuple[int, ...], str] = {}
    for planned in plan.trials:
        suite, case = planned.suite.suite, planned.case
        lists = tuple([suite.evaluators_of(case, turn) for turn in case.as_planned.turns])
        known = (id(planned.suite), *map(id, lists))
        if known not in made:
            made[known] = _evaluators_key(planned.suite, lists, fast)
        if made[known] != found[suite.name][""]:
            found[suite.name][case.id] = made[known]
    return found


def _evaluators_key(item: PlannedSuite, lists: Iterable[tuple[EvaluatorSpec, ...]], fast: bool) -> str:
    return fingerprint(
        item.suite.criteria.threshold,
        item.suite.criteria.trials == "mean",
        [
            [
                [bound.title, bound.fingerprint, bound.threshold, bound.spec.gates]
                for bound in item.evaluators(specs)
                if not (fast and bound.needs_judge)
            ]
            for specs in lists
        ],
    )


Selection = Callable[[Suite, Case], bool]


def limits_of(options: RunOptions, suite: Suite, case: Case | None = None) -> Limits:
    """The first who says something wins: caller, case, suite, configuration, default."""
    own = NO_SETTINGS if case is None else Settings(repeat=case.repeat, timeout=case.timeout)
    sources = (options.given, own, suite.settings, options.fallback, DEFAULTS)
    said = {f.name: next(v for s in sources if (v := getattr(s, f.name)) is not None) for f in fields(Settings)}
    for name, least in (("repeat", 1), ("parallel", 1), ("retries", 0), ("max_reply_bytes", 1)):
        if said[name] < least:
            raise UsageError(f"{name} must be at least {least}, not {said[name]}")
    for name in ("timeout", "evaluator_timeout"):
        if not said[name] > 0:
            raise UsageError(f"{name} must be more than 0 seconds, not {said[name]:g}")
    own_wish = any(source.evaluator_timeout is not None for source in sources[:-1])
    return Limits(**said, judged_timeout=said["evaluator_timeout"] if own_wish else JUDGED_SECONDS)


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
    problems = _ambiguities([item.suite for item in asked])
    planned = [_plan_suite(item, options, problems) for item in asked]
    if problems:
        raise InvalidSuite(problems)
    ready = [item for item in planned if item is not None]
    trials: list[PlannedTrial] = []
    for item in ready:
        before, with_attachments = len(trials), _attachments(item.suite)
        for case in item.suite.cases:
            if select is not None and not select(item.suite, case):
                continue
            whole = case if case.evaluators is not None else replace(case, evaluators=item.suite.evaluators)
            whole = whole if with_attachments is None else with_attachments.of(whole)
            repeat = item.limits.repeat if case.repeat is None else limits_of(options, item.suite, case).repeat
            first = len(trials)
            trials.extend(PlannedTrial(item, whole, n + 1, first + n) for n in range(repeat))
        item.planned = len(trials) - before
        item.quarantined = _quarantined(trials[before:])
    kept = tuple(item for item in ready if item.planned)
    return Plan(kept, trials, fingerprint(key, [[item.suite.name, str(item.suite.path)] for item in ready]))


def _quarantined(trials: Sequence[PlannedTrial]) -> tuple[QuarantinedCase, ...]:
    """Those that run; whether a date has passed is decided now, and kept with the run."""
    cases = {trial.case.id: trial.case.quarantine for trial in trials if trial.case.quarantine is not None}
    if not cases:
        return ()
    from proctor.cases.quarantine_file import is_over

    return tuple(
        QuarantinedCase(case, item.reason, item.until, item.owner, is_over(item))
        for case, item in cases.items()
        if item is not None
    )


def _attachments(suite: Suite) -> Contents | None:
    if not any(turn.attachments for case in suite.cases for turn in case.turns):
        return None
    from proctor.cases.files import Contents

    return Contents(suite.base)


def _ambiguities(suites: Sequence[Suite]) -> list[Problem]:
    """What a file cannot say but a program can: nothing to ask, or two things under one address."""
    problems: list[Problem] = []
    for name, count in Counter(suite.name for suite in suites).items():
        if count > 1:
            problems.append(Problem(f"more than one suite is called {name!r}; give each a name of its own"))
    for suite in suites:
        place = f"suite {suite.name!r}"
        if not suite.cases:
            problems.append(Problem("has no cases", suite.path, where=place))
        for case_id, count in Counter(case.id for case in suite.cases).items():
            if count > 1 or not case_id.strip():
                wrong = "is given more than once" if count > 1 else "is blank"
                problems.append(Problem(f"has the case id {case_id!r}, which {wrong}", suite.path, where=place))
        problems.extend(
            Problem(f"has the case {case.id!r}, which has no turns", suite.path, where=place)
            for case in suite.cases
            if not case.turns
        )
    return problems


def _scored(suite: Suite) -> Suite:
    """Cases without an evaluator are scored by what they expect, as in files."""
    if suite.evaluators or all(case.evaluators is not None for case in suite.cases):
        return suite
    cases = (
        case
        if case.evaluators is not None
        else replace(case, evaluators=with_implied((), case.turns, final_state=case.final_state is not None))
        for case in suite.cases
    )
    return replace(suite, cases=tuple(cases))


def unresolved(suite: Suite, options: RunOptions = NO_OPTIONS, *, load: bool = False) -> list[Problem]:
    """What a suite names and cannot be found: evaluators, their judges, and the agent if it names or describes one.

    Code that it names is run only with `load`: otherwise its file has to be there and to define the name.
    """
    if not load:
        with without_loading():
            return unresolved(suite, options, load=True)
    problems: list[Problem] = []
    with environment_from(hooks_of(suite).env_files(suite)) if suite.hooks else nullcontext():
        _bind_all(suite, options, problems)
        problems.extend(_unknown_tools(suite))
        for asked in _for_each_agent(suite, None, NOTHING):
            if asked.suite.agent is None and not hooks_of(suite).describes_agent(suite):
                continue
            agent = _agent_of(asked.suite, None, problems)
            problems.extend([] if agent is None else _misfits(suite, agent))
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


def _plan_suite(asked: _AskedSuite, options: RunOptions, problems: list[Problem]) -> PlannedSuite | None:
    suite = _scored(asked.suite)
    found = _agent_of(suite, asked.agent, problems)
    bound = _bind_all(suite, options, problems)
    problems.extend(_unknown_tools(suite))
    if found is None:
        return None
    judge = judge_of(options, suite).judge
    limits = limits_of(options, suite)
    planned = PlannedSuite(suite, found, found.identity, limits, judge, bound)
    planned.agent_name, planned.source, planned.given_agent = asked.agent_name, asked.source, asked.agent
    problems.extend(_misfits(suite, found))
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


def _bind_all(suite: Suite, options: RunOptions, problems: list[Problem]) -> dict[int, Bound]:
    """Every evaluator of the suite, made once however many cases name it."""
    choice = judge_of(options, suite)
    made: dict[str, Bound | None] = {}
    bound: dict[int, Bound] = {}
    for specs in _spec_lists(suite):
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
    if any(case.scenario is not None for case in suite.cases):
        from proctor.running.simulation.simulated_user import player_problems

        told = {problem.message for problem in problems}
        problems.extend(found for found in player_problems(suite, options) if found.message not in told)
    return bound


def told_apart(bound: Bound, taken: set[str]) -> Bound:
    """Two evaluators of one list have two names: scores are summed up by name."""
    title, number = bound.title, 2
    while title in taken:
        title, number = f"{bound.title} #{number}", number + 1
    return bound if title == bound.title else replace(bound, title=title)


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


def _spec_lists(suite: Suite) -> Iterable[tuple[EvaluatorSpec, ...]]:
    yield suite.evaluators
    for case in suite.cases:
        if case.evaluators is not None:
            yield case.evaluators
        for turn in case.turns:
            if turn.evaluators is not None:
                yield turn.evaluators


def _misfits(suite: Suite, agent: BaseAgent) -> list[Problem]:
    """Cases whose input the agent itself says it cannot take."""
    misfits = ((case, agent.check(case)) for case in suite.cases if case.skip is None)
    return [
        Problem(reason, suite.path, line_with(suite.path, case.description or case.id), f"case {case.id!r}")
        for case, reason in misfits
        if reason
    ]


def spec_key(spec: EvaluatorSpec) -> str:
    return canonical(
        [
            spec.name,
            plain(spec.arguments),
            spec.threshold,
            spec.label,
            spec.gates,
            spec.scope,
            spec.output,
            spec.timeout,
            spec.path,
            spec.retries,
            spec.optional,
        ]
    )
