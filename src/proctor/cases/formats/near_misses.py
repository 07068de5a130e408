"""Decides whether a file that is not a suite was meant to be one.

A folder of suites has other files too, and those must not become errors: workflows, manifests, settings, data. But a
suite with `casess:` must not be taken for one of them, or its cases would never run. No single word separates the two:
`name` is in half of all YAML files, `bases` is one letter from `cases`, and `tests` is a key of many tools. So a key or
column that is nearly right counts only together with what is below it or next to it:

- a key like `cases` counts if the items below it look like cases, or if it is a misspelling and no ordinary word;
- `agent` counts if its value refers to an agent, and so do keys that only a suite has (`evaluators`);
- a key that only another format has (`evalCases`) counts if it is misspelled;
- a row or a table counts if it has something like `input`, and something like `expected` where `input` alone is vague.

A file that cannot be parsed has only its text. It counts if it has a key of a suite and no other key.
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from proctor.base.documents import Document
from proctor.base.errors import Problem
from proctor.base.json_data import Json
from proctor.base.source import YAML_SUFFIXES, ending
from proctor.cases.formats import CSV, JSON_LINES, formats, has_keys_of
from proctor.cases.formats.columns import COLUMNS, PREFIXES, separator_of

DISTINCTIVE_KEYS = frozenset({"evaluators", "rerun_tools", "reexecute", "waivers", "allow_files_from"})
"""Keys of a suite that hardly any other kind of file has."""
SUITE_KEYS = DISTINCTIVE_KEYS | frozenset(
    "$schema name description agent agents arms criteria settings judge depends_on cases test_cases".split()
)
VAGUE_KEYS = frozenset({"$schema", "name", "description", "settings", "criteria"})
"""Keys of a suite that many other files have; alone they mean nothing."""
WORDS_FOR_TESTS = frozenset({"test", "tests", "test_case", "testcase", "testcases", "test_cases", "evals"})
OTHER_WORDS_FOR_CASES = frozenset({"examples", "questions", "scenarios", "samples", "items", "prompts", "entries"})
ORDINARY_WORDS = frozenset(
    """aces bases cages cakes calls cames canes capes cards cares cased cast casts caves caches causes ceases chases
    classes eases lapses leases masks oases pages passes phases races rates releases vases caused""".split()
)
"""Words that are nearly `cases` and mean something else."""
WORDS_FOR_INPUT = frozenset({"question", "prompt", "query", "user_input", "message"})
WORDS_FOR_EXPECTED = frozenset({"output", "answer", "expected_answer", "expected_output", "expectation", "ideal"})
EXPECTATIONS = ("expected", "expected_output", "expected_output_contains", "contains", "contains_all", "evaluators")
TABLE_SUFFIXES = (".csv", ".tsv")
SIMILARITY = 0.8
"""How similar a misspelled word is to the right one: one wrong letter in five."""
FORMAT_KEY_SIMILARITY = 0.87
"""The same for keys of other formats, which are longer words."""
MAX_HEADER = 10_000
"""How many characters of the first line of a table are looked at."""
MAX_ROWS = 50
"""How many items of a list are looked at."""
REFERENCE = re.compile(r"(?:[\w./\\-]+\.py:\w|https?://|cmd:|serve:)")
"""How the value of `agent` begins, if it refers to an agent."""


def near_miss(document: Document) -> Problem | None:
    """Why a document that no format recognizes was meant to be a suite, or None if it was not."""
    data = document.data
    if ending(document.path) in (*JSON_LINES, *TABLE_SUFFIXES) or isinstance(data, list):
        return _near_rows(document, data if isinstance(data, list) else [])
    if isinstance(data, Mapping):
        keys = {str(key): value for key, value in data.items()}
        return (
            _misnamed_cases(document, keys)
            or _misspelled_key(document, keys)
            or _misplaced_cases(document, keys)
            or _without_cases(document, keys)
        )
    return None


def near_miss_in_text(path: Path, text: str) -> bool:
    """Whether text that cannot be parsed was meant to be a suite."""
    if ending(path) in TABLE_SUFFIXES:
        return has_near_columns(text)
    if any(has_keys_of(known, path, text) for known in formats()):
        return True
    keys = [_word(key) for key in _top_level_keys(path, text)]
    if not keys:
        return _has_key(text, "input") and _has_key(text, "expected", "evaluators", "contains")
    if any(_is_misspelled_cases(key) for key in keys) or _misspelled_format_key(path, keys) is not None:
        return True
    return all(map(_is_suite_key, keys))


def has_near_columns(text: str) -> bool:
    """Whether a table, with whatever separator, has nearly the columns of a suite."""
    header = next((line for line in text.splitlines() if line.strip()), "")[:MAX_HEADER]
    columns = [_word(name) for name in next(csv.reader([header], delimiter=separator_of(header)), [])]
    inputs = [name for name in columns if _is_input(name) or name.startswith("input.")]
    questions = [name for name in columns if name in WORDS_FOR_INPUT or name == "inputs"]
    expected = [name for name in columns if _similar(name, ("expected", "contains", "contains_all", "tools"))]
    answers = [name for name in columns if name in WORDS_FOR_EXPECTED and name not in expected]
    ordinary = [
        name
        for name in columns
        if name not in (*inputs, *questions, *expected, *answers)
        and not _similar(name, COLUMNS)
        and not name.startswith(PREFIXES)
    ]
    return bool((inputs and expected) or ((inputs or (questions and expected)) and not ordinary))


def _misnamed_cases(document: Document, data: Mapping[str, Json]) -> Problem | None:
    """A key that stands for `cases`: misspelled, or the word of another tool."""
    if data.keys() <= {"test_cases"}:
        return None  # belongs to the agent that names this file
    has_suite_keys = not DISTINCTIVE_KEYS.isdisjoint(map(_word, data)) or _agent_key(data) is not None
    for key, value in data.items():
        word = _word(key)
        items = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []
        rows = [row for row in items[:MAX_ROWS] if isinstance(row, Mapping)]
        is_misspelled = _is_misspelled_cases(word)
        is_word_for_tests = word in WORDS_FOR_TESTS or _similar(word, ("cases",), 0.7)
        if (
            (is_misspelled and (value is None or value == [] or rows))
            or (is_word_for_tests and any(map(_is_case, rows)))
            or (word in OTHER_WORDS_FOR_CASES and any(_is_case(row) and _has_expectation(row) for row in rows))
            or ((is_misspelled or word in WORDS_FOR_TESTS) and has_suite_keys)
        ):
            return _problem(document, key, "cases")
    return None


def _misplaced_cases(document: Document, data: Mapping[str, Json]) -> Problem | None:
    """Cases below another key, and a file that is one case."""
    for key, value in data.items():
        items = value.get("cases") if isinstance(value, Mapping) else None
        if isinstance(items, list) and any(isinstance(row, Mapping) and _is_case(row) for row in items[:MAX_ROWS]):
            message = f"is not a suite: its 'cases' are below {key!r}; move them to the beginning of a line"
            return Problem(message, document.path, document.line((key, "cases")))
    if "input" in data and not data.keys().isdisjoint(("expected", "evaluators")):
        return Problem("is one case and not a suite; put it into a list below 'cases'", document.path, 1)
    return None


def _misspelled_key(document: Document, data: Mapping[str, Json]) -> Problem | None:
    """A misspelled key that only one format has."""
    pair = _misspelled_format_key(document.path, data)
    return None if pair is None else _problem(document, *pair)


def _misspelled_format_key(path: Path, keys: Iterable[str]) -> tuple[str, str] | None:
    """A key, and the key that only one format has and that it misspells."""
    keys = list(keys)
    for known in formats():
        if known is CSV or ending(path) not in known.suffixes:
            continue
        for right in sorted(known.keys - {"cases", "TEST_CASES"}):
            for key in keys:
                if key != right and _similar(_word(key), (_word(right),), FORMAT_KEY_SIMILARITY) and right not in keys:
                    return key, right
    return None


def _without_cases(document: Document, data: Mapping[str, Json]) -> Problem | None:
    """A suite whose list of cases is missing."""
    words = {_word(key): value for key, value in data.items()}
    agent = _agent_key(data)
    is_suite = agent is not None or (not DISTINCTIVE_KEYS.isdisjoint(words) and not VAGUE_KEYS.isdisjoint(words))
    if not is_suite and all(map(_is_suite_key, words)):
        is_suite = any(isinstance(value, str) and _similar(word, ("agent", "judge")) for word, value in words.items())
    if not is_suite:
        return None
    key = agent or next(iter(data))
    message = f"has {key!r} and no 'cases'; add a list of cases, each with an 'input'"
    return Problem(message, document.path, document.line((key,)))


def _agent_key(data: Mapping[str, Json]) -> str | None:
    """The key with a reference to an agent."""
    return next(
        (
            key
            for key, value in data.items()
            if _similar(_word(key), ("agent",)) and isinstance(value, str) and REFERENCE.match(value)
        ),
        None,
    )


def _near_rows(document: Document, rows: Sequence[Json]) -> Problem | None:
    """A list of objects that are nearly cases."""
    for index, row in enumerate(islice(rows, MAX_ROWS)):
        if not isinstance(row, Mapping) or not _is_case(row):
            continue
        key = next((key for key in row if _is_input(_word(key))), None)
        key = key or next(key for key in row if _word(key) in WORDS_FOR_INPUT | {"inputs", "turns"})
        message = f"is nearly a case; it has {key!r}; did you mean {'turns' if _word(key) == 'turns' else 'input'!r}?"
        return Problem(message, document.path, document.line((index,)), f"[{index}]")
    return None


def _is_case(row: Mapping[str, Json]) -> bool:
    """Whether an object has an input, or something like one together with something like an expectation."""
    words = [_word(key) for key in row]
    if any(_is_input(word) or word == "turns" for word in words):
        return True
    return _has_expectation(row) and not WORDS_FOR_INPUT.union({"inputs"}).isdisjoint(words)


def _has_expectation(row: Mapping[str, Json]) -> bool:
    return any(_similar(_word(key), EXPECTATIONS) for key in row)


def _is_input(word: str) -> bool:
    return word != "inputs" and _similar(word, ("input",))


def _is_suite_key(word: str) -> bool:
    return word not in ORDINARY_WORDS and _similar(word, SUITE_KEYS)


def _is_misspelled_cases(word: str) -> bool:
    return word not in ORDINARY_WORDS and word != "test_cases" and _similar(word, ("cases",))


def _problem(document: Document, key: str, right: str) -> Problem:
    return Problem(f"is not a suite: it has {key!r}; did you mean {right!r}?", document.path, document.line((key,)))


def _word(key: object) -> str:
    """A key without what does not matter when it is compared: case, spaces, dashes."""
    return re.sub(r"[\s-]+", "_", str(key).strip().strip("\"'\ufeff").casefold())


def _similar(word: str, known: Iterable[str], cutoff: float = SIMILARITY) -> bool:
    return bool(difflib.get_close_matches(word, known if isinstance(known, (tuple, list)) else tuple(known), 1, cutoff))


def _top_level_keys(path: Path, text: str) -> list[str]:
    """The keys of the outermost object of a text that may be cut off or invalid."""
    if ending(path) in YAML_SUFFIXES:
        return re.findall(r"""^["']?([\w$][\w$ .-]*)["']?[ \t]*:(?=\s|$)""", text, re.MULTILINE)
    return list(_json_keys(text))


def _json_keys(text: str) -> Iterator[str]:
    depth = 0
    for match in re.finditer(r'"((?:[^"\\\n]|\\.)*)"(\s*:)?|[\[\]{}]', text):
        token = match.group(0)
        if token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
        elif depth == 1 and match.group(2):
            yield match.group(1)


def _has_key(text: str, *names: str) -> bool:
    return re.search(rf'(?:^|[{{,\s"\'])(?:{"|".join(names)})["\']?\s*:', text) is not None
