"""The data model: a `Suite` of `Case`s, each a conversation of `Turn`s with what is `Expected` of the agent."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from proctor.base.deprecation import renamed_fields, renamed_names
from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import UNSET, Json, Unset
from proctor.base.positions import Position
from proctor.cases.constructing import caller, checked_arguments
from proctor.cases.ids import UniqueIds, id_from
from proctor.cases.matchers import Matcher, parse
from proctor.cases.scenario import Scenario, scenario_metadata

if TYPE_CHECKING:
    from proctor.api import RunParameters
    from proctor.cases.mappings import (
        AgentLike,
        ArgumentLike,
        CallLike,
        CaseDict,
        ContainsLike,
        CriteriaDict,
        EvaluatorLike,
        ExpectedLike,
        FileLike,
        JudgeLike,
        MockLike,
        QuarantineDict,
        ScenarioDict,
        SettingsDict,
        SuiteDict,
        TurnLike,
        WaiverDict,
    )
    from proctor.results.run import Run


_set = object.__setattr__


def _store(target: Any, **values: Any) -> None:
    """Set the fields of an object that is being made, which cannot be changed afterwards."""
    for name in values:
        _set(target, name, values[name])


def _copy(target: Any, source: Any) -> None:
    """Set the fields of an object that is being made to those of another one."""
    _store(target, **{item.name: getattr(source, item.name) for item in fields(source)})


def _is_tuple_of(kind: type, value: Any) -> bool:
    """A loop, since a generator takes three times as long, and readers make a hundred thousand cases."""
    if type(value) is not tuple:
        return False
    for item in value:  # noqa: SIM110
        if type(item) is not kind:
            return False
    return True


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _holds_turns(value: Any) -> bool:
    """Whether a second argument of `Case` is a list of turns, as it was in earlier versions."""
    return isinstance(value, (tuple, list)) and bool(value) and all(type(item) is Turn for item in value)


def _reader() -> Any:
    """The reader of the native format. It makes the objects of this module, so it cannot be imported above."""
    from proctor.cases.formats.native import from_python

    return from_python


@dataclass(frozen=True, slots=True)
class NamedData:
    """A value and the name by which the application and the evaluators refer to it."""

    name: str
    value: Json


@renamed_fields({"any_of": "any", "all_of": "all"})
@dataclass(frozen=True, slots=True, init=False)
class Keywords:
    """Words that the answer must contain: at least one of `any`, and each of `all`."""

    any: tuple[str, ...] = ()
    all: tuple[str, ...] = ()

    @checked_arguments
    def __init__(self, any: str | Sequence[str] = (), all: str | Sequence[str] = ()) -> None:  # noqa: A002
        _store(self, any=_texts(any), all=_texts(all))


@renamed_fields({"arguments": "args", "extra_arguments": "extra_args"})
@dataclass(frozen=True, slots=True, init=False)
class ExpectedCall:
    """A tool call the agent is expected to make."""

    name: str
    args: Mapping[str, Matcher] | None = None
    """A matcher per argument; `None` asserts nothing about arguments, `{}` asserts that there are none.
    Python code may also pass literals and the `$` forms of suite files."""
    count: int = 1
    """At least this many matching calls."""
    substring: bool = False
    """Whether the tool's real name need only contain `name` (`search` matches `vectorstore-search`)."""
    extra_args: bool = False
    """Whether the call may have arguments that are not in `args`."""
    result: Json | Unset = UNSET
    """What the tool is expected to return; matchers are allowed in it."""
    or_earlier: bool = False
    """Whether a call in an earlier turn of the conversation counts too."""

    @checked_arguments
    def __init__(
        self,
        name: str,
        args: Mapping[str, ArgumentLike] | None = None,
        *,
        count: int = 1,
        substring: bool = False,
        extra_args: bool = False,
        result: Json | Unset = UNSET,
        or_earlier: bool = False,
    ) -> None:
        values = {"count": count, "substring": substring, "extra_args": extra_args, "result": result}
        values |= {"or_earlier": or_earlier}
        if not isinstance(name, str) or not (args is None or isinstance(args, Mapping)) or count < 1:
            given = {"name": name, "args": args, **{key: value for key, value in values.items() if value is not UNSET}}
            _copy(self, _reader().read_call_from_python(given))
            return
        if args is not None and not all(hasattr(value, "mismatch") for value in args.values()):
            args = {key: value if hasattr(value, "mismatch") else parse(value) for key, value in args.items()}
        _store(self, name=name, args=args, **values)

    def accepts_name(self, actual: str) -> bool:
        return self.name in actual if self.substring else self.name == actual


@renamed_fields({"keywords": "contains", "tool_calls": "tools"})
@dataclass(frozen=True, slots=True, init=False)
class Expected:
    """What a good answer to one turn looks like. Every part is optional; a part that is missing is not compared."""

    output: Json | Unset = UNSET
    """The reference answer."""
    contains: Keywords | None = None
    tools: tuple[ExpectedCall, ...] | None = None
    """`None` asserts nothing; an empty tuple asserts that no tool is called."""
    context: tuple[str, ...] | None = None
    """The facts that an ideal answer is based on."""
    state: Mapping[str, Json] | None = None
    """What the session should know after this turn; matchers are allowed in it, and other keys do not matter."""

    @checked_arguments
    def __init__(
        self,
        output: Json | Unset = UNSET,
        *,
        contains: ContainsLike | None = None,
        tools: Sequence[CallLike] | None = None,
        context: Sequence[str] | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        is_final = (
            (contains is None or type(contains) is Keywords)
            and (tools is None or _is_tuple_of(ExpectedCall, tools))
            and (context is None or type(context) is tuple)
            and (state is None or isinstance(state, Mapping))
        )
        if is_final:
            _store(self, output=output, contains=contains, tools=tools, context=context, state=state)
        else:
            given = {"contains": contains, "tools": tools, "context": context, "state": state}
            _copy(self, _reader().read_expected_from_python(output, given))

    def __bool__(self) -> bool:
        return self is not NO_EXPECTATION and self != NO_EXPECTATION


NO_EXPECTATION: Final = Expected()


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A file that is sent to the agent with a turn, by `path` or by `url`."""

    path: str | None = None
    url: str | None = None
    kind: str | None = None
    """Its type (`pdf`, `excel`, `html`, ...); `None` leaves it to the suffix of its name."""
    description: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)
    """How to read it: `pages`, `sheet`, `range`, `cache`."""


@renamed_fields({"arguments": "args"})
@dataclass(frozen=True, slots=True)
class ToolMock:
    """What a tool returns in a case instead of being called, so that a suite runs without side effects."""

    args: Mapping[str, Matcher] | None = None
    """The arguments it applies to; `None` for any. Arguments that are not listed do not matter."""
    result: Json = None
    error: str | None = None
    """The message the tool fails with, instead of returning a result."""
    delay: float = 0.0
    """Seconds before it returns."""
    times: int | None = None
    """How often it is used in one trial; after that, the next mock in the list applies. `None` for no limit."""


@renamed_fields({"path": "output_path"}, inverted={"gates": "report_only"})
@dataclass(frozen=True, slots=True)
class EvaluatorSpec:
    """An entry in a list of evaluators: which one, its arguments, and how its score counts."""

    name: str
    """A registered name (`ExactMatch`) or a reference (`checks.py:my_evaluator`)."""
    arguments: Mapping[str, Json] = field(default_factory=dict)
    threshold: float | None = None
    """The lowest score that passes; `None` for the evaluator's own default."""
    label: str | None = None
    """What reports call it; `None` for its name."""
    _: KW_ONLY
    report_only: bool = False
    """Whether its score is only reported and does not decide the case."""
    scope: Literal["turn", "case"] | None = None
    """Whether it scores each turn or the whole conversation; `None` for the evaluator's own default."""
    output: str | None = None
    """The named output it scores, if the agent has several."""
    timeout: float | None = None
    """Seconds allowed per call; `None` for the limit of the suite."""
    output_path: str | None = None
    """The part of the output it scores, for an answer that is data: `order.total`, `items[0].name`."""
    retries: int = 0
    """How often it is called again after an error."""
    optional: bool = False
    """Whether an error skips it, instead of making the outcome of the case an error."""

    fingerprint: str = ""
    """The fingerprint of `target`; empty if it is found by its name."""
    target: Any = field(default=None, compare=False, repr=False)
    """The function or object itself, if it was passed from Python; `name` is then `file.py:name`, or its title. It
    counts by its fingerprint, and is not stored or sent to other processes, where no evaluator runs."""
    position: Position | None = field(default=None, compare=False, repr=False)
    """Where its file has it. Not compared and not stored."""
    argument_positions: Mapping[str, Position] = field(default_factory=dict, compare=False, repr=False)
    """Where its arguments and the values in them (`steps[0].args`) are written."""

    @property
    def title(self) -> str:
        return self.label or self.name.rpartition(":")[2]

    @property
    def shipped_name(self) -> str:
        """The name by which a shipped evaluator is looked up; empty for code that was passed from Python."""
        return "" if self.fingerprint else self.name

    def __getstate__(self) -> list[Any]:
        return [None if item.name == "target" else getattr(self, item.name) for item in fields(self)]

    def __setstate__(self, state: list[Any]) -> None:
        for item, value in zip(fields(self), state, strict=True):
            object.__setattr__(self, item.name, value)


@renamed_fields({"attachments": "files"})
@dataclass(frozen=True, slots=True, init=False)
class Turn:
    """One message to the agent and what is expected back."""

    input: Json
    expected: Expected = NO_EXPECTATION
    evaluators: tuple[EvaluatorSpec, ...] | None = None
    """Evaluators of this turn alone; `None` inherits the case's."""
    retrieval_context: tuple[str, ...] | None = None
    """Passages to check the answer against, if they do not come from the agent's tools."""
    files: tuple[AttachedFile, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    extra: Mapping[str, Json] = field(default_factory=dict)
    """Keys of the file that Proctor does not use, such as `x-` keys."""

    @checked_arguments
    def __init__(
        self,
        input: Json,  # noqa: A002
        expected: ExpectedLike | None = None,
        *,
        evaluators: Sequence[EvaluatorLike] | None = None,
        retrieval_context: Sequence[str] | None = None,
        files: Sequence[FileLike] = (),
        metadata: Mapping[str, Json] | None = None,
        extra: Mapping[str, Json] | None = None,
    ) -> None:
        is_final = (
            (expected is None or type(expected) is Expected)
            and (evaluators is None or _is_tuple_of(EvaluatorSpec, evaluators))
            and (retrieval_context is None or type(retrieval_context) is tuple)
            and _is_tuple_of(AttachedFile, files)
        )
        if not is_final:
            given = {
                "expected": expected,
                "evaluators": evaluators,
                "retrieval_context": retrieval_context,
                "files": files,
                "metadata": metadata,
                **(extra or {}),
            }
            _copy(self, _reader().read_turn_from_python(input, given))
            return
        _store(
            self,
            input=input,
            expected=NO_EXPECTATION if expected is None else expected,
            evaluators=evaluators,
            retrieval_context=retrieval_context,
            files=files,
            metadata={} if metadata is None else metadata,
            extra={} if extra is None else extra,
        )


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Why a case runs and is reported but does not affect the verdict, and until when."""

    reason: str
    until: str
    """The last day, as YYYY-MM-DD; after it the case fails."""
    owner: str | None = None


@renamed_fields({"doubles": "mocks", "told": "metadata_for_evaluators", "as_planned": "before_simulation"})
@dataclass(frozen=True, slots=True, init=False)
class Case:
    """One conversation with the agent, and how it is scored."""

    id: str
    turns: tuple[Turn, ...]
    description: str = ""
    tags: tuple[str, ...] = ()
    evaluators: tuple[EvaluatorSpec, ...] | None = None
    """Evaluators of this case instead of the suite's; `None` inherits those, and `...` in the list stands for them.
    `Suite.evaluators_of` has the complete list."""
    inputs: tuple[NamedData, ...] = ()
    """Values that the application can ask for by name."""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    state: Mapping[str, Json] = field(default_factory=dict)
    """The state of the agent's session before the first turn."""
    final_state: Mapping[str, Json] | None = None
    """The expected state of the session after the last turn."""
    repeat: int | None = None
    timeout: float | None = None
    skip: str | None = None
    """Why the case does not run; `None` if it does."""
    extra: Mapping[str, Json] = field(default_factory=dict)
    mocks: Mapping[str, tuple[ToolMock, ...]] = field(default_factory=dict)
    """Mocks by tool; the first whose `args` match is used."""
    scenario: Scenario | None = None
    """The instructions of a simulated user, if the turns are not written down; `turns` then has the conversation."""
    quarantine: Quarantine | None = None
    position: Position | None = field(default=None, compare=False, repr=False)
    """Where it is written: the line of its id, if it has one. Not compared and not stored."""
    implied: bool = field(default=True, compare=False, repr=False)
    """Whether what the case expects brings its checks: `Contains`, `ExpectedTools`, `FinalState`, `ExactMatch`. Not
    compared and not stored: a stored case has them in its lists."""
    has_generated_id: bool = field(default=False, compare=False, repr=False)
    """Whether the id was made from the input, so that a suite may add a number to it."""
    continue_after_failed_turn: bool = False
    """Whether turns after a failed one are still sent; if not, a failed turn ends the conversation."""

    @checked_arguments
    def __init__(
        self,
        input: Json | Unset = UNSET,  # noqa: A002
        expected: ExpectedLike | None = None,
        *,
        turns: Sequence[TurnLike] | None = None,
        scenario: Scenario | ScenarioDict | None = None,
        id: str | None = None,  # noqa: A002
        evaluators: Sequence[EvaluatorLike] | None = None,
        implied: bool = True,
        description: str = "",
        tags: Sequence[str] = (),
        metadata: Mapping[str, Json] | None = None,
        inputs: Mapping[str, Json] | Sequence[NamedData] | None = None,
        state: Mapping[str, Json] | None = None,
        final_state: Mapping[str, Any] | None = None,
        mocks: Mapping[str, MockLike] | None = None,
        retrieval_context: Sequence[str] | None = None,
        files: Sequence[FileLike] = (),
        repeat: int | None = None,
        timeout: float | None = None,
        skip: str | None = None,
        quarantine: Quarantine | QuarantineDict | None = None,
        extra: Mapping[str, Json] | None = None,
        position: Position | None = None,
        has_generated_id: bool = False,
        continue_after_failed_turn: bool = False,
    ) -> None:
        """One conversation: an `input` and what is `expected` of the answer, or several `turns`, or a `scenario`.

        - `expected` is the right answer, or a mapping with `output`, `contains`, `tools` and `context`, as in a file.
        - `id` is made from the input if it is left out.
        - `evaluators` are used instead of the suite's; `...` in the list stands for those.
        """
        if _holds_turns(expected) and isinstance(input, str) and turns is None:
            warnings.warn("Case(id, turns) is now Case(id=..., turns=...)", DeprecationWarning, stacklevel=4)
            id, turns, input, expected = input, expected, UNSET, None  # type: ignore[assignment]  # noqa: A001
        values: dict[str, Any] = {
            "id": id,
            "turns": turns,
            "description": description,
            "tags": tags,
            "evaluators": evaluators,
            "inputs": () if inputs is None else inputs,
            "metadata": {} if metadata is None else metadata,
            "state": {} if state is None else state,
            "final_state": final_state,
            "repeat": repeat,
            "timeout": timeout,
            "skip": skip,
            "extra": {} if extra is None else extra,
            "mocks": {} if mocks is None else mocks,
            "scenario": scenario,
            "quarantine": quarantine,
            "implied": implied,
            "has_generated_id": has_generated_id,
        }
        is_final = (
            input is UNSET
            and expected is None
            and type(id) is str
            and _is_tuple_of(Turn, turns)
            and (evaluators is None or _is_tuple_of(EvaluatorSpec, evaluators))
            and type(tags) is tuple
            and _is_tuple_of(NamedData, values["inputs"])
            and (not mocks or all(_is_tuple_of(ToolMock, item) for item in mocks.values()))
            and (scenario is None or type(scenario) is Scenario)
            and (quarantine is None or type(quarantine) is Quarantine)
            and (repeat is None or (type(repeat) is int and repeat >= 1))
            and (timeout is None or (type(timeout) in (int, float) and timeout > 0))
        )
        position = caller() if position is None else position
        if not is_final:
            more = {"retrieval_context": retrieval_context, "files": files, "expected": expected}
            case = _reader().read_case_from_python(input, {**values, **more}, position)
            values = {name: getattr(case, name) for name in values}
        _set(self, "position", position)
        _set(self, "continue_after_failed_turn", continue_after_failed_turn)
        for name in values:
            _set(self, name, values[name])

    @property
    def input(self) -> Json:
        """The input of the first turn."""
        return self.turns[0].input if self.turns else None

    @property
    def expected(self) -> Expected:
        """What is expected of the answer to the first turn."""
        return self.turns[0].expected if self.turns else NO_EXPECTATION

    @property
    def before_simulation(self) -> Case:
        """The case without the conversation that a simulated user had: only its first message is left."""
        return self if self.scenario is None else replace(self, turns=(Turn(self.scenario.start),))

    @property
    def metadata_for_evaluators(self) -> Mapping[str, Json]:
        """The metadata that evaluators see: with the scenario, if there is one."""
        if self.scenario is None:
            return self.metadata
        return {"conversation_scenario": scenario_metadata(self.scenario), **self.metadata}


@dataclass(frozen=True, slots=True)
class Criteria:
    """How the outcomes of trials and cases become the verdict of a suite."""

    trials: Literal["all", "any", "majority", "mean"] = "all"
    """Which trials of a case must pass; `mean` compares each evaluator's average over trials and turns."""
    threshold: float | None = None
    """Overrides the threshold of every evaluator."""
    pct: float = 1.0
    """The share of cases that must pass."""
    arms: Literal["last", "all"] = "last"
    """Which arms must pass, if several versions of the agent run; the others are there for comparison."""


@dataclass(frozen=True, slots=True)
class Waiver:
    """A kind of mutant that the suite need not kill, and why."""

    mutant: str
    """The kind of mutant: `calls-reordered`."""
    reason: str
    case: str | None = None
    """The id of the only case it applies to; `None` for all cases."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a suite is run; options of the command line win over these."""

    repeat: int | None = None
    parallel: int | None = None
    timeout: float | None = None
    evaluator_timeout: float | None = None
    retries: int | None = None
    retry_seconds: float | None = None
    """How long a turn waits in all to be sent again."""
    max_reply_bytes: int | None = None
    side_effects: bool | None = None
    """Whether asking the agent changes anything outside of the conversation. If it does not, it may be asked twice."""


@dataclass(frozen=True, slots=True)
class FileSettings:
    """Time limits for reading and downloading files, and where downloads are stored."""

    read_seconds: float = 30.0
    fetch_seconds: float = 30.0
    cache: Path | None = None
    """`None` stores nothing."""
    fetch_attempts: int = 2
    """How often a download is tried if the connection fails."""


@dataclass(frozen=True, slots=True)
class ResolvedSetting:
    """A setting of a suite file that can come from several sources: its value, and the source."""

    value: Json
    origin: str
    same_as: str = ""
    """Proctor's name for the setting; if `origin` is `default`, the project's own value applies."""


def _as_texts(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """Several texts; raises `TypeError` for anything else, also for one text, which is a list of characters too."""
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"Suite(): {name} must be a list of texts")
    return tuple(values)


@renamed_fields({"reexecute": "rerun_tools", "with_cases": "map_cases", "agents": "arms"})
@dataclass(frozen=True, slots=True, init=False)
class Suite:
    """Cases that belong together, with the agent they test and the evaluators that score them."""

    name: str
    cases: tuple[Case, ...]
    evaluators: tuple[EvaluatorSpec, ...] = ()
    agent: Json = None
    """A reference (`app.py:agent`), an address, or a mapping that describes the agent."""
    criteria: Criteria = Criteria()
    settings: Settings = Settings()
    description: str = ""
    path: Path | None = field(default=None, compare=False)
    format: str = "native"
    warnings: tuple[Problem, ...] = ()
    extra: Mapping[str, Json] = field(default_factory=dict)
    judge: Json = None
    """The judge of evaluators that name none: `provider:model`, `rules`, or an object with options."""
    rerun_tools: Json = None
    """Tools to re-run with the agent's arguments, so that the answer is checked against their real results: `True` for
    those marked with `@proctor.tool`, a reference to a table of tools, or an object of references by tool."""
    arms: Mapping[str, Any] = field(default_factory=dict)
    """Versions of the agent by name (`cases/arms.py`); each runs every case."""
    waivers: tuple[Waiver, ...] = ()
    """Mutants that `proctor mutate` does not count as survivors."""
    key_positions: Mapping[str, Position] = field(default_factory=dict, compare=False, repr=False)
    """Where `agent`, `agents`, `judge`, `rerun_tools`, `settings` and the values in them (`agent.http.url`) are
    written. The reader of another format may add the keys of its agents: `tools[0].source`."""
    unscored: Literal["error", "skipped"] = "error"
    """The outcome of a case that has an answer and no scores."""
    env_files: tuple[Path, ...] = ()
    """`.env` files whose variables are set while the suite runs; the first file that has a variable wins."""
    file_settings: FileSettings | None = None
    """How files of turns are read; `None` for the default limits, with downloads in `.proctor/files`."""
    verbosity: Literal["quiet", "normal", "verbose"] | None = None
    """How much the terminal shows; `None` if the file does not say."""
    retrieval_tools: tuple[str, ...] = ()
    """Tools whose results count as retrieved passages: names, or patterns such as `mcp__docs__*`."""
    resolved: Mapping[str, ResolvedSetting] = field(default_factory=dict)
    """Settings with their origin, for `proctor doctor`."""
    config: Path | None = None
    """The config file that names its evaluators, if it is not the one next to the suite."""
    depends_on: tuple[str, ...] = ()
    """Files that the agent's answers depend on besides its code, such as prompts: paths from the suite's folder, or
    patterns (`prompts/*.md`). If one changes, `--reuse` and `--resume` ask the agent again."""
    allow_files_from: tuple[str, ...] = ()
    """Folders outside of the suite's own whose files its cases may attach."""

    @checked_arguments
    def __init__(
        self,
        name: str,
        cases: Iterable[Case | CaseDict] = (),
        *,
        agent: AgentLike = None,
        arms: Mapping[str, AgentLike] | None = None,
        evaluators: Sequence[EvaluatorLike] = (),
        judge: JudgeLike | None = None,
        criteria: Criteria | CriteriaDict | None = None,
        settings: Settings | SettingsDict | None = None,
        description: str = "",
        rerun_tools: Json = None,
        depends_on: Sequence[str] = (),
        allow_files_from: Sequence[str] = (),
        waivers: Sequence[Waiver | WaiverDict] = (),
        path: Path | None = None,
        format: str = "native",  # noqa: A002
        warnings: tuple[Problem, ...] = (),
        extra: Mapping[str, Json] | None = None,
        key_positions: Mapping[str, Position] | None = None,
        unscored: Literal["error", "skipped"] = "error",
        env_files: tuple[Path, ...] = (),
        file_settings: FileSettings | None = None,
        verbosity: Literal["quiet", "normal", "verbose"] | None = None,
        retrieval_tools: tuple[str, ...] = (),
        resolved: Mapping[str, ResolvedSetting] | None = None,
        config: Path | None = None,
    ) -> None:
        """Cases that belong together, with the agent they test and the evaluators that score them.

        - `cases`: `Case` objects, or mappings as in a file.
        - `agent`: a function, an object of a framework, `app.py:agent`, an address, or a mapping that describes it.
        - `arms`: versions of the agent by name, such as `{"old": "main", "new": "."}`; each runs every case.
        - `evaluators`: functions, instances (`Contains(any=["a"])`), names, or mappings as in a file.
        - `judge`: answers for evaluators that need a model.
        - `criteria`, `settings`: how outcomes become the verdict, and how the suite is run.
        - `depends_on`: files that the answers depend on besides the agent's code, such as prompts.
        - `allow_files_from`: folders outside of the suite's own whose files cases may attach.
        """
        values: dict[str, Any] = {
            "name": name,
            "cases": cases,
            "evaluators": evaluators,
            "agent": agent,
            "criteria": Criteria() if criteria is None else criteria,
            "settings": Settings() if settings is None else settings,
            "description": description,
            "judge": judge,
            "rerun_tools": rerun_tools,
            "arms": {} if arms is None else arms,
            "waivers": waivers,
        }
        is_final = (
            type(name) is str
            and _is_tuple_of(Case, cases)
            and _is_tuple_of(EvaluatorSpec, evaluators)
            and (agent is None or callable(agent) or isinstance(agent, (str, Mapping)) or hasattr(agent, "session"))
            and type(values["criteria"]) is Criteria
            and type(values["settings"]) is Settings
            and _is_tuple_of(Waiver, waivers)
        )
        if not is_final:
            values |= _reader().read_suite_from_python(values)
        if path is None:  # readers of files report such ids with their lines
            values["cases"] = with_unique_ids(values["cases"], name)
        _store(
            self,
            path=path,
            format=format,
            warnings=warnings,
            extra={} if extra is None else extra,
            key_positions={} if key_positions is None else key_positions,
            unscored=unscored,
            env_files=env_files,
            file_settings=file_settings,
            verbosity=verbosity,
            retrieval_tools=retrieval_tools,
            resolved={} if resolved is None else resolved,
            config=config,
            depends_on=_as_texts("depends_on", depends_on),
            allow_files_from=_as_texts("allow_files_from", allow_files_from),
            **values,
        )

    @classmethod
    def load(cls, path: str | Path) -> Suite:
        """Read the one suite in a file of any known format. `proctor.load` reads several."""
        from proctor.cases.formats.loading import load_one  # readers build on suites

        return load_one(path)

    @classmethod
    def from_dict(cls, data: SuiteDict | Mapping[str, Any]) -> Suite:
        """Build a suite from what a native file holds. Reports every problem at once, each with its place."""
        suite: Suite = _reader().read_suite_mapping(data)
        return suite

    def to_dict(self) -> SuiteDict:
        """The suite as the data of a native file. Functions are written as `file.py:name`; lambdas cannot be."""
        from proctor.cases.formats.native.writer import suite_to_data  # the writer builds on suites

        data: SuiteDict = suite_to_data(self, "to_dict")
        return data

    def save(self, path: str | Path) -> None:
        """Write the suite as native YAML, JSON or JSON Lines, by the suffix of `path`.

        Functions are written as `file.py:name`; lambdas cannot be.
        """
        from proctor.cases.formats.native.writer import save_suite  # the writer builds on suites

        save_suite(self, Path(path))

    def run(self, agent: AgentLike = None, **options: Unpack[RunParameters]) -> Run:
        """Run the suite and return the run; the options are those of `proctor.run`.

        >>> run = suite.run(repeat=3)
        >>> assert run, run.reason
        """
        from proctor.api import run_for  # the engine builds on suites

        return run_for("Suite.run", self, agent, options)

    async def run_async(self, agent: AgentLike = None, **options: Unpack[RunParameters]) -> Run:
        """The same as `run`, for code that has an event loop."""
        from proctor.api import run_for_async  # the engine builds on suites

        return await run_for_async("Suite.run_async", self, agent, options)

    @property
    def base(self) -> Path | None:
        """The folder that relative references in the suite start from."""
        return None if self.path is None else self.path.resolve().parent

    def located(self, problem: Problem) -> Problem:
        """The problem with the file and line of `problem.where`, or of its nearest parent that is in the file."""
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
        """The suite with each case replaced by what `change` returns for it."""
        return replace(self, cases=tuple(map(change, self.cases)))

    def evaluators_of(self, case: Case, turn: Turn | None = None) -> tuple[EvaluatorSpec, ...]:
        """The complete evaluators of a case, or of a turn that has its own: with the suite's for `...`, and with the
        checks that the expectations imply."""
        return complete_evaluators(case, self.evaluators, turn)


INHERITED: Final = EvaluatorSpec("...")
"""In a list of evaluators: the evaluators of the suite."""

TOOL_EVALUATORS: Final = frozenset({"ToolTrajectory", "ToolCorrectness", "ExpectedTools"})


def complete_evaluators(
    case: Case, defaults: tuple[EvaluatorSpec, ...], turn: Turn | None = None
) -> tuple[EvaluatorSpec, ...]:
    """The evaluators that score a case, or one of its turns; `defaults` are those of its suite."""
    if turn is not None and turn.evaluators is not None:
        named = _without_inherited(turn.evaluators, defaults)
        return with_implied(named, (turn,)) if case.implied else named
    named = defaults if case.evaluators is None else _without_inherited(case.evaluators, defaults)
    return with_implied(named, case.turns, final_state=case.final_state is not None) if case.implied else named


def _without_inherited(
    specs: tuple[EvaluatorSpec, ...], defaults: tuple[EvaluatorSpec, ...]
) -> tuple[EvaluatorSpec, ...]:
    """The list with `defaults` in the place of `...`, each once."""
    if not any(spec.name == INHERITED.name for spec in specs):
        return specs
    complete: list[EvaluatorSpec] = []
    for spec in specs:
        complete += [item for item in (defaults if spec.name == INHERITED.name else (spec,)) if item not in complete]
    return tuple(complete)


def with_implied(
    specs: tuple[EvaluatorSpec, ...], turns: tuple[Turn, ...], *, final_state: bool = False
) -> tuple[EvaluatorSpec, ...]:
    """`specs` plus the evaluators that the expectations of `turns` imply, so that none is silently ignored.

    Keywords imply `Contains`, tool calls `ExpectedTools`, a state after a turn `TurnState`, a final state `FinalState`,
    unless `specs` has an evaluator of that family. A reference answer is compared exactly only if there is no other
    evaluator, because most evaluators have their own use for it.
    """
    names = {spec.shipped_name for spec in specs}
    implied: list[str] = []
    if "Contains" not in names and any(turn.expected.contains is not None for turn in turns):
        implied.append("Contains")
    if not names & TOOL_EVALUATORS and any(turn.expected.tools is not None for turn in turns):
        implied.append("ExpectedTools")
    if "TurnState" not in names and any(turn.expected.state is not None for turn in turns):
        implied.append("TurnState")
    if final_state and "FinalState" not in names:
        implied.append("FinalState")
    if not specs and any(turn.expected.output is not UNSET for turn in turns):
        implied.insert(0, "ExactMatch")
    return specs + tuple([_implied_spec(name) for name in implied]) if implied else specs


@functools.cache
def _implied_spec(name: str) -> EvaluatorSpec:
    """One object for all cases: a plan builds one evaluator per spec object."""
    return EvaluatorSpec(name)


def with_complete_evaluators(suite: Suite) -> Suite:
    """The suite in which every case and turn that has its own evaluators lists all of them."""

    def complete(case: Case) -> Case:
        evaluators = complete_evaluators(case, suite.evaluators)
        own = None if evaluators == suite.evaluators else evaluators
        has_own_turns = any(turn.evaluators is not None for turn in case.turns)
        if own == case.evaluators and not has_own_turns:
            return case
        turns = case.turns
        if has_own_turns:
            turns = tuple(
                turn
                if turn.evaluators is None
                else replace(turn, evaluators=complete_evaluators(case, suite.evaluators, turn))
                for turn in turns
            )
        return replace(case, evaluators=own, turns=turns, implied=False)

    return suite.map_cases(complete)


def with_named_evaluators_only(suite: Suite) -> Suite:
    """A suite of another tool, where expectations bring no checks as soon as evaluators are named."""

    def decide(case: Case) -> Case:
        is_named = bool(suite.evaluators) or case.evaluators is not None
        return replace(case, implied=False) if is_named else case

    return suite.map_cases(decide)


def with_unique_ids(cases: tuple[Case, ...], suite: str) -> tuple[Case, ...]:
    """The cases, each with its own id. Ids that were made from the same input get numbers; others must differ."""
    if len({case.id for case in cases}) == len(cases):
        return cases
    ids, first = UniqueIds(), dict[str, int]()
    for index, case in enumerate(cases):
        if not case.has_generated_id and first.setdefault(case.id, index) != index:
            reason = f"cases[{first[case.id]}] and cases[{index}] have the same id {case.id!r}"
            raise InvalidSuite([Problem(f"Suite({suite!r}): {reason}")])
        if not case.has_generated_id:
            ids.claim(case.id)  # an id that the user chose keeps its place, wherever the case is
    return tuple(replace(case, id=ids.claim(case.id)) if case.has_generated_id else case for case in cases)


def generated_id(turns: Sequence[Turn]) -> str:
    """The id of a case that has none: from its first input, `where-is-my-order-a-17`."""
    return id_from(turns[0].input) if turns else "case"


def duplicate_problems(suites: Sequence[Suite]) -> list[Problem]:
    """Problems that a reader of files finds, in suites built by Python code: duplicate ids and names, empty parts."""
    problems: list[Problem] = []
    for name, count in Counter(suite.name for suite in suites).items():
        if count > 1:
            problems.append(Problem(f"more than one suite is called {name!r}; give each its own name"))
    for suite in suites:
        place = f"suite {suite.name!r}"
        if not suite.cases:
            problems.append(Problem("has no cases; add at least one", suite.path, where=place))
        for case_id, count in Counter(case.id for case in suite.cases).items():
            if count > 1 or not case_id.strip():
                reason = f"has {count} cases with the id {case_id!r}" if count > 1 else "has a case with a blank id"
                problems.append(Problem(reason, suite.path, where=place))
        problems.extend(
            Problem(f"has the case {case.id!r} without turns; add at least one", suite.path, where=place)
            for case in suite.cases
            if not case.turns
        )
    return problems


if not TYPE_CHECKING:  # a type checker would accept every name
    __getattr__ = renamed_names(
        __name__, {"Double": ("ToolMock", ToolMock), "Attachment": ("AttachedFile", AttachedFile)}
    )
