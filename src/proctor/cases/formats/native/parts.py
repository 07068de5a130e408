"""Reads and writes parts of the native format that most files do not have: mocks, scenarios, quarantines, waivers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from typing import Any, Final

from proctor.base.documents import Document, Fields, did_you_mean, json_type_name
from proctor.base.json_data import Json
from proctor.base.source import Pointer
from proctor.cases.matchers import InvalidMatcher, Matcher, parse, parse_state
from proctor.cases.quarantine_file import is_date
from proctor.cases.scenario import DEFAULT_MAX_TURNS, DEFAULT_STOP, MAX_TURNS, Scenario
from proctor.cases.suite import Case, Quarantine, ToolMock, Waiver


def read_mocks(fields: Fields) -> Mapping[str, tuple[ToolMock, ...]]:
    """The mocks of a case by tool: one, or a list in which the first that matches is used."""
    data = fields.mapping("mocks")
    if not data:
        return {}
    mocks: dict[str, tuple[ToolMock, ...]] = {}
    for tool, value in data.items():
        pointer = (*fields.at("mocks"), tool)
        items = value if isinstance(value, list) else [value]
        places = [(*pointer, index) for index in range(len(items))] if isinstance(value, list) else [pointer]
        if not items:
            fields.document.problem(pointer, "is empty; add a mock, or remove the tool")
        mocks[tool] = tuple(_mock(fields, item, place) for item, place in zip(items, places, strict=True))
    return mocks


def _mock(parent: Fields, data: Any, pointer: Pointer) -> ToolMock:
    if isinstance(data, ToolMock):
        return data
    if not isinstance(data, Mapping):
        parent.document.problem(pointer, f"must be an object with 'result' or 'error', not {json_type_name(data)}")
        return ToolMock()
    fields = Fields(parent.document, data, pointer)
    if fields.take("result") is not None and fields.take("error") is not None:
        parent.document.problem(pointer, "has both 'result' and 'error'; remove one of them")
    mock = ToolMock(
        args=read_arguments(fields),
        result=fields.take("result"),
        error=fields.text("error", blank=False),
        delay=float(fields.number("delay", 0.0, least=0)),
        times=fields.integer("times", least=1),
    )
    fields.report_unknown_keys()
    return mock


def read_arguments(fields: Fields) -> dict[str, Matcher] | None:
    """The matchers under `args`; a mistake in one is reported with its own line, at any depth."""
    args = fields.mapping("args")
    if args is None:
        return None
    matchers: dict[str, Matcher] = {}
    for name, value in args.items():
        try:
            matchers[name] = parse(value, fields.document.path.resolve().parent)
        except InvalidMatcher as error:
            _report_invalid_matcher(fields.document, (*fields.at("args"), name), error)
    return matchers


def read_result(fields: Fields) -> Json:
    """The expected result of a call; matchers are allowed in it, except `$predicate`."""
    result = fields.take("result")
    try:
        if '"$predicate"' in json.dumps(result, default=str):
            raise InvalidMatcher("has a $predicate, which is allowed only in args", ())
        parse(result)
    except InvalidMatcher as error:
        _report_invalid_matcher(fields.document, fields.at("result"), error)
    return result


def read_state(fields: Fields, key: str) -> dict[str, Json] | None:
    """The expected state after a turn, or after the last one; matchers are allowed in it."""
    state: dict[str, Json] | None = fields.mapping(key)
    for name, value in (state or {}).items():
        try:
            parse_state({name: value})
        except InvalidMatcher as error:
            _report_invalid_matcher(fields.document, fields.at(key), error)
    return state


def _report_invalid_matcher(document: Document, pointer: Pointer, error: InvalidMatcher) -> None:
    """Report an invalid matcher. Its message may begin with its name, which is already at the end of the place."""
    place = (*pointer, *error.pointer)
    document.problem(place, str(error).removeprefix(f"{place[-1]} "))


def write_mocks(case: Case) -> dict[str, Json]:
    """The mocks as data; a single one without a list."""
    data = {tool: [_write_mock(mock) for mock in mocks] for tool, mocks in case.mocks.items()}
    return {tool: items[0] if len(items) == 1 else items for tool, items in data.items()}


def _write_mock(mock: ToolMock) -> dict[str, Json]:
    data: dict[str, Json] = {}
    if mock.args is not None:
        data["args"] = {name: matcher.to_json() for name, matcher in mock.args.items()}
    if mock.error is None:
        data["result"] = mock.result
    else:
        data["error"] = mock.error
    if mock.delay:
        data["delay"] = mock.delay
    if mock.times is not None:
        data["times"] = mock.times
    return data


PLACEHOLDERS = ("stop_signal", "conversation_plan", "conversation_history", "persona")
"""The placeholders that instructions may have."""


def read_scenario(fields: Fields) -> Scenario | None:
    """The scenario of a case, or `None`."""
    if isinstance(fields.take("scenario"), Scenario):
        return fields.take("scenario")  # type: ignore[no-any-return]
    inner = fields.inside("scenario")
    if inner is None or not inner.valid:
        return None
    scenario = Scenario(
        start=inner.text("start", "", required=True, blank=False),
        plan=inner.text("plan", "", required=True, blank=False),
        persona=_persona(inner),
        max_turns=_max_turns(inner),
        stop=inner.text("stop", DEFAULT_STOP, blank=False),
        model=read_user_model(inner, "model"),
        instructions=read_instructions(inner, "instructions"),
        show_tools=inner.boolean("show_tools", False),
    )
    inner.report_unknown_keys()
    return scenario


def refuse_turns(fields: Fields) -> None:
    """Report keys of turns in a case with a scenario, whose turns are generated."""
    for name in ("input", "expected", "expected_output_contains", "retrieval_context", "files", "turns"):
        if fields.has(name) and (name != "turns" or fields.take(name) is not None):
            fields.problem(name, "cannot be combined with 'scenario', whose user writes the turns")
        fields.take(name)


def write_scenario(scenario: Scenario) -> dict[str, Json]:
    """The scenario as data, without defaults."""
    values = ((item.name, getattr(scenario, item.name), item.default) for item in fields_of(scenario))
    return {name: value for name, value, default in values if value != default}


def read_user_model(fields: Fields, name: str) -> Json:
    """The model that plays the user; whether it exists is checked when the run is planned."""
    value = fields.take(name)
    if value is None or isinstance(value, Mapping) or (isinstance(value, str) and value.strip()):
        return value
    fields.problem(name, "must be a model such as openai:gpt-5-mini, or an object that describes it")
    return None


def read_instructions(fields: Fields, name: str) -> str:
    """Instructions with placeholders, the only part of Jinja that is supported."""
    text: str = fields.text(name, "")
    check_placeholders(fields.document, text, fields.at(name))
    return text


def check_placeholders(document: Document, text: str, pointer: Pointer) -> None:
    if "{%" in text or "{#" in text:
        document.problem(pointer, "has {% or {#; only placeholders such as {{ stop_signal }} are supported")
    for place in re.findall(r"\{\{(.*?)\}\}", text, re.DOTALL):
        if place.strip() not in PLACEHOLDERS:
            known = ", ".join(f"{{{{ {name} }}}}" for name in PLACEHOLDERS)
            document.problem(pointer, f"has the unknown placeholder {{{{{place}}}}}; use {known}")


def _persona(fields: Fields) -> Json:
    value = fields.take("persona")
    if value is None or isinstance(value, Mapping) or (isinstance(value, str) and value.strip()):
        return value
    fields.problem("persona", f"must be EXPERT, NOVICE, EVALUATOR, a text or an object, not {json_type_name(value)}")
    return None


def _max_turns(fields: Fields) -> int:
    count: int = fields.integer("max_turns", DEFAULT_MAX_TURNS, least=1)
    if count > MAX_TURNS:
        fields.problem("max_turns", f"must be at most {MAX_TURNS}")
    return min(count, MAX_TURNS)


def read_quarantine(fields: Fields) -> Quarantine | None:
    """The quarantine of a case, or `None`."""
    if isinstance(fields.take("quarantine"), Quarantine):
        return fields.take("quarantine")  # type: ignore[no-any-return]
    own = fields.inside("quarantine")
    if own is None or not own.valid:
        return None
    reason, until = own.text("reason", "", required=True, blank=False), own.text("until", "", required=True)
    if until and not is_date(until):
        own.problem("until", f"must be a date as YYYY-MM-DD, not {until!r}")
    quarantine = Quarantine(reason, until, own.text("owner", blank=False))
    own.report_unknown_keys()
    return quarantine


def read_waivers(fields: Fields, cases: Sequence[Case]) -> tuple[Waiver, ...]:
    """Kinds of mutants that the suite need not kill, each with the reason."""

    ids = [case.id for case in cases]

    def read(item: Json, pointer: Pointer) -> Waiver:
        own = Fields(fields.document, item, pointer)
        mutant = own.text("mutant", "", required=True, blank=False)
        waiver = Waiver(mutant, own.text("reason", "", required=True, blank=False), own.text("case", blank=False))
        if mutant and mutant not in MUTANT_KINDS and mutant not in FORMER_MUTANT_KINDS:
            own.problem("mutant", f"{mutant!r} is not a kind of mutant{did_you_mean(mutant, MUTANT_KINDS)}")
        if waiver.case is not None and waiver.case not in ids:
            own.problem("case", f"{waiver.case!r} is not a case of this suite{did_you_mean(waiver.case, ids)}")
        own.report_unknown_keys()
        return waiver

    return tuple(fields.each("waivers", read))


MUTANT_KINDS: Final[Mapping[str, str]] = {
    "answer-emptied": "the answer is empty",
    "answer-truncated": "the answer is cut off",
    "answer-refused": "the answer refuses",
    "question-repeated": "the answer repeats the question",
    "other-answer": "the answer is from another case",
    "extra-turn": "the agent asks back instead of answering",
    "sentence-dropped": "a sentence is missing",
    "sentence-added": "a wrong sentence is added to the right answer",
    "item-dropped": "an item of a list is missing",
    "item-added": "a list has one item too many",
    "number-changed": "a digit of a number changed",
    "digit-inserted": "a number has a digit too many",
    "digit-deleted": "a number lacks a digit",
    "date-changed": "a date changed",
    "unit-changed": "a unit or currency changed",
    "name-changed": "a name changed",
    "entities-swapped": "two names, numbers or dates are swapped",
    "roles-swapped": "two roles are swapped",
    "negation-removed": "a negation is removed",
    "negation-inserted": "a negation is inserted",
    "antonym-used": "a word is replaced by its opposite",
    "hedge-dropped": "a hedge or condition is dropped",
    "keyword-denied": "the keywords appear only in a denial",
    "result-ignored": "the results of tools are not in the answer",
    "told-to-pass": "a refusal asks to be graded as correct",
    "field-missing": "a field of the answer is missing",
    "field-added": "the answer has a field too many",
    "flag-flipped": "true and false are swapped in the answer",
    "value-changed": "a word or letter of a short answer or field changed",
    "call-dropped": "a tool call is not made",
    "call-repeated": "a tool call is made twice",
    "calls-reordered": "two tool calls are swapped",
    "other-tool": "another tool is called instead",
    "call-added": "an unneeded tool is called",
    "forbidden-tool": "a forbidden tool is called as well",
    "argument-number": "a digit of an argument changed",
    "argument-date": "a date in an argument changed",
    "argument-id": "an id in an argument changed",
    "argument-text": "the text of an argument changed",
    "argument-flag": "true and false are swapped in an argument",
    "argument-source": "an argument is taken from the wrong source",
    "argument-missing": "an argument is missing",
    "tokens-doubled": "the answer takes twice the tokens",
    "latency-tenfold": "the answer takes ten times as long",
}
"""The kinds of mutants that `proctor mutate` creates, by the names that waivers use."""
FORMER_MUTANT_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "negation-changed": ("negation-removed", "negation-inserted")
}
"""Kinds of earlier releases that waivers may still name, and what they are now."""
