"""Reads suites in Proctor's own format; `read_case` also reads a single case.

Lists of cases as test modules have them (`TEST_CASES`, with `expected_output_contains`) are native suites too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from proctor.base.documents import Document, Fields, did_you_mean, json_type_name
from proctor.base.errors import InvalidSuite, Problem, UsageError
from proctor.base.json_data import UNSET, Json, to_json, to_text
from proctor.base.source import Pointer, ending
from proctor.cases.arms import Arm, read_arm
from proctor.cases.evaluator_specs import read_specs
from proctor.cases.formats import CASES_KEYS, JSON_LINES, KEYWORDS_KEY
from proctor.cases.formats.native.json_lines import join_lines
from proctor.cases.formats.native.parts import (
    read_arguments,
    read_mocks,
    read_quarantine,
    read_result,
    read_scenario,
    read_state,
    read_waivers,
    refuse_turns,
)
from proctor.cases.formats.native.python_lists import lines_in_module
from proctor.cases.ids import UniqueIds
from proctor.cases.scenario import Scenario
from proctor.cases.suite import (
    INHERITED,
    NO_EXPECTATION,
    AttachedFile,
    Case,
    Criteria,
    EvaluatorSpec,
    Expected,
    ExpectedCall,
    Keywords,
    NamedData,
    Settings,
    Suite,
    Turn,
    complete_evaluators,
    generated_id,
)

NAME = "native"
SCORING_KEYS = ("expected", "evaluators", "final_state", KEYWORDS_KEY)
"""If one of these is misspelled, only that is reported, and not that nothing scores the case."""
NOTHING_TO_CHECK = "has nothing to check; add `expected` or `evaluators`"


def read_document(document: Document) -> list[Suite]:
    """The one suite of a document."""
    document = _as_object(document)
    suite = read_suite(document, _cases_key(document))
    document.finish(suite)
    return [suite]


def read_list(name: str, value: object, path: Path) -> Suite:
    """The suite of a list in a Python file, such as `TEST_CASES`."""
    rows = to_json(value)
    if not isinstance(rows, list):
        raise InvalidSuite([Problem(f"must be a list of cases, not {json_type_name(rows)}", path, where=name)])
    document = Document(path, "", {name: rows}, lines_in_module(path, name, len(rows)))
    suite = read_suite(document, name)
    document.finish(suite)
    return suite


def _cases_key(document: Document) -> str:
    """The key that has the cases."""
    keys = [key for key in CASES_KEYS if isinstance(document.data, Mapping) and key in document.data]
    if len(keys) > 1:
        document.problem((keys[1],), f"cannot be combined with {keys[0]!r}; remove one of them")
    return keys[0] if keys else "cases"


def _as_object(document: Document) -> Document:
    """The document as one object with `cases`, also for a bare list and for JSON Lines."""
    if ending(document.path) in JSON_LINES:
        return join_lines(document)
    if isinstance(document.data, list):
        places = document.line
        return Document(document.path, document.text, {"cases": document.data}, lambda pointer: places(pointer[1:]))
    return document


def read_suite(document: Document, key: str) -> Suite:
    """The suite of an object; `key` is where it has the cases."""
    fields = Fields(document, document.data)
    fields.accept_old_key("reexecute", "rerun_tools")
    every_arm_counts = fields.has("agents")  # what the old key means
    fields.accept_old_key("agents", "arms")
    fields.text("$schema")
    specs = fields.take("evaluators")
    defaults = read_specs(document, specs, fields.at("evaluators"), defaults=None) if specs is not None else ()
    cases = _read_cases(fields, key, defaults)
    suite = Suite(
        name=fields.text("name", document.path.stem, blank=False),
        description=fields.text("description", ""),
        agent=_agent(fields),
        arms=_arms(fields),
        evaluators=defaults,
        criteria=read_criteria(fields.inside("criteria"), "all" if every_arm_counts else "last"),
        settings=read_settings(fields.inside("settings")),
        judge=_judge(fields),
        rerun_tools=_rerun_tools(fields),
        depends_on=fields.texts("depends_on", ()),
        allow_files_from=fields.texts("allow_files_from", ()),
        waivers=read_waivers(fields, cases) if fields.has("waivers") else (),
        cases=cases,
        path=document.path,
        format=NAME,
        extra=fields.extensions(),
        warnings=tuple(document.warnings),
        key_positions={
            place: position
            for key in ("agent", "arms", "judge", "rerun_tools", "settings")
            for place, position in document.positions_below(fields.at(key), key).items()
        },
    )
    fields.report_unknown_keys()
    return suite


def _read_cases(fields: Fields, key: str, defaults: tuple[EvaluatorSpec, ...]) -> tuple[Case, ...]:
    document = fields.document
    cases: list[Case] = []
    seen: dict[str, int] = {}
    ids = UniqueIds()
    for index, item in enumerate(fields.items(key, required=True, least=1) or []):
        pointer = (*fields.at(key), index)
        case = item if isinstance(item, Case) else read_case(document, item, pointer, defaults)
        cases.append(case)
        if case.has_generated_id:
            continue
        if seen.setdefault(case.id, index) != index:
            document.problem((*pointer, "id"), f"{case.id!r} is also the id of {key}[{seen[case.id]}]")
        else:
            ids.claim(case.id)  # an id that the user chose keeps its place, wherever the case is
    return tuple(_with_id(case, ids.claim(case.id)) if case.has_generated_id else case for case in cases)


def _with_id(case: Case, case_id: str) -> Case:
    return case if case.id == case_id else replace(case, id=case_id)


def read_case(document: Document, data: Json, pointer: Pointer, defaults: tuple[EvaluatorSpec, ...] = ()) -> Case:
    """One case; `defaults` are the suite's evaluators, which a case inherits, extends with `...`, or replaces.

    Its lists of evaluators are as the file has them; the plan completes them (`Suite.evaluators_of`)."""
    if isinstance(data, str):
        document.problem(
            pointer, f"must be an object, not text; write {{input: {json.dumps(data[:40])}, expected: ...}}"
        )
        return Case(id=f"case-{int(pointer[-1]) + 1 if pointer else 1}", turns=())
    fields = Fields(document, data, pointer)
    if not fields.valid:
        return Case(id=f"case-{int(pointer[-1]) + 1 if pointer else 1}", turns=())
    fields.accept_old_key("doubles", "mocks")
    scenario = read_scenario(fields) if fields.has("scenario") else None
    turns = _read_turns(fields) if scenario is None else _read_simulated(fields, scenario)
    case = Case(
        id=_case_id(fields, turns),
        turns=turns,
        description=fields.text("description", ""),
        tags=fields.texts("tags", ()),
        evaluators=_evaluators(fields),
        implied=fields.boolean("implied", True),
        has_generated_id=fields.take("id") is None,
        inputs=_inputs(fields),
        metadata=fields.mapping("metadata", {}),
        state=fields.mapping("state", {}),
        final_state=read_state(fields, "final_state") if fields.has("final_state") else None,
        repeat=fields.integer("repeat", least=1),
        timeout=_seconds(fields, "timeout"),
        skip=fields.text("skip", blank=False),
        mocks=read_mocks(fields) if fields.has("mocks") else {},
        scenario=scenario,
        quarantine=read_quarantine(fields) if fields.has("quarantine") else None,
        extra=fields.extensions(),
        position=fields.position("id"),
    )
    if turns and any(call.or_earlier for call in turns[0].expected.tools or ()):
        document.problem(pointer, "has a call with or_earlier in turn 1, and there is no earlier turn; remove it")
    is_misspelled = any(did_you_mean(key, SCORING_KEYS) for key in fields.report_unknown_keys())
    if document.is_python:
        return case  # it may be scored by the evaluators of a suite that it is put into
    if turns and not is_misspelled and not any(complete_evaluators(case, defaults, turn) for turn in turns):
        document.problem(pointer, NOTHING_TO_CHECK)
    return case


def _evaluators(fields: Fields) -> tuple[EvaluatorSpec, ...] | None:
    """The list of a case or a turn as the file has it, or `None` if it has none."""
    entries = fields.take("evaluators")
    return (
        None
        if entries is None
        else read_specs(fields.document, entries, fields.at("evaluators"), defaults=(INHERITED,))
    )


def _case_id(fields: Fields, turns: tuple[Turn, ...]) -> str:
    """The id of a case; without one, it is made from the input, so that it stays if another case is inserted."""
    identity = fields.take("id")
    if isinstance(identity, int) and not isinstance(identity, bool):
        return str(identity)
    text: str | None = fields.text("id", blank=False)
    return text if text is not None else generated_id(turns)


def _read_turns(fields: Fields) -> tuple[Turn, ...]:
    document = fields.document
    if fields.take("turns") is None:
        if not fields.has("input"):
            document.problem(fields.pointer, "needs 'input', 'turns' or 'scenario'")
        return (_read_turn(fields, whole_case=True),)
    for name in ("input", "expected", KEYWORDS_KEY, "retrieval_context", "files"):
        if fields.has(name):
            fields.problem(name, "must be in each turn if a case has `turns`")
            fields.take(name)
    turns = fields.each("turns", lambda item, pointer: read_turn(document, item, pointer), least=1)
    return tuple(turn for turn in turns if turn is not None)


def read_turn(document: Document, data: Any, pointer: Pointer) -> Turn | None:
    """One of several turns: an object, or only its input as text."""
    if isinstance(data, Turn):
        return data
    turn = Fields(document, {"input": data} if isinstance(data, str) else data, pointer)
    if not turn.valid:
        return None
    if not turn.has("input"):
        document.problem(pointer, "needs 'input'")
    read = _read_turn(turn, whole_case=False)
    turn.report_unknown_keys()
    return read


def _read_simulated(fields: Fields, scenario: Scenario) -> tuple[Turn, ...]:
    """The first message; or the whole conversation, which only a stored case has."""
    refuse_turns(fields)
    return _read_turns(fields) if fields.take("turns") else (Turn(scenario.start),)


def _read_turn(fields: Fields, *, whole_case: bool) -> Turn:
    """A turn; with `whole_case`, the only turn of a case without `turns`."""
    document = fields.document
    expected = _with_listed_keywords(fields, read_expected(fields))
    context = fields.texts("retrieval_context")
    files = tuple(fields.each("files", lambda item, pointer: _attached_file(document, item, pointer)))
    message = fields.take("input")
    if whole_case:
        return Turn(message, expected, retrieval_context=context, files=files)
    specs = _evaluators(fields)
    metadata = fields.mapping("metadata", {})
    return Turn(
        message,
        expected,
        evaluators=specs,
        retrieval_context=context,
        files=files,
        metadata=metadata,
        extra=fields.extensions(),
    )


def read_expected(fields: Fields) -> Expected:
    """What the key `expected` has: the right answer, or an object."""
    if not fields.has("expected"):
        return NO_EXPECTATION
    value = fields.take("expected")
    if isinstance(value, Expected):
        return value
    if value is None and fields.document.is_python:
        return NO_EXPECTATION
    if not isinstance(value, Mapping):
        return Expected(output=value)
    document, inner = fields.document, Fields(fields.document, value, fields.at("expected"))
    tools = inner.items("tools")
    calls = [read_call(document, item, (*inner.at("tools"), index)) for index, item in enumerate(tools or [])]
    expected = Expected(
        output=inner.take("output") if inner.has("output") else UNSET,
        contains=_keywords(inner),
        tools=None if tools is None else tuple(calls),
        context=inner.texts("context"),
        state=read_state(inner, "state") if inner.has("state") else None,
    )
    for key in inner.rest():
        suggestion = did_you_mean(key, ("output", "contains", "tools", "context", "state"))
        example = 'expected={"output": {...}}' if document.is_python else "expected: {output: {...}}"
        hint = f"; if the expected answer is an object, write {example}"
        document.unknown_key((*inner.pointer, key), suggestion or hint)
    return expected


def _with_listed_keywords(fields: Fields, expected: Expected) -> Expected:
    """The expectation with the words of `expected_output_contains`; `match` says whether any or all must be there."""
    if not fields.has(KEYWORDS_KEY) or fields.take(KEYWORDS_KEY) is None:
        return expected
    words = fields.texts(KEYWORDS_KEY, ())
    every = fields.choice("match", ("any", "all"), "any") == "all"
    if expected.contains is not None:
        fields.problem(KEYWORDS_KEY, "cannot be combined with expected.contains; remove one of them")
    _check_words(fields, KEYWORDS_KEY, words)
    return replace(expected, contains=Keywords(all=words) if every else Keywords(any=words))


def _check_words(fields: Fields, name: str, words: tuple[str, ...]) -> None:
    if not words:
        fields.problem(name, "is empty; add at least one word")
    elif not all(word.strip() for word in words):
        fields.problem(name, "must not have a blank word, which every answer contains")


def _keywords(fields: Fields) -> Keywords | None:
    value = fields.take("contains")
    if value is None or isinstance(value, Keywords):
        return value
    if isinstance(value, str):
        keywords = Keywords(any=(value,))
    elif isinstance(value, list):
        keywords = Keywords(any=fields.texts("contains", ()))
    else:
        inner = fields.inside("contains")
        if inner is None or not inner.valid:
            return None
        keywords = Keywords(any=_one_or_more(inner, "any"), all=_one_or_more(inner, "all"))
        inner.report_unknown_keys()
    _check_words(fields, "contains", (*keywords.any, *keywords.all))
    return keywords


def _one_or_more(fields: Fields, name: str) -> tuple[str, ...]:
    """Words: a list, or one as text."""
    value = fields.take(name)
    words: tuple[str, ...] = (value,) if isinstance(value, str) else fields.texts(name, ())
    return words


def read_call(document: Document, data: Any, pointer: Pointer) -> ExpectedCall:
    """An expected call: an object, or only the name of the tool."""
    if isinstance(data, ExpectedCall):
        return data
    if isinstance(data, str):
        if not data.strip():
            document.problem(pointer, "must not be blank; name a tool")
        return ExpectedCall(data)
    fields = Fields(document, data, pointer)
    call = ExpectedCall(
        name=fields.text("name", "", required=True, blank=False),
        args=read_arguments(fields),
        count=fields.integer("count", 1, least=1),
        substring=fields.boolean("substring", False),
        extra_args=fields.boolean("extra_args", False),
        result=read_result(fields) if fields.has("result") else UNSET,
        or_earlier=fields.boolean("or_earlier", False),
    )
    fields.report_unknown_keys()
    return call


def _attached_file(document: Document, data: Any, pointer: Pointer) -> AttachedFile:
    if isinstance(data, AttachedFile):
        return data
    if isinstance(data, str):
        return AttachedFile(path=data)
    fields = Fields(document, data, pointer)
    options = {
        "pages": _pages(fields),
        "sheet": fields.text("sheet"),
        "range": fields.text("range"),
        "cache": fields.boolean("cache"),
    }
    attachment = AttachedFile(
        path=fields.text("path"),
        url=fields.text("url"),
        kind=fields.text("type"),
        description=fields.text("description"),
        options={name: value for name, value in options.items() if value is not None},
    )
    if fields.valid and (attachment.path is None) == (attachment.url is None):
        document.problem(pointer, "needs either 'path' or 'url'")
    fields.report_unknown_keys()
    return attachment


def _pages(fields: Fields) -> list[Json] | None:
    pages = fields.items("pages")
    for index, page in enumerate(pages or []):
        if not isinstance(page, int) or isinstance(page, bool) or page < 1:
            fields.document.problem((*fields.at("pages"), index), "must be a page number, from 1")
    return pages


def _inputs(fields: Fields) -> tuple[NamedData, ...]:
    value = fields.take("inputs")
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return tuple(NamedData(name, item) for name, item in value.items())
    if isinstance(value, list) and value and all(isinstance(item, NamedData) for item in value):
        return tuple(value)
    fields.problem("inputs", f"must be an object with names and values, not {json_type_name(value)}")
    return ()


def _agent(fields: Fields) -> Json:
    agent = fields.take("agent")
    if fields.document.is_python and not isinstance(agent, (bool, int, float, list)):
        return agent
    if agent is not None and not isinstance(agent, (str, Mapping)):
        fields.problem("agent", f"must be a reference such as app.py:agent, or an object, not {json_type_name(agent)}")
        return None
    return agent


def _arms(fields: Fields) -> Mapping[str, Json]:
    """Versions of the agent by name; in a list of references, each is its own name."""
    agents = fields.take("arms")
    if agents is None:
        return {}
    if isinstance(agents, list) and all(isinstance(item, str) for item in agents):
        if len(set(agents)) < len(agents):
            fields.problem("arms", "has an agent twice; give each its own name: {careful: app.py:agent}")
        agents = {item: item for item in agents}
    if not isinstance(agents, Mapping) or not agents:
        fields.problem(
            "arms", f"must be an object of names and agents, or a list of references, not {json_type_name(agents)}"
        )
        return {}
    read: list[Arm] = []
    for name, value in agents.items():
        is_arm = isinstance(value, (str, Mapping)) or fields.document.is_python
        if not is_arm or not str(name).strip():
            fields.problem("arms", f"must have a reference such as app.py:agent or main, or an object, under {name!r}")
            return {}
        try:
            read.append(read_arm(value))
            read_settings(_settings_of_arm(fields, name, value))
        except UsageError as error:
            fields.document.problem((*fields.at("arms"), name), str(error))
            return {}
    if fields.take("agent") is not None and all(arm.agent is not None for arm in read):
        fields.problem("arms", "cannot be combined with 'agent' if each arm has its own; remove one of them")
    return agents


def _settings_of_arm(fields: Fields, name: str, value: Any) -> Fields | None:
    """The settings of an arm that are settings of a run, to check their values."""
    settings = value.get("settings") if isinstance(value, Mapping) else None
    if not isinstance(settings, Mapping):
        return None
    known = {item.name for item in dataclass_fields(Settings)}
    own = {key: item for key, item in settings.items() if key in known}
    return Fields(fields.document, own, (*fields.at("arms"), name, "settings"))


def _judge(fields: Fields) -> Json:
    """The judge; whether it exists is checked when the run is planned."""
    judge = fields.take("judge")
    if judge is None or isinstance(judge, Mapping) or (fields.document.is_python and not isinstance(judge, str)):
        return judge
    if isinstance(judge, str) and judge.strip():
        return judge
    fields.problem("judge", "must be a model such as openai:gpt-5-mini, or an object that describes the judge")
    return None


def _rerun_tools(fields: Fields) -> Json:
    """The tools to re-run; whether they exist is checked when the run is planned."""
    tools = fields.take("rerun_tools")
    if tools is None or isinstance(tools, bool):
        return tools or None
    if isinstance(tools, str) and tools.strip():
        return tools
    if isinstance(tools, Mapping) and tools and all(isinstance(v, str) and v.strip() for v in tools.values()):
        return tools
    fields.problem("rerun_tools", "must be true, a reference such as tools.py:TOOLS, or an object of these by tool")
    return None


def read_criteria(fields: Fields | None, default_arms: Literal["last", "all"] = "last") -> Criteria:
    if fields is None:
        return Criteria(arms=default_arms)
    criteria = Criteria(
        trials=fields.choice("trials", ("all", "any", "majority", "mean"), "all"),
        threshold=fields.number("threshold", least=0, most=1),
        pct=fields.number("pct", 1.0, least=0, most=1),
        arms=fields.choice("arms", ("last", "all"), default_arms),
    )
    if criteria.pct == 0:
        fields.problem("pct", "must be more than 0, or the suite could never fail")
    fields.report_unknown_keys()
    return criteria


def read_settings(fields: Fields | None) -> Settings:
    if fields is None:
        return Settings()
    settings = Settings(
        repeat=fields.integer("repeat", least=1),
        parallel=fields.integer("parallel", least=1),
        timeout=_seconds(fields, "timeout"),
        evaluator_timeout=_seconds(fields, "evaluator_timeout"),
        retries=fields.integer("retries", least=0),
        retry_seconds=_seconds(fields, "retry_seconds"),
        max_reply_bytes=fields.integer("max_reply_bytes", least=1),
        side_effects=fields.boolean("side_effects"),
    )
    fields.report_unknown_keys()
    return settings


def _seconds(fields: Fields, name: str) -> float | None:
    value: float | None = fields.number(name)
    if value is not None and value <= 0:
        fields.problem(name, f"must be more than 0 seconds, not {to_text(value, 40)}")
        return None
    return value
