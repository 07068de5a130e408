"""What `AgentEvaluator` is given to run: files, folders, or an EvalSet in memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.cases.fields import Document, kind
from proctor.cases.formats import adk
from proctor.cases.formats.adk_config import DEFAULTS, Gates, read_config
from proctor.cases.formats.loading import load
from proctor.cases.model import Suite
from proctor.cases.source import read_text
from proctor.errors import InvalidSuite, Problem, UsageError
from proctor.plain import Json, plain

ENDING = ".test.json"
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
        state = _state_in(Path(initial_session_file))
        suites = [_with_state(suite, state) for suite in suites]
    if announce:
        _announce(suites)
    return suites


def read_eval_set(eval_set: Any, criteria: Any = None, eval_config: Any = None) -> Suite:
    """The suite of an EvalSet in memory, judged by what is given and by no file."""
    if eval_set is None:
        raise UsageError("give the EvalSet to evaluate")
    if criteria is not None and eval_config is not None:
        raise UsageError("give either criteria or an eval_config, not both")
    config = {"criteria": _data(criteria)} if criteria is not None else _data(eval_config)
    document = _document("EvalSet", _data(eval_set))
    problems: list[Problem] = []
    gates = DEFAULTS if config is None else _gates(config, problems)
    try:
        (suite,) = adk.read(document, gates)
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
    return dump(mode="json", exclude_none=True) if callable(dump) else plain(value)


def _test_files(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.name.startswith(".") or entry.name == "node_modules":
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _test_files(entry)
        elif entry.is_file() and entry.name.endswith(ENDING):
            yield entry


def _state_in(path: Path) -> Mapping[str, Json]:
    """adk-python's file has the state under `state`, beside the names of the session; ADK-TS's is the state."""
    session = Document(path, read_text(path)).data
    if not isinstance(session, Mapping):
        raise InvalidSuite([Problem(f"must be an object with the session's state, not {kind(session)}", path)])
    state = session["state"] if "state" in session and SESSION_KEYS.issuperset(session) else session
    if not isinstance(state, Mapping):
        raise InvalidSuite([Problem(f"must be an object, not {kind(state)}", path, where="state")])
    return state


def _with_state(suite: Suite, state: Mapping[str, Json]) -> Suite:
    """The older format has no place for the session's first state; an EvalSet has, and takes none from outside."""
    path = suite.path
    if path is None or not adk.is_legacy(Document(path, read_text(path)).data):
        raise UsageError(f"{path} is an EvalSet: give the session's state there, as sessionInput of each case")
    return replace(suite, cases=tuple(replace(case, state=plain(state)) for case in suite.cases))


def _announce(suites: list[Suite]) -> None:
    for suite in suites:
        for warning in suite.warnings:
            warnings.warn(str(warning), UserWarning, stacklevel=4)
