"""Cases of an id, an input and the words its answer must mention, from JSON, YAML or a list in a Python file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.base.documents import Document, Fields, kind
from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import Json, json_text, plain
from proctor.base.source import Pointer
from proctor.cases.formats.format_spec import JSON_AND_YAML, Declaration, Written, unwritten_fields
from proctor.cases.suite import Case, EvaluatorSpec, Expected, Keywords, Suite, Turn

NAME = "keywords"
DECLARED = Declaration(endings=(".json",), only_answers=True)

LIST_KEYS = ("test_cases", "TEST_CASES")
WORDS = "expected_output_contains"
CONTAINS = EvaluatorSpec("Contains")

CASE_WRITTEN = {"id", "turns", "description", "tags", "evaluators", "line"}
SUITE_WRITTEN = {"name", "cases", "evaluators", "criteria", "settings", "path", "format", "warnings"}


def recognises(path: Path, data: Json) -> bool:
    """A list of objects, bare or under `test_cases`, the first of which names the words it expects."""
    if path.suffix not in JSON_AND_YAML:
        return False
    if isinstance(data, dict):
        data = next((data[key] for key in LIST_KEYS if key in data), None)
    return isinstance(data, list) and any(isinstance(row, dict) and WORDS in row for row in data[:1])


def read(document: Document) -> list[Suite]:
    if isinstance(document.data, list):
        return [_suite(document, document.data, ())]
    fields = Fields(document, document.data)
    given = [key for key in LIST_KEYS if fields.has(key)]
    rows = [fields.items(key) for key in given]
    fields.done()
    if fields.valid and len(given) != 1:
        document.problem((), "needs 'test_cases' (a list)" if not given else "has both test_cases and TEST_CASES")
    document.finish()
    return [_suite(document, rows[0] or [], fields.at(given[0]))]


def from_python(reference: str, value: object, path: Path) -> Suite:
    """The suite of a list in a Python file, such as `test_agent.py:TEST_CASES`."""
    name = reference.rpartition(":")[2]
    rows = plain(value)
    if not isinstance(rows, list):
        raise InvalidSuite([Problem(f"must be a list of cases, not {kind(rows)}", path, where=name)])
    return _suite(Document(path, "", rows), rows, (name,))


def write(suites: Sequence[Suite], ending: str = "") -> Written:
    """A JSON list; cases that this format has no words for are left out and named."""
    losses: list[str] = []
    rows: list[Json] = []
    taken: set[str] = set()
    for suite in suites:
        losses += _suite_losses(suite)
        for case in suite.cases:
            row = _write_case(suite, case, losses)
            if row is None:
                continue
            if case.id in taken:
                losses.append(f"case {case.id!r}: left out, because another case has the same id")
                continue
            taken.add(case.id)
            rows.append(row)
    return Written(json_text(rows), tuple(losses))


def _suite(document: Document, rows: list[Json], pointer: Pointer) -> Suite:
    if not rows:
        document.problem(pointer, "is empty; give at least one case")
    cases = tuple(_read_case(document, row, (*pointer, index)) for index, row in enumerate(rows))
    seen: set[str] = set()
    for index, case in enumerate(cases):
        if case.id and case.id in seen:
            document.problem((*pointer, index, "id"), f"{case.id!r} is the id of an earlier case already")
        seen.add(case.id)
    document.finish()
    return Suite(
        name=document.path.stem,
        cases=cases,
        evaluators=(CONTAINS,),
        path=document.path,
        format=NAME,
        warnings=tuple(document.warnings),
    )


def _read_case(document: Document, data: Json, pointer: Pointer) -> Case:
    fields = Fields(document, data, pointer)
    text = fields.text("input", "", required=fields.valid, blank=False)
    words = _read_words(fields)
    every = fields.choice("match", ("any", "all"), "any") == "all"
    case = Case(
        id=fields.text("id", "", required=fields.valid, blank=False),
        turns=(Turn(text, Expected(keywords=Keywords(all_of=words) if every else Keywords(any_of=words))),),
        description=fields.text("description", ""),
        tags=fields.texts("tags", ()),
    )
    fields.done()
    return case


def _read_words(fields: Fields) -> tuple[str, ...]:
    words: tuple[str, ...] = fields.texts(WORDS, ())
    if fields.valid and fields.take(WORDS) is None:
        fields.document.problem(fields.pointer, f"needs {WORDS!r} (a list of words the answer mentions)")
    elif fields.take(WORDS) == []:
        fields.problem(WORDS, "is empty; give at least one word")
    for index, word in enumerate(words):
        if not word.strip():
            fields.document.problem((*fields.at(WORDS), index), "must not be blank: every answer contains it")
    return words


def _write_case(suite: Suite, case: Case, losses: list[str]) -> dict[str, Json] | None:
    owner = f"case {case.id!r}"
    if len(case.turns) != 1:
        losses.append(f"{owner}: left out, because it has {len(case.turns)} turns")
        return None
    turn = case.turns[0]
    words = turn.expected.keywords
    if words is None or not (words.any_of or words.all_of) or not isinstance(turn.input, str):
        reason = "its input is not text" if words else "it expects no keywords"
        losses.append(f"{owner}: left out, because {reason}")
        return None
    losses += unwritten_fields(case, CASE_WRITTEN, owner) + unwritten_fields(turn, {"input", "expected"}, owner)
    losses += unwritten_fields(turn.expected, {"keywords"}, owner)
    losses += [
        f"{owner}: evaluator {spec.title!r} cannot be expressed"
        for spec in suite.evaluators_of(case, turn)
        if spec != CONTAINS
    ]
    if words.any_of and words.all_of:
        losses.append(f"{owner}: any of {list(words.any_of)} cannot be expressed beside all of others")
    row: dict[str, Json] = {"id": case.id, "input": turn.input, WORDS: list(words.all_of or words.any_of)}
    optional = {"match": "all" if words.all_of else "", "description": case.description, "tags": list(case.tags)}
    return row | {name: value for name, value in optional.items() if value}


def _suite_losses(suite: Suite) -> list[str]:
    owner = f"suite {suite.name!r}"
    return (
        unwritten_fields(suite, SUITE_WRITTEN, owner)
        + unwritten_fields(suite.settings, (), owner)
        + unwritten_fields(suite.criteria, (), owner)
    )
