"""Reads and writes the doubles of a case: what its tools answer instead of being called."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.cases.fields import Fields, kind
from proctor.cases.matchers import Matcher, parse
from proctor.cases.model import NOTHING, Case, Double
from proctor.cases.source import Pointer
from proctor.plain import Json


def read_doubles(fields: Fields) -> Mapping[str, tuple[Double, ...]]:
    """By tool, one double or a list of them, of which the first that fits answers."""
    given = fields.mapping("doubles")
    if not given:
        return NOTHING
    doubles: dict[str, tuple[Double, ...]] = {}
    for tool, value in given.items():
        pointer = (*fields.at("doubles"), tool)
        items = value if isinstance(value, list) else [value]
        places = [(*pointer, index) for index in range(len(items))] if isinstance(value, list) else [pointer]
        if not items:
            fields.document.problem(pointer, "is empty; give at least one answer, or leave the tool out")
        doubles[tool] = tuple(_double(fields, item, place) for item, place in zip(items, places, strict=True))
    return doubles


def _double(parent: Fields, data: Json, pointer: Pointer) -> Double:
    if not isinstance(data, Mapping):
        parent.document.problem(pointer, f"must be an object with 'result' or 'error', not {kind(data)}")
        return Double()
    fields = Fields(parent.document, data, pointer)
    if fields.take("result") is not None and fields.take("error") is not None:
        parent.document.problem(pointer, "has both a 'result' and an 'error'; a tool answers with one of them")
    double = Double(
        arguments=_arguments(fields),
        result=fields.take("result"),
        error=fields.text("error", blank=False),
        delay=float(fields.number("delay", 0.0, least=0)),
        times=fields.integer("times", least=1),
    )
    fields.done()
    return double


def _arguments(fields: Fields) -> dict[str, Matcher] | None:
    given = fields.mapping("args")
    if given is None:
        return None
    matchers: dict[str, Matcher] = {}
    for name, value in given.items():
        try:
            matchers[name] = parse(value, fields.document.path.resolve().parent)
        except ValueError as error:
            fields.document.problem((*fields.at("args"), name), str(error))
    return matchers


def write_doubles(case: Case) -> dict[str, Json]:
    """The doubles as data; one alone stands without a list."""
    written = {tool: [_written(double) for double in doubles] for tool, doubles in case.doubles.items()}
    return {tool: items[0] if len(items) == 1 else items for tool, items in written.items()}


def _written(double: Double) -> dict[str, Json]:
    data: dict[str, Json] = {}
    if double.arguments is not None:
        data["args"] = {name: matcher.to_json() for name, matcher in double.arguments.items()}
    if double.error is None:
        data["result"] = double.result
    else:
        data["error"] = double.error
    if double.delay:
        data["delay"] = double.delay
    if double.times is not None:
        data["times"] = double.times
    return data
