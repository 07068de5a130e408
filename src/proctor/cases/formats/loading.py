"""Loads suites: finds the suite files in a folder, detects the format of each, and collects every problem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from proctor.base.documents import Document, did_you_mean
from proctor.base.errors import InvalidSuite, Problem, UsageError
from proctor.base.own_files import is_own_output
from proctor.base.positions import Position
from proctor.base.references import find_file, is_reference, resolve
from proctor.base.references import load_file as load_python
from proctor.base.source import ending, read_error, read_text
from proctor.cases.formats import CSV, JSON_AND_YAML, NATIVE, formats, shipped_formats
from proctor.cases.formats.folders import (
    SkippedFile,
    find_candidates,
    is_named_like_suite,
    reads_like_suite,
)
from proctor.cases.formats.native.reader import read_list
from proctor.cases.formats.near_misses import near_miss
from proctor.cases.identity import with_masked_ids
from proctor.cases.quarantine_file import with_quarantines
from proctor.cases.suite import Suite
from proctor.plugins import Format
from proctor.plugins import load as load_target

MAX_REASONS = 20
"""How many skipped files are listed if a folder has no suite."""


def load_one(path: str | Path) -> Suite:
    """The only suite in a file; raises `UsageError` if it has several."""
    suites = load([path])
    if len(suites) != 1:
        raise UsageError(f"{path} has {len(suites)} suites; proctor.load reads all of them")
    return suites[0]


def load(
    paths: Iterable[str | Path], config: Path | None = None, *, skipped: list[SkippedFile] | None = None
) -> list[Suite]:
    """Every suite in files, folders and `file.py:NAME` references; raises one `InvalidSuite` with all problems.

    `config` names the evaluators of suites in a format that has a config file, instead of the one next to each suite.
    `skipped` gets the files in folders that are not suites.
    """
    skipped = [] if skipped is None else skipped
    suites: list[Suite] = []
    problems: list[Problem] = []
    names = [str(path) for path in paths]
    for name in names:
        try:
            suites.extend(_load_one(name, config, skipped, [Path(name) for name in names]))
        except InvalidSuite as error:
            problems.extend(error.problems)
            suites.extend(error.partial_suites)
    problems.extend(_repeated_files(suites))
    suites = _with_distinct_names([with_masked_ids(suite) for suite in suites])
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
    suites = [with_masked_ids(suite) for suite in _read_file(path)]
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


def _load_one(path: str, config: Path | None, skipped: list[SkippedFile], tested: Sequence[Path]) -> list[Suite]:
    where = Path(path)
    try:
        if where.is_dir():
            return _load_folder(where, config, skipped, tested)
        if not where.exists() and is_reference(path):
            return [_from_python(path)]
        if ending(where) == ".py" and where.is_file():
            return _suites_in_module(where)
        return _read_file(where, config)
    except OSError as error:
        name = Path(error.filename) if isinstance(error.filename, str) else where
        raise InvalidSuite([Problem(read_error(error), name)]) from None


def _load_folder(folder: Path, config: Path | None, skipped: list[SkippedFile], tested: Sequence[Path]) -> list[Suite]:
    """Every suite in a folder and its subfolders; `skipped` gets the files that have its ending and are something else.

    `tested` are all files and folders that are loaded, this one among them. A file that was meant to be a suite and is
    not one is a problem (`near_misses.py`).
    """
    suites: list[Suite] = []
    problems: list[Problem] = []
    others: list[SkippedFile] = []
    for candidate in find_candidates(folder, tested):
        if isinstance(candidate, Problem):
            problems.append(candidate)
        elif isinstance(candidate, SkippedFile):
            others.append(candidate)
        else:
            try:
                suites.extend(_read_candidate(candidate, config, others))
            except InvalidSuite as error:
                problems.extend(error.problems)
                suites.extend(error.partial_suites)
    if not suites and not problems:
        problems.append(Problem("has no suite in any known format", folder))
        problems += [Problem(item.reason, item.path, item.line) for item in others[:MAX_REASONS]]
    skipped.extend(others)
    if problems:
        raise InvalidSuite(problems, suites)
    return suites


def _read_candidate(path: Path, config: Path | None, skipped: list[SkippedFile]) -> list[Suite]:
    """The suites of a file that was found in a folder; raises `InvalidSuite` if it was meant to be a suite."""
    must_be_suite = is_named_like_suite(path)
    try:
        document = _open(path)
    except InvalidSuite as error:
        if must_be_suite or reads_like_suite(path):
            raise
        first = error.problems[0]
        skipped.append(SkippedFile(path, first.message, first.line))
        return []
    known = _format_of(document)
    if known is not None:
        return _read(known, document, config)
    if must_be_suite or near_miss(document) is not None:
        raise InvalidSuite([_unknown_format(document)])
    skipped.append(SkippedFile(path, _refusal(document) or "is not a suite in any known format"))
    return []


def _open(path: Path) -> Document:
    if path.is_dir():
        raise InvalidSuite([Problem("is a folder", path)])
    known = next((item for item in formats() if ending(path) in item.suffixes), None)
    if known is None:
        raise InvalidSuite([_unknown_suffix(path)])
    if not path.exists():
        raise InvalidSuite([_missing_file(path)])
    text = read_text(path)
    if not text.strip():
        raise InvalidSuite([Problem("is empty; add cases, or remove it", path)])
    if ending(path) not in JSON_AND_YAML and known.parse is not None:
        return load_target(known.parse)(path, text)
    document = Document(path, text)
    if document.data is None:
        raise InvalidSuite([Problem("is empty; add cases, or remove it", path)])
    return document


def _missing_file(path: Path) -> Problem:
    files = sorted(item.name for item in path.parent.iterdir()) if path.parent.is_dir() else []
    return Problem(f"does not exist{did_you_mean(path.name, files, cutoff=0.8)}", path)


def _unknown_suffix(path: Path) -> Problem:
    if not path.exists():
        return _missing_file(path)
    suffixes = dict.fromkeys(suffix for item in formats() for suffix in item.suffixes)
    hint = f"; for a Python list write {path}:TEST_CASES" if ending(path) == ".py" else ""
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
    if refusal := _refusal(document):
        return Problem(refusal, document.path)
    reason = "is not a suite in any known format; a native suite has a list of 'cases', each with an 'input'"
    return near_miss(document) or Problem(reason, document.path)


def _refusal(document: Document) -> str | None:
    """Why a format does not read a file that is nearly its own."""
    keys = document.data if isinstance(document.data, dict) else {}
    return next(filter(None, (known.refusal(keys) for known in formats())), None)


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
