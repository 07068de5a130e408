"""The plan of a run: which trials, of which agents, scored by which evaluators.

`make_plan` resolves every agent and evaluator, checks every case, collects all problems before anything runs, and lays
out the trials. A plan is frozen: to run other trials or other agents, make another plan with `replace` or the methods
of `Plan`. Where an agent runs (here, in a forked process, on a worker) only depends on which `Agent` object is in the
plan.

Each `PlannedTrial` holds the evaluators that score it, so that scoring looks nothing up. Most cases of a suite have the
same evaluators, and equal lists are one tuple: a plan of 100,000 cases holds a handful of them.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from proctor.agents.agent import BaseAgent
from proctor.agents.opened_files import digests_of_patterns, recording_loading
from proctor.agents.resolve import check_agent, resolve_agent
from proctor.agents.tools import check_tools, find_tools
from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite, Problem, UnusedExpectation, UsageError
from proctor.base.functions import reference_of
from proctor.base.json_data import UNSET, fingerprint
from proctor.base.masking import mask
from proctor.base.positions import Position, pointer_text
from proctor.cases.arms import Arm, agent_with_settings, read_arm
from proctor.cases.evaluator_specs import spec_key
from proctor.cases.files.boundaries import allowed_folders, is_outside, outside_message
from proctor.cases.files.digests import FileDigests
from proctor.cases.formats import format_named
from proctor.cases.identity import with_masked_ids
from proctor.cases.suite import (
    Case,
    EvaluatorSpec,
    Quarantine,
    Settings,
    Suite,
    duplicate_problems,
    with_complete_evaluators,
)
from proctor.evaluators.registry import (
    ResolvedEvaluator,
    is_user_code,
    resolve_callable,
    resolve_evaluator,
    with_unique_title,
)
from proctor.judging.choosing import EVALUATOR, InvalidJudge
from proctor.results.suite_info import QuarantinedCase, SuiteInfo, quarantined_cases
from proctor.running.arms.versions import OwnProcess, VersionAgent, agent_name, own_process
from proctor.running.settings import NO_OPTIONS, RunOptions, TrialLimits, limits_for
from proctor.running.simulated_user import user_model_problems
from proctor.running.suite_judges import invalid_judge_problem, judge_problems, judge_sources, position_of

Evaluators = tuple[ResolvedEvaluator, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CaseEvaluators:
    """The evaluators of a case: its own or its suite's, and those of turns that have their own list."""

    shared: Evaluators
    """The list of the case."""
    of_turns: tuple[Evaluators | None, ...] = (None,)
    """By turn: the turn's own list, or `None` if it uses the case's."""

    def assign(self, turns: int) -> tuple[list[Evaluators], Evaluators]:
        """The evaluators of each turn, for a number of turns, and those that score the whole conversation.

        A turn's own list replaces the case's evaluators for that turn, except those that score the whole conversation.
        If a case has a single turn, that turn is the whole conversation, and its evaluators keep their order.
        A simulated user decides how many turns there are; all of them use the case's list.
        """
        own = [self.of_turns[at] if at < len(self.of_turns) else None for at in range(turns)]
        if own == [None]:
            return [self.shared], ()
        of_turn = tuple(evaluator for evaluator in self.shared if evaluator.scope == "turn")
        of_case = tuple(evaluator for evaluator in self.shared if evaluator.scope == "case")
        return [of_turn if turn_list is None else turn_list for turn_list in own], of_case

    def lists(self) -> Iterator[Evaluators]:
        """The list of each turn, including evaluators that score the whole conversation."""
        return (self.shared if turn_list is None else turn_list for turn_list in self.of_turns)

    def __iter__(self) -> Iterator[ResolvedEvaluator]:
        """Every evaluator that scores the case, each once."""
        of_turns, of_case = self.assign(len(self.of_turns))
        return iter(dict.fromkeys(evaluator for group in (*of_turns, of_case) for evaluator in group))


@dataclass(frozen=True, slots=True, eq=False)
class PlannedSuite:
    """A suite with its agent and its evaluators ready. Compared by identity, so that it can be a dictionary key."""

    suite: Suite
    agent: BaseAgent
    agent_fingerprint: str
    limits: TrialLimits
    max_sessions: int
    """How many trials of the suite run in parallel: `limits.parallel`, or more if there are workers."""
    evaluators: Evaluators = ()
    """Every evaluator of the suite's cases, each once."""
    has_simulated_user: bool = False
    """Whether a model simulates the user of a case."""
    planned: int = 0
    """The number of trials, repeats included."""
    not_reused_because: str = ""
    """Why answers of earlier runs are not reused, if `--reuse` was requested and is not possible."""
    unknown_to_reuse: str = ""
    """What `--reuse` cannot know about the agent, for the trials that it reuses."""
    quarantined: tuple[QuarantinedCase, ...] = ()
    agent_name: str = ""
    """The user's name for the agent, if it differs from the agent's own."""
    source: str = ""
    """The name of the suite in its file, if the plan has the suite once per arm."""
    agent_override: Any = None
    """The agent that was passed instead of the suite's own, unresolved, so that other processes can resolve it."""
    process: OwnProcess | None = None
    """The process that its arm runs in, if that is not the process of the run."""

    @property
    def info(self) -> SuiteInfo:
        suite = self.suite
        return SuiteInfo(
            name=suite.name,
            path=None if suite.path is None else str(suite.path),
            format=suite.format,
            agent=mask(self.agent_name or self.agent.name),  # of a command, it is the whole command line
            agent_fingerprint=self.agent_fingerprint,
            criteria=suite.criteria,
            cases=len(suite.cases),
            planned=self.planned,
            quarantined=self.quarantined,
            source=self.source,
            config="" if suite.config is None else str(suite.config),
            version="" if self.process is None else self.process.version,
            reference=mask(self.agent.name) if self.source else "",
        )

    @property
    def arm(self) -> str:
        """The name of its arm, if the plan compares several; otherwise empty."""
        return self.agent_name if self.source else ""

    @property
    def asks_models(self) -> bool:
        """Whether an evaluator uses a judge, or a model simulates the user."""
        return self.has_simulated_user or any(
            evaluator.needs_judge and not evaluator.runs_inline for evaluator in self.evaluators
        )


@dataclass(frozen=True, slots=True, eq=False)
class PlannedTrial:
    """One trial to run: a case of a suite, and the evaluators that score it."""

    suite: PlannedSuite
    case: Case
    evaluators: CaseEvaluators
    number: int
    """The number of this trial of the case, from 1."""
    position: int
    """The position in reports."""

    @property
    def address(self) -> tuple[str, str, int]:
        return self.suite.suite.name, self.case.id, self.number

    def follow_up(self, number: int) -> PlannedTrial:
        """A further trial of the same case; this one is the first."""
        return replace(self, number=number, position=self.position + number - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """All trials, in the order in which reports show them."""

    suites: tuple[PlannedSuite, ...]
    trials: tuple[PlannedTrial, ...]
    key: str
    """The same for two runs of the same plan, so that one can resume the other."""

    def with_suites(self, change: Callable[[PlannedSuite], PlannedSuite]) -> Plan:
        """The same plan with every suite changed by `change`; the trials refer to the changed suites."""
        changed = {item: change(item) for item in self.suites}
        trials = tuple(replace(trial, suite=changed[trial.suite]) for trial in self.trials)
        return replace(self, suites=tuple(changed.values()), trials=trials)

    def with_agents(
        self,
        agent_for: Callable[[PlannedSuite], BaseAgent],
        max_sessions: Callable[[PlannedSuite], int] | None = None,
    ) -> Plan:
        """The same plan with `agent_for(suite)` as the agent of each suite, such as one that runs in another process.

        `max_sessions(suite)` is how many trials of a suite then run in parallel; without it, as many as before.
        """

        def change(item: PlannedSuite) -> PlannedSuite:
            limit = item.max_sessions if max_sessions is None else max_sessions(item)
            return replace(item, agent=agent_for(item), max_sessions=limit)

        return self.with_suites(change)

    def with_trials(self, trials: Iterable[PlannedTrial]) -> Plan:
        """The same suites with these trials instead; updates the number of trials of each suite."""
        chosen = tuple(trials)
        counts = Counter(trial.suite for trial in chosen)
        return replace(self, trials=chosen).with_suites(lambda item: replace(item, planned=counts[item]))


Selection = Callable[[Suite, Case], bool]


def make_plan(
    suites: Sequence[Suite],
    options: RunOptions,
    *,
    agent: Any = None,
    arms: Mapping[str, Any] = MappingProxyType({}),
    select: Selection | None = None,
    key: str = "",
) -> Plan:
    """Resolve every agent and evaluator, check every case, and lay out the trials.

    Raises one `InvalidSuite` with all problems. `agent` runs every case instead of the suites' own agents; so does each
    of `arms`, by name, with `agent` for those that name none.
    """
    problems: list[Problem] = []
    suites = [with_masked_ids(suite) for suite in suites]
    requested = [item for suite in suites for item in _for_each_arm(suite, agent, arms, problems, options)]
    problems += duplicate_problems([item.suite for item in requested])
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
    """Problems of what a suite names: evaluators, their judges, tools, and the agent if it names one.

    Imports the user's code only with `load`. Otherwise it checks that the file exists and defines the name.
    """
    problems: list[Problem] = []
    with environment_from(suite.env_files):
        suite = with_complete_evaluators(suite)
        resolver = _EvaluatorResolver(suite, options, problems, load=load)
        for case in suite.cases:
            resolver.evaluators_for(case)
        resolver.check_judges()
        problems.extend(_unknown_tools(suite, load=load))
        problems.extend([*_files_outside(suite), *_missing_dependencies(suite)])
        for item in _for_each_arm(suite, None, {}, problems, options):
            if item.suite.agent is None or (item.process is not None and item.process.ref):
                continue
            agent = _agent_of(item.suite, None, problems, load=load)
            if agent is not None:
                problems.extend(_unsupported_cases(suite, agent))
    return problems


@dataclass(frozen=True, slots=True)
class _SuiteWithAgent:
    """A suite and the agent that runs it."""

    suite: Suite
    agent: Any = None
    """Instead of the suite's own."""
    agent_name: str = ""
    source: str = ""
    process: OwnProcess | None = None


def _for_each_arm(
    suite: Suite, agent: Any, arms: Mapping[str, Any], problems: list[Problem], options: RunOptions
) -> Iterable[_SuiteWithAgent]:
    """The suite once per arm, with the arm in its name if there are several."""
    if not arms and (agent is not None or not suite.arms):
        yield _SuiteWithAgent(suite, agent)
        return
    chosen = arms or suite.arms
    read: dict[str, Arm] = {}
    for name, value in chosen.items():
        try:
            read[name] = read_arm(value)
        except UsageError as error:
            position = None if arms else suite.key_positions.get(f"arms.{name}")
            problem = Problem.at(position, f"arm {name!r} {error}", path=None if arms else suite.path)
            problems += [] if problem in problems else [problem]
    in_processes = any(arm.needs_process for arm in read.values())
    for index, (name, arm) in enumerate(read.items()):
        named = suite if len(chosen) == 1 else replace(suite, name=f"{suite.name} [{name}]")
        try:
            item = _with_arm(
                named, agent, (index, name, arm), options, in_processes=in_processes, is_override=bool(arms)
            )
            yield replace(item, source=suite.name if len(chosen) > 1 else "")
        except UsageError as error:
            problems.append(Problem(f"arm {name!r}: {error}", None if arms else suite.path))


def _with_arm(
    suite: Suite,
    agent: Any,
    numbered: tuple[int, str, Arm],
    options: RunOptions,
    *,
    in_processes: bool,
    is_override: bool,
) -> _SuiteWithAgent:
    """The suite with one of its arms; raises `UsageError`.

    If `in_processes`, an arm of the suite needs its own process, and so all of them get one, if their agents are not
    objects. With `is_override`, the arms are not the suite's own, and relative paths start at the working folder.
    """
    index, name, arm = numbered
    own = replace(suite, arms={}, settings=_combined(suite.settings, arm.settings))
    override = arm.agent if is_override and arm.agent is not None else agent
    if override is None:
        reference = next((item for item in (arm.agent, suite.agent, options.default_agent) if item is not None), None)
        own = replace(own, agent=agent_with_settings(reference, arm.arguments))
        if arm.agent is not None:
            keys = f"arms.{name}", f"arms[{index}]", f"arms.{name}.agent"
            own = replace(own, key_positions=_with_agent_at(suite.key_positions, keys))
    else:
        override = agent_with_settings(override, arm.arguments)
    described = own.agent if override is None else override
    if not isinstance(described, (str, Mapping)) and described is not None and arm.needs_process:
        override = reference_of(described)
        if override is None:
            raise UsageError("its agent has no name in a file, so no other process can load it; use app.py:agent")
        described = override
    process = None
    if in_processes and (described is None or isinstance(described, (str, Mapping))):
        folders = [Path.cwd()] if override is not None or suite.base is None else [suite.base, Path.cwd()]
        process = own_process(name, arm, folders, venv=options.arm_venv)
    if process is not None and process.ref and isinstance(described, str) and described.lower().startswith("http"):
        raise UsageError(f"{described} is a service that runs already, whatever the version; use serve:COMMAND")
    return _SuiteWithAgent(own, override, name, process=process)


def _combined(settings: Settings, others: Settings) -> Settings:
    """The settings, with those of `others` that are set."""
    return replace(
        settings, **{f.name: value for f in fields(others) if (value := getattr(others, f.name)) is not None}
    )


def _with_agent_at(positions: Mapping[str, Position], prefixes: tuple[str, ...]) -> dict[str, Position]:
    """The positions, with those of one of several arms (`arms[1].url`) also under `agent` (`agent.url`)."""
    own = {
        f"agent{key.removeprefix(prefix)}": position
        for key, position in positions.items()
        for prefix in prefixes
        if key == prefix or key.startswith((f"{prefix}.", f"{prefix}["))
    }
    return {**positions, **own}


_PlannedCases = list[tuple[Case, CaseEvaluators, int]]
"""The cases to run, each with its evaluators and its number of trials."""


def _plan_suite(
    requested: _SuiteWithAgent, options: RunOptions, problems: list[Problem], select: Selection | None
) -> tuple[PlannedSuite, _PlannedCases] | None:
    suite = with_complete_evaluators(requested.suite)
    if suite.agent is None and requested.agent is None:
        suite = replace(suite, agent=options.default_agent)
    problems.extend(_unscored_cases(requested.suite))
    agent = _agent_for(requested, suite, problems)
    resolver = _EvaluatorResolver(suite, options, problems)
    cases = _planned_cases(suite, options, resolver, select)
    resolver.check_judges()
    if not problems:
        _warn_of_unused_outputs(requested.suite, resolver)
    problems.extend(_unknown_tools(suite))
    problems.extend([*_files_outside(suite), *_missing_dependencies(suite)])
    if agent is None:
        return None
    problems.extend(_unsupported_cases(suite, agent))
    limits = limits_for(options, suite)
    problems.extend(_unknown_side_effects(suite, options, limits))
    quarantined: list[tuple[str, Quarantine]] = [
        (case.id, case.quarantine) for case, _, _ in cases if case.quarantine is not None
    ]
    planned = PlannedSuite(
        suite=suite,
        agent=agent,
        agent_fingerprint=_agent_fingerprint(suite, agent),
        limits=limits,
        max_sessions=limits.fixed_parallel if agent.starts_processes else limits.parallel,
        evaluators=resolver.all_evaluators(),
        has_simulated_user=any(case.scenario is not None for case in suite.cases),
        planned=sum(repeat for _, _, repeat in cases),
        quarantined=quarantined_cases(quarantined),
        agent_name=requested.agent_name,
        source=requested.source,
        agent_override=requested.agent,
        process=requested.process,
    )
    return planned, cases


def _agent_for(requested: _SuiteWithAgent, suite: Suite, problems: list[Problem]) -> BaseAgent | None:
    """The agent of a planned suite; one at another version of the repository is not loaded here."""
    process = requested.process
    if process is None or not process.ref:
        return _agent_of(suite, requested.agent, problems)
    description = suite.agent if requested.agent is None else requested.agent
    if description is None:
        return _agent_of(suite, None, problems)
    return VersionAgent(agent_name(description), description, process)


def _planned_cases(
    suite: Suite, options: RunOptions, resolver: _EvaluatorResolver, select: Selection | None
) -> _PlannedCases:
    """The selected cases. Evaluators of the other cases are resolved too, so that typos in them are reported."""
    default_repeat = limits_for(options, suite).repeat
    digests = FileDigests(suite.base, allowed_folders(suite))
    planned: _PlannedCases = []
    for case in suite.cases:
        evaluators = resolver.evaluators_for(case)
        if select is not None and not select(suite, case):
            continue
        repeat = default_repeat if case.repeat is None else limits_for(options, suite, case).repeat
        whole = case if case.evaluators is not None else replace(case, evaluators=suite.evaluators)
        # Fingerprint the files before anything runs, since an agent may change its files.
        planned.append((digests.with_digests(whole), evaluators, repeat))
    return planned


def _agent_fingerprint(suite: Suite, agent: BaseAgent) -> str:
    """What distinguishes the agent from others in stored results, with the files that the suite says it depends on."""
    if not suite.depends_on:
        return agent.identity
    return fingerprint(agent.identity, digests_of_patterns(suite.base or Path.cwd(), suite.depends_on))


def _unscored_cases(suite: Suite) -> list[Problem]:
    """Problems of cases in Python that nothing scores; readers of files report their own."""
    if suite.path is not None or suite.unscored != "error":
        return []
    return [
        Problem.at(
            case.position,
            "nothing scores it; give it expected=... or evaluators=[...]",
            f"suite {suite.name!r}, case {case.id!r}:",
        )
        for case in suite.cases
        if case.implied
        and case.skip is None
        and case.turns
        and not any(suite.evaluators_of(case, turn) for turn in case.turns)
    ]


def _warn_of_unused_outputs(suite: Suite, resolver: _EvaluatorResolver) -> None:
    """Warn of cases with an expected output that none of their evaluators can look at; once for a suite."""
    complete = with_complete_evaluators(suite)
    unused = [
        case
        for case, whole in zip(suite.cases, complete.cases, strict=True)
        if case.implied
        and any(turn.expected.output is not UNSET for turn in case.turns)
        and not any(evaluator.reads_expected for evaluator in resolver.evaluators_for(whole))
    ]
    if unused:
        more = f" (and {len(unused) - 1} more)" if len(unused) > 1 else ""
        place = "" if suite.path is None else f"{suite.path}: "
        message = (
            f"{place}suite {suite.name!r}, case {unused[0].id!r}{more}: no evaluator looks at its expected output; "
            'add "ExactMatch", or leave it out'
        )
        position = unused[0].position
        if position is None or not position.line:
            warnings.warn(message, UnusedExpectation, stacklevel=2)
        else:  # where the case is written, which is more useful than where it is planned
            warnings.warn_explicit(message, UnusedExpectation, str(position.path), position.line)


def _unsupported_cases(suite: Suite, agent: BaseAgent) -> list[Problem]:
    """Problems of cases that this agent cannot run."""
    return [
        Problem.at(case.position, reason, f"case {case.id!r}:", path=suite.path)
        for case in suite.cases
        if case.skip is None and (reason := agent.check(case))
    ]


def _missing_dependencies(suite: Suite) -> list[Problem]:
    """Problems of `depends_on` that names no file, so that a change could not be noticed."""
    digests = digests_of_patterns(suite.base or Path.cwd(), suite.depends_on)
    return [
        Problem(f"depends_on: {name.partition(': ')[0]} is not a file that can be read", suite.path)
        for name, digest in digests.items()
        if not digest
    ]


def _files_outside(suite: Suite) -> list[Problem]:
    """Problems of files that a suite attaches from folders that it does not allow."""
    folders = allowed_folders(suite)
    if folders is None:
        return []
    return [
        Problem.at(case.position, f"the file {outside_message(path)}", f"case {case.id!r}:", path=suite.path)
        for case in suite.cases
        if case.skip is None
        for path in dict.fromkeys(file.path for turn in case.turns for file in turn.files)
        if path is not None and is_outside(suite.base or Path(), path, folders)
    ]


def _unknown_side_effects(suite: Suite, options: RunOptions, limits: TrialLimits) -> list[Problem]:
    """The problem of a suite that is to be hedged although asking its agent twice may change something."""
    if not options.hedge or not limits.side_effects:
        return []
    message = (
        "need side_effects: false for --hedge, which may ask the agent twice; set it here or in proctor.toml if that "
        "changes nothing outside of the conversation"
    )
    return [suite.located(Problem(message, where="settings"))]


def _unknown_tools(suite: Suite, *, load: bool = True) -> list[Problem]:
    """Problems of the tools that a suite wants to re-run and that cannot be found."""
    if suite.rerun_tools is None:
        return []
    try:
        (find_tools if load else check_tools)(suite.rerun_tools, suite.base)
    except UsageError as error:
        position = position_of(suite, "rerun_tools", suite.rerun_tools, str(error))
        return [Problem.at(position, f"rerun_tools: {error}", path=suite.path)]
    return []


def _agent_of(suite: Suite, override: Any, problems: list[Problem], *, load: bool = True) -> BaseAgent | None:
    """The agent of a suite; `None` if there is a problem, or if it is code and `load` is false."""
    reference, base = (override, Path.cwd()) if override is not None else (suite.agent, suite.base)
    if reference is None and suite.path is None:
        advice = f"write Suite({suite.name!r}, agent=...) or suite.run(agent)"
        problems.append(Problem(f"suite {suite.name!r} has no agent; {advice}"))
        return None
    if reference is None:
        problems.append(Problem(f"has no agent; {_agent_hint(suite)}pass --agent app.py:agent", suite.path))
        return None
    try:
        with recording_loading():
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
    format_ = format_named(suite.format)
    return "" if format_ is None else format_.agent_hint


class _EvaluatorResolver:
    """Resolves the evaluator lists of one suite; an evaluator or list that many cases name is resolved once.

    Scores are summed up by title, so the evaluators of a list have unique titles ("ExactMatch #2"). An evaluator that a
    case inherits from its suite, or a turn from its case, keeps its title.
    """

    def __init__(self, suite: Suite, options: RunOptions, problems: list[Problem], *, load: bool = True) -> None:
        """Without `load`, the user's own evaluators are only located, not imported, and are missing in the lists."""
        self._load = load
        self._sources = judge_sources(options, suite)
        self._suite = suite
        self._options = options
        self._problems = problems
        self._resolved: dict[str, ResolvedEvaluator | None] = {}
        """By the key of the spec; `None` for one that cannot be resolved, whose problem is in `_problems`."""
        self._lists: dict[tuple[Evaluators, tuple[str, ...]], Evaluators] = {}
        """By the parent list, whose titles it inherits, and the keys of its specs."""
        self._of_cases: dict[tuple[Evaluators, tuple[Evaluators | None, ...]], CaseEvaluators] = {}
        self._keys: dict[ResolvedEvaluator, str] = {}
        """The key of the spec that each evaluator was resolved from."""
        self._positions: dict[str, dict[Position | None, None]] = {}
        """By the key of a spec: every position at which the suite names it."""
        self._errors: dict[str, tuple[str, str, str]] = {}
        """By the key of a spec: why it cannot be resolved, the wrong argument, and the place as people write it."""
        self._of_suite = self._resolve_list((), suite.evaluators)

    def evaluators_for(self, case: Case) -> CaseEvaluators:
        shared = self._of_suite if case.evaluators is None else self._resolve_list(self._of_suite, case.evaluators)
        of_turns = tuple(
            [
                None if turn.evaluators is None else self._resolve_list(shared, turn.evaluators)
                for turn in case.before_simulation.turns
            ]
        )
        return self._of_cases.setdefault((shared, of_turns), CaseEvaluators(shared, of_turns))

    def all_evaluators(self) -> Evaluators:
        return tuple(dict.fromkeys(evaluator for group in self._lists.values() for evaluator in group))

    def check_judges(self) -> None:
        """Add the problems of judges and of models that simulate users."""
        judged = [evaluator for evaluator in self._resolved.values() if evaluator is not None and evaluator.asks_judge]
        problems = judge_problems(self._suite, judged, self._sources, self._positions_of)
        self._problems.extend(problem for problem in problems if problem not in self._problems)
        messages = {problem.message for problem in self._problems}
        problems = user_model_problems(self._suite, self._options)
        self._problems.extend(problem for problem in problems if problem.message not in messages)

    def _positions_of(self, evaluator: ResolvedEvaluator) -> Iterable[Position | None]:
        keys = (key for key, resolved in self._resolved.items() if resolved is evaluator)
        return (position for key in keys for position in self._positions[key])

    def _resolve_list(self, parent: Evaluators, specs: tuple[EvaluatorSpec, ...]) -> Evaluators:
        keys = tuple([spec_key(spec) for spec in specs])
        if (parent, keys) not in self._lists:
            self._lists[parent, keys] = self._with_titles(parent, specs, keys)
        for spec, key in zip(specs, keys, strict=True):
            self._note_position(spec, key)
        return self._lists[parent, keys]

    def _note_position(self, spec: EvaluatorSpec, key: str) -> None:
        """Remember where a spec is named; add a problem for each position of one that cannot be resolved."""
        positions = self._positions.setdefault(key, {})
        if spec.position not in positions:
            positions[spec.position] = None
            if key in self._errors:
                message, argument, place = self._errors[key]
                position = spec.argument_positions.get(argument, spec.position) if argument else spec.position
                where = place or (f"suite {self._suite.name!r}:" if self._suite.path is None else "")
                self._problems.append(Problem.at(position, message, where, path=self._suite.path))

    def _with_titles(self, parent: Evaluators, specs: tuple[EvaluatorSpec, ...], keys: tuple[str, ...]) -> Evaluators:
        inherited = {self._keys[evaluator]: evaluator for evaluator in parent}
        taken = {inherited[key].title for key in keys if key in inherited}
        evaluators: list[ResolvedEvaluator] = []
        for spec, key in zip(specs, keys, strict=True):
            evaluator = inherited.pop(key, None)
            if evaluator is None and (resolved := self._resolve(spec, key)) is not None:
                evaluator = with_unique_title(resolved, taken)
                taken.add(evaluator.title)
                self._keys[evaluator] = key
            if evaluator is not None:
                evaluators.append(evaluator)
        return tuple(evaluators)

    def _resolve(self, spec: EvaluatorSpec, key: str) -> ResolvedEvaluator | None:
        """The evaluator of a spec; `None` if it cannot be resolved, or if it is only located and not loaded."""
        if key not in self._resolved:
            self._resolved[key] = None
            override, threshold = self._options.evaluators.get(spec.title), self._suite.criteria.threshold
            try:
                if override is not None:
                    bare = replace(spec, arguments={}, label=spec.title, report_only=False)
                    self._resolved[key] = resolve_callable(bare, override, self._sources, suite_threshold=threshold)
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
        """Note an invalid judge as a problem of the evaluator that names it, else of the suite or caller that does."""
        if error.written.origin == EVALUATOR:
            place = f"evaluator {spec.title!r}:{' model:' if error.key == 'model' else ''}"
            self._errors[key] = str(error), error.key, place
        elif (problem := invalid_judge_problem(error, self._suite)) not in self._problems:
            self._problems.append(problem)
