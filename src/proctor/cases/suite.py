"""What is asked: a Suite of Cases, each a conversation of Turns with what is Expected of the agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from proctor.base.deprecation import renamed_fields, renamed_names
from proctor.base.errors import Problem
from proctor.base.json_data import UNSET, Json, Unset
from proctor.base.positions import Position
from proctor.cases.matchers import Matcher, parse
from proctor.cases.scenario import Scenario, scenario_metadata


@dataclass(frozen=True, slots=True)
class NamedData:
    """A value with the name under which the application and the evaluators know it."""

    name: str
    value: Json


@renamed_fields({"any_of": "any", "all_of": "all"})
@dataclass(frozen=True, slots=True)
class Keywords:
    """Words the answer must mention: any of some, all of others."""

    any: tuple[str, ...] = ()
    all: tuple[str, ...] = ()


@renamed_fields({"arguments": "args", "extra_arguments": "extra_args"})
@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A tool call the agent is expected to make."""

    name: str
    args: Mapping[str, Matcher] | None = None
    """What each argument must look like; `None` asserts nothing about arguments, `{}` asserts that there are none.
    In Python, literals and the `$` forms of files may be given as well as matchers."""
    count: int = 1
    """At least this many matching calls."""
    substring: bool = False
    """Whether the tool's real name need only contain `name` (`search` matches `vectorstore-search`)."""
    extra_args: bool = False
    """Whether the call may carry arguments that are not listed."""
    result: Json | Unset = UNSET

    def __post_init__(self) -> None:
        args = self.args
        if args is not None and not all(hasattr(value, "mismatch") for value in args.values()):
            matchers = {name: value if hasattr(value, "mismatch") else parse(value) for name, value in args.items()}
            object.__setattr__(self, "args", matchers)

    def accepts_name(self, actual: str) -> bool:
        return self.name in actual if self.substring else self.name == actual


@renamed_fields({"keywords": "contains", "tool_calls": "tools"})
@dataclass(frozen=True, slots=True)
class Expected:
    """What a good answer to one turn looks like; every part is optional, and what is not given is not compared."""

    output: Json | Unset = UNSET
    contains: Keywords | None = None
    tools: tuple[ExpectedCall, ...] | None = None
    """`None` asserts nothing; an empty tuple asserts that no tool is called."""
    context: tuple[str, ...] | None = None
    """The facts an ideal answer rests on."""

    def __bool__(self) -> bool:
        return self is not NO_EXPECTATION and self != NO_EXPECTATION


NO_EXPECTATION: Final = Expected()


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A file given to the agent with a turn."""

    path: str | None = None
    url: str | None = None
    kind: str | None = None
    description: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)
    """How to read it: `pages`, `sheet`, `range`, `cache`."""


@renamed_fields({"arguments": "args"})
@dataclass(frozen=True, slots=True)
class ToolMock:
    """What a tool answers in a case instead of being called, so that a suite runs without side effects."""

    args: Mapping[str, Matcher] | None = None
    """For which arguments; `None` for any. What is not listed does not matter."""
    result: Json = None
    error: str | None = None
    """What the tool fails with, instead of a result."""
    delay: float = 0.0
    """Seconds before it answers."""
    times: int | None = None
    """How often it answers in one trial; then the next mock in the list does."""


@renamed_fields({"path": "output_path"}, inverted={"gates": "report_only"})
@dataclass(frozen=True, slots=True)
class EvaluatorSpec:
    """An evaluator as a file names it: which one, with what arguments, and what its score decides."""

    name: str
    """A registered name (`ExactMatch`) or a reference (`checks.py:my_evaluator`)."""
    arguments: Mapping[str, Json] = field(default_factory=dict)
    threshold: float | None = None
    """The least score that passes; `None` leaves it to the evaluator's own default."""
    label: str | None = None
    _: KW_ONLY
    report_only: bool = False
    """Whether its score is only reported and does not decide the case."""
    scope: Literal["turn", "case"] | None = None
    """Whether it sees each turn or the whole conversation; `None` leaves it to the evaluator."""
    output: str | None = None
    """The named output it looks at, where the agent has several."""
    timeout: float | None = None
    output_path: str | None = None
    """Where in the output it looks, for an answer that is data: `order.total`, `items[0].name`."""
    retries: int = 0
    """How often it is asked again when it breaks."""
    optional: bool = False
    """Whether it is skipped when it breaks, instead of leaving the case without a verdict."""

    position: Position | None = field(default=None, compare=False, repr=False)
    """Where its file names it. Never part of what is compared or stored."""
    argument_positions: Mapping[str, Position] = field(default_factory=dict, compare=False, repr=False)
    """Where its arguments and what is in them (`steps[0].args`) are written."""

    @property
    def title(self) -> str:
        return self.label or self.name.rpartition(":")[2]


@renamed_fields({"attachments": "files"})
@dataclass(frozen=True, slots=True)
class Turn:
    """One message to the agent and what is expected back."""

    input: Json
    expected: Expected = NO_EXPECTATION
    evaluators: tuple[EvaluatorSpec, ...] | None = None
    """Evaluators of this turn alone; `None` inherits the case's."""
    retrieval_context: tuple[str, ...] | None = None
    """Passages the answer is to be checked against, where they do not come from the agent's tools."""
    files: tuple[AttachedFile, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    extra: Mapping[str, Json] = field(default_factory=dict)
    """What a foreign format says and Proctor does not use, kept for the way back."""


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Why a case runs and is reported but decides nothing for the time being."""

    reason: str
    until: str
    """The last day, as YYYY-MM-DD; after it the case fails."""
    owner: str | None = None


@renamed_fields({"doubles": "mocks", "told": "metadata_for_evaluators", "as_planned": "before_simulation"})
@dataclass(frozen=True, slots=True)
class Case:
    """One conversation to hold with the agent."""

    id: str
    turns: tuple[Turn, ...]
    description: str = ""
    tags: tuple[str, ...] = ()
    evaluators: tuple[EvaluatorSpec, ...] | None = None
    """Evaluators of this case instead of the suite's; `None` inherits them. `"..."` is already merged."""
    inputs: tuple[NamedData, ...] = ()
    """Values handed to the application by name, where it asks for them."""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    state: Mapping[str, Json] = field(default_factory=dict)
    """What the agent's session knows before the first turn."""
    final_state: Mapping[str, Json] | None = None
    """What the session is expected to know after the last turn."""
    repeat: int | None = None
    timeout: float | None = None
    skip: str | None = None
    """Why the case is not run at present."""
    extra: Mapping[str, Json] = field(default_factory=dict)
    mocks: Mapping[str, tuple[ToolMock, ...]] = field(default_factory=dict)
    """By tool: what it answers instead of being called; the first that fits."""
    scenario: Scenario | None = None
    """What a simulated user is told, where the conversation is not written down; `turns` then has what was said."""
    quarantine: Quarantine | None = None
    position: Position | None = field(default=None, compare=False, repr=False)
    """Where it is written: the line of its id, if it has one. Never part of what is compared or stored."""
    continue_after_failed_turn: bool = False
    """Whether the turns after one that failed are still sent; if not, a failed turn ends the conversation."""

    @property
    def before_simulation(self) -> Case:
        """The case as it was before a simulated user made a conversation of it."""
        return self if self.scenario is None else replace(self, turns=(Turn(self.scenario.start),))

    @property
    def metadata_for_evaluators(self) -> Mapping[str, Json]:
        """The metadata as evaluators see it, the scenario included."""
        if self.scenario is None:
            return self.metadata
        return {"conversation_scenario": scenario_metadata(self.scenario), **self.metadata}


@dataclass(frozen=True, slots=True)
class Criteria:
    """How outcomes become the verdict of a suite."""

    trials: Literal["all", "any", "majority", "mean"] = "all"
    """How the trials of one case combine; `mean` judges each evaluator on its average over trials and turns."""
    threshold: float | None = None
    """Overrides the threshold of every evaluator."""
    pct: float = 1.0
    """The share of cases that must pass."""


@dataclass(frozen=True, slots=True)
class Waiver:
    """Why a mutant that the suite does not notice is no weakness of it."""

    mutant: str
    """The kind of mutant: `calls-reordered`."""
    reason: str
    case: str | None = None
    """The id of the one case it holds for; `None` for all of them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a suite asks to be run; the command line overrides each of them."""

    repeat: int | None = None
    parallel: int | None = None
    timeout: float | None = None
    evaluator_timeout: float | None = None
    retries: int | None = None
    max_reply_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class FileSettings:
    """How long files may take, and where downloads are stored."""

    read_seconds: float = 30.0
    fetch_seconds: float = 30.0
    cache: Path | None = None
    """`None` stores nothing."""
    fetch_attempts: int = 2
    """How often a download is tried if the connection breaks."""


@dataclass(frozen=True, slots=True)
class ResolvedSetting:
    """A setting that a suite's file takes from several sources: its value, and which source it comes from."""

    value: Json
    origin: str
    same_as: str = ""
    """The setting of ours that it stands for; the project's own value is in force if `origin` is `default`."""


@renamed_fields({"reexecute": "rerun_tools", "with_cases": "map_cases"})
@dataclass(frozen=True, slots=True)
class Suite:
    """Cases that belong together, with the agent they are for and the evaluators that score them."""

    name: str
    cases: tuple[Case, ...]
    evaluators: tuple[EvaluatorSpec, ...] = ()
    agent: Json = None
    """A reference (`app.py:agent`), an address, or a mapping that describes the agent."""
    criteria: Criteria = Criteria()
    settings: Settings = Settings()
    description: str = ""
    path: Path | None = None
    format: str = "native"
    warnings: tuple[Problem, ...] = ()
    extra: Mapping[str, Json] = field(default_factory=dict)
    judge: Json = None
    """Who judges where an evaluator asks a judge and names none: `provider:model`, or an object with options."""
    rerun_tools: Json = None
    """Whose tools are called again with the agent's arguments, for answers to be held against what they give: `True`
    for those that are marked, a reference to a table of tools, or such a table of references."""
    agents: Mapping[str, Json] = field(default_factory=dict)
    """Several agents by name, each of which is asked every case, instead of `agent`."""
    waivers: tuple[Waiver, ...] = ()
    """Mutants that `proctor mutate` does not hold against the suite."""
    key_positions: Mapping[str, Position] = field(default_factory=dict, compare=False, repr=False)
    """Where `agent`, `agents`, `judge`, `rerun_tools`, `settings` and what is in them (`agent.http.url`) are written.
    A tool may add the keys that its kind of agent is made of: `tools[0].source`."""
    unscored: Literal["error", "skipped"] = "error"
    """The outcome of a case that was answered and that nothing scores."""
    env_files: tuple[Path, ...] = ()
    """Files of variables that are set while the suite is run; the one that matters most comes first."""
    file_settings: FileSettings | None = None
    """How files attached to turns are read; `None` for the usual limits, with downloads in `.proctor/files`."""
    verbosity: Literal["quiet", "normal", "verbose"] | None = None
    """How much the suite's file wants to see on the terminal; `None` if it does not say."""
    retrieval_tools: tuple[str, ...] = ()
    """Names of tools, or patterns such as `mcp__docs__*`, whose results are passages that an answer may rest on."""
    resolved: Mapping[str, ResolvedSetting] = field(default_factory=dict)
    """Settings with their origin, for `proctor doctor`."""

    @property
    def base(self) -> Path | None:
        """The folder that relative references in the suite start from."""
        return None if self.path is None else self.path.resolve().parent

    def located(self, problem: Problem) -> Problem:
        """A problem that says where it is in the document, with the file and line of that place."""
        if problem.path is not None:
            return problem
        place = problem.where
        while place and place not in self.key_positions:
            place = place[: max(place.rfind("."), place.rfind("["), 0)]
        position = self.key_positions.get(place)
        return (
            replace(problem, path=self.path)
            if position is None
            else replace(problem, path=position.path, line=position.line)
        )

    def map_cases(self, change: Callable[[Case], Case]) -> Suite:
        """The suite with each case as `change` makes it."""
        return replace(self, cases=tuple(map(change, self.cases)))

    def evaluators_of(self, case: Case, turn: Turn | None = None) -> tuple[EvaluatorSpec, ...]:
        """The specs in force: a turn's own, else the case's, else the suite's."""
        if turn is not None and turn.evaluators is not None:
            return turn.evaluators
        return self.evaluators if case.evaluators is None else case.evaluators


def duplicate_problems(suites: Sequence[Suite]) -> list[Problem]:
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


if not TYPE_CHECKING:  # a type checker would accept every name
    __getattr__ = renamed_names(
        __name__, {"Double": ("ToolMock", ToolMock), "Attachment": ("AttachedFile", AttachedFile)}
    )
