"""Loads suites: finds the suite files in a folder, detects the format of each, and collects every problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from proctor.base.documents import Document, did_you_mean
from proctor.base.errors import InvalidSuite, Problem, UsageError
from proctor.base.own_files import is_own_output
from proctor.base.positions import Position
from proctor.base.references import find_file, is_reference, resolve
from proctor.base.references import load_file as load_python
from proctor.base.source import read_error, read_text
from proctor.cases.formats import (
    CSV,
    JSON_AND_YAML,
    NATIVE,
    formats,
    has_keys_of,
    is_named_like,
    shipped_formats,
)
from proctor.cases.formats.native.reader import read_list
from proctor.cases.quarantine_file import QUARANTINE_SUFFIX, with_quarantines
from proctor.cases.suite import Suite
from proctor.plugins import Format
from proctor.plugins import load as load_target

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "build", "dist"})
FILES_OF_OTHER_TOOLS = frozenset({"package.json", "package-lock.json", "tsconfig.json"})
BASELINE_SUFFIX = ".baseline.jsonl"
"""The suffix of the file with the baseline of the suite next to it."""
SNIFF_CHARS = 1_000_000
"""How much of an unreadable file is searched for the keys of a suite."""


def load_one(path: str | Path) -> Suite:
    """The only suite in a file; raises `UsageError` if it has several."""
    suites = load([path])
    if len(suites) != 1:
        raise UsageError(f"{path} has {len(suites)} suites; proctor.load reads all of them")
    return suites[0]


def load(paths: Iterable[str | Path], config: Path | None = None) -> list[Suite]:
    """Every suite in files, folders and `file.py:NAME` references; raises one `InvalidSuite` with all problems.

    `config` names the evaluators of suites in a format that has a config file, instead of the one next to each suite.
    """
    suites: list[Suite] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            suites.extend(_load_one(str(path), config))
        except InvalidSuite as error:
            problems.extend(error.problems)
            suites.extend(error.partial_suites)
    problems.extend(_repeated_files(suites))
    suites = _with_distinct_names(suites)
    for at, suite in enumerate(suites):
        try:
            suites[at] = with_quarantines(suite)
        except InvalidSuite as error:
            problems.extend(problem for problem in error.problems if problem not in problems)
    if problems:
        raise InvalidSuite(problems, suites)
    if config is not None and all(suite.config is None for suite in suites):
        raise UsageError(f"no suite uses the config file {config}; it is for formats that have one next to a suite")
    return suites


def load_file(path: Path) -> list[Suite]:
    """The suites of one file, with their quarantines."""
    suites = _read_file(path)
    try:
        return [with_quarantines(suite) for suite in suites]
    except InvalidSuite as error:
        raise InvalidSuite(error.problems, suites) from None


def _read_file(path: Path, config: Path | None = None) -> list[Suite]:
    if is_own_output(path):
        raise InvalidSuite([Problem("is a report or an exported run of Proctor, not a suite", path)])
    document = _open(path)
    known = _format_of(document)
    if known is None:
        raise InvalidSuite([_unknown_format(document)])
    return _read(known, document, config)


def _read(known: Format, document: Document, config: Path | None) -> list[Suite]:
    """The suites of a document, with the evaluators of a config file if its format has one."""
    if config is None or known.read_with_config is None:
        return load_target(known.read)(document)
    return [replace(suite, config=config) for suite in load_target(known.read_with_config)(document, config)]


def _load_one(path: str, config: Path | None = None) -> list[Suite]:
    where = Path(path)
    try:
        if where.is_dir():
            return _load_folder(where, config)
        if not where.exists() and is_reference(path):
            return [_from_python(path)]
        if where.suffix == ".py" and where.is_file():
            return _suites_in_module(where)
        return _read_file(where, config)
    except OSError as error:
        name = Path(error.filename) if isinstance(error.filename, str) else where
        raise InvalidSuite([Problem(read_error(error), name)]) from None


def _load_folder(folder: Path, config: Path | None = None) -> list[Suite]:
    """Every suite in a folder and its subfolders; files that are clearly something else are ignored."""
    suites: list[Suite] = []
    problems: list[Problem] = []
    skipped: list[Problem] = []
    for path in _candidate_files(folder):
        try:
            document = _open(path)
        except InvalidSuite as error:
            (problems if _is_named_like_suite(path) or _reads_like_suite(path) else skipped).extend(error.problems)
            continue
        known = _format_of(document)
        if known is None:
            problems.extend([_unknown_format(document)] if _is_named_like_suite(path) else ())
            continue
        try:
            suites.extend(_read(known, document, config))
        except InvalidSuite as error:
            problems.extend(error.problems)
            suites.extend(error.partial_suites)
    if not suites and not problems:
        problems += [Problem("has no suite in any known format", folder), *skipped]
    if problems:
        raise InvalidSuite(problems, suites)
    return suites


def _candidate_files(folder: Path) -> list[Path]:
    known = list(formats())
    suffixes = {suffix for item in known for suffix in item.suffixes}
    others = FILES_OF_OTHER_TOOLS.union(*(item.companions for item in known))
    return [
        path
        for path in _walk(folder)
        if path.suffix in suffixes
        and path.name not in others
        and not path.name.endswith((BASELINE_SUFFIX, QUARANTINE_SUFFIX))
        and not is_own_output(path)
    ]


def _walk(folder: Path) -> Iterator[Path]:
    inside = sorted(folder.iterdir(), key=lambda path: path.name)
    yield from (path for path in inside if path.is_file() and not path.name.startswith("."))
    for child in inside:
        if child.is_dir() and not child.is_symlink() and child.name[0] != "." and child.name not in SKIPPED_FOLDERS:
            yield from _walk(child)


def _is_named_like_suite(path: Path) -> bool:
    return any(is_named_like(known, path) for known in formats())


def _reads_like_suite(path: Path) -> bool:
    """Whether a file that cannot be parsed has keys or columns that hardly any other kind of file has."""
    try:
        text = path.read_bytes()[:SNIFF_CHARS].decode("utf-8", "replace")
    except OSError:
        return False
    return any(has_keys_of(known, path, text) for known in formats())


def _open(path: Path) -> Document:
    if path.is_dir():
        raise InvalidSuite([Problem("is a folder", path)])
    known = next((item for item in formats() if path.suffix in item.suffixes), None)
    if known is None:
        raise InvalidSuite([_unknown_suffix(path)])
    if not path.exists():
        raise InvalidSuite([_missing_file(path)])
    text = read_text(path)
    if not text.strip():
        raise InvalidSuite([Problem("is empty", path)])
    if path.suffix not in JSON_AND_YAML and known.parse is not None:
        return load_target(known.parse)(path, text)
    document = Document(path, text)
    if document.data is None:
        raise InvalidSuite([Problem("is empty", path)])
    return document


def _missing_file(path: Path) -> Problem:
    files = sorted(item.name for item in path.parent.iterdir()) if path.parent.is_dir() else []
    return Problem(f"does not exist{did_you_mean(path.name, files, cutoff=0.8)}", path)


def _unknown_suffix(path: Path) -> Problem:
    if not path.exists():
        return _missing_file(path)
    suffixes = dict.fromkeys(suffix for item in formats() for suffix in item.suffixes)
    hint = f"; for a Python list write {path}:TEST_CASES" if path.suffix == ".py" else ""
    return Problem(f"is not one of {', '.join(suffixes)}{hint}", path)


def _format_of(document: Document) -> Format | None:
    """The format of a document: by a key that only one has, or else the first that recognizes the data.

    Proctor's own formats come last, because a list of objects with an `input` looks native. Formats of other packages
    are tried only if no shipped one matches, because looking for them is slow.
    """
    path, data = document.path, document.data
    own, shipped = (CSV, NATIVE), shipped_formats()
    if isinstance(data, dict):
        for known in shipped:
            if not known.keys.isdisjoint(data) and known.recognises(path, data):
                return known
    for known in (*(known for known in shipped if known not in own), *own):
        if known.recognises(path, data):
            return known
    return next((known for known in formats() if known not in shipped and known.recognises(path, data)), None)


def _unknown_format(document: Document) -> Problem:
    keys = document.data if isinstance(document.data, dict) else {}
    for known in formats():
        if refusal := known.refusal(keys):
            return Problem(refusal, document.path)
    hint = next((f"; it has {key!r}{near}" for key in keys if (near := _nearest_to_cases(key))), "")
    reason = f"is not a suite in any known format; a native suite has a list of 'cases', each with an 'input'{hint}"
    return Problem(reason, document.path)


def _nearest_to_cases(key: str) -> str:
    """A hint for a key that is probably meant to be `cases`: misspelt, or the word of another tool."""
    return "; did you mean 'cases'?" if key in ("tests", "test", "examples") else did_you_mean(key, ("cases",))


def _from_python(reference: str) -> Suite:
    where = reference.rpartition(":")[0]
    try:
        value = resolve(reference)
        path = Path(where) if Path(where).is_file() or not where.endswith(".py") else find_file(where, None)
    except UsageError as error:
        raise InvalidSuite([Problem(str(error))]) from None
    if isinstance(value, Suite):
        return replace(value, path=path)
    return read_list(reference.rpartition(":")[2], value, path)


def _suites_in_module(path: Path) -> list[Suite]:
    """Every suite that a Python file has at its top level, in order. The file is executed."""
    try:
        module = load_python(path.resolve())
    except UsageError as error:
        raise InvalidSuite([Problem(str(error))]) from None
    suites = {id(value): value for value in vars(module).values() if isinstance(value, Suite)}
    if not suites:
        hint = f"write name = Suite(...) at the top level, or name a list of cases: {path}:TEST_CASES"
        raise InvalidSuite([Problem(f"defines no suite; {hint}", path)])
    return [replace(suite, path=path) for suite in suites.values()]


def _repeated_files(suites: Sequence[Suite]) -> list[Problem]:
    """Problems for files that were passed twice: their cases would run and count twice."""
    seen: set[tuple[Path, str]] = set()
    problems = []
    for suite in suites:
        if suite.path is None:
            continue
        key = (suite.path.resolve(), suite.name)
        if key in seen:
            problems.append(Problem("is passed more than once", suite.path))
        seen.add(key)
    return problems


def _with_distinct_names(suites: list[Suite]) -> list[Suite]:
    """The suites; those with the same name get their file's name added, so that every case has a unique address."""
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


def case_positions(path: Path) -> dict[str, Position]:
    """Where each case of a suite file is written, by id; empty if the file cannot be read, or not any more."""
    suites: Sequence[Suite]
    try:
        suites = load_file(path)
    except InvalidSuite as error:
        suites = error.partial_suites
    except OSError:
        return {}
    return {case.id: case.position for suite in suites for case in suite.cases if case.position is not None}
