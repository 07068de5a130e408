"""The file formats of suites, found by what a file contains and not only by its name.

Paths come in and suites go out (`loading.load`); the command line, the pytest plugin and the Python interface call it.
A format is a `proctor.plugins.Format`. Proctor's own two are here: `NATIVE` and `CSV`. Those of other tools and
packages come from their plugins.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import Json
from proctor.base.source import ending
from proctor.cases.suite import Suite
from proctor.plugins import Format, PluginError, installed_plugins, load, shipped_plugins

JSON_AND_YAML = (".json", ".yaml", ".yml")
JSON_LINES = (".jsonl", ".ndjson")
"""Suffixes of JSON Lines: one case per line."""

KEYWORDS_KEY = "expected_output_contains"
"""The key of a case with the words of a good answer, in lists of cases in test modules (`TEST_CASES`)."""
CASES_KEYS = ("cases", "test_cases", "TEST_CASES")
"""The spellings of the key with the cases of a native suite."""


def _is_native(path: Path, data: Json) -> bool:
    """Whether data has a list `cases`, or is a list of objects with an input or turns.

    `test_cases` counts as `cases` only if a case has `expected_output_contains`. Otherwise it may be the
    `test_cases_file` of a HoloDeck agent.
    """
    if isinstance(data, Mapping):
        rows = data.get("test_cases")
        has_keywords = isinstance(rows, list) and any(_has(row, KEYWORDS_KEY) for row in rows)
        return ("cases" in data and not _has_count_of_cases(data)) or "TEST_CASES" in data or has_keywords
    if not isinstance(data, list):
        return False
    has_suite_line = ending(path) in JSON_LINES and any(_has(row, "suite") and _is_object(row["suite"]) for row in data)
    return has_suite_line or any(_has(row, "input", "turns") for row in data)


def _has_count_of_cases(data: Mapping[str, Json]) -> bool:
    """Whether `cases` is one of several figures, as in data about a disease or a court."""
    return isinstance(data["cases"], (int, float)) and len(data) > 1 and data.keys().isdisjoint({"name", "agent"})


def _has(row: Json, *keys: str) -> bool:
    return _is_object(row) and any(key in row for key in keys)


def _is_object(value: Json) -> bool:
    return isinstance(value, Mapping)


NATIVE = Format(
    name="native",
    summary="Proctor's own format: YAML or JSON with `cases`, or JSON Lines with one case per line.",
    recognises=_is_native,
    read="proctor.cases.formats.native.reader:read_document",
    parse="proctor.cases.formats.native.json_lines:parse_lines",
    edit="proctor.cases.formats.native.editing:edit_cases",
    suffixes=(*JSON_AND_YAML, *JSON_LINES),
    file_names=("*.proctor.*",),
    keys=frozenset({"cases", "TEST_CASES"}),
    case_keys=frozenset({KEYWORDS_KEY}),
    companions=("suite.schema.json",),
    agent_hint="add `agent: app.py:agent`, or ",
)

CSV = Format(
    name="csv",
    summary="CSV with one case per row, for cases from a spreadsheet.",
    recognises=lambda path, data: ending(path) == ".csv",
    read="proctor.cases.formats.table:read",
    parse="proctor.cases.formats.table:parse",
    suffixes=(".csv",),
    keys=frozenset({"expected", "contains", "contains_all", "tools"}),
)


def formats() -> Iterator[Format]:
    """Every format: Proctor's own, those of the shipped tools, and last, because it is slow, of other packages."""
    yield from shipped_formats()
    try:
        yield from (known for plugin in installed_plugins() for known in plugin.formats)
    except PluginError as error:
        raise InvalidSuite([Problem(str(error))]) from error


@functools.cache
def shipped_formats() -> tuple[Format, ...]:
    """The formats of this package, Proctor's own first."""
    return (NATIVE, CSV, *(known for plugin in shipped_plugins() for known in plugin.formats))


def format_named(name: str) -> Format | None:
    """The format with this name, or `None`."""
    return next((known for known in formats() if name == known.name), None)


def unfinished_suites() -> list[Suite]:
    """Suites that cannot run yet, such as one without cases."""
    return [suite for known in formats() if known.unfinished is not None for suite in load(known.unfinished)()]


def default_folder() -> Path:
    """Where to look for suites if no path is passed: the working folder, unless a tool's settings have another."""
    folders = (load(known.default_folder)() for known in shipped_formats() if known.default_folder is not None)
    return next(filter(None, folders), Path())


def is_named_like(known: Format, path: Path) -> bool:
    """Whether a file has a name that only suites of this format have, so that failing to read it is an error."""
    return ending(path) in known.suffixes and any(fnmatchcase(path.name.lower(), name) for name in known.file_names)


def has_keys_of(known: Format, path: Path, text: str) -> bool:
    """Whether text, which may be cut off or invalid, has a key that hardly any other kind of file has."""
    if ending(path) not in known.suffixes:
        return False
    if ending(path) == ".csv":
        columns = {name.strip().strip('"') for name in text.partition("\n")[0].split(",")}
        return "input" in columns and not columns.isdisjoint(known.keys)
    if ending(path) in JSON_LINES:
        return re.search(r'"(?:input|turns|suite)"\s*:', text) is not None
    keys = "|".join(map(re.escape, sorted(known.keys | known.case_keys)))
    return bool(keys) and re.search(rf'(?:^|[{{,\s"\'])(?:{keys})["\']?\s*:', text) is not None
