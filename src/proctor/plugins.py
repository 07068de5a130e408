"""What a tool or package can add to Proctor, and how it is found.

A plugin is one object. Your package declares it once, as an entry point in its `pyproject.toml`:

    [project.entry-points."proctor.plugins"]
    acme = "acme_proctor:PLUGIN"

and lists what it adds:

    # acme_proctor/__init__.py
    from proctor.plugins import AgentKind, Command, Format, Plugin, Reporter

    PLUGIN = Plugin(
        name="acme",
        formats=[Format(name="acme", summary="Acme's dialogue files", keys=frozenset({"dialogues"}),
                        recognises=lambda path, data: isinstance(data, dict) and "dialogues" in data,
                        read="acme_proctor.reader:read")],
        agents=[AgentKind(key="acme", build="acme_proctor.agent:build", example="agent: {acme: {greeting: Hello}}")],
        evaluators={"Brevity": "acme_proctor.checks:Brevity"},
        reporters=[Reporter(name="acme", help="Acme's score sheet.", suffix=".txt", write="acme_proctor.sheet:write")],
        commands=[Command(name="acme-hello", help="Greet from Acme.", target="acme_proctor.hello:command")],
    )

`tests/outside_package` in the repository is the complete package.

The tools that Proctor ships (`proctor.compat.*`), mutation testing and calibration are plugins too: each is a folder
with a `plugin.py`, listed in `SHIPPED`. To remove one is to delete its folder and its line here.

A package with one thing may use an older group instead: `proctor.formats` (a module with `NAME`, `recognises` and
`read`), `proctor.evaluators`, `proctor.reporters` or `proctor.agents` (name and object). Each entry is made into a
plugin.

Plugins are imported whenever a file is loaded, so importing one must be cheap. Anything that takes time to import is
written as `"module:name"`, as in an entry point, and imported by `load` when it is first used. This module imports only
`base.errors` from Proctor, so that every package except `base` can use it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TextIO, TypeVar, cast

from proctor.base.errors import UsageError, one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from proctor.agents.agent import Agent, BaseAgent
    from proctor.agents.frameworks import Adapter
    from proctor.base.documents import Document, Fields
    from proctor.base.json_data import Json
    from proctor.cases.suite import Case, Suite
    from proctor.evaluators.evaluable import Evaluable
    from proctor.judging.specs import PanelSpec
    from proctor.results.run import Run
    from proctor.results.verdict import RunVerdict
    from proctor.tracing.spans import Span

SHIPPED: tuple[str, ...] = (
    "proctor.compat.adk.plugin",
    "proctor.compat.pixie.plugin",
    "proctor.compat.holodeck.plugin",
    "proctor.compat.deepeval.plugin",
    "proctor.mutation.plugin",
    "proctor.calibration.plugin",
)
"""The plugins of this package. They are listed here and not as entry points, because searching the installed packages
takes as long as starting Python four times, and most runs need nothing else."""

ENTRY_POINTS = "proctor.plugins"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format that suites can be read from."""

    name: str
    """Its name in `proctor list formats` and in reports."""
    summary: str
    """What the files are, in a few words."""
    recognises: Callable[[Path, Json], bool]
    """Whether a file with this parsed content is a suite of this format. Must not raise."""
    read: Callable[[Document], list[Suite]] | str
    """The suites in a file; raises `InvalidSuite` with every problem found."""
    read_with_config: Callable[[Document, Path], list[Suite]] | str | None = None
    """The same with the evaluators of a config file that is not next to the suite: `proctor test --config FILE`."""
    suffixes: tuple[str, ...] = (".json", ".yaml", ".yml")
    file_names: tuple[str, ...] = ()
    """Patterns such as `*.test.json`. A file with such a name that cannot be read is an error and not ignored."""
    collect_names: tuple[str, ...] = ()
    """Patterns of further names, or of a folder and a name, that files of this format often have. pytest looks into a
    file so named for `keys`; any other file it collects only if the command line names it."""
    keys: frozenset[str] = frozenset()
    """Top-level keys that only this format has. They decide which format a file is in if several recognise it, whether
    a file that cannot be parsed was meant to be one, and what pytest collects."""
    case_keys: frozenset[str] = frozenset()
    """Keys inside a case that only this format has. They count as `keys` where a file is searched and not parsed."""
    companions: tuple[str, ...] = ()
    """Names of files next to a suite that are not suites, such as `test_config.json`."""
    parse: Callable[[Path, str], Document] | str | None = None
    """Parses a file that is neither JSON nor YAML."""
    edit: Callable[[Path, str, Suite, Mapping[int, Case]], str] | str | None = None
    """The text of the file with some cases (by position) changed and every other line as it was."""
    unfinished: Callable[[], list[Suite]] | str | None = None
    """Suites that cannot run yet, such as one without cases, for `proctor dataset list`."""
    default_folder: Callable[[], Path | None] | str | None = None
    """Where `proctor test` looks if no path is passed: a folder from the tool's environment variables."""
    case_text: Callable[[Evaluable, Mapping[str, Json]], str] | str | None = None
    """The text of a case in this format, from a trace and the arguments of the call, for `trace to-case`."""
    with_session: Callable[[Suite, Path], Suite] | str | None = None
    """The suite with the session of another file, for `--initial-session`; raises `UsageError` if it has its own."""
    agent_hint: str = ""
    """How a file of this format names its agent: a clause for an error message, such as "add `agent: app.py:agent`"."""
    refusal: Callable[[Json], str | None] = lambda data: None
    """Why a file that is nearly of this format is not, such as "describes an agent and no tests of it"."""


@dataclass(frozen=True, kw_only=True)
class AgentKind:
    """A kind of agent that a suite describes: `agent: {acme: {...}}`."""

    key: str
    build: Callable[[Json, Path | None], BaseAgent] | str
    """Builds the agent from the value of the key; relative names start from the folder.

    Raises `UsageError`, or `InvalidSuite` with problems that say where below the key they are."""
    example: str
    """A line of YAML for `proctor list agents`."""
    check: Callable[[Json, Path | None], BaseAgent | None] | str | None = None
    """The same without loading user code, for `proctor doctor`; `None` if `build` loads none."""


@dataclass(frozen=True, kw_only=True)
class Reporter:
    """A report of a run: `--report NAME=FILE`, or `--report FILE` if the suffix says which."""

    name: str
    help: str
    write: Callable[[Run, RunVerdict, TextIO], None] | str
    suffix: str = ""
    """The suffix that selects this report, such as `.csv`; each suffix belongs to one report."""


@dataclass(frozen=True, kw_only=True)
class TraceFormat:
    """A format of recorded traces besides OTLP: one record per line."""

    name: str
    recognises: Callable[[Json], bool]
    """Whether a line of a file is a record of this format."""
    read: Callable[[Sequence[tuple[int, Any]]], list[Span]] | str
    """The spans in the records of one file, each with the number of its line."""
    write: Callable[[Sequence[Span]], str] | str | None = None
    """The text of a file with these spans."""


@dataclass(frozen=True, kw_only=True)
class RunFormat:
    """A file in which another tool stores the results of a run; `proctor runs import` adds it to the store."""

    name: str
    recognises: Callable[[str, str], bool]
    """Whether a file is one, from its name and its first characters. Must not raise."""
    read: Callable[[Path], Run] | str
    """The run with its trials; raises `InvalidSuite` with every problem found."""


@dataclass(frozen=True, kw_only=True)
class ImportName:
    """A package that Proctor can replace: `import deepeval` then gives Proctor's names, if the project turns it on."""

    home: str
    """The module that has all the names."""
    modules: tuple[str, ...] | str
    """The paths below the package that can be imported, such as `metrics.base_metric`."""
    own_modules: tuple[str, ...] = ()
    """Modules of `home` that replace the package's module of the same name, each with its own `__all__`."""
    page: str
    """The page of the documentation about it."""


@dataclass(frozen=True, kw_only=True)
class JudgeSpelling:
    """A tool's syntax for a judge as an object, such as `{provider: openai, name: gpt-4o}`."""

    keys: frozenset[str]
    """An object that has one of these keys is written this way."""
    naming_keys: frozenset[str]
    """Those of the keys that name a judge; an object without them only has options."""
    read: Callable[[Fields], PanelSpec | None] | str
    """The judges that the object describes."""
    camel: bool = False
    """Whether keys may be written in camelCase too."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of the command line: `proctor NAME`, or `proctor GROUP NAME`."""

    name: str
    help: str
    """One line for `proctor --help`."""
    target: str
    """The click command, as `"module:name"`."""
    section: str = "tools"
    """The heading under which `proctor --help` lists it."""
    runs_user_code: bool = True
    """Whether it may load a suite or an agent. Such a command runs in a guarded process."""


@dataclass(frozen=True, kw_only=True)
class Template:
    """A project that `proctor init -t NAME` writes."""

    name: str
    summary: str
    folder: str
    """The package folder that holds the files, as `"package:folder"`; their names end in `.tmpl`."""
    test_arguments: tuple[str, ...] = ()
    """The arguments of `proctor test`; `@` marks the name of a file of the project."""
    shares: tuple[str, ...] = ()
    """Files of the plain template that the project has too, such as `agent.py`."""
    install: str = ""
    """The command that installs what the project needs, if that is not a Python package."""


@dataclass(frozen=True, kw_only=True)
class TestOptions:
    """The options and subcommands of a tool's own test command, which `proctor test` understands."""

    __test__: ClassVar[bool] = False

    names: frozenset[str]
    """Options that Proctor does not have: `"--parallel-test-cases"`."""
    rewrite: str
    """A function that takes the arguments and returns them with Proctor's options, and notes for the user."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """Its subcommands, and what to write instead."""


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """Everything that one tool or package adds."""

    name: str
    formats: Sequence[Format] = ()
    agents: Sequence[AgentKind] = ()
    adapters: Sequence[type[Adapter] | Callable[[Any, Path | None], Agent | None] | str] = ()
    """Adapters of agent frameworks. A function is called with the reference of an agent and the folder of the file, and
    returns the agent, or `None` if it does not recognize it."""
    evaluators: Mapping[str, str] = field(default_factory=dict)
    """Names of evaluators in files, and where each is: `"module:Class"`."""
    evaluator_aliases: Mapping[str, str] = field(default_factory=dict)
    """The tool's names for Proctor's evaluators: `"faithfulness"` is `"Faithfulness"`."""
    scorers: Mapping[str, str] = field(default_factory=dict)
    """Packages whose scorers are used as evaluators, and what adapts one: `"autoevals"` is `"module:Class"`."""
    judge_spellings: Sequence[JudgeSpelling] = ()
    exports: Mapping[str, str] = field(default_factory=dict)
    """Names of the tool that `from proctor import NAME` also provides, and where each is: `"module:name"`."""
    reporters: Sequence[Reporter] = ()
    trace_formats: Sequence[TraceFormat] = ()
    run_formats: Sequence[RunFormat] = ()
    commands: Sequence[Command] = ()
    templates: Sequence[Template] = ()
    import_names: Mapping[str, ImportName] = field(default_factory=dict)
    test_options: TestOptions | None = None


class PluginError(UsageError):
    """A plugin of another package, or something that it names, could not be loaded."""


def plugins() -> Iterator[Plugin]:
    """Every plugin, the shipped ones first. Other packages are searched only if the iteration gets there."""
    yield from shipped_plugins()
    yield from installed_plugins()


@functools.cache
def shipped_plugins() -> tuple[Plugin, ...]:
    """The plugins of this package."""
    return tuple(import_module(name).PLUGIN for name in SHIPPED)


@functools.cache
def installed_plugins() -> tuple[Plugin, ...]:
    """The plugins of other packages; raises `PluginError` for one that cannot be loaded."""
    from importlib.metadata import entry_points  # as slow to import as asyncio, and most runs do not need it

    plugins: list[Plugin] = []
    for entry in entry_points(group=ENTRY_POINTS):
        plugin = _load_entry(entry, "plugin")
        if not isinstance(plugin, Plugin):
            raise PluginError(f"the plugin {entry.name!r} ({entry.value}) is not a proctor.plugins.Plugin")
        plugins.append(plugin)
    return (
        *plugins,
        *(
            Plugin(name=entry.name, formats=[_as_format(_load_entry(entry, "format"))])
            for entry in entry_points(group="proctor.formats")
        ),
        *(
            Plugin(name=entry.name, evaluators={entry.name: entry.value})
            for entry in entry_points(group="proctor.evaluators")
        ),
        *(
            Plugin(name=entry.name, reporters=[Reporter(name=entry.name, help="", write=entry.value)])
            for entry in entry_points(group="proctor.reporters")
        ),
        *(Plugin(name=entry.name, adapters=[entry.value]) for entry in entry_points(group="proctor.agents")),
    )


def _load_entry(entry: EntryPoint, kind: str) -> Any:
    try:
        return entry.load()
    except Exception as error:
        raise PluginError(
            f"the {kind} {entry.name!r} ({entry.value}) could not be loaded: {one_line(error)}"
        ) from error


def _as_format(source: Any) -> Format:
    """A format of the group `proctor.formats`: a `Format`, or a module with `NAME`, `recognises` and `read`."""
    if isinstance(source, Format):
        return source
    summary = (source.__doc__ or "").partition("\n")[0]
    return Format(name=source.NAME, summary=summary, recognises=source.recognises, read=source.read)


def evaluator_alias(name: str) -> str | None:
    """Proctor's name for the evaluator that some tool calls `name`; `None` if none does."""
    return next((plugin.evaluator_aliases[name] for plugin in plugins() if name in plugin.evaluator_aliases), None)


def exports_of_shipped_plugins() -> dict[str, str]:
    """Where each name is that `proctor` exports for a shipped tool."""
    return {name: place for plugin in shipped_plugins() for name, place in plugin.exports.items()}


def evaluators_of_shipped_plugins() -> dict[str, str]:
    """Where each evaluator of a shipped tool is, by name."""
    return {name: place for plugin in shipped_plugins() for name, place in plugin.evaluators.items()}


def load(target: T | str) -> T:
    """The target of a plugin: `"module:name"` is imported, anything else is returned unchanged.

    Raises `PluginError` if a target of another package cannot be imported. An error in Proctor itself is a defect or a
    missing optional package, and is not wrapped.
    """
    if not isinstance(target, str):
        return target
    module, _, name = target.partition(":")
    try:
        return cast(T, functools.reduce(getattr, name.split(".") if name else (), import_module(module)))
    except Exception as error:
        if module.startswith("proctor."):
            raise
        raise PluginError(f"{target} could not be loaded: {one_line(error)}") from error
