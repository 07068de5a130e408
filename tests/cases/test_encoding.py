"""The store's own encoding of cases: everything comes back, and nothing in it follows a file format."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from native_documents import CASES, MATCHERS

from proctor.base.json_data import to_json
from proctor.base.positions import Position
from proctor.cases.encoding import VERSION, decode_case, decode_matcher, encode_case, encode_matcher
from proctor.cases.identity import case_key_before_simulation
from proctor.cases.matchers import Equals, Fuzzy, Matcher, OneOf, Predicate, Subset
from proctor.cases.scenario import Scenario
from proctor.cases.suite import (
    AttachedFile,
    Case,
    EvaluatorSpec,
    Expected,
    ExpectedCall,
    Keywords,
    NamedData,
    Quarantine,
    ToolMock,
    Turn,
)

THOROUGH = settings(deadline=None, suppress_health_check=list(HealthCheck))


def anywhere(case: Case) -> Case:
    """Without the folder that references start from, which the store does not keep."""

    def freed(matcher: Any) -> Any:
        return replace(matcher, base=None) if hasattr(matcher, "base") else matcher

    def call(each: ExpectedCall) -> ExpectedCall:
        if each.args is None:
            return each
        return replace(each, args={name: freed(matcher) for name, matcher in each.args.items()})

    def turn(each: Turn) -> Turn:
        calls = each.expected.tools
        expected = each.expected if calls is None else replace(each.expected, tools=tuple(map(call, calls)))
        return replace(each, expected=expected)

    return replace(case, turns=tuple(map(turn, case.turns)))


@THOROUGH
@given(CASES)
def test_a_case_comes_back_as_it_was(case: Case) -> None:
    again = decode_case(encode_case(case))
    assert again == anywhere(case)
    assert encode_case(again) == encode_case(case)


@THOROUGH
@given(MATCHERS)
def test_a_matcher_comes_back_as_it_was(matcher: Matcher) -> None:
    assert encode_matcher(decode_matcher(json.loads(json.dumps(encode_matcher(matcher))))) == encode_matcher(matcher)


@pytest.mark.parametrize(
    "matcher",
    [Fuzzy("a"), Subset({"a": {"$regex": "x"}}), OneOf((1, {"$ignore": True})), Predicate("checks.py:fits")],
)
def test_every_kind_of_matcher_comes_back(matcher: Matcher) -> None:
    assert decode_matcher(encode_matcher(matcher)) == matcher


@dataclass(frozen=True)
class Even:
    """A matcher of a user's own."""

    def mismatch(self, actual: Any) -> str | None:
        return None if actual % 2 == 0 else "odd"

    def to_json(self) -> Any:
        return {"$predicate": "numbers.py:is_even"}


def test_a_matcher_of_a_users_own_is_kept_as_the_form_it_gives_itself() -> None:
    case = Case(id="a", turns=(Turn("x", Expected(tools=(ExpectedCall("t", {"n": Even()}),))),))
    again = decode_case(encode_case(case)).turns[0].expected.tools
    assert again == (ExpectedCall("t", {"n": Predicate("numbers.py:is_even")}),)


FULL = Case(
    id="all",
    turns=(
        Turn(
            {"q": 1},
            Expected(
                None,
                contains=Keywords(("a",), ("b",)),
                tools=(
                    ExpectedCall(
                        "t", {"a": Equals(1)}, count=2, substring=True, extra_args=True, result=None, or_earlier=True
                    ),
                ),
                context=("c",),
                state={"n": 1},
            ),
            evaluators=(
                EvaluatorSpec(
                    "A",
                    {"x": 1},
                    0.5,
                    "l",
                    report_only=True,
                    scope="case",
                    output="o",
                    timeout=3.0,
                    output_path="p",
                    retries=2,
                    optional=True,
                    fingerprint="of its code",
                ),
            ),
            retrieval_context=("r",),
            files=(AttachedFile("p", "u", "k", "d", {"pages": [1]}),),
            metadata={"m": 1},
            extra={"x-a": 1},
        ),
    ),
    description="d",
    tags=("t",),
    evaluators=(),
    inputs=(NamedData("n", 1), NamedData("n", 2)),
    metadata={"m": 1},
    state={"s": 1},
    final_state={},
    repeat=2,
    timeout=3.0,
    skip="later",
    extra={"x-b": 2},
    mocks={"tool": (ToolMock(args={"a": Equals(1)}, result=1, error="e", delay=0.5, times=2),)},
    scenario=Scenario("s", "p", {"id": 1}, 3, "stop", "m", "i", True),
    quarantine=Quarantine("r", "2030-01-31", "o"),
    continue_after_failed_turn=True,
)


NOT_STORED = ("position", "implied", "target", "has_generated_id")


def test_no_field_is_forgotten() -> None:
    """Every field of every record is set to something that is not its default, so that a new one fails here."""
    found: set[type] = set()

    def look(value: Any) -> None:
        if isinstance(value, (list, tuple)):
            for item in value:
                look(item)
        elif isinstance(value, dict):
            look(list(value.values()))
        elif hasattr(value, "__dataclass_fields__"):
            found.add(type(value))
            for item in fields(value):
                unset = getattr(value, item.name) == item.default and type(value) is not Equals
                assert not unset or item.name in ("position", "implied", "target", "has_generated_id"), (
                    type(value),
                    item.name,
                )
                look(getattr(value, item.name))

    look(FULL)
    assert {Case, Turn, Expected, ExpectedCall, Keywords, EvaluatorSpec, AttachedFile, ToolMock, Scenario} <= found
    assert decode_case(encode_case(FULL)) == FULL


def test_what_is_at_its_default_is_left_out() -> None:
    assert json.loads(encode_case(Case(id="a", turns=(Turn("hi"),)))) == {
        "v": VERSION,
        "id": "a",
        "turns": [{"input": "hi"}],
    }


def test_keys_that_a_newer_program_added_are_ignored() -> None:
    data = json.loads(encode_case(FULL)) | {"later": 1}
    data["turns"][0]["later"] = data["turns"][0]["expected"]["later"] = data["scenario"]["later"] = {"x": 1}
    assert decode_case(json.dumps(data)) == FULL


def test_a_case_that_moved_in_its_file_is_the_same_case() -> None:
    here = Position(Path("suite.yaml"), 7)
    [turn] = FULL.turns
    specs = tuple(replace(spec, position=here, argument_positions={"x": here}) for spec in turn.evaluators or ())
    moved = replace(FULL, position=here, turns=(replace(turn, evaluators=specs),))
    assert encode_case(moved) == encode_case(FULL)
    assert case_key_before_simulation(moved) == case_key_before_simulation(FULL)
    assert "suite.yaml" not in json.dumps(to_json([moved, specs]))


def test_a_conversation_that_came_about_has_the_key_of_its_plan() -> None:
    planned = Case(id="a", turns=(Turn("hi"),), scenario=Scenario("hi", "buy"))
    held = replace(planned, turns=(Turn("hi"), Turn("one, please")))
    assert encode_case(held) != encode_case(planned)
    assert case_key_before_simulation(held) == case_key_before_simulation(planned)


@pytest.mark.process
def test_reading_stored_cases_loads_no_reader_of_files(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from proctor.results.store.store import Store;"
        f"Store(Path({str(tmp_path)!r})).close();"
        "print([name for name in sys.modules if name.startswith('proctor.cases.formats')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
