"""Native suites out of nowhere: as data that a file may hold, valid and nearly so, and as the objects they mean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from proctor.base.json_data import UNSET
from proctor.cases.matchers import Approx, Equals, Ignore, OneOf, Regex
from proctor.cases.matchers.value_matchers import contains_matchers
from proctor.cases.scenario import Scenario
from proctor.cases.suite import (
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
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TRICKY = st.sampled_from(
    ["1e5", "1.0e5", "no", "null", "~", "0x1F", "1_000", "2024-01-01", "- a", "a: b", "#", " a ", "\n\n a\n", "<<", "=",
     "'", '"', "!!int 3", "&a", "*a", "\t", "\u2028", "\x85", "\ufeff", "0o7", "1:30", ".5", "+.5e-3", "é" * 200]
)  # fmt: skip
STRINGS = TEXT | TRICKY
FILLED = STRINGS.filter(lambda text: any("!" <= character <= "~" for character in text))
NUMBERS = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | STRINGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(STRINGS, JSON, max_size=3)
OWN = st.dictionaries(STRINGS.map(lambda text: f"x-{text}"), JSON, max_size=2)
SECONDS = st.floats(0.001, 1e6) | st.integers(1, 10**6)
SHARES = st.floats(0, 1) | st.sampled_from([0, 1])


def _with_some(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


OPTIONS = st.builds(
    lambda own, known: {**own, **known},
    st.dictionaries(STRINGS.filter(lambda name: name not in _SETTINGS), JSON, max_size=2),
    _with_some(
        {},
        {
            "threshold": SHARES | st.none(),
            "name": FILLED | st.none(),
            "report_only": st.booleans() | st.none(),
            "scope": st.sampled_from(["turn", "case", None]),
            "output": FILLED | st.none(),
            "timeout": SECONDS | st.none(),
            "output_path": FILLED | st.none(),
            "retries": st.integers(0, 9) | st.none(),
            "optional": st.booleans() | st.none(),
        },
    ),
)
_SETTINGS = (
    "threshold",
    "name",
    "report_only",
    "gate",
    "scope",
    "output",
    "timeout",
    "output_path",
    "retries",
    "optional",
)
NAMES = FILLED.filter(lambda name: name != "...")
ENTRIES = NAMES | st.dictionaries(NAMES, OPTIONS | st.none(), min_size=1, max_size=1)
WORDS = st.lists(FILLED, min_size=1, max_size=3)
TOOL = _with_some(
    {"name": FILLED},
    {
        "args": st.dictionaries(STRINGS, st.booleans() | STRINGS | st.just({"$ignore": True}), max_size=2) | st.none(),
        "count": st.integers(1, 5) | st.none(),
        "substring": st.booleans() | st.none(),
        "extra_args": st.booleans() | st.none(),
        "result": JSON,
    },
)
EXPECTED = _with_some(
    {},
    {
        "output": JSON,
        "contains": st.none() | FILLED | WORDS | _with_some({"all": WORDS}, {"any": WORDS | st.just([]) | st.none()}),
        "tools": st.none() | st.lists(FILLED | TOOL, max_size=2),
        "context": st.none() | st.lists(STRINGS, max_size=2),
    },
)
FILES = st.lists(
    STRINGS
    | st.builds(
        lambda place, rest: {**place, **rest},
        _with_some({"path": STRINGS}, {"url": st.none()}) | st.fixed_dictionaries({"url": STRINGS}),
        _with_some(
            {},
            {
                "type": STRINGS | st.none(),
                "description": STRINGS | st.none(),
                "pages": st.lists(st.integers(1, 9), max_size=2) | st.none(),
                "sheet": STRINGS | st.none(),
                "range": STRINGS | st.none(),
                "cache": st.booleans() | st.none(),
            },
        ),
    ),
    max_size=2,
)
ASKED = {
    "expected": EXPECTED | STRINGS | NUMBERS | st.booleans() | st.none() | st.lists(JSON, max_size=2),
    "retrieval_context": st.lists(STRINGS, max_size=2) | st.none(),
    "files": FILES | st.none(),
}
TURN = _with_some(
    {"input": JSON},
    {**ASKED, "evaluators": st.lists(ENTRIES | st.just("..."), max_size=2) | st.none(), "metadata": OBJECTS},
)
CASE_PARTS = {
    "description": STRINGS | st.none(),
    "tags": st.lists(STRINGS, max_size=2) | st.none(),
    "skip": FILLED | st.none(),
    "inputs": OBJECTS | st.none(),
    "metadata": OBJECTS | st.none(),
    "state": OBJECTS | st.none(),
    "final_state": OBJECTS | st.none(),
    "repeat": st.integers(1, 9) | st.none(),
    "timeout": SECONDS | st.none(),
    "x-own": JSON,
}
SCORED = {"evaluators": st.lists(ENTRIES, min_size=1, max_size=2)}
CASE = _with_some({"input": JSON, **SCORED}, {**CASE_PARTS, **ASKED, "turns": st.none()}) | _with_some(
    {"turns": st.lists(TURN.map(lambda turn: {**turn, "evaluators": None}), min_size=1, max_size=2), **SCORED},
    CASE_PARTS,
)
SCENARIO = _with_some(
    {"start": FILLED, "plan": FILLED},
    {
        "persona": FILLED | OBJECTS | st.none(),
        "max_turns": st.integers(1, 1000) | st.none(),
        "stop": FILLED | st.none(),
        "model": FILLED | OBJECTS | st.none(),
        "instructions": st.sampled_from(["", "Be brief.", "{{ stop_signal }}", None]),
        "show_tools": st.booleans() | st.none(),
    },
)
CASE |= _with_some({"scenario": SCENARIO, **SCORED}, {**CASE_PARTS, "turns": st.none()})
DOCUMENTS = _with_some(
    {"cases": st.lists(CASE, min_size=1, max_size=2)},
    {
        "$schema": STRINGS | st.none(),
        "name": FILLED | st.none(),
        "description": STRINGS | st.none(),
        "agent": STRINGS | OBJECTS | st.none(),
        "evaluators": st.lists(ENTRIES, max_size=2) | st.none(),
        "criteria": st.none()
        | _with_some(
            {},
            {
                "trials": st.sampled_from(["all", "any", "majority", "mean", None]),
                "threshold": SHARES | st.none(),
                "pct": st.floats(0.01, 1) | st.none(),
            },
        ),
        "settings": st.none()
        | _with_some(
            {},
            {
                "repeat": st.integers(1, 9) | st.none(),
                "parallel": st.integers(1, 9) | st.none(),
                "timeout": SECONDS | st.none(),
                "evaluator_timeout": SECONDS | st.none(),
                "retries": st.integers(0, 9) | st.none(),
            },
        ),
        "x-own": JSON,
    },
)
"""Documents that the reader takes."""


def _or_nothing(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return strategy.map(dict)


SPECS = st.builds(
    EvaluatorSpec,
    NAMES,
    _or_nothing(st.dictionaries(STRINGS.filter(lambda name: name not in _SETTINGS), JSON, max_size=2)),
    st.none() | st.floats(0, 1),
    st.none() | FILLED,
    report_only=st.booleans(),
    scope=st.sampled_from([None, "turn", "case"]),
    output=st.none() | FILLED,
    timeout=st.none() | SECONDS,
)
SPEC_LISTS = st.lists(SPECS, min_size=1, max_size=2, unique_by=repr).map(tuple)
MATCHERS = (
    st.builds(Equals, JSON.filter(lambda v: not isinstance(v, dict)))
    | st.builds(Equals, st.dictionaries(st.sampled_from(["$a", "b"]), st.integers(), max_size=2))
    | st.builds(Regex, st.sampled_from(["a+", "[0-9]{2}", ""]))
    | st.builds(Approx, st.floats(-1e9, 1e9), st.floats(0, 1), st.floats(0, 1))
    | st.builds(OneOf, st.lists(st.integers(), min_size=1, max_size=3).map(tuple), st.builds(Path.cwd))
    | st.just(Ignore())
)
CALLS = st.builds(
    ExpectedCall,
    FILLED,
    st.none() | st.dictionaries(STRINGS, MATCHERS, max_size=2),
    count=st.integers(1, 3),
    substring=st.booleans(),
    extra_args=st.booleans(),
    result=st.just(UNSET) | JSON.filter(lambda value: not contains_matchers(value)),
)
EXPECTATIONS = st.just(NO_EXPECTATION) | st.builds(
    Expected,
    st.just(UNSET) | JSON,
    contains=st.none() | st.builds(Keywords, WORDS.map(tuple), st.lists(FILLED, max_size=2).map(tuple)),
    tools=st.none() | st.lists(CALLS, max_size=2).map(tuple),
    context=st.none() | st.lists(STRINGS, max_size=2).map(tuple),
)
ATTACHMENTS = st.builds(
    AttachedFile, STRINGS, st.none(), st.none() | STRINGS, st.none() | STRINGS, st.just({}) | st.just({"pages": [1]})
) | st.builds(AttachedFile, st.none(), STRINGS)
TURNS = st.builds(
    Turn,
    JSON,
    EXPECTATIONS,
    evaluators=st.none() | SPEC_LISTS,
    retrieval_context=st.none() | st.lists(STRINGS, max_size=2).map(tuple),
    files=st.lists(ATTACHMENTS, max_size=2).map(tuple),
    metadata=_or_nothing(OBJECTS),
    extra=_or_nothing(OWN),
)
CASES = st.builds(
    Case,
    id=FILLED,
    turns=st.lists(TURNS, min_size=1, max_size=2).map(tuple),
    description=STRINGS,
    tags=st.lists(STRINGS, max_size=2).map(tuple),
    evaluators=st.none() | SPEC_LISTS,
    inputs=st.lists(st.builds(NamedData, STRINGS, JSON), max_size=2, unique_by=lambda item: item.name).map(tuple),
    metadata=_or_nothing(OBJECTS),
    state=_or_nothing(OBJECTS),
    final_state=st.none() | OBJECTS.filter(lambda state: not contains_matchers(state)),
    repeat=st.none() | st.integers(1, 5),
    timeout=st.none() | SECONDS,
    skip=st.none() | FILLED,
    extra=_or_nothing(OWN),
)
SCENARIOS = st.builds(
    Scenario,
    FILLED,
    FILLED,
    st.none() | FILLED | OBJECTS,
    st.integers(1, 1000),
    FILLED,
    st.none() | FILLED | OBJECTS,
    st.sampled_from(["", "Be brief."]),
    st.booleans(),
)
WRITTEN_CASES = CASES


@st.composite
def _some_simulated(draw: st.DrawFn) -> Case:
    case, scenario = draw(WRITTEN_CASES), draw(st.none() | SCENARIOS)
    return case if scenario is None else replace(case, turns=(Turn(scenario.start),), scenario=scenario)


CASES = _some_simulated()


SUITES = st.builds(
    Suite,
    FILLED,
    st.lists(CASES, min_size=1, max_size=2, unique_by=lambda case: case.id).map(tuple),
    evaluators=SPEC_LISTS,
    agent=st.none() | FILLED | OBJECTS.filter(bool),
    criteria=st.builds(
        Criteria,
        st.sampled_from(["all", "any", "majority", "mean"]),
        st.none() | st.floats(0, 1),
        st.floats(0.01, 1),
    ),
    settings=st.builds(
        Settings,
        st.none() | st.integers(1, 5),
        st.none() | st.integers(1, 5),
        st.none() | SECONDS,
        st.none() | SECONDS,
        st.none() | st.integers(0, 5),
    ),
    description=STRINGS,
    extra=_or_nothing(OWN),
)
"""Suites that a native file can say in full."""
