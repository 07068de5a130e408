"""Finds the files of a folder that may be suites, and says why others with the ending of one are not opened.

Everything with the ending of a suite is accounted for: it is a suite, it is skipped with a reason, or it is a problem.
Only names that no one takes for a suite are left out without a word: hidden files, folders of packages and builds, the
settings of well-known tools, and what Proctor itself wrote. What cannot be read may be a suite,
so it is a problem.
Links to folders are not followed: they may lead anywhere, also back to where the search began. One that leads to suites
elsewhere is a problem, because they would not be tested.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from proctor.base.documents import Document
from proctor.base.errors import Problem
from proctor.base.own_files import is_own_output
from proctor.base.source import ending, read_error
from proctor.cases.formats import NATIVE, formats, is_named_like
from proctor.cases.formats.near_misses import has_near_columns, near_miss, near_miss_in_text
from proctor.cases.quarantine_file import QUARANTINE_SUFFIX

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "build", "dist"})
FILES_OF_OTHER_TOOLS = frozenset({"package.json", "package-lock.json", "tsconfig.json"})
BASELINE_SUFFIX = ".baseline.jsonl"
"""The suffix of the file with the baseline of the suite next to it."""
NEAR_SUFFIXES = (".tsv", ".toml", ".jsonc", ".json5", ".txt", "")
"""Endings of files that may have been meant as a suite, and that no format reads."""
LINK_TO_NOTHING = "is a link that leads nowhere; remove it, or put the file back that it leads to"
MAX_LINKED_FILES = 1000
"""How many files of a linked folder are looked at."""
SNIFF_BYTES = 1_000_000
"""How much is read of a file that cannot be parsed, or is too large to be parsed in vain."""
LARGE_BYTES = 50_000_000
"""The size from which a file must begin like a suite to be parsed: parsing a large file of data takes long."""
_PYTHON_SUITE = re.compile(r"^\w+\s*(?::[^=\n]+)?=\s*(?:proctor\.)?Suite\(", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file with the ending of a suite, or a linked folder, that was not tested, and why."""

    path: Path
    reason: str
    line: int | None = None


def find_candidates(folder: Path, tested: Sequence[Path]) -> Iterator[Path | SkippedFile | Problem]:
    """The files below a folder that may be suites, and what is known about the others before they are opened.

    `tested` are all files and folders that are tested, among them this one.
    """
    known = list(formats())
    suffixes = {suffix for item in known for suffix in item.suffixes}
    others = FILES_OF_OTHER_TOOLS.union(*(item.companions for item in known))
    for path in _walk(folder):
        if isinstance(path, SkippedFile):
            yield _with_suites_behind(path, tested, suffixes)
        elif isinstance(path, Problem):
            yield path
        elif path.name in others or path.name.endswith((BASELINE_SUFFIX, QUARANTINE_SUFFIX)):
            continue
        elif ending(path) in suffixes:
            if not is_own_output(path):
                yield _candidate(path)
        elif (found := _other_ending(path)) is not None:
            yield found


def is_named_like_suite(path: Path) -> bool:
    """Whether a file has a name that only suites have, so that it must be one."""
    return any(is_named_like(known, path) for known in formats())


def reads_like_suite(path: Path) -> bool:
    """Whether a file that cannot be parsed was meant to be a suite."""
    text = read_start(path)
    if not text.strip("\0 \t\r\n"):  # empty JSON and CSV files are often logs, or reports to be written
        return ending(path) in (".yaml", ".yml") or _is_called_suite(path)
    return near_miss_in_text(path, text)


def read_start(path: Path) -> str:
    """The beginning of a file, as well as it can be decoded; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(SNIFF_BYTES)
    except (OSError, ValueError):
        return ""
    is_wide = content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content[:100]
    if not is_wide:
        return content.decode("utf-8-sig", "replace")
    has_mark = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    return content.decode("utf-16" if has_mark else "utf-16-le" if content[1:2] == b"\0" else "utf-16-be", "replace")


def _walk(folder: Path) -> Iterator[Path | SkippedFile | Problem]:
    """The files of a folder and then of its subfolders, each in the order of their names."""
    try:
        inside = sorted(folder.iterdir(), key=lambda path: path.name)
    except OSError as error:
        yield Problem(f"{read_error(error)}; make it readable, or pass the suites one by one", folder)
        return
    shown = [path for path in inside if not path.name.startswith(".")]
    folders = {path for path in shown if path.is_dir()}
    yield from (path for path in shown if path not in folders)
    for child in (path for path in shown if path in folders and path.name not in SKIPPED_FOLDERS):
        if child.is_symlink():
            yield SkippedFile(child, "is a link to a folder; pass it by its own name to test what is in it")
        else:
            yield from _walk(child)


def _with_suites_behind(link: SkippedFile, tested: Sequence[Path], suffixes: set[str]) -> SkippedFile | Problem:
    """A problem if a linked folder has suites that are not tested in their own place."""
    places = [place.resolve() for place in tested]
    for path in islice(_walk(link.path.resolve()), MAX_LINKED_FILES):
        if not isinstance(path, Path) or ending(path) not in suffixes or is_own_output(path):
            continue
        is_tested = any(path.is_relative_to(place) for place in places)
        if not is_tested and path.is_file() and near_miss_in_text(path, read_start(path)):
            reason = f"is a link to a folder with a suite ({path.name}), and links to folders are not followed"
            return Problem(f"{reason}; pass that folder as well", link.path)
    return link


def _candidate(path: Path) -> Path | SkippedFile | Problem:
    """The file, if it can be opened and is not too large to be a suite."""
    must_be_suite = is_named_like_suite(path) or _is_called_suite(path)
    if not path.exists():
        return Problem(LINK_TO_NOTHING, path)
    if not path.is_file():
        return SkippedFile(path, "is a pipe, a socket or a device, not a file")
    try:
        with path.open("rb"):
            size = path.stat().st_size
    except OSError as error:
        return Problem(f"{read_error(error)}; make it readable, or pass the suites one by one", path)
    if size > LARGE_BYTES and not must_be_suite and not near_miss_in_text(path, read_start(path)):
        return SkippedFile(path, f"has {size / 1e6:,.0f} MB and does not begin like a suite")
    return path


def _other_ending(path: Path) -> SkippedFile | Problem | None:
    """What is wrong with a file that looks like a suite and has an ending that no format reads."""
    suffix = ending(path)
    if not suffix and path.is_symlink() and not path.exists():
        return Problem(LINK_TO_NOTHING, path) if _is_called_suite(path) else SkippedFile(path, LINK_TO_NOTHING)
    if suffix == ".py":
        text = read_start(path) if path.is_file() else ""
        if "proctor" in text and _PYTHON_SUITE.search(text):
            return SkippedFile(path, f"has a suite in Python; to test it, pass its name: proctor test {path}")
        return None
    if suffix not in NEAR_SUFFIXES or not path.is_file():
        return None
    if suffix in ("", ".txt"):
        return _misnamed_suite(path)
    text = read_start(path)
    if suffix == ".tsv":
        reason = "looks like a suite, but tabs are not read; separate its columns by commas, and call it .csv"
        return Problem(reason, path, 1) if has_near_columns(text) else None
    if suffix == ".toml":
        return _toml_suite(path, text)
    if near_miss_in_text(path.with_suffix(".json"), text):
        return Problem("looks like a suite; write it as YAML, or as JSON without comments, and call it .json", path)
    return None


def _misnamed_suite(path: Path) -> Problem | None:
    """What is wrong with a suite without an ending, or with `.txt` after it, as editors and downloads add it."""
    name = path.with_suffix("") if ending(path) else path.with_name(f"{path.name}.yaml")
    if not any(ending(name) in known.suffixes for known in formats()):
        return None
    text = read_start(path)
    is_suite = near_miss_in_text(name, text) and (ending(name) == ".csv" or re.search("(?i)cases", text) is not None)
    return Problem(f"looks like a suite; call it {name.name}", path) if is_suite else None


def _toml_suite(path: Path, text: str) -> Problem | None:
    if "cases" not in text.casefold():
        return None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    document = Document(path, text, data, lambda pointer: 1)
    if NATIVE.recognises(path, data) or near_miss(document) is not None:
        return Problem("looks like a suite, but TOML is not read; write it as YAML", path, 1)
    return None


def _is_called_suite(path: Path) -> bool:
    """Whether a word of the name says that the file is a suite. Files of data and of other tools may have it too."""
    return not {"suite", "suites", "cases"}.isdisjoint(re.split(r"[^a-z]+", path.stem.lower()))
