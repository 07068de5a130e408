"""Read an `agent.yaml`: its tests and metrics become a suite, and the agent it describes becomes `Suite.agent`.

The file is parsed once. `${NAME}` is filled in, except where it holds a secret. The models check the shape. Then each
test becomes a case and each metric an evaluator. The description of the agent is stored in the suite as data, together
with the provider's settings in `config.yml`, and checked only if the agent is built.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from proctor.base.documents import Document, did_you_mean, json_type_name
from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite, Problem, UsageError
from proctor.base.json_data import UNSET, Json
from proctor.base.positions import Pointer, Position
from proctor.base.source import read_text
from proctor.cases.ids import UniqueIds
from proctor.cases.suite import (
    NO_EXPECTATION,
    AttachedFile,
    Case,
    EvaluatorSpec,
    Expected,
    ExpectedCall,
    ResolvedSetting,
    Suite,
    Turn,
    with_named_evaluators_only,
)
from proctor.cases.validation import validate
from proctor.compat.holodeck.arg_matchers import to_engine_matcher
from proctor.compat.holodeck.backend_choice import BackendChoice, choose_backend
from proctor.compat.holodeck.metric_names import JUDGED, LEXICAL, RAG, STANDARD
from proctor.compat.holodeck.models import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_TEMPERATURE,
    DESCRIPTION_KEYS,
    MAX_MARK,
    Agent,
    AgentDescription,
    AgentTests,
    CodeMetric,
    EvaluationConfig,
    ExpectedTool,
    FileInput,
    GEvalMetric,
    LLMProvider,
    RAGMetric,
    StandardMetric,
    TestCaseModel,
    TurnFields,
    extensions,
    is_optional,
)
from proctor.compat.holodeck.models import Turn as TurnModel
from proctor.compat.holodeck.settings import (
    DEFAULT,
    agent_env_files,
    as_execution_config,
    config_files,
    file_settings,
    resolve_execution,
    suite_settings,
)
from proctor.compat.holodeck.unused_keys import unused_keys
from proctor.compat.holodeck.variables import mask_secret, substitute

A = TypeVar("A", bound=AgentTests)

NAME = "holodeck"
"""The name of the format, and of the kind of agent."""
SECRET_KEYS = (*DESCRIPTION_KEYS, "author", "observability", "deployment")
"""The keys under which secrets occur, which are never filled in."""
AGENT_KEYS = frozenset({"model", "instructions", "evaluations", "execution", "agent", "test_cases", "test_cases_file"})
"""Every agent file has at least one of these keys."""
IGNORED_KEYS = ("observability", "deployment")
"""Keys about running the agent for others, which have no effect on tests."""
SAMPLING_KEYS = ("temperature", "max_tokens", "top_p")
"""Keys that apply to models that generate text, not to embedding models."""
MODEL_KEYS = tuple(name for name in LLMProvider.model_fields if name != "auth_provider")
IN_MEMORY = ("in-memory", "in_memory", "memory")
"""The names of the built-in index in files."""
SCORING_HINT = "add 'evaluations' or 'expected_tools'"
"""What to add to a test that nothing scores."""
EXPECTED_TOOLS = EvaluatorSpec("ExpectedTools", label="expected_tools", scope="turn")
STORE_TYPES = ("vectorstore", "hierarchical_document")


def read(document: Document) -> list[Suite]:
    """The suite of an agent's file."""
    return [read_agent_file(document, AgentTests)[1]]


def read_agent_file(
    document: Document, model: type[A], *, allow_missing_files: bool = False, allow_no_tests: bool = False
) -> tuple[A, Suite]:
    """The agent of a file and its suite; raises `InvalidSuite` with all problems.

    With `allow_missing_files` and `allow_no_tests`, a program may add tests, and the files they name, before it runs
    them.
    """
    env_files = agent_env_files(document.path.resolve().parent)
    try:
        with environment_from(env_files):
            reader = _AgentFileReader(document, model, allow_missing_files, allow_no_tests)
            agent = reader.agent()
            document.finish()
            assert agent is not None  # `finish` raises if there are problems
            suite = reader.suite(agent, tuple(env_files))
    except UsageError as error:
        raise InvalidSuite([Problem(str(error))]) from None
    if isinstance(agent, Agent):
        agent.original_suite = suite
    return agent, suite


def agent_suite(agent: Agent, path: str | Path = "agent.yaml") -> Suite:
    """The suite of an agent with its current tests; an agent created in Python is read as if it were a file."""
    original: Suite | None = agent.original_suite
    if original is None:
        data = {name: _as_data(value) for name, value in agent if name in agent.model_fields_set}
        document = Document(Path(path), "", data, lambda pointer: None)
        return read_agent_file(document, Agent, allow_missing_files=True, allow_no_tests=True)[1]
    document = Document(original.path or Path(path), "", {}, lambda pointer: None)
    cases = _Tests(document, original.evaluators).cases(agent.test_cases or [], [])
    return with_named_evaluators_only(replace(original, cases=cases))


def _as_data(value: Any) -> Any:
    if isinstance(value, LLMProvider):
        return value.file_data()
    if isinstance(value, ExpectedTool):
        return value.model_dump(exclude_unset=True)
    if isinstance(value, BaseModel):
        return {name: _as_data(item) for name, item in value if name in value.model_fields_set or name == "type"}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {name: _as_data(item) for name, item in value.items()}
    return [_as_data(item) for item in value] if isinstance(value, list) else value


class _AgentFileReader:
    """Reads one file."""

    def __init__(self, document: Document, model: type[Any], allow_missing_files: bool, allow_no_tests: bool) -> None:
        self.document = document
        self.folder = document.path.resolve().parent
        self._model = model
        self._context = {"file": document.path}
        self._files_folder = None if allow_missing_files else document.path.parent
        self._allow_no_tests = allow_no_tests
        self._data = substitute(document, document.data, hides_secrets=holds_secrets)
        self._configs, problems = config_files(self.folder)
        document.problems.extend(problems)
        self._tests_document = document
        self._raw_tests: list[Json] = []
        self._tests_pointer: Pointer = ("test_cases",)

    def agent(self) -> Any:
        """The agent with its tests; None if there are problems, which are added to the document."""
        data = self._data
        is_object = isinstance(data, Mapping)
        rest = {key: value for key, value in data.items() if key != "test_cases"} if is_object else data
        agent = validate(self._model, rest, self.document, context=self._context)
        tests = self._tests() if is_object else []
        if agent is None:
            return None
        for key in IGNORED_KEYS:
            if getattr(agent, key) is not None:
                self.document.warn((key,), "has no effect on tests")
        self._warn_about_tools()
        if tests or data.get("test_cases") is not None:
            agent.test_cases = tests
        return agent

    def suite(self, agent: AgentTests, env_files: tuple[Path, ...]) -> Suite:
        """The suite of the agent."""
        document = self.document
        defaults, judge = self._evaluations(agent.evaluations)
        settings = resolve_execution(document, agent.execution, self._configs)
        tests = _Tests(self._tests_document, defaults, self._tests_pointer, self._files_folder)
        cases = tests.cases(agent.test_cases or [], self._raw_tests)
        if self._tests_document is not document:
            document.warnings.extend(self._tests_document.warnings)
        description, positions = self._description(agent)
        backend = self._backend(agent, description)
        positions |= document.positions_below(("agent",), "agent")
        positions |= document.positions_below(("evaluations", "model"), "judge")
        document.finish()
        config = as_execution_config(settings)
        suite = Suite(
            name=agent.name,
            cases=cases,
            evaluators=defaults,
            agent=agent.agent if agent.agent is not None or description is None else {NAME: description},
            unscored="skipped",
            settings=suite_settings(settings),
            judge=judge,
            description=agent.description or "",
            path=document.path,
            format=NAME,
            warnings=tuple(document.warnings),
            extra=extensions(self._data),
            depends_on=tuple(agent.depends_on or ()),
            allow_files_from=tuple(agent.allow_files_from or ()),
            env_files=env_files,
            file_settings=file_settings(config, self.folder),
            verbosity="quiet" if config.quiet else "verbose" if config.verbose else "normal",
            retrieval_tools=retrieval_tool_names(self._data.get("tools")),
            resolved=self._resolved(backend, settings),
            key_positions=positions,
        )
        return with_named_evaluators_only(suite)

    # Tests

    def _tests(self) -> list[TestCaseModel]:
        tests_file = self._data.get("test_cases_file")
        items = self._data.get("test_cases")
        if items is not None and tests_file is not None:
            self.document.problem(("test_cases_file",), "cannot be used together with 'test_cases'; keep one of them")
        elif isinstance(tests_file, str):
            items = self._read_tests_file(tests_file)
        elif items is None and tests_file is None and not self._allow_no_tests:
            self.document.problem((), "needs 'test_cases' (a list)")
        if items is None:
            return []
        if not isinstance(items, list):
            self._tests_document.problem(self._tests_pointer, f"must be a list, not {json_type_name(items)}")
            return []
        if not items and not self._allow_no_tests:
            self._tests_document.problem(self._tests_pointer, "is empty; add at least one")
        self._raw_tests = items
        read = [
            validate(TestCaseModel, item, self._tests_document, (*self._tests_pointer, index), self._context)
            for index, item in enumerate(items)
        ]
        if self._tests_document is not self.document:
            self.document.problems.extend(self._tests_document.problems)
        return [test for test in read if test is not None]

    def _read_tests_file(self, tests_file: str) -> Json:
        """The tests in `test_cases_file`; their problems are located in that file."""
        document = self.document
        path = document.path.parent / tests_file
        try:
            text = read_text(path)
        except InvalidSuite as error:
            document.problem(("test_cases_file",), f"names {tests_file}, which {error.problems[0].message}")
            return None
        if path.resolve() == document.path.resolve():
            message = "names this file itself; put its tests under 'test_cases'"
            document.problem(("test_cases_file",), message)
            return None
        try:
            tests_document = Document(path, text)
        except InvalidSuite as error:
            document.problems.extend(error.problems)
            return None
        data = substitute(tests_document, tests_document.data, hides_secrets=holds_secrets)
        self._tests_document, self._tests_pointer = tests_document, ()
        if isinstance(data, list):
            return data
        self._tests_pointer = ("test_cases",)
        if not isinstance(data, Mapping):
            document.problems.append(Problem(f"must be an object, not {json_type_name(data)}", path, 1))
            return None
        if data.get("test_cases") is None:
            tests_document.problem((), "needs 'test_cases' (a list)")
        for key in data:
            if key != "test_cases" and not str(key).startswith("x-"):
                tests_document.unknown_key((key,), did_you_mean(str(key), ["test_cases"]))
        if data.get("test_cases") is None:
            document.problems.extend(tests_document.problems)
        return data.get("test_cases")

    # Metrics

    def _evaluations(self, config: EvaluationConfig | None) -> tuple[tuple[EvaluatorSpec, ...], Json]:
        """The evaluators of every test, and the judge of those that do not set their own."""
        if config is None:
            return (), None
        if config.optimizer is not None:
            message = "has no effect: Proctor does not optimize"
            self.document.warn(("evaluations", "optimizer"), message)
        specs = metric_specs(config.metrics, ("evaluations", "metrics"), self.document)
        judge = None if config.model is None else config.model.file_data()
        return specs, judge and {**self._provider_defaults(judge), **judge}

    # The agent's description

    def _description(self, agent: AgentTests) -> tuple[dict[str, Json] | None, dict[str, Position]]:
        """The description of the agent and the position of each part; None if the file has no `model`."""
        if self._data.get("model") is None:
            return None, {}
        description = {key: self._data[key] for key in DESCRIPTION_KEYS if self._data.get(key) is not None}
        positions: dict[str, Position] = {}
        for key in description:
            positions |= self.document.positions_below((key,), key)
        for key in ("model", "embedding_provider"):
            description[key] = self._with_defaults(description.get(key), key, positions)
        description["tools"] = (
            [
                {**tool, "model": self._with_defaults(tool["model"], f"tools[{index}].model", positions)}
                if isinstance(tool, dict) and isinstance(tool.get("model"), dict)
                else tool
                for index, tool in enumerate(description["tools"])
            ]
            if isinstance(description.get("tools"), list)
            else description.get("tools")
        )
        servers = self._shared_servers(description["tools"], positions)
        description = {"name": agent.name, **description, "mcp_servers": servers}
        if not servers:
            del description["mcp_servers"]
        return {key: value for key, value in description.items() if value is not None}, positions

    def _provider_defaults(self, block: Mapping[str, Json]) -> dict[str, Json]:
        """The settings in configuration files for the provider of a model block."""
        defaults: dict[str, Json] = {}
        for file in reversed(self._configs):
            defaults |= {k: v for k, v in file.provider(block.get("provider"))[1].items() if k != "provider"}
        return defaults

    def _with_defaults(self, block: Json, place: str, positions: dict[str, Position]) -> Json:
        """A model block with the settings of its provider in configuration files; the block itself wins."""
        if not isinstance(block, dict):
            return block
        for file in reversed(self._configs):
            key, provider_block = file.provider(block.get("provider"))
            for name in provider_block:
                if name not in block:
                    positions[f"{place}.{name}"] = file.document.position(("providers", key, name))
        defaults = self._provider_defaults(block)
        names = [name for name in defaults if place != "embedding_provider" or name not in SAMPLING_KEYS]
        return {**{name: defaults[name] for name in names}, **block}

    def _shared_servers(self, tools: Json, positions: dict[str, Position]) -> list[Json]:
        """The servers that configuration files give to every agent; a tool of the same name comes first."""
        names = {tool.get("name") for tool in tools if isinstance(tool, dict)} if isinstance(tools, list) else set()
        servers: list[Json] = []
        for file in self._configs:
            for index, server in enumerate(file.servers):
                if server.get("name") in names:
                    continue
                names.add(server.get("name"))
                positions |= file.document.positions_below(("mcp_servers", index), f"mcp_servers[{len(servers)}]")
                servers.append({"type": "mcp", **server, "folder": str(file.path.parent.resolve())})
        return servers

    def _backend(self, agent: AgentTests, description: dict[str, Json] | None) -> BackendChoice | None:
        """The backend that runs the described agent, if it is described well enough; warns about its unused keys."""
        if description is None or agent.agent is not None:
            return None
        quiet = Document(self.document.path, "", {}, lambda pointer: None)
        read = validate(AgentDescription, description, quiet)
        if read is None:  # the problems are reported when the agent is built
            return None
        backend = choose_backend(read)
        for pointer, message in unused_keys(read, backend):
            self.document.warn(pointer, message)
        return backend

    def _resolved(
        self, backend: BackendChoice | None, execution: Mapping[str, ResolvedSetting]
    ) -> dict[str, ResolvedSetting]:
        """The backend, model and execution settings for `proctor doctor`; of a secret, only its variable."""
        settings: dict[str, ResolvedSetting] = {}
        if backend is not None:
            settings["backend"] = ResolvedSetting(backend.name, backend.reason)
        settings |= {f"model.{key}": setting for key, setting in self._resolved_model().items()}
        return settings | {f"execution.{key}": setting for key, setting in execution.items()}

    def _resolved_model(self) -> dict[str, ResolvedSetting]:
        block = self._data.get("model")
        if not isinstance(block, Mapping):
            return {}
        sources: list[tuple[str, Mapping[str, Json]]] = [(str(self.document.path), block)]
        sources += [(str(file.path), _without_provider(file.provider(block.get("provider")))) for file in self._configs]
        sources.append((DEFAULT, {"temperature": DEFAULT_TEMPERATURE, "max_tokens": DEFAULT_MAX_TOKENS}))
        settings: dict[str, ResolvedSetting] = {}
        for key in MODEL_KEYS:
            source = next((source for source in sources if key in source[1]), None)
            if source is not None:
                settings[key] = ResolvedSetting(mask_secret(key, source[1][key]), source[0])
        return settings

    def _warn_about_tools(self) -> None:
        """Warn about keys of tools that have no effect on tests."""
        tools = self._data.get("tools")
        for index, tool in enumerate(tools if isinstance(tools, list) else ()):
            if not isinstance(tool, dict):
                continue
            at = ("tools", index)
            if tool.get("type") == "vectorstore" and (database := other_database(tool.get("database"))) is not None:
                self.document.warn(
                    (*at, "database"), f"is {database!r}, which is not supported; the built-in index is used instead"
                )
            if tool.get("type") == "mcp" and tool.get("registry_name") is not None:
                self.document.warn((*at, "registry_name"), "has no effect on tests")
            if tool.get("type") == "mcp" and tool.get("description") is not None:
                self.document.warn((*at, "description"), "has no effect: the server describes its tools itself")


def _without_provider(block: tuple[str, Mapping[str, Json]]) -> dict[str, Json]:
    return {key: value for key, value in block[1].items() if key != "provider"}


def holds_secrets(pointer: Pointer) -> bool:
    """Whether secrets of model services may be at this place; a tool argument called `token` is not one."""
    return bool(pointer) and (pointer[0] in SECRET_KEYS or ("evaluations" in pointer and "model" in pointer))


def other_database(database: Json) -> Json:
    """The database of a tool if it is not the built-in index, else None."""
    name = database.get("provider") if isinstance(database, dict) else database
    return None if name in IN_MEMORY else name


def retrieval_tool_names(tools: Json) -> tuple[str, ...]:
    """The names of retrieval tools in every backend's spelling: `kb`, `kb_search`, `vectorstore-kb`."""
    names: list[str] = []
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
            continue
        if tool.get("type") in STORE_TYPES:
            names += [name, f"{name}_search", f"mcp__holodeck_tools__{name}_search"]
            names += [f"{kind}-{name}" for kind in STORE_TYPES]
        elif tool.get("type") == "mcp" and tool.get("is_retrieval"):
            names += [name, f"mcp__{name}__*", f"mcp_{name}__*"]
    return tuple(names)


class _Tests:
    """Converts tests to cases."""

    def __init__(
        self,
        document: Document,
        defaults: tuple[EvaluatorSpec, ...],
        pointer: Pointer = ("test_cases",),
        files_folder: Path | None = None,
    ) -> None:
        self._document = document
        self._defaults = defaults
        self._pointer = tuple(pointer)
        self._files_folder = files_folder
        """Where the files of tests are; None if they may still be created before the run."""

    def cases(self, tests: list[TestCaseModel], raw: list[Json]) -> tuple[Case, ...]:
        """The cases of the tests; `raw` is the data of each test in the file, for its `x-` keys."""
        ids = UniqueIds()
        cases = []
        for index, test in enumerate(tests):
            extra = extensions(raw[index]) if index < len(raw) else {}
            cases.append(self._case(test, (*self._pointer, index), ids, f"test-{index + 1}", extra))
        bare = [index for index, case in enumerate(cases) if not self._is_scored(case)]
        if len(bare) > 1 and len(bare) == len(cases):
            self._document.warn(self._pointer, f"has no test that can be scored; {SCORING_HINT}")
        else:
            for index in bare:
                self._document.warn((*self._pointer, index), f"is not scored by anything; {SCORING_HINT}")
        return tuple(cases)

    def _is_scored(self, case: Case) -> bool:
        inherited = self._defaults if case.evaluators is None else case.evaluators
        return any(inherited if turn.evaluators is None else turn.evaluators for turn in case.turns)

    def _case(
        self, test: TestCaseModel, pointer: Pointer, ids: UniqueIds, unnamed: str, extra: dict[str, Json]
    ) -> Case:
        case_id = ids.claim(test.name or unnamed)
        if test.name and case_id != test.name:
            message = f"is used by another test too; this test is reported as {case_id!r}"
            self._document.warn((*pointer, "name"), message)
        metrics = self._metrics(test, pointer)
        if test.turns is None:
            turns: tuple[Turn, ...] = (self._turn(test, pointer),)
            evaluators = _with_expected_tools(metrics, self._defaults, turns[0])
        else:
            turns, evaluators = self._conversation(test.turns, pointer, metrics), metrics
        return Case(
            id=case_id,
            turns=turns,
            description=test.name or "",
            evaluators=evaluators,
            extra=extra,
            continue_after_failed_turn=test.turns is not None,
            position=self._document.position((*pointer, "name")),
        )

    def _conversation(
        self, turns: list[TurnModel], pointer: Pointer, metrics: tuple[EvaluatorSpec, ...] | None
    ) -> tuple[Turn, ...]:
        inherited = self._defaults if metrics is None else metrics
        result = []
        for index, turn in enumerate(turns):
            at = (*pointer, "turns", index)
            case_turn = self._turn(turn, at)
            evaluators = _with_expected_tools(self._metrics(turn, at), inherited, case_turn)
            result.append(replace(case_turn, evaluators=evaluators, metadata=turn.turn_config or {}))
        return tuple(result)

    def _metrics(self, turn: TurnFields, pointer: Pointer) -> tuple[EvaluatorSpec, ...] | None:
        """The test's own metrics, which replace the inherited ones; an empty list does not."""
        if not turn.evaluations:
            return None
        return metric_specs(turn.evaluations, (*pointer, "evaluations"), self._document)

    def _turn(self, turn: TurnFields, pointer: Pointer) -> Turn:
        if turn.expected_tools == []:
            message = "is empty and checks nothing, not even that no tool is called"
            self._document.warn((*pointer, "expected_tools"), message)
        self._warn_about_files(turn.files or [], (*pointer, "files"))
        calls = tuple(map(expected_call, turn.expected_tools or ())) or None
        truth = UNSET if turn.ground_truth is None else turn.ground_truth
        has_expectation = truth is not UNSET or calls is not None
        return Turn(
            turn.input or "",
            expected=Expected(output=truth, tools=calls) if has_expectation else NO_EXPECTATION,
            retrieval_context=tuple(turn.retrieval_context or ()) or None,
            files=tuple(map(attached_file, turn.files or ())),
        )

    def _warn_about_files(self, files: list[FileInput], pointer: Pointer) -> None:
        """Warn about files that do not exist: the run continues, and the test is an error."""
        folder = self._files_folder
        for index, file in enumerate(files):
            if file.path is not None and folder is not None and not _is_file(folder / file.path):
                message = f"names {file.path}, which does not exist (looked in {folder}); the test will be an error"
                self._document.warn((*pointer, index, "path"), message)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_conversation(case: Case) -> bool:
    """Whether a test was written with `turns`, even if there is only one."""
    return case.continue_after_failed_turn or len(case.turns) > 1


def _with_expected_tools(
    evaluators: tuple[EvaluatorSpec, ...] | None, inherited: tuple[EvaluatorSpec, ...], turn: Turn
) -> tuple[EvaluatorSpec, ...] | None:
    """The evaluators with one for the expected tools, if there are any."""
    if turn.expected.tools is None:
        return evaluators
    return (*(inherited if evaluators is None else evaluators), EXPECTED_TOOLS)


def expected_call(item: str | ExpectedTool) -> ExpectedCall:
    """An expected tool as the engine compares it: by a part of its name, with additional arguments allowed."""
    if isinstance(item, str):
        return ExpectedCall(item, substring=True, extra_args=True)
    matchers = None if item.args is None else {name: to_engine_matcher(value) for name, value in item.args.items()}
    return ExpectedCall(item.name, matchers, count=item.count, substring=True, extra_args=True)


def attached_file(file: FileInput) -> AttachedFile:
    return AttachedFile(file.path, file.url, file.type, file.description, file.options)


NAME_KEYS = {"standard": "metric", "rag": "metric_type", "code": "grader", "geval": "name"}
"""The key with the name of a metric, for each type."""


def metric_specs(metrics: list[Any], pointer: Pointer, document: Document) -> tuple[EvaluatorSpec, ...]:
    """The evaluators of the enabled metrics; warns about keys that have no effect."""
    specs = []
    for index, metric in enumerate(metrics):
        at = (*pointer, index)
        if isinstance(metric, StandardMetric):
            spec = _standard_spec(metric, functools.partial(_warn_key, document, at))
        elif isinstance(metric, RAGMetric):
            if metric.include_reason is False:
                document.warn((*at, "include_reason"), "has no effect: the reason is always stored")
            spec = _judged_spec(RAG[metric.metric_type], metric.metric_type.value, metric, {})
        elif isinstance(metric, GEvalMetric):
            spec = _judged_spec("GEval", metric.name, metric, _geval_arguments(metric))
        else:
            assert isinstance(metric, CodeMetric)
            label, arguments = metric.display_name, {"grader": metric.grader}
            spec = EvaluatorSpec("CodeGrader", arguments, metric.threshold, label=label, scope="turn")
        if metric.enabled:
            position = document.position((*at, NAME_KEYS[metric.type]))
            specs.append(replace(spec, optional=is_optional(metric), position=position))
    return tuple(specs)


def _warn_key(document: Document, at: Pointer, key: str, message: str) -> None:
    document.warn((*at, key), message)


def _judged_spec(
    name: str, label: str | None, metric: RAGMetric | GEvalMetric, arguments: dict[str, Json]
) -> EvaluatorSpec:
    model = {} if metric.model is None else {"model": metric.model.file_data()}
    is_set = metric.threshold is not None and "threshold" in metric.model_fields_set
    threshold = float(metric.threshold or 0.0) if is_set else None
    return EvaluatorSpec(name, arguments | model, threshold, label=label, scope="turn")


def _geval_arguments(metric: GEvalMetric) -> dict[str, Json]:
    arguments = {
        "criteria": metric.criteria,
        "evaluation_steps": metric.evaluation_steps,
        "evaluation_params": metric.evaluation_params,
        "strict_mode": metric.strict_mode if "strict_mode" in metric.model_fields_set else None,
    }
    return {key: value for key, value in arguments.items() if value is not None}


METRIC_OPTIONS = {
    "equality": ("case_insensitive", "strip_whitespace", "strip_punctuation"),
    "numeric": ("absolute_tolerance", "relative_tolerance", "accept_percent", "accept_thousands_separators"),
}
"""The keys that change how a computed metric compares."""


def _standard_spec(metric: StandardMetric, warn: Callable[[str, str], None]) -> EvaluatorSpec:
    name = str(metric.metric)
    is_judged = name in JUDGED
    arguments: dict[str, Json] = {"variant": "rougeL"} if name == "rouge" else {}
    for owner, options in METRIC_OPTIONS.items():
        for option in options:
            if option in metric.model_fields_set and owner == name:
                arguments[option] = getattr(metric, option)
            elif option in metric.model_fields_set:
                warn(option, f"has no effect on {name}")
    for option in ("scale", "custom_prompt"):
        value = getattr(metric, option)
        if value is not None and is_judged:
            arguments[option] = value
        elif value is not None:
            warn(option, f"has no effect on {name}")
    if metric.model is not None and is_judged:
        arguments["model"] = metric.model.file_data()
    elif metric.model is not None:
        warn("model", "has no effect: this metric does not use a model")
    if metric.retry_on_failure and not is_judged:
        warn("retry_on_failure", f"has no effect on {name}, which is computed and always the same")
    threshold = metric.threshold
    if threshold is not None and is_judged and threshold > 1:  # a mark on the judge's scale, not a share
        threshold = threshold / (metric.scale or MAX_MARK)
    return EvaluatorSpec(
        STANDARD[name],
        arguments,
        None if threshold is None else float(threshold),
        label=name,
        report_only=threshold is None and name in LEXICAL,
        scope="turn",
        timeout=None if metric.timeout_ms is None else metric.timeout_ms / 1000,
        output_path=metric.response_path,
        retries=(metric.retry_on_failure or 0) if is_judged else 0,
    )
