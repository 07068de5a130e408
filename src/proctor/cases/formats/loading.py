"""Finds suites: which files of a folder are suites, which format each is in, and everything that is wrong with them."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from proctor.base.errors import InvalidSuite, Problem
from proctor.base.fields import Document, nearest
from proctor.base.references import describe, is_reference
from proctor.base.source import read_text
from proctor.cases.formats.format_spec import Format
from proctor.cases.suite import Suite

SHIPPED = {
    "adk": "adk.eval_set",
    "pixie": "pixie",
    "holodeck": "holodeck.agent_file",
    "keywords": "keywords",
    "table": "table",
    "native": "native.reader",
}
"""Asked in this order; the native format comes last, because it is the least particular."""

TELLING_KEYS = {
    "cases": "native",
    "evalSetId": "adk",
    "eval_set_id": "adk",
    "evalCases": "adk",
    "eval_cases": "adk",
    "runnable": "pixie",
    "instructions": "holodeck",
    "test_cases_file": "holodeck",
}
"""Keys that only one format has at its top: where one is there, no other format need be imported to be asked."""

ENDINGS = (".json", ".yaml", ".yml", ".jsonl", ".ndjson", ".csv")
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "build", "dist"})
NOT_SUITES = frozenset({"test_config.json", "package.json", "package-lock.json", "tsconfig.json", "suite.schema.json"})


LOOKED_AT = 1_000_000
WORDS = r'(?:^|[{,\s"])(?:cases|test_cases|eval_cases|evalCases|entry_kwargs)"?\s*:'
LINE_WORDS = r'"(?:input|turns|suite)"\s*:'


def load(paths: Iterable[str | Path]) -> list[Suite]:
    """Every suite in files, folders and `file.py:NAME` references; one `InvalidSuite` carries all problems of all."""
    suites: list[Suite] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            suites.extend(_load_one(str(path)))
        except InvalidSuite as error:
            problems.extend(error.problems)
            suites.extend(error.read)
    problems.extend(_clashes(suites))
    if problems:
        raise InvalidSuite(problems, suites)
    return _with_distinct_names(suites)


def load_file(path: Path) -> list[Suite]:
    """The suites of one file."""
    document = _open(path)
    known = _format_of(document)
    if known is None:
        raise InvalidSuite([_unknown(document)])
    return known.read(document)


def formats() -> list[Format]:
    """All known formats, shipped ones first."""
    return [*(shipped_format(name) for name in SHIPPED), *_installed()]


def shipped_format(name: str) -> Format:
    return cast(Format, importlib.import_module(f"proctor.cases.formats.{SHIPPED[name]}"))


def _load_one(path: str) -> list[Suite]:
    where = Path(path)
    try:
        if where.is_dir():
            return _load_folder(where)
        if not where.exists() and is_reference(path):
            return [_from_python(path)]
        return load_file(where)
    except OSError as error:
        name = Path(error.filename) if isinstance(error.filename, str) else where
        raise InvalidSuite([Problem(f"cannot be read: {error.strerror or error}", name)]) from None


def _load_folder(folder: Path) -> list[Suite]:
    """Every file below the folder that is a suite; files that are plainly something else are left alone."""
    suites: list[Suite] = []
    problems: list[Problem] = []
    passed_over: list[Problem] = []
    for path in _files(folder):
        try:
            document = _open(path)
        except InvalidSuite as error:
            (problems if _is_called_suite(path) or _reads_like_suite(path) else passed_over).extend(error.problems)
            continue
        known = _format_of(document)
        if known is None:
            problems.extend([_unknown(document)] if _is_called_suite(path) else ())
            continue
        try:
            suites.extend(known.read(document))
        except InvalidSuite as error:
            problems.extend(error.problems)
            suites.extend(error.read)
    if not suites and not problems:
        problems += [Problem("holds no suite in any known format", folder), *passed_over]
    if problems:
        raise InvalidSuite(problems, suites)
    return suites


def _files(folder: Path) -> list[Path]:
    inside = sorted(folder.iterdir(), key=lambda path: path.name)
    files = [p for p in inside if p.is_file() and p.suffix in ENDINGS and p.name not in NOT_SUITES]
    for child in inside:
        if child.is_dir() and not child.is_symlink() and child.name[0] != "." and child.name not in SKIPPED_FOLDERS:
            files.extend(_files(child))
    return [path for path in files if not path.name.startswith(".")]


def _is_called_suite(path: Path) -> bool:
    """Names by which people mark a suite: one that cannot be read is then a mistake, not somebody else's file."""
    return path.name.endswith((".test.json", ".evalset.json")) or ".proctor." in path.name or path.stem == "agent"


def _reads_like_suite(path: Path) -> bool:
    """Whether a file that cannot be parsed has words in it that hardly anything but a suite has."""
    try:
        text = path.read_bytes()[:LOOKED_AT].decode("utf-8", "replace")
    except OSError:
        return False
    if path.suffix == ".csv":
        columns = {name.strip().strip('"') for name in text.partition("\n")[0].split(",")}
        return "input" in columns and not columns.isdisjoint({"expected", "contains", "contains_all", "tools"})
    return re.search(LINE_WORDS if path.suffix in (".jsonl", ".ndjson") else WORDS, text) is not None


def _open(path: Path) -> Document:
    if path.is_dir():
        raise InvalidSuite([Problem("is a folder", path)])
    if path.suffix not in ENDINGS:
        hint = f"; for a Python list write {path}:TEST_CASES" if path.suffix == ".py" else ""
        problem = "does not exist" if not path.exists() else f"is not one of {', '.join(ENDINGS)}{hint}"
        raise InvalidSuite([Problem(problem, path)])
    text = read_text(path)
    if not text.strip():
        raise InvalidSuite([Problem("is empty", path)])
    if path.suffix == ".csv":
        from proctor.cases.formats.table import parse_table

        return Document(path, text, parse_table(path, text))
    if path.suffix in (".jsonl", ".ndjson"):
        from proctor.cases.formats.native.parts import parse_lines

        return Document(path, text, parse_lines(path, text))
    document = Document(path, text)
    if document.data is None:
        raise InvalidSuite([Problem("is empty", path)])
    return document


def _format_of(document: Document) -> Format | None:
    if isinstance(document.data, dict):
        told = {TELLING_KEYS[key] for key in TELLING_KEYS.keys() & document.data.keys()}
        if len(told) == 1:
            known = shipped_format(told.pop())
            if known.recognises(document.path, document.data):
                return known
    for known in map(shipped_format, SHIPPED):
        if known.recognises(document.path, document.data):
            return known
    return next((known for known in _installed() if known.recognises(document.path, document.data)), None)


def _unknown(document: Document) -> Problem:
    keys = document.data if isinstance(document.data, dict) else {}
    if {"model", "instructions"} <= keys.keys():
        return Problem("describes an agent and no tests of it; add 'test_cases' or 'test_cases_file'", document.path)
    hint = next((f"; it has {key!r}{near}" for key in keys if (near := nearest(key, ("cases", "test_cases")))), "")
    reason = f"is in no known format; a native suite has a list of 'cases', each with an 'input'{hint}"
    return Problem(reason, document.path)


@functools.cache
def _installed() -> tuple[Format, ...]:
    from importlib.metadata import entry_points

    found = []
    for entry in entry_points(group="proctor.formats"):
        try:
            found.append(cast(Format, entry.load()))
        except Exception as error:
            reason = f"the format {entry.name!r} ({entry.value}) could not be loaded: {describe(error)}"
            raise InvalidSuite([Problem(reason)]) from error
    return tuple(found)


def _from_python(reference: str) -> Suite:
    from proctor.base.errors import UsageError
    from proctor.base.references import find_file, resolve
    from proctor.cases.formats import keywords

    where = reference.rpartition(":")[0]
    try:
        value = resolve(reference)
        path = find_file(where, None) if where.endswith(".py") else Path(where)
    except UsageError as error:
        raise InvalidSuite([Problem(str(error))]) from None
    return keywords.from_python(reference, value, path)


def _clashes(suites: Sequence[Suite]) -> list[Problem]:
    """The same file given twice would run, and count, twice."""
    seen: set[tuple[Path, str]] = set()
    problems = []
    for suite in suites:
        if suite.path is None:
            continue
        key = (suite.path.resolve(), suite.name)
        if key in seen:
            problems.append(Problem("is given more than once", suite.path))
        seen.add(key)
    return problems


def _with_distinct_names(suites: list[Suite]) -> list[Suite]:
    """Suites of the same name get their file's name added, so that every case has one address."""
    taken: dict[str, int] = {}
    for suite in suites:
        taken[suite.name] = taken.get(suite.name, 0) + 1
    named: list[Suite] = []
    used: set[str] = set()
    for suite in suites:
        name = suite.name
        if taken[name] > 1 and suite.path is not None:
            name = f"{name} ({suite.path.name})"
        candidate, number = name, 2
        while candidate in used:
            candidate, number = f"{name} #{number}", number + 1
        used.add(candidate)
        named.append(suite if candidate == suite.name else replace(suite, name=candidate))
    return named
