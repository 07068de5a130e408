"""Parts of the native format that most files do not use: mocks of tools, scenarios, quarantines, waivers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from typing import Final

from proctor.base.documents import Document, Fields, did_you_mean, json_type_name
from proctor.base.json_data import Json
from proctor.base.source import Pointer
from proctor.cases.matchers import InvalidMatcher, Matcher, parse, parse_state
from proctor.cases.quarantine_file import is_date
from proctor.cases.scenario import DEFAULT_MAX_TURNS, DEFAULT_STOP, MAX_TURNS, Scenario
from proctor.cases.suite import Case, Quarantine, ToolMock, Waiver


def read_mocks(fields: Fields) -> Mapping[str, tuple[ToolMock, ...]]:
    """By tool, one mock or a list of them, of which the first that fits answers."""
    given = fields.mapping("mocks")
    if not given:
        return {}
    mocks: dict[str, tuple[ToolMock, ...]] = {}
    for tool, value in given.items():
        pointer = (*fields.at("mocks"), tool)
        items = value if isinstance(value, list) else [value]
        places = [(*pointer, index) for index in range(len(items))] if isinstance(value, list) else [pointer]
        if not items:
            fields.document.problem(pointer, "is empty; give at least one answer, or leave the tool out")
        mocks[tool] = tuple(_mock(fields, item, place) for item, place in zip(items, places, strict=True))
    return mocks


def _mock(parent: Fields, data: Json, pointer: Pointer) -> ToolMock:
    if not isinstance(data, Mapping):
        parent.document.problem(pointer, f"must be an object with 'result' or 'error', not {json_type_name(data)}")
        return ToolMock()
    fields = Fields(parent.document, data, pointer)
    if fields.take("result") is not None and fields.take("error") is not None:
        parent.document.problem(pointer, "has both a 'result' and an 'error'; a tool answers with one of them")
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
    """The matchers under `args`; a mistake in one is told with the line on which it stands, however deep."""
    given = fields.mapping("args")
    if given is None:
        return None
    matchers: dict[str, Matcher] = {}
    for name, value in given.items():
        try:
            matchers[name] = parse(value, fields.document.path.resolve().parent)
        except InvalidMatcher as error:
            _report_invalid_matcher(fields.document, (*fields.at("args"), name), error)
    return matchers


def read_result(fields: Fields) -> Json:
    """What a call is expected to have brought, in which matchers may stand."""
    given = fields.take("result")
    try:
        if '"$predicate"' in json.dumps(given):
            raise InvalidMatcher("has a $predicate, which can stand in args only", ())
        parse(given)
    except InvalidMatcher as error:
        _report_invalid_matcher(fields.document, fields.at("result"), error)
    return given


def read_final_state(fields: Fields) -> dict[str, Json] | None:
    """The state that is expected in the end, in which matchers may stand."""
    given: dict[str, Json] | None = fields.mapping("final_state")
    for name, value in (given or {}).items():
        try:
            parse_state({name: value})
        except InvalidMatcher as error:
            _report_invalid_matcher(fields.document, fields.at("final_state"), error)
    return given


def _report_invalid_matcher(document: Document, pointer: Pointer, error: InvalidMatcher) -> None:
    """Say what is wrong with a matcher; its name stands at the end of the place already."""
    place = (*pointer, *error.pointer)
    document.problem(place, str(error).removeprefix(f"{place[-1]} "))


def write_mocks(case: Case) -> dict[str, Json]:
    """The mocks as data; one alone stands without a list."""
    written = {tool: [_write_mock(mock) for mock in mocks] for tool, mocks in case.mocks.items()}
    return {tool: items[0] if len(items) == 1 else items for tool, items in written.items()}


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
"""What instructions of one's own can refer to."""


def read_scenario(fields: Fields) -> Scenario | None:
    """The scenario of a case; `None` where its turns are written down."""
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
    """A conversation is either written down or made up on the way."""
    for name in ("input", "expected", "expected_output_contains", "retrieval_context", "files", "turns"):
        if fields.has(name) and (name != "turns" or fields.take(name) is not None):
            fields.problem(name, "has no place beside a scenario, whose user makes up the turns")
        fields.take(name)


def write_scenario(scenario: Scenario) -> dict[str, Json]:
    """The scenario as data; what is at its default is left out."""
    given = ((item.name, getattr(scenario, item.name), item.default) for item in fields_of(scenario))
    return {name: value for name, value, default in given if value != default}


def read_user_model(fields: Fields, name: str) -> Json:
    """Who plays the user; whether there is such a model is found out when the run is planned."""
    value = fields.take(name)
    if value is None or isinstance(value, Mapping) or (isinstance(value, str) and value.strip()):
        return value
    fields.problem(name, "must be a model such as openai:gpt-5-mini, or an object that describes it")
    return None


def read_instructions(fields: Fields, name: str) -> str:
    """Instructions with places to be filled in; of Jinja, that is all that is understood."""
    text: str = fields.text(name, "")
    check_placeholders(fields.document, text, fields.at(name))
    return text


def check_placeholders(document: Document, text: str, pointer: Pointer) -> None:
    if "{%" in text or "{#" in text:
        document.problem(pointer, "has {% or {#; only places such as {{ stop_signal }} are understood")
    for place in re.findall(r"\{\{(.*?)\}\}", text, re.DOTALL):
        if place.strip() not in PLACEHOLDERS:
            known = ", ".join(f"{{{{ {name} }}}}" for name in PLACEHOLDERS)
            document.problem(pointer, f"has {{{{{place}}}}}, which stands for nothing; there are {known}")


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
    """Why a case decides nothing for the time being, and until which day."""
    own = fields.inside("quarantine")
    if own is None or not own.valid:
        return None
    reason, until = own.text("reason", "", required=True, blank=False), own.text("until", "", required=True)
    if until and not is_date(until):
        own.problem("until", f"must be a day as YYYY-MM-DD, not {until!r}")
    quarantine = Quarantine(reason, until, own.text("owner", blank=False))
    own.report_unknown_keys()
    return quarantine


def read_waivers(fields: Fields, cases: Sequence[Case]) -> tuple[Waiver, ...]:
    """Mutants that are no weakness of the suite, each with the reason why."""

    ids = [case.id for case in cases]

    def read(item: Json, pointer: Pointer) -> Waiver:
        own = Fields(fields.document, item, pointer)
        kind_of_mutant = own.text("mutant", "", required=True, blank=False)
        waiver = Waiver(
            kind_of_mutant, own.text("reason", "", required=True, blank=False), own.text("case", blank=False)
        )
        if kind_of_mutant and kind_of_mutant not in MUTANT_KINDS:
            own.problem(
                "mutant", f"{kind_of_mutant!r} is no kind of mutant{did_you_mean(kind_of_mutant, MUTANT_KINDS)}"
            )
        if waiver.case is not None and waiver.case not in ids:
            own.problem("case", f"no case is called {waiver.case!r}{did_you_mean(waiver.case, ids)}")
        own.report_unknown_keys()
        return waiver

    return tuple(fields.each("waivers", read))


MUTANT_KINDS: Final[Mapping[str, str]] = {
    "answer-emptied": "the answer is empty",
    "answer-truncated": "the answer ends in the middle",
    "answer-refused": "the answer refuses",
    "question-repeated": "the answer repeats the question",
    "other-answer": "the answer is that of another case",
    "extra-turn": "the agent asks back instead of answering",
    "number-changed": "one digit of a number is another",
    "date-changed": "a date is another",
    "unit-changed": "the unit of a number is another",
    "name-changed": "a name is another",
    "negation-changed": "a statement says the opposite",
    "keyword-denied": "the expected keywords stand in a denial only",
    "result-ignored": "what the tools gave is not in the answer",
    "told-to-pass": "a refusal asks to be graded as correct",
    "field-missing": "a field of the answer is missing",
    "call-dropped": "a tool call is not made",
    "call-repeated": "a tool call is made twice",
    "calls-reordered": "two tool calls have changed places",
    "other-tool": "another tool is called instead",
    "call-added": "a tool is called though none is needed",
    "forbidden-tool": "a forbidden tool is called as well",
    "argument-number": "one digit of an argument is another",
    "argument-date": "a date in an argument is another",
    "argument-id": "an id in an argument is another",
    "argument-text": "the text of an argument is another",
    "argument-missing": "an argument is missing",
    "tokens-doubled": "the answer takes twice the tokens",
    "latency-tenfold": "the answer takes ten times as long",
}
"""The kinds of mutants that `proctor mutate` makes of an answer: suites waive them by these names."""
