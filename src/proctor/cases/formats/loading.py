"""Finds suites: which files of a folder are suites, which format each is in, what is wrong with them, and where."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from proctor.base.documents import Document, nearest
from proctor.base.errors import InvalidSuite, Problem, UsageError, one_line
from proctor.base.json_data import Json
from proctor.base.plugin_lookup import entry_points
from proctor.base.references import find_file, is_reference, resolve
from proctor.base.source import Pointer, parse, parse_with_lines, read_text
from proctor.cases.formats import adk, holodeck, keywords, native, pixie, table
from proctor.cases.formats.format_spec import Declaration, Format, Written
from proctor.cases.formats.table import parse_table
from proctor.cases.quarantine_file import QUARANTINES, with_quarantines
from proctor.cases.suite import Suite

SHIPPED: tuple[Format, ...] = (adk, pixie, holodeck, keywords, table, native)
"""The formats of this package, the most particular first, which is the order they are asked in."""

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "build", "dist"})
FILES_OF_OTHER_TOOLS = frozenset({"package.json", "package-lock.json", "tsconfig.json"})
BASELINES = ".baseline.jsonl"
"""How the file beside a suite ends that holds its baseline."""
READ_AT_MOST = 1_000_000
"""Characters of an unreadable file that are searched for marks of a suite."""


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
    suites = _with_distinct_names(suites)
    for at, suite in enumerate(suites):
        try:
            suites[at] = with_quarantines(suite)
        except InvalidSuite as error:
            problems.extend(problem for problem in error.problems if problem not in problems)
    if problems:
        raise InvalidSuite(problems, suites)
    return suites


def load_file(path: Path) -> list[Suite]:
    """The suites of one file."""
    document = _open(path)
    known = _format_of(document)
    if known is None:
        raise InvalidSuite([_unknown(document)])
    return [with_quarantines(suite) for suite in known.read(document)]


def format_named(name: str) -> Format | None:
    """The format whose suites say `name`."""
    return next((known for known in _known_formats() if name == known.NAME), None)


def all_formats() -> list[Format]:
    """The shipped formats, the native one first, and those of other packages."""
    return list(_known_formats())


def writable_formats() -> dict[str, Format]:
    """The formats that suites can be written in, by name."""
    known: dict[str, Format] = {item.NAME: item for item in SHIPPED}
    dialects = [(item, declaration(item).dialects) for item in known.values()]
    return known | {name: Dialect(item, name, write) for item, named in dialects for name, write in named.items()}


def evaluator_named_by_a_format(name: str) -> str | None:
    """The evaluator of ours that some format calls `name`."""
    names = (declaration(known).evaluator_names() for known in SHIPPED)
    return next((known[name] for known in names if name in known), None)


def _known_formats() -> Iterator[Format]:
    """All formats, the native one first; those of other packages are looked for last, because that takes long."""
    yield from reversed(SHIPPED)
    yield from _installed()


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
    known = [declaration(item) for item in _known_formats()]
    endings = {ending for item in known for ending in item.endings}
    others = FILES_OF_OTHER_TOOLS.union(*(item.companions for item in known))
    return [
        path
        for path in _below(folder)
        if path.suffix in endings and path.name not in others and not path.name.endswith((BASELINES, QUARANTINES))
    ]


def _below(folder: Path) -> Iterator[Path]:
    inside = sorted(folder.iterdir(), key=lambda path: path.name)
    yield from (path for path in inside if path.is_file() and not path.name.startswith("."))
    for child in inside:
        if child.is_dir() and not child.is_symlink() and child.name[0] != "." and child.name not in SKIPPED_FOLDERS:
            yield from _below(child)


def _is_called_suite(path: Path) -> bool:
    """Names by which people mark a suite: one that cannot be read is then a mistake, and not another tool's file."""
    return any(fnmatchcase(path.name, name) for item in _known_formats() for name in declaration(item).file_names)


def _reads_like_suite(path: Path) -> bool:
    """Whether a file that cannot be parsed has keys or columns in it that hardly anything but a suite has."""
    try:
        text = path.read_bytes()[:READ_AT_MOST].decode("utf-8", "replace")
    except OSError:
        return False
    return any(declaration(known).resembles(path, text) for known in _known_formats())


def _open(path: Path) -> Document:
    if path.is_dir():
        raise InvalidSuite([Problem("is a folder", path)])
    known = next((item for item in map(declaration, _known_formats()) if path.suffix in item.endings), None)
    if known is None:
        raise InvalidSuite([_unknown_ending(path)])
    text = read_text(path)
    if not text.strip():
        raise InvalidSuite([Problem("is empty", path)])
    if path.suffix in known.parsers:
        return Document(path, text, known.parsers[path.suffix](path, text))
    document = Document(path, text)
    if document.data is None:
        raise InvalidSuite([Problem("is empty", path)])
    return document


def _unknown_ending(path: Path) -> Problem:
    if not path.exists():
        return Problem("does not exist", path)
    endings = dict.fromkeys(ending for item in _known_formats() for ending in declaration(item).endings)
    hint = f"; for a Python list write {path}:TEST_CASES" if path.suffix == ".py" else ""
    return Problem(f"is not one of {', '.join(endings)}{hint}", path)


def _format_of(document: Document) -> Format | None:
    """By a key that only one format has; else the first that recognises the data, the most particular first."""
    if isinstance(document.data, dict):
        for known in reversed(SHIPPED):
            if not declaration(known).own_keys.isdisjoint(document.data) and known.recognises(
                document.path, document.data
            ):
                return known
    return next((known for known in _most_particular_first() if known.recognises(document.path, document.data)), None)


def _most_particular_first() -> Iterator[Format]:
    yield from SHIPPED
    yield from _installed()  # only now: looking through what is installed takes as long as the rest of the start


def _unknown(document: Document) -> Problem:
    keys = document.data if isinstance(document.data, dict) else {}
    for known in _known_formats():
        if refusal := declaration(known).refusal(keys):
            return Problem(refusal, document.path)
    hint = next((f"; it has {key!r}{near}" for key in keys if (near := nearest(key, ("cases", "test_cases")))), "")
    reason = f"is in no known format; a native suite has a list of 'cases', each with an 'input'{hint}"
    return Problem(reason, document.path)


@functools.cache
def _installed() -> tuple[Format, ...]:
    found = []
    for entry in entry_points(group="proctor.formats"):
        try:
            found.append(cast(Format, entry.load()))
        except Exception as error:
            reason = f"the format {entry.name!r} ({entry.value}) could not be loaded: {one_line(error)}"
            raise InvalidSuite([Problem(reason)]) from error
    return tuple(found)


def _from_python(reference: str) -> Suite:
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


class Dialect:
    """A format under another name, which is written in its own way."""

    def __init__(self, known: Format, name: str, write: Callable[[Sequence[Suite]], Written]) -> None:
        self.NAME = name
        self.DECLARED = declaration(known)
        self.recognises = known.recognises
        self.read = known.read
        self._write = write

    def write(self, suites: Sequence[Suite], ending: str = "") -> Written:
        return self._write(suites)


def declaration(known: Any) -> Declaration:
    """What a format declares; a format of another package may declare nothing."""
    found = getattr(known, "DECLARED", None)
    return found if isinstance(found, Declaration) else Declaration()


LISTS = ("cases", "test_cases", "eval_cases", "evalCases", "entries", "items")
"""The keys under which the formats keep their cases."""


def case_lines(path: Path) -> dict[str, int]:
    """The line of each case of a suite file, by id; empty where the file cannot be read or tells no lines."""

    try:
        suites = load_file(path)
        if len(suites) != 1:
            return {}
        lines = _rows(path, read_text(path))
    except (InvalidSuite, OSError):
        return {}
    cases = suites[0].cases
    return {case.id: line for case, line in zip(cases, lines, strict=True)} if len(lines) == len(cases) else {}


def _rows(path: Path, text: str) -> Sequence[int]:
    """The lines at which the file's list of cases has its entries."""
    if path.suffix == ".csv":
        return [line for line, _ in parse_table(path, text)]
    if path.suffix == ".jsonl":
        return [number for number, line in enumerate(text.split("\n"), 1) if line.strip() and not _is_head(path, line)]
    data, place = parse_with_lines(path, text)
    pointer, count = _list_of_cases(data)
    found = [place((*pointer, number)) for number in range(count)]
    return [line for line in found if line is not None]


def _is_head(path: Path, line: str) -> bool:
    data = parse(path.with_suffix(".json"), line)
    return isinstance(data, dict) and set(data) == {"suite"}


def _list_of_cases(data: Json) -> tuple[Pointer, int]:
    if isinstance(data, list):
        return (), len(data)
    found = next((key for key in LISTS if isinstance(data, dict) and isinstance(data.get(key), list)), None)
    return ((), 0) if found is None else ((found,), len(data[found]))
