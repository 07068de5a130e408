"""Reads what Python code passes to `Case`, `Suite` and their parts, with the reader of files.

Arguments become the data of a file, in which objects may stand for what a file writes out. The reader checks them, and
problems are raised with the name of the constructor: `Case('q'): expected has no key 'contans'`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from proctor.base.documents import Fields, json_type_name
from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import UNSET, Json, to_text
from proctor.base.positions import Position
from proctor.cases.constructing import PythonDocument, caller, plain, subject_of
from proctor.cases.evaluator_specs import read_specs
from proctor.cases.formats.native import reader
from proctor.cases.formats.native.parts import read_waivers
from proctor.cases.suite import Case, Criteria, Expected, ExpectedCall, Settings, Suite, Turn

NEEDS_INPUT = 'Case() needs an input, turns or a scenario: Case("Where is A-17?")'


def read_case_from_python(question: Any, arguments: Mapping[str, Any], position: Position | None) -> Case:
    """The case of a call of `Case(...)`; `question` is its input, or `UNSET`."""
    has_input, turns, scenario = question is not UNSET, arguments["turns"], arguments["scenario"]
    if not has_input and turns is None and scenario is None:
        raise TypeError(NEEDS_INPUT)
    subject = subject_of("Case", question if has_input else arguments["id"])
    if has_input and turns is not None:
        raise InvalidSuite([Problem(f"{subject}: give input or turns, not both; each turn has its own input")])
    if isinstance(turns, (str, Mapping)) or (turns is not None and not isinstance(turns, Iterable)):
        raise TypeError(f"{subject}: turns must be a list; write turns=[...]")
    data = _file_data(arguments)
    data.pop("has_generated_id", None)
    extra = data.pop("extra", {})
    data |= extra
    if has_input:
        data["input"] = question
    document = PythonDocument(data, position)
    case = reader.read_case(document, data, ())
    document.raise_problems(subject)
    return case


def read_turn_from_python(question: Json, arguments: Mapping[str, Any]) -> Turn:
    """The turn of a call of `Turn(...)`."""
    data = {"input": question, **_file_data(arguments)}
    document = PythonDocument(data)
    turn = reader.read_turn(document, data, ())
    document.raise_problems(subject_of("Turn", question))
    assert turn is not None
    return turn


def read_expected_from_python(output: Any, arguments: Mapping[str, Any]) -> Expected:
    """The expectation of a call of `Expected(...)`."""
    data = _file_data(arguments) | ({} if output is UNSET else {"output": output})
    document = PythonDocument({"expected": data})
    expected = reader.read_expected(Fields(document, document.data))
    document.raise_problems("Expected()")
    return expected


def read_call_from_python(arguments: Mapping[str, Any]) -> ExpectedCall:
    """The expected call of a call of `ExpectedCall(...)`."""
    document = PythonDocument(_file_data(arguments))
    call = reader.read_call(document, document.data, ())
    document.raise_problems(subject_of("ExpectedCall", arguments["name"]))
    return call


def read_suite_from_python(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call of `Suite(...)` in their final form."""
    name, cases = arguments["name"], arguments["cases"]
    if not isinstance(name, str):
        raise TypeError(f'Suite() needs a name: Suite("shop", cases), not Suite({to_text(name, 40)})')
    subject = f"Suite({name!r})"
    if isinstance(cases, (Case, Mapping, str)) or not isinstance(cases, Iterable):
        raise TypeError(f"{subject}: cases must be a list; write [Case(...)]")
    agent, arms = arguments["agent"], arguments["arms"]
    document = PythonDocument({}, caller())
    if isinstance(agent, (bool, int, float, list, tuple)):
        message = "use a function, an object of a supported framework, 'app.py:agent' or a URL"
        document.problem((), f"agent is {to_text(agent, 40)}; {message}")
    specs = plain(arguments["evaluators"])
    evaluators = specs if not isinstance(specs, str) and specs is not None else []
    if isinstance(specs, str) or callable(specs):
        evaluators = [specs]
    result: dict[str, Any] = {
        "evaluators": read_specs(document, evaluators, ("evaluators",), defaults=None),
        "cases": tuple(_cases(document, cases)),
        "criteria": _part(document, "criteria", arguments["criteria"], Criteria, reader.read_criteria),
        "settings": _part(document, "settings", arguments["settings"], Settings, reader.read_settings),
        "arms": dict(arms) if isinstance(arms, Mapping) else arms,
    }
    data = {"waivers": [item for item in arguments["waivers"] if isinstance(item, Mapping)]}
    read = read_waivers(Fields(document, plain(data)), result["cases"])
    result["waivers"] = (*(item for item in arguments["waivers"] if not isinstance(item, Mapping)), *read)
    document.raise_problems(subject)
    return result


def _cases(document: PythonDocument, cases: Iterable[Any]) -> Iterable[Case]:
    for index, item in enumerate(cases):
        if isinstance(item, Case):
            yield item
        elif isinstance(item, Mapping):
            yield reader.read_case(document, plain(item), ("cases", index))
        elif isinstance(item, str):
            example = to_text(item, 40).replace('"', "'")
            document.problem((), f'cases[{index}] is text; write Case("{example}", expected=...)')
        else:
            document.problem((), f"cases[{index}] is {json_type_name(item)}; write Case(...)")


def _part(document: PythonDocument, name: str, value: Any, kind: type, read: Any) -> Any:
    return value if isinstance(value, kind) else read(Fields(document, plain(value), (name,)))


def read_suite_mapping(data: Any) -> Suite:
    """The suite of a mapping with the keys of a file, in which functions and objects may stand for references."""
    if not isinstance(data, Mapping):
        raise TypeError(f"a suite is a mapping with 'cases', not {json_type_name(data)}")
    document = PythonDocument({"name": "suite", **plain(data)}, caller())
    suite = reader.read_suite(document, "cases")
    if document.problems:
        raise InvalidSuite(document.problems)
    return replace(suite, path=None)


def _file_data(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were passed, as the data of a file."""
    return {name: plain(value) for name, value in arguments.items() if value is not None and not _is_empty(value)}


def _is_empty(value: Any) -> bool:
    return type(value) in (tuple, dict) and not value
