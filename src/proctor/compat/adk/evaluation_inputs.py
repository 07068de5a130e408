"""What `AgentEvaluator` is given: the agent, by itself or by name, and files, folders or an EvalSet in memory."""

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
from proctor.compat.adk.eval_set import DEPRECATED, is_legacy, read_document
from proctor.compat.adk.test_config import DEFAULTS, KEPT, Gates, keep, read_config, session_of


async def agent_of(agent: Any, name: str | None, cleanup: AsyncExitStack) -> Any:
    """Whatever `agent` means, or its sub-agent called `name`; what it opened is closed with `cleanup`."""
    found = await _in_module(agent, cleanup)
    return found if name is None else _sub_agent(found, name)


async def _in_module(agent: Any, cleanup: AsyncExitStack) -> Any:
    module = _module(agent)
    if module is None:
        return agent
    for place in _places(module):
        if (found := getattr(place, "root_agent", None)) is not None:
            return found
        make = getattr(place, "get_agent_async", None)
        if callable(make):
            return await _made(make, cleanup)
        if (app := getattr(place, "app", None)) is not None and not isinstance(app, ModuleType):
            return app
    name = agent if isinstance(agent, str) else module.__name__
    raise UsageError(f"{name} holds no agent; it should have root_agent, or agent.root_agent")


def _module(agent: Any) -> ModuleType | None:
    """The module that is meant by `package.module`, `folder/agent.py` or a module itself; `None` for any other."""
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
        return _imported(text)
    except ModuleNotFoundError as error:
        if error.name is not None and (text == error.name or text.startswith(f"{error.name}.")):
            raise UsageError(f"no module is called {text!r}; name a module, or an agent as file.py:name") from None
        raise UsageError(f"module {text} could not be imported: {one_line(error)}") from error
    except Exception as error:
        raise UsageError(f"module {text} could not be imported: {one_line(error)}") from error


def _imported(name: str) -> ModuleType:
    """From wherever Python looks, or from the working folder."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    return importlib.import_module(name)


def _places(module: ModuleType) -> list[Any]:
    """The module's `agent`, as adk-python wants it, then the module itself."""
    inner = getattr(module, "agent", None)
    if inner is None and hasattr(module, "__path__"):
        try:
            inner = importlib.import_module(f"{module.__name__}.agent")
        except ModuleNotFoundError as error:
            if error.name != f"{module.__name__}.agent":
                raise UsageError(f"{module.__name__}.agent could not be imported: {one_line(error)}") from error
    return [place for place in (inner, module) if place is not None]


async def _made(make: Any, cleanup: AsyncExitStack) -> Any:
    """`get_agent_async` gives an agent, or an agent and what is to be closed after it."""
    made = make()
    made = await made if inspect.isawaitable(made) else made
    if not isinstance(made, tuple):
        return made
    agent, *closing = made
    for stack in closing:
        if callable(close := getattr(stack, "aclose", None)):
            cleanup.push_async_callback(close)
    return agent


def _sub_agent(agent: Any, name: str) -> Any:
    """The agent called `name` among the sub-agents of another, however deep."""
    root = getattr(agent, "root_agent", agent)
    waiting, known = [root], []
    while waiting:
        candidate = waiting.pop(0)
        own = getattr(candidate, "name", None)
        if own == name:
            return candidate
        known += [str(own)] if own else []
        waiting += list(getattr(candidate, "sub_agents", None) or ())
    there = f"there are {', '.join(known)}" if known else "it has neither a name nor sub-agents"
    raise UsageError(f"the agent has nobody called {name!r}; {there}")


ENDING = ".test.json"
_Session = tuple[Mapping[str, Json], Mapping[str, Json]]
"""The state, and the names as a case keeps them."""
SESSION_KEYS = frozenset("state app_name appName user_id userId session_id sessionId".split())


def read_files(
    given: str | Path, initial_session_file: str | Path | None = None, *, announce: bool = True
) -> list[Suite]:
    """The suites of a file, or of every `*.test.json` below a folder; raises with all that is wrong in all of them."""
    path = Path(given)
    if not str(given) or not path.exists():
        raise UsageError(f"{str(given)!r} is neither a file nor a folder")
    files = sorted(_test_files(path)) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"no *{ENDING} files are in {path}, so there is nothing to evaluate")
    suites = load(files)
    if initial_session_file is not None:
        session = _session_in(Path(initial_session_file))
        suites = [_with_session(suite, session) for suite in suites]
    if announce:
        _announce(suites)
    return suites


def read_eval_set(eval_set: Any, criteria: Any = None, eval_config: Any = None) -> Suite:
    """The suite of an EvalSet in memory, judged by what is given and by no file."""
    if eval_set is None:
        raise UsageError("give the EvalSet to evaluate")
    if criteria is not None and eval_config is not None:
        raise UsageError("give either criteria or an eval_config, not both")
    config = {"criteria": _said(criteria)} if criteria is not None else _said(eval_config)
    document = _document("EvalSet", _data(eval_set))
    problems: list[Problem] = []
    gates = DEFAULTS if config is None else _gates(config, problems)
    try:
        (suite,) = read_document(document, gates)
    except InvalidSuite as error:
        raise InvalidSuite([*problems, *error.problems]) from None
    if problems:
        raise InvalidSuite(problems)
    _announce([suite])
    return replace(suite, path=None)


def _gates(config: Json, problems: list[Problem]) -> Gates:
    document = _document("eval_config", config)
    gates = read_config(document)
    problems.extend(document.problems)
    return gates


def _document(name: str, data: Json) -> Document:
    """Data that is in no file, so that what is wrong with it is found at a place and not at a line."""
    return Document(Path(name), "", data, lambda pointer: None)


def _data(value: Any) -> Json:
    """Plain data; what pydantic spells out as null was not given."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", exclude_none=True) if callable(dump) else to_json(value)


def _said(value: Any) -> Json:
    """A config as plain data, in which an object of ADK's holds only what was set, not ADK's defaults."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_none=True, exclude_unset=True)
    return {str(name): _said(item) for name, item in value.items()} if isinstance(value, Mapping) else to_json(value)


def _test_files(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.name.startswith(".") or entry.name == "node_modules":
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _test_files(entry)
        elif entry.is_file() and entry.name.endswith(ENDING):
            yield entry


def _session_in(path: Path) -> _Session:
    """adk-python's file has the state under `state`, beside the names of the session; ADK-TS's is the state."""
    text = read_text(path)
    data = Document(path, text).data
    if not isinstance(data, Mapping):
        raise InvalidSuite([Problem(f"must be an object with the session's state, not {json_type_name(data)}", path)])
    if "state" not in data or not SESSION_KEYS.issuperset(data):
        return data, {}
    document = Document(path, text, data)
    state, names = session_of(Fields(document, data, camel=True))
    document.finish()
    return state, keep(names)


def _with_session(suite: Suite, session: _Session) -> Suite:
    """The older format has no place for the session that conversations start in; an EvalSet has, and takes no other."""
    path = suite.path
    if path is None or not is_legacy(Document(path, read_text(path)).data):
        raise UsageError(f"{path} is an EvalSet: give the session's state there, as sessionInput of each case")
    state, names = session
    return replace(suite, cases=tuple(replace(case, state=to_json(state), extra=names) for case in suite.cases))


def with_app_name(suite: Suite, name: str) -> Suite:
    """The suite whose sessions belong to the application `name`, unless a case says otherwise."""
    cases = (
        replace(case, extra={**case.extra, KEPT: {"appName": name, **case.extra.get(KEPT, {})}}) for case in suite.cases
    )
    return replace(suite, cases=tuple(cases))


def _announce(suites: list[Suite]) -> None:
    for suite in suites:
        for warning in suite.warnings:
            path = warning.path or Path(suite.name)
            told = f"{warning.where or path.name} {warning.message}"
            # Python shows the line that is named, and the first may be the whole of a file; it never shows line 0.
            line = warning.line if warning.line and warning.line > 1 else 0
            kind_of = DeprecationWarning if warning.message == DEPRECATED else UserWarning
            warnings.warn_explicit(told, kind_of, str(path), line)
