"""What is going to happen: which trials, of which agent, scored by what. Everything wrong is found before it runs.

`make_plan` resolves every agent and evaluator, checks every case, collects all problems, and lays out the trials. The
plan is frozen: whoever needs another one, with other agents or other trials, makes it with `replace` or the methods of
`Plan`. Where an agent runs (here, in a forked process, on a worker) is only a matter of which agents a plan holds.

Each `PlannedTrial` holds the evaluators that score it, so that scoring looks nothing up. Most cases of a suite are
scored by the same lists, and equal lists are one tuple: a plan of 100,000 cases holds a handful of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from proctor.agents.agent import BaseAgent
from proctor.agents.resolve import check_agent, resolve_agent
from proctor.agents.tools import check_tools, find_tools
from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite, Problem, UsageError
from proctor.base.json_data import fingerprint
from proctor.base.positions import Position, pointer_text
from proctor.cases.evaluator_specs import imply_evaluators, spec_key
from proctor.cases.files.digests import FileDigests
from proctor.cases.formats import format_named
from proctor.cases.suite import Case, EvaluatorSpec, Quarantine, Suite, duplicate_problems
from proctor.evaluators.registry import (
    ResolvedEvaluator,
    is_user_code,
    resolve_callable,
    resolve_evaluator,
    with_unique_title,
)
from proctor.judging.choosing import EVALUATOR, InvalidJudge
from proctor.results.run import QuarantinedCase, SuiteInfo, quarantined_cases
from proctor.running.settings import NO_OPTIONS, RunOptions, TrialLimits, limits_for
from proctor.running.simulated_user import user_model_problems
from proctor.running.suite_judges import invalid_judge_problem, judge_problems, judge_sources, position_of

Evaluators = tuple[ResolvedEvaluator, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CaseEvaluators:
    """The evaluators of a case: its own or its suite's, and those of turns that have a list of their own."""

    shared: Evaluators
    """The list of the case."""
    of_turns: tuple[Evaluators | None, ...] = (None,)
    """By turn: the list of the turn alone, or `None` if it has the case's."""

    def assign(self, turns: int) -> tuple[list[Evaluators], Evaluators]:
        """The evaluators of each of so many turns, and those that look at the whole conversation.

        A turn with a list of its own replaces the case's for that turn, but not the evaluators that look at the whole.
        The only turn of a case is the whole conversation, so that its evaluators stay in the order they are listed in.
        A simulated user decides how many turns there are; all of those have the case's list.
        """
        own = [self.of_turns[at] if at < len(self.of_turns) else None for at in range(turns)]
        if own == [None]:
            return [self.shared], ()
        of_turn = tuple(bound for bound in self.shared if bound.scope == "turn")
        of_case = tuple(bound for bound in self.shared if bound.scope == "case")
        return [of_turn if listed is None else listed for listed in own], of_case

    def lists(self) -> Iterator[Evaluators]:
        """The list that each turn has, whatever its evaluators look at."""
        return (self.shared if listed is None else listed for listed in self.of_turns)

    def __iter__(self) -> Iterator[ResolvedEvaluator]:
        """Every evaluator that scores the case, each once."""
        of_turns, of_case = self.assign(len(self.of_turns))
        return iter(dict.fromkeys(bound for bounds in (*of_turns, of_case) for bound in bounds))


@dataclass(frozen=True, slots=True, eq=False)
class PlannedSuite:
    """A suite with its agent and its evaluators ready. Two of them are never equal, so they serve as keys."""

    suite: Suite
    agent: BaseAgent
    agent_fingerprint: str
    limits: TrialLimits
    max_sessions: int
    """How many trials of the suite run at a time: `limits.parallel`, unless workers offer room for more."""
    evaluators: Evaluators = ()
    """Every evaluator of the suite's cases, each once."""
    has_simulated_user: bool = False
    """Whether a model plays the user of a case."""
    planned: int = 0
    """Trials, repeats included."""
    not_reused_because: str = ""
    """Why answers of earlier runs are not reused, if that was requested and is not possible."""
    quarantined: tuple[QuarantinedCase, ...] = ()
    agent_name: str = ""
    """What the user calls the agent, if that is not its own name."""
    source: str = ""
    """What its file calls the suite, if the suite stands in the plan once for each of several agents."""
    agent_override: Any = None
    """The agent that was passed instead of the suite's own, as it was passed: another process finds it by this."""

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
        return self.has_simulated_user or any(bound.needs_judge and not bound.runs_inline for bound in self.evaluators)


@dataclass(frozen=True, slots=True, eq=False)
class PlannedTrial:
    """One trial to be run: a case of a suite, and the evaluators that score it."""

    suite: PlannedSuite
    case: Case
    evaluators: CaseEvaluators
    number: int
    """Which repetition, from 1."""
    position: int
    """The place in the order of reports."""

    @property
    def address(self) -> tuple[str, str, int]:
        return self.suite.suite.name, self.case.id, self.number


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """All trials, in the order of reports."""

    suites: tuple[PlannedSuite, ...]
    trials: tuple[PlannedTrial, ...]
    key: str
    """Equal for two runs of the same thing, so that one can continue the other."""

    def with_suites(self, change: Callable[[PlannedSuite], PlannedSuite]) -> Plan:
        """The same plan with each suite as `change` makes it; its trials belong to the changed suites."""
        changed = {item: change(item) for item in self.suites}
        trials = tuple(replace(trial, suite=changed[trial.suite]) for trial in self.trials)
        return replace(self, suites=tuple(changed.values()), trials=trials)

    def with_agents(
        self,
        agent_for: Callable[[PlannedSuite], BaseAgent],
        max_sessions: Callable[[PlannedSuite], int] | None = None,
    ) -> Plan:
        """The same plan with another agent for each suite, which stands for the suite's own in another process.

        `max_sessions` says how many trials of a suite then run at a time, if that is not what it was.
        """

        def change(item: PlannedSuite) -> PlannedSuite:
            room = item.max_sessions if max_sessions is None else max_sessions(item)
            return replace(item, agent=agent_for(item), max_sessions=room)

        return self.with_suites(change)

    def with_trials(self, trials: Iterable[PlannedTrial]) -> Plan:
        """The same suites with these trials instead, which are counted anew."""
        chosen = tuple(trials)
        counts = Counter(trial.suite for trial in chosen)
        return replace(self, trials=chosen).with_suites(lambda item: replace(item, planned=counts[item]))


Selection = Callable[[Suite, Case], bool]


def make_plan(
    suites: Sequence[Suite],
    options: RunOptions,
    *,
    agent: Any = None,
    agents: Mapping[str, Any] = MappingProxyType({}),
    select: Selection | None = None,
    key: str = "",
) -> Plan:
    """Resolve every agent and evaluator, check every case, and lay out the trials; raises with all problems at once.

    `agent`, or each of `agents` by name, is asked every case instead of the suites' own.
    """
    requested = [item for suite in suites for item in _for_each_agent(suite, agent, agents)]
    problems = duplicate_problems([item.suite for item in requested])
    planned = [_plan_suite(item, options, problems, select) for item in requested]
    if problems:
        raise InvalidSuite(problems)
    ready = [item for item in planned if item is not None]
    key = fingerprint(key, [[item.suite.name, str(item.suite.path)] for item, _ in ready])
    trials: list[PlannedTrial] = []
    for item, cases in ready:
        for case, evaluators, repeat in cases:
            trials += [PlannedTrial(item, case, evaluators, n, len(trials) + n - 1) for n in range(1, repeat + 1)]
    return Plan(tuple(item for item, _ in ready if item.planned), tuple(trials), key)


def check_references(suite: Suite, options: RunOptions = NO_OPTIONS, *, load: bool = False) -> list[Problem]:
    """What a suite names and cannot be found: evaluators, their judges, and the agent if it names or describes one.

    Code that it names is run only with `load`: otherwise its file has to be there and to define the name.
    """
    problems: list[Problem] = []
    with environment_from(suite.env_files):
        resolver = _EvaluatorResolver(suite, options, problems, load=load)
        for case in suite.cases:
            resolver.of_case(case)
        resolver.check_judges()
        problems.extend(_unknown_tools(suite, load=load))
        for item in _for_each_agent(suite, None, {}):
            if item.suite.agent is None:
                continue
            agent = _agent_of(item.suite, None, problems, load=load)
            if agent is not None:
                problems.extend(_unsupported_cases(suite, agent))
    return problems


@dataclass(frozen=True, slots=True)
class _SuiteWithAgent:
    """A suite and the agent it is put to."""

    suite: Suite
    agent: Any = None
    """Instead of the suite's own."""
    agent_name: str = ""
    source: str = ""


def _for_each_agent(suite: Suite, agent: Any, agents: Mapping[str, Any]) -> Iterable[_SuiteWithAgent]:
    """The suite once for each agent, with the agent in its name if there are several."""
    if agent is not None or not (agents or suite.agents):
        yield _SuiteWithAgent(suite, agent)
        return
    chosen = agents or suite.agents
    for index, (name, reference) in enumerate(chosen.items()):
        title = f"{suite.name} [{name}]" if len(chosen) > 1 else suite.name
        own = replace(suite, name=title, agents={})
        if not agents:
            places = f"agents.{name}", f"agents[{index}]"
            own = replace(own, agent=reference, key_positions=_with_agent_at(suite.key_positions, places))
        yield _SuiteWithAgent(own, reference if agents else None, name, suite.name if len(chosen) > 1 else "")


def _with_agent_at(positions: Mapping[str, Position], prefixes: tuple[str, ...]) -> dict[str, Position]:
    """The positions with those of one of several agents as the positions of `agent`."""
    own = {
        f"agent{place.removeprefix(prefix)}": position
        for place, position in positions.items()
        for prefix in prefixes
        if place == prefix or place.startswith((f"{prefix}.", f"{prefix}["))
    }
    return {**positions, **own}


_PlannedCases = list[tuple[Case, CaseEvaluators, int]]
"""The cases to run, each with its evaluators and the number of its trials."""


def _plan_suite(
    requested: _SuiteWithAgent, options: RunOptions, problems: list[Problem], select: Selection | None
) -> tuple[PlannedSuite, _PlannedCases] | None:
    suite = imply_evaluators(requested.suite)
    agent = _agent_of(suite, requested.agent, problems)
    resolver = _EvaluatorResolver(suite, options, problems)
    cases = _planned_cases(suite, options, resolver, select)
    resolver.check_judges()
    problems.extend(_unknown_tools(suite))
    if agent is None:
        return None
    problems.extend(_unsupported_cases(suite, agent))
    limits = limits_for(options, suite)
    quarantined: list[tuple[str, Quarantine]] = [
        (case.id, case.quarantine) for case, _, _ in cases if case.quarantine is not None
    ]
    planned = PlannedSuite(
        suite=suite,
        agent=agent,
        agent_fingerprint=agent.identity,
        limits=limits,
        max_sessions=limits.parallel,
        evaluators=resolver.all_evaluators(),
        has_simulated_user=any(case.scenario is not None for case in suite.cases),
        planned=sum(repeat for _, _, repeat in cases),
        quarantined=quarantined_cases(quarantined),
        agent_name=requested.agent_name,
        source=requested.source,
        agent_override=requested.agent,
    )
    return planned, cases


def _planned_cases(
    suite: Suite, options: RunOptions, resolver: _EvaluatorResolver, select: Selection | None
) -> _PlannedCases:
    """The selected cases. Evaluators of the others are resolved all the same: a typo there is a problem too."""
    usual = limits_for(options, suite).repeat
    digests = FileDigests(suite.base)
    found: _PlannedCases = []
    for case in suite.cases:
        evaluators = resolver.of_case(case)
        if select is not None and not select(suite, case):
            continue
        repeat = usual if case.repeat is None else limits_for(options, suite, case).repeat
        whole = case if case.evaluators is not None else replace(case, evaluators=suite.evaluators)
        # The fingerprints of files are taken before anything runs, since an agent may change its files.
        found.append((digests.with_digests(whole), evaluators, repeat))
    return found


def _unsupported_cases(suite: Suite, agent: BaseAgent) -> list[Problem]:
    """Cases that cannot be put to this agent."""
    return [
        Problem.at(case.position, reason, f"case {case.id!r}", path=suite.path)
        for case in suite.cases
        if case.skip is None and (reason := agent.check(case))
    ]


def _unknown_tools(suite: Suite, *, load: bool = True) -> list[Problem]:
    """Tools that a suite wants to be called again, and that cannot be found."""
    if suite.rerun_tools is None:
        return []
    try:
        (find_tools if load else check_tools)(suite.rerun_tools, suite.base)
    except UsageError as error:
        position = position_of(suite, "rerun_tools", suite.rerun_tools, str(error))
        return [Problem.at(position, f"rerun_tools: {error}", path=suite.path)]
    return []


def _agent_of(suite: Suite, override: Any, problems: list[Problem], *, load: bool = True) -> BaseAgent | None:
    """The agent of a suite; `None` if there is a problem, or if it is code that is only located and not loaded."""
    reference, base = (override, Path.cwd()) if override is not None else (suite.agent, suite.base)
    if reference is None:
        problems.append(Problem(f"names no agent; {_agent_hint(suite)}give one with --agent app.py:agent", suite.path))
        return None
    try:
        return resolve_agent(reference, base) if load else check_agent(reference, base)
    except InvalidSuite as error:
        problems.extend(problem if override is not None else suite.located(problem) for problem in error.problems)
        return None
    except UsageError as error:
        if override is not None:
            problem = Problem(f"agent: {error}")
        else:
            position = position_of(suite, "agent", reference, str(error))
            problem = Problem.at(position, f"agent: {error}", path=suite.path)
        if problem not in problems:
            problems.append(problem)
        return None


def _agent_hint(suite: Suite) -> str:
    """How to name an agent in a file of this format, as the middle of a sentence."""
    known = format_named(suite.format)
    return "" if known is None else known.agent_hint


class _EvaluatorResolver:
    """Resolves the lists of evaluators of one suite, each evaluator and each list once however many cases name it.

    Scores are summed up by title, so the evaluators of a list have titles of their own ("ExactMatch #2"), and an
    evaluator that a case takes over from its suite, or a turn from its case, keeps the title it has there.

    Without `load`, evaluators of the user's own are located and left out.
    """

    def __init__(self, suite: Suite, options: RunOptions, problems: list[Problem], *, load: bool = True) -> None:
        """Without `load`, code of the user's is only located: its evaluators are checked and left out."""
        self._load = load
        self._sources = judge_sources(options, suite)
        self._suite = suite
        self._options = options
        self._problems = problems
        self._resolved: dict[str, ResolvedEvaluator | None] = {}
        """By the key of the spec; `None` for one that cannot be resolved, whose problem is noted."""
        self._lists: dict[tuple[Evaluators, tuple[str, ...]], Evaluators] = {}
        """By the list above it, whose titles it takes over, and the keys of its specs."""
        self._of_cases: dict[tuple[Evaluators, tuple[Evaluators | None, ...]], CaseEvaluators] = {}
        self._keys: dict[ResolvedEvaluator, str] = {}
        """The key of the spec that each evaluator was resolved from."""
        self._positions: dict[str, dict[Position | None, None]] = {}
        """By the key of a spec: everywhere that the suite names it."""
        self._errors: dict[str, tuple[str, str, str]] = {}
        """By the key of a spec: why it cannot be resolved, the argument at fault, and how people call the place."""
        self._of_suite = self._list((), suite.evaluators)

    def of_case(self, case: Case) -> CaseEvaluators:
        shared = self._of_suite if case.evaluators is None else self._list(self._of_suite, case.evaluators)
        of_turns = tuple(
            [
                None if turn.evaluators is None else self._list(shared, turn.evaluators)
                for turn in case.before_simulation.turns
            ]
        )
        return self._of_cases.setdefault((shared, of_turns), CaseEvaluators(shared, of_turns))

    def all_evaluators(self) -> Evaluators:
        return tuple(dict.fromkeys(bound for bounds in self._lists.values() for bound in bounds))

    def check_judges(self) -> None:
        """Note judges, and models that play a user, that are named and cannot be had."""
        judged = [bound for bound in self._resolved.values() if bound is not None and bound.asks_judge]
        found = judge_problems(self._suite, judged, self._sources, self._positions_of)
        self._problems.extend(problem for problem in found if problem not in self._problems)
        known = {problem.message for problem in self._problems}
        found = user_model_problems(self._suite, self._options)
        self._problems.extend(problem for problem in found if problem.message not in known)

    def _positions_of(self, bound: ResolvedEvaluator) -> Iterable[Position | None]:
        keys = (key for key, resolved in self._resolved.items() if resolved is bound)
        return (position for key in keys for position in self._positions[key])

    def _list(self, above: Evaluators, specs: tuple[EvaluatorSpec, ...]) -> Evaluators:
        keys = tuple([spec_key(spec) for spec in specs])
        if (above, keys) not in self._lists:
            self._lists[above, keys] = self._with_titles(above, specs, keys)
        for spec, key in zip(specs, keys, strict=True):
            self._note_position(spec, key)
        return self._lists[above, keys]

    def _note_position(self, spec: EvaluatorSpec, key: str) -> None:
        """Each place that names what cannot be resolved is a problem of its own."""
        positions = self._positions.setdefault(key, {})
        if spec.position not in positions:
            positions[spec.position] = None
            if key in self._errors:
                message, argument, place = self._errors[key]
                position = spec.argument_positions.get(argument, spec.position) if argument else spec.position
                self._problems.append(Problem.at(position, message, place, path=self._suite.path))

    def _with_titles(self, above: Evaluators, specs: tuple[EvaluatorSpec, ...], keys: tuple[str, ...]) -> Evaluators:
        inherited = {self._keys[bound]: bound for bound in above}
        taken = {inherited[key].title for key in keys if key in inherited}
        found: list[ResolvedEvaluator] = []
        for spec, key in zip(specs, keys, strict=True):
            bound = inherited.pop(key, None)
            if bound is None and (resolved := self._resolve(spec, key)) is not None:
                bound = with_unique_title(resolved, taken)
                taken.add(bound.title)
                self._keys[bound] = key
            if bound is not None:
                found.append(bound)
        return tuple(found)

    def _resolve(self, spec: EvaluatorSpec, key: str) -> ResolvedEvaluator | None:
        """The evaluator of a spec; `None` if it cannot be resolved, or if it is code that is only located."""
        if key not in self._resolved:
            self._resolved[key] = None
            given, threshold = self._options.evaluators.get(spec.title), self._suite.criteria.threshold
            try:
                if given is not None:
                    bare = replace(spec, arguments={}, label=spec.title, report_only=False)
                    self._resolved[key] = resolve_callable(bare, given, self._sources, suite_threshold=threshold)
                elif self._load or not is_user_code(spec, self._suite.base):
                    base = self._suite.base
                    self._resolved[key] = resolve_evaluator(spec, base, self._sources, suite_threshold=threshold)
            except InvalidJudge as error:
                self._note_judge(spec, key, error)
            except UsageError as error:
                wrong_argument = getattr(error.__cause__, "pointer", ())  # of a matcher that cannot be read
                self._errors[key] = str(error), pointer_text(wrong_argument), ""
        return self._resolved[key]

    def _note_judge(self, spec: EvaluatorSpec, key: str, error: InvalidJudge) -> None:
        """A judge that is not valid: a problem of the evaluator that names it, else of the place that does."""
        if error.written.origin == EVALUATOR:
            place = f"evaluator {spec.title!r}:{' model:' if error.key == 'model' else ''}"
            self._errors[key] = str(error), error.key, place
        elif (problem := invalid_judge_problem(error, self._suite)) not in self._problems:
            self._problems.append(problem)
