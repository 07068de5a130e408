"""Find what `AgentEvaluator` is called with: the agent, by object or name, and the files, folder or EvalSet."""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from proctor.base.documents import Document, Fields, json_type_name
from proctor.base.errors import InvalidSuite, Problem, UsageError, one_line
from proctor.base.json_data import Json, to_json
from proctor.base.references import find_file, load_file
from proctor.base.source import read_text
from proctor.cases.formats.loading import load
from proctor.cases.suite import Suite
from proctor.compat.adk.eval_set import is_legacy, read_document
from proctor.compat.adk.keys import EXTRA_KEY
from proctor.compat.adk.test_config import DEFAULT_CONFIG, TestConfig, as_extra, read_config, read_session


async def find_agent(agent: Any, name: str | None, cleanup: AsyncExitStack) -> Any:
    """The agent that `agent` names, or its sub-agent called `name`. `cleanup` closes what was opened for it."""
    root = await _agent_in_module(agent, cleanup)
    return root if name is None else _sub_agent(root, name)


async def _agent_in_module(agent: Any, cleanup: AsyncExitStack) -> Any:
    """The agent in a module; anything else is returned as it is."""
    module = _find_module(agent)
    if module is None:
        return agent
    for holder in _agent_modules(module):
        if (root := getattr(holder, "root_agent", None)) is not None:
            return root
        factory = getattr(holder, "get_agent_async", None)
        if callable(factory):
            return await _call_factory(factory, cleanup)
        if (app := getattr(holder, "app", None)) is not None and not isinstance(app, ModuleType):
            return app
    name = agent if isinstance(agent, str) else module.__name__
    raise UsageError(f"{name} has no agent; define root_agent, or agent.root_agent")


def _find_module(agent: Any) -> ModuleType | None:
    """The module for `package.module`, `folder/agent.py` or a module object; None for anything else."""
    if isinstance(agent, ModuleType):
        return agent
    if not isinstance(agent, str) or ":" in agent:
        return None
    text = agent.strip()
    if text.endswith(".py"):
        return load_file(find_file(text, None))
    if not all(part.isidentifier() for part in text.split(".")) or text in ("oracle", "nop"):
        return None
    try:
        return _import_module(text)
    except ModuleNotFoundError as error:
        if error.name is not None and (text == error.name or text.startswith(f"{error.name}.")):
            raise UsageError(f"there is no module {text!r}; pass a module, or an agent as file.py:name") from None
        raise UsageError(f"module {text} could not be imported: {one_line(error)}") from error
    except Exception as error:
        raise UsageError(f"module {text} could not be imported: {one_line(error)}") from error


def _import_module(name: str) -> ModuleType:
    """Import a module from Python's path or the working folder."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    return importlib.import_module(name)


def _agent_modules(module: ModuleType) -> list[Any]:
    """Where to look for the agent: the module's `agent`, which adk-python requires, then the module itself."""
    inner = getattr(module, "agent", None)
    if inner is None and hasattr(module, "__path__"):
        try:
            inner = importlib.import_module(f"{module.__name__}.agent")
        except ModuleNotFoundError as error:
            if error.name != f"{module.__name__}.agent":
                raise UsageError(f"{module.__name__}.agent could not be imported: {one_line(error)}") from error
    return [place for place in (inner, module) if place is not None]


async def _call_factory(factory: Any, cleanup: AsyncExitStack) -> Any:
    """Call `get_agent_async`, which returns an agent, or an agent and what to close after it."""
    result = factory()
    result = await result if inspect.isawaitable(result) else result
    if not isinstance(result, tuple):
        return result
    agent, *closing = result
    for stack in closing:
        if callable(close := getattr(stack, "aclose", None)):
            cleanup.push_async_callback(close)
    return agent


def _sub_agent(agent: Any, name: str) -> Any:
    """The agent called `name` among the sub-agents of another, at any depth."""
    root = getattr(agent, "root_agent", agent)
    queue, names = [root], []
    while queue:
        candidate = queue.pop(0)
        candidate_name = getattr(candidate, "name", None)
        if candidate_name == name:
            return candidate
        names += [str(candidate_name)] if candidate_name else []
        queue += list(getattr(candidate, "sub_agents", None) or ())
    available = f"there are {', '.join(names)}" if names else "it has neither a name nor sub-agents"
    raise UsageError(f"the agent has no sub-agent {name!r}; {available}")


TEST_FILE_SUFFIX = ".test.json"
_Session = tuple[Mapping[str, Json], Mapping[str, Json]]
"""The state, and the session's names as a case stores them."""
SESSION_KEYS = frozenset("state app_name appName user_id userId session_id sessionId".split())


def read_files(
    file_or_folder: str | Path,
    initial_session_file: str | Path | None = None,
    config_file: str | Path | None = None,
    *,
    announce: bool = True,
) -> list[Suite]:
    """The suites of a file, or of every `*.test.json` below a folder; raises with all problems of all files.

    `initial_session_file` sets the session of legacy files, `config_file` the criteria, and `announce` turns the
    warnings of the files into Python warnings.
    """
    path = Path(file_or_folder)
    if not str(file_or_folder) or not path.exists():
        raise UsageError(f"{str(file_or_folder)!r} is neither a file nor a folder")
    files = sorted(_test_files(path)) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"there are no *{TEST_FILE_SUFFIX} files in {path}")
    suites = load(files, None if config_file is None else Path(config_file))
    if initial_session_file is not None:
        suites = [with_session_file(suite, Path(initial_session_file)) for suite in suites]
    if announce:
        _emit_warnings(suites)
    return suites


def read_eval_set(eval_set: Any, criteria: Any = None, eval_config: Any = None) -> Suite:
    """The suite of an EvalSet in memory. No file is read."""
    if eval_set is None:
        raise UsageError("pass the EvalSet to evaluate as eval_set")
    if criteria is not None and eval_config is not None:
        raise UsageError("pass either criteria or eval_config, not both")
    config = {"criteria": _config_data(criteria)} if criteria is not None else _config_data(eval_config)
    document = _document("EvalSet", _eval_set_data(eval_set))
    problems: list[Problem] = []
    test_config = DEFAULT_CONFIG if config is None else _read_eval_config(config, problems)
    try:
        (suite,) = read_document(document, test_config)
    except InvalidSuite as error:
        raise InvalidSuite([*problems, *error.problems]) from None
    if problems:
        raise InvalidSuite(problems)
    _emit_warnings([suite])
    return replace(suite, path=None)


def _read_eval_config(config: Json, problems: list[Problem]) -> TestConfig:
    document = _document("eval_config", config)
    test_config = read_config(document)
    problems.extend(document.problems)
    return test_config


def _document(name: str, data: Json) -> Document:
    """A document for data that is not in a file, so that problems have a place but no line."""
    return Document(Path(name), "", data, lambda pointer: None)


def _eval_set_data(value: Any) -> Json:
    """An EvalSet as plain data, without the nulls that pydantic writes for absent fields."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", exclude_none=True) if callable(dump) else to_json(value)


def _config_data(value: Any) -> Json:
    """A config as plain data; an object of ADK's classes gives only the fields that were set."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_none=True, exclude_unset=True)
    return (
        {str(name): _config_data(item) for name, item in value.items()}
        if isinstance(value, Mapping)
        else to_json(value)
    )


def _test_files(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.name.startswith(".") or entry.name == "node_modules":
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _test_files(entry)
        elif entry.is_file() and entry.name.endswith(TEST_FILE_SUFFIX):
            yield entry


def _read_session_file(path: Path) -> _Session:
    """Read an initial session.

    In adk-python's file the state is under `state`, next to the names of the session; ADK-TS's file is the state.
    """
    text = read_text(path)
    data = Document(path, text).data
    if not isinstance(data, Mapping):
        raise InvalidSuite(
            [Problem(f"must be an object with the state of the session, not {json_type_name(data)}", path)]
        )
    if "state" not in data or not SESSION_KEYS.issuperset(data):
        return data, {}
    document = Document(path, text, data)
    state, names = read_session(Fields(document, data, camel=True))
    document.finish()
    return state, as_extra(names)


def with_session_file(suite: Suite, path: Path) -> Suite:
    """The suite of a legacy file with the session in the file `path`."""
    return _with_session(suite, _read_session_file(path))


def _with_session(suite: Suite, session: _Session) -> Suite:
    """The suite of a legacy file with the given session; refuses an EvalSet, which has its own sessions."""
    path = suite.path
    if path is None or not is_legacy(Document(path, read_text(path)).data):
        raise UsageError(f"{path} is an EvalSet; write the session into it, as sessionInput of each case")
    state, names = session
    return replace(suite, cases=tuple(replace(case, state=to_json(state), extra=names) for case in suite.cases))


def with_app_name(suite: Suite, name: str) -> Suite:
    """The suite with `name` as the application of every session for which the case does not name one."""
    cases = (
        replace(case, extra={**case.extra, EXTRA_KEY: {"appName": name, **case.extra.get(EXTRA_KEY, {})}})
        for case in suite.cases
    )
    return replace(suite, cases=tuple(cases))


def _emit_warnings(suites: list[Suite]) -> None:
    """Turn the warnings of the files into Python warnings."""
    for suite in suites:
        for warning in suite.warnings:
            path = warning.path or Path(suite.name)
            message = f"{warning.where or path.name} {warning.message}"
            # Python prints the source line of a warning. Line 1 may be the whole file, and line 0 is never printed.
            line = warning.line if warning.line and warning.line > 1 else 0
            category = DeprecationWarning if warning.code == "legacy format" else UserWarning
            warnings.warn_explicit(message, category, str(path), line)
