"""Reads a HoloDeck `agent.yaml`: the agent it describes is kept, its tests and their metrics become a suite."""

from __future__ import annotations

from pathlib import Path

from proctor.base.documents import Document, Fields
from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite, Problem, UsageError
from proctor.base.json_data import Json
from proctor.base.source import Pointer, read_text
from proctor.cases.formats.holodeck.configuration import (
    DEFAULT,
    ConfigFile,
    ProviderDefaults,
    agent_env_files,
    config_files,
    provider_defaults,
    read_execution,
    resolve_execution,
)
from proctor.cases.formats.holodeck.keys import EXTENSION, NAME
from proctor.cases.formats.holodeck.metrics import read_metrics
from proctor.cases.formats.holodeck.test_cases import AgentTests
from proctor.cases.formats.holodeck.variables import substitute
from proctor.cases.suite import Case, EvaluatorSpec, Settings, Suite

HOOKS = "proctor.compat.holodeck.suite_hooks:HoloDeckHooks"
KEPT = (
    "author",
    "model",
    "instructions",
    "response_format",
    "tools",
    "embedding_provider",
    "claude",
    "openai",
    "observability",
    "deployment",
)
"""What describes the agent itself, kept as it is written."""

AGENT_KEYS = frozenset({"model", "instructions", "evaluations", "execution", "agent", "test_cases", "test_cases_file"})
"""One of these is in every agent's file."""

WITHOUT_EFFECT = ("observability", "deployment")
"""What is about running the agent for others, and changes nothing in a test."""

IN_MEMORY = ("in-memory", "in_memory", "memory")
"""How files name the index that is built in."""

_UNREADABLE = (EvaluatorSpec(""),)
"""Stands for metrics whose problems are reported, so that no test is also said to lack them."""


def read_agent(path: Path) -> Suite:
    """The agent of a file for a program that runs it: without tests if it has none, and before its files are there."""
    text = read_text(path)
    document = Document(path, text)
    if not isinstance(document.data, dict) or not AGENT_KEYS & document.data.keys():
        raise InvalidSuite([Problem("is not an agent.yaml", path)])
    [suite] = read_document(document, to_be_completed=True)
    return suite


def read_document(document: Document, *, to_be_completed: bool = False) -> list[Suite]:
    """The one suite an agent's file is; one that is `to_be_completed` may lack tests and the files they name."""
    try:
        with environment_from(agent_env_files(document.path.resolve().parent)):
            return _read_document(document, to_be_completed)
    except UsageError as error:
        raise InvalidSuite([Problem(str(error))]) from None


def _read_document(document: Document, to_be_completed: bool) -> list[Suite]:
    fields = Fields(document, substitute(document, document.data, conceals=describes_a_model))
    name = fields.text("name", document.path.stem, required=True, blank=False)
    description = fields.text("description", blank=False) or ""
    agent = _agent(fields)
    fields.text("author", blank=False)
    given = {key: fields.take(key) for key in KEPT}
    kept = {key: value for key, value in given.items() if fields.has(key)}
    for key in WITHOUT_EFFECT:
        if kept.get(key) is not None:
            document.warn((key,), "is kept, but has no effect on tests")
    for index, tool in enumerate(kept["tools"] if isinstance(kept.get("tools"), list) else ()):
        if isinstance(tool, dict):
            _warn_of_tool(document, tool, ("tools", index))
    files, problems = config_files(document.path.resolve().parent)
    document.problems.extend(problems)
    defaults, judge = _read_evaluations(fields, kept, provider_defaults(files))
    settings = _read_execution(fields, kept, files)
    cases = _read_tests(fields, defaults, to_be_completed)
    extra = fields.extensions()
    if EXTENSION in extra:
        fields.problem(EXTENSION, "is a name that Proctor keeps for itself")
    if kept:
        extra[EXTENSION] = kept
    fields.done()
    document.finish()
    return [
        Suite(
            hooks=HOOKS,
            name=name,
            cases=cases,
            evaluators=defaults,
            agent=agent,
            settings=settings,
            judge=judge,
            description=description,
            path=document.path,
            format=NAME,
            warnings=tuple(document.warnings),
            extra=extra,
            key_positions={
                **document.positions_below(("agent",), "agent"),
                **document.positions_below(("evaluations", "model"), "judge"),
            },
        )
    ]


def _warn_of_tool(document: Document, tool: dict[str, Json], pointer: Pointer) -> None:
    """What a tool says and tests do without."""
    if tool.get("type") == "vectorstore" and (named := other_database(tool.get("database"))) is not None:
        document.warn((*pointer, "database"), f"is {named!r}, which is not used; the built-in index is")
    if tool.get("type") != "mcp":
        return
    if tool.get("registry_name") is not None:
        document.warn((*pointer, "registry_name"), "is kept, but has no effect on tests")
    if tool.get("description") is not None:
        document.warn((*pointer, "description"), "has no effect: the server describes its tools itself")


def other_database(database: Json) -> Json:
    """The database of a tool, where it is another than memory."""
    named = database.get("provider") if isinstance(database, dict) else database
    return None if named in IN_MEMORY else named


def describes_a_model(pointer: Pointer) -> bool:
    """Where keys of model providers stand; a tool argument called `token` is none of them."""
    return bool(pointer) and (pointer[0] in KEPT or ("evaluations" in pointer and "model" in pointer))


def _agent(fields: Fields) -> Json:
    agent = fields.take("agent")
    if agent is None or isinstance(agent, dict):
        return agent
    return fields.text("agent", blank=False)


def _read_evaluations(
    fields: Fields, kept: dict[str, Json], known: ProviderDefaults
) -> tuple[tuple[EvaluatorSpec, ...], Json]:
    """The evaluators of every test, and the model that judges where they need one and name none."""
    inside = fields.inside("evaluations")
    if inside is None:
        return (), None
    if not inside.valid:
        return _UNREADABLE, None
    metrics = inside.items("metrics", required=True, least=1)
    judge = inside.mapping("model")
    optimizer = inside.mapping("optimizer") if inside.take("optimizer") is not None else None
    if optimizer is not None:
        inside.document.warn(
            inside.at("optimizer"), "is kept, but has no effect: Proctor measures and does not optimise"
        )
        kept["evaluations"] = {"optimizer": optimizer}
    inside.done()
    specs = read_metrics(fields.document, metrics, inside.at("metrics")) if metrics else _UNREADABLE
    return specs, judge and {**known(judge), **judge}


def _read_execution(fields: Fields, kept: dict[str, Json], files: list[ConfigFile]) -> Settings:
    document = fields.document
    inside = fields.inside("execution")
    own = {} if inside is None or not inside.valid else read_execution(inside)
    rest = {key: value for key, value in own.items() if key not in ("llm_timeout", "parallel_test_cases")}
    if rest:
        kept["execution"] = rest
    found, problems = resolve_execution(own, str(document.path), files)
    document.problems.extend(problems)
    timeout = found["llm_timeout"]
    return Settings(
        parallel=found["parallel_test_cases"].value, timeout=None if timeout.origin == DEFAULT else timeout.value
    )


def _read_tests(fields: Fields, defaults: tuple[EvaluatorSpec, ...], to_be_completed: bool) -> tuple[Case, ...]:
    document = fields.document
    folder = document.path.parent
    elsewhere = fields.text("test_cases_file", blank=False)
    needed = not to_be_completed and fields.take("test_cases_file") is None
    tests = fields.items("test_cases", required=needed, least=0 if to_be_completed else 1)
    if tests is not None and fields.take("test_cases_file") is not None:
        fields.problem("test_cases_file", "cannot stand beside 'test_cases'; keep one of them")
    elif elsewhere is not None:
        return _read_elsewhere(fields, elsewhere, defaults, to_be_completed)
    return AgentTests(document, folder, defaults, to_be_completed).read(tests or [], fields.at("test_cases"))


def _read_elsewhere(
    fields: Fields, named: str, defaults: tuple[EvaluatorSpec, ...], to_be_completed: bool
) -> tuple[Case, ...]:
    """The tests of `test_cases_file`, whose problems are located in that file."""
    document = fields.document
    path = document.path.parent / named
    try:
        text = read_text(path)
    except InvalidSuite as error:
        fields.problem("test_cases_file", f"names {named}, which {error.problems[0].message}")
        return ()
    if path.resolve() == document.path.resolve():
        fields.problem("test_cases_file", "names this file itself; write its tests under 'test_cases'")
        return ()
    try:
        other = Document(path, text)
    except InvalidSuite as error:
        document.problems.extend(error.problems)
        return ()
    data = substitute(other, other.data, conceals=describes_a_model)
    tests = AgentTests(other, document.path.parent, defaults, to_be_completed)
    if isinstance(data, list):
        if not data:
            other.problem((), "is empty; give at least one test")
        cases = tests.read(data, ())
    else:
        wrapper = Fields(other, data)
        cases = tests.read(wrapper.items("test_cases", required=wrapper.valid, least=1) or [], ("test_cases",))
        wrapper.extensions()
        wrapper.done()
    document.problems.extend(other.problems)
    document.warnings.extend(other.warnings)
    return cases
