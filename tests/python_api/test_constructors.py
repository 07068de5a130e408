"""`Case`, `Suite` and their parts take what a suite file takes, in its words, and say at once what is wrong."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import proctor
from proctor import (
    Case,
    Contains,
    EvaluatorSpec,
    Expected,
    ExpectedCall,
    InvalidSuite,
    Keywords,
    LLMJudge,
    Suite,
    Turn,
)


def polite(e: Any) -> bool:
    return "please" in e.output


def shout(question: str) -> str:
    return f"{question}!"


def test_every_form_of_a_case_is_the_same_case() -> None:
    expected = Expected("yes", contains=Keywords(any=("a",)), tools=(ExpectedCall("t", {"x": 1}),))
    case = Case(id="q", turns=(Turn("q", expected),))
    mapping: Any = {"output": "yes", "contains": ["a"], "tools": [{"name": "t", "args": {"x": 1}}]}
    assert Case("q", mapping) == case
    assert Case("q", {"output": "yes", "contains": "a", "tools": (ExpectedCall("t", {"x": 1}),)}) == case
    assert Case(input="q", expected=Expected("yes", contains={"any": "a"}, tools=[mapping["tools"][0]])) == case
    assert Case(turns=["q"]).turns == (Turn("q"),)
    assert Suite("s", [{"input": "q", "expected": mapping}]).cases == (case,)  # type: ignore[typeddict-item]
    assert Suite.from_dict({"name": "s", "cases": [{"input": "q", "expected": mapping}]}).cases == (case,)
    assert (case.input, case.expected) == ("q", expected)


def test_a_case_in_python_is_the_case_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(
        "name: shop\nevaluators: [{Contains: {any: [shipped]}}]\ncases:\n"
        "  - {input: Where is A-17?, expected: {contains: {all: [shipped]}}, tags: [smoke], timeout: 3}\n"
        "  - {id: two, turns: [Hi, {input: And now?, expected: done}], evaluators: ['...', ExactMatch]}\n"
        "  - {input: Pay., expected: Paid., mocks: {pay: {result: ok}}, final_state: {paid: true}}\n"
    )
    suite = Suite(
        "shop",
        [
            Case("Where is A-17?", {"contains": {"all": ["shipped"]}}, tags=["smoke"], timeout=3),
            Case(id="two", turns=["Hi", {"input": "And now?", "expected": "done"}], evaluators=[..., "ExactMatch"]),
            Case("Pay.", "Paid.", mocks={"pay": {"result": "ok"}}, final_state={"paid": True}),
        ],
        evaluators=[Contains(any=("shipped",))],
    )
    assert Suite.load(path) == suite
    suite.save(tmp_path / "again.json")
    assert Suite.load(tmp_path / "again.json") == suite
    assert Suite.from_dict(suite.to_dict()) == suite


def test_ids_come_from_the_input_and_are_unique() -> None:
    questions: list[Any] = ["Where is my order A-17?", "Where is my order A-17?", {"q": 1}, "x" * 99]
    suite = Suite("s", [Case(question, "x") for question in questions])
    assert [case.id for case in suite.cases][:2] == ["where-is-my-order-a-17", "where-is-my-order-a-17-2"]
    assert all(re.fullmatch(r"[a-z0-9-]+-[0-9a-f]{6}", case.id) for case in suite.cases[2:])


@pytest.mark.parametrize(
    ("accepts", "value", "wrong"),
    [
        (re.compile("A-[0-9]+"), "A-17", "B"),
        (int, 3, "3"),
        (lambda x: x <= 20, 20, 21),
        (mock.ANY, object(), None),
        (pytest.approx(0.3), 0.1 + 0.2, 0.4),
        ({"deep": [int, ...]}, {"deep": [1, "x"]}, {"deep": ["1", "x"]}),
    ],
)
def test_arguments_of_calls_match_by_pythons_own_means(accepts: Any, value: Any, wrong: Any) -> None:
    call = ExpectedCall("t", {"x": accepts})
    assert call.args is not None
    assert call.args["x"].mismatch(value) is None
    assert accepts is mock.ANY or call.args["x"].mismatch(wrong)


def test_replacing_a_field_keeps_the_rest() -> None:
    suite = Suite("s", [Case("q", "x", metadata={"m": 1})], evaluators=[polite])
    changed = dataclasses.replace(suite, agent=shout)
    assert changed.cases == suite.cases
    assert changed.agent is shout
    assert dataclasses.replace(suite.cases[0], repeat=2).repeat == 2


def test_a_case_knows_its_line() -> None:
    case = Case("q", "x")
    assert case.position is not None
    assert case.position.path.name == "test_constructors.py"


MISTAKES: list[tuple[Any, type[Exception], str]] = [
    (
        lambda: Case("q", {"contans": ["x"]}),
        InvalidSuite,
        "Case('q'): expected has no key 'contans'; did you mean 'contains'?",
    ),
    (lambda: Case("q", expect="x"), TypeError, "Case() has no argument 'expect'; did you mean 'expected'?"),
    (lambda: Case(expected="x"), TypeError, 'Case() needs an input, turns or a scenario: Case("Where is A-17?")'),
    (
        lambda: Case("q", turns=["a"]),
        InvalidSuite,
        "Case('q'): give input or turns, not both; each turn has its own input",
    ),
    (lambda: Suite("s", Case("q", "x")), TypeError, "Suite('s'): cases must be a list; write [Case(...)]"),
    (lambda: Suite("s", ["q"]), InvalidSuite, "Suite('s'): cases[0] is text; write Case(\"q\", expected=...)"),
    (
        lambda: Suite("s", [Case("a", "x", id="lost"), Case("b", "x"), Case("c", "x", id="lost")]),
        InvalidSuite,
        "Suite('s'): cases[0] and cases[2] have the same id 'lost'",
    ),
    (
        lambda: Suite("s", [Case("q", "x")], agent=3),
        InvalidSuite,
        "Suite('s'): agent is 3; use a function, an object of a supported framework, 'app.py:agent' or a URL",
    ),
    (
        lambda: Suite("s", [Case("q")], evaluators=[3]),
        InvalidSuite,
        "Suite('s'): evaluators[0] is 3; use a function, an instance such as Contains(any=[\"a\"]), or a name",
    ),
    (
        lambda: proctor.run({"cases": [{"inptu": "q"}]}),
        InvalidSuite,
        "cases[0] has no key 'inptu'; did you mean 'input'?",
    ),
    (
        lambda: Suite("s", [Case("q", "x")]).run(),
        InvalidSuite,
        "suite 's' has no agent; write Suite('s', agent=...) or suite.run(agent)",
    ),
    (
        lambda: Suite("s", [Case("q")]).run(shout),
        InvalidSuite,
        "suite 's', case 'q': nothing scores it; give it expected=... or evaluators=[...]",
    ),
    (
        lambda: Suite("s", [Case("q", evaluators=["Contians"])]).run(shout),
        InvalidSuite,
        "suite 's': no evaluator is called 'Contians'; did you mean 'Contains'?",
    ),
    (
        lambda: Suite("s", [Case("q")], evaluators=[lambda outputs, expected: True]).run(shout),
        InvalidSuite,
        "there is no 'outputs'; did you mean 'output'? Take one Evaluable, or any of: input, output,",
    ),
    (lambda: LLMJudge(), TypeError, "LLMJudge() needs 'rubric': LLMJudge("),
    (lambda: Contains(any=["a"], threshold=80), ValueError, "threshold must be between 0 and 1, not 80"),
    (lambda: Contains(eny=["a"]), TypeError, "Contains() has no argument 'eny'; did you mean 'any'?"),
    (
        lambda: Suite("s", [Case("q", "x")], agent=shout).run(repeats=3),
        TypeError,
        "Suite.run() has no argument 'repeats'; did you mean 'repeat'?",
    ),
    (
        lambda: Suite("s", [Case("q", "x")]).run(shout, arms={"a": shout}),
        TypeError,
        "run() takes an agent or arms, not both",
    ),
    (
        lambda: Suite("s", [Case("q")], evaluators=[lambda output: True]).to_dict(),
        InvalidSuite,
        "Suite('s').to_dict: evaluators[0] is a lambda, which a file cannot name; move it to a module: "
        "'checks.py:polite'",
    ),
    (lambda: Case("q", timeout=-1), InvalidSuite, "Case('q'): timeout must be more than 0 seconds, not -1"),
    (
        lambda: Turn("q", {"tools": [{"nme": "x"}]}),
        InvalidSuite,
        "expected.tools[0] has no key 'nme'; did you mean 'name'?",
    ),
    (lambda: Expected(contains=[]), InvalidSuite, "Expected(): expected.contains is empty; add at least one word"),
]


@pytest.mark.parametrize(("mistake", "kind", "message"), MISTAKES)
def test_a_mistake_says_what_to_write(mistake: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        mistake()


def test_a_problem_that_shows_later_names_the_line_of_the_case() -> None:
    with pytest.raises(InvalidSuite, match=r"test_constructors\.py:\d+: suite 's', case 'q': nothing scores it"):
        Suite("s", [Case("q")]).run(shout)


def test_an_expected_output_that_nothing_compares_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="suite 's', case 'q': no evaluator looks at its expected output"):
        Suite("s", [Case("q", "x")], evaluators=[lambda output: True]).run(shout)


def test_a_wrong_answer_fails_whatever_the_suite_is_scored_by() -> None:
    suite = Suite("s", [Case("q", {"contains": "shipped"})], agent=shout, evaluators=[lambda output: True])
    assert not suite.run()


@pytest.mark.parametrize(
    ("old", "message"),
    [
        (lambda: Case("one", (Turn("q", "x"),)), "Case(id, turns) is now Case(id=..., turns=...)"),
        (lambda: Expected(keywords=Keywords(any=("a",))), "Expected(keywords=...) is now Expected(contains=...)"),
        (lambda: Keywords(any_of=("a",)), "Keywords(any_of=...) is now Keywords(any=...)"),
        (lambda: ExpectedCall("t", arguments={"x": 1}), "ExpectedCall(arguments=...) is now ExpectedCall(args=...)"),
        (lambda: Suite("s", [Case("q", "x")], agents={"a": shout}), "Suite(agents=...) is now Suite(arms=...)"),
    ],
)
def test_old_words_work_with_a_warning(old: Any, message: str) -> None:
    with pytest.warns(DeprecationWarning, match=re.escape(message)):
        assert old() is not None


def test_a_shipped_evaluator_takes_the_settings_of_its_score() -> None:
    [spec] = Suite("s", [], evaluators=[Contains(any=["a"], threshold=0.2, report_only=True, name="words")]).evaluators
    assert spec == EvaluatorSpec("Contains", {"any": ["a"]}, threshold=0.2, label="words", report_only=True)


@pytest.mark.parametrize("kind", [Case, Turn, Expected, Keywords, ExpectedCall, Suite])
def test_constructors_take_every_field_so_that_replace_works(kind: Any) -> None:
    assert {item.name for item in dataclasses.fields(kind)} <= inspect.signature(kind).parameters.keys()


def test_a_single_case_can_be_run() -> None:
    assert proctor.run(Case("q", "q!"), shout)


def test_a_missing_or_misplaced_argument_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"Suite\(\) needs 'name'"):
        Suite(cases=[Case("q", "x")])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Case\(\) has no argument 'contains'; write expected=\{\"contains\": ...\}"):
        Case("q", contains="x")  # type: ignore[call-arg]


def test_ids_that_were_given_stay_and_generated_ones_make_way_for_them() -> None:
    rows: list[Any] = [
        {"input": "lost", "expected": "a"},
        {"input": "Lost?", "expected": "b"},
        {"input": "c", "expected": "c", "id": "lost"},
        {"input": "d", "expected": "d", "id": "lost-2"},
    ]
    expected = ["lost-3", "lost-4", "lost", "lost-2"]
    assert [case.id for case in Suite("s", [Case(**row) for row in rows]).cases] == expected
    assert [case.id for case in Suite.from_dict({"name": "s", "cases": rows}).cases] == expected
    with pytest.raises(InvalidSuite, match=r"cases\[0\] and cases\[2\] have the same id 'lost'"):
        Suite("s", [Case("a", "a", id="lost"), Case("lost", "b"), Case("c", "c", id="lost")])


def test_old_names_of_an_evaluators_arguments_warn_at_the_line_that_uses_them() -> None:
    with pytest.warns(DeprecationWarning, match=r"Contains\(any_of=...\) is now Contains\(any=...\)") as warned:
        assert Contains(any_of=["a"]) == Contains(any=["a"])  # type: ignore[call-arg]
    assert warned[0].filename == __file__


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"repeat": "3"}, "repeat must be a whole number, not '3'"),
        ({"parallel": 1.5}, "parallel must be a whole number, not 1.5"),
        ({"timeout": "10"}, "timeout must be a number of seconds, not '10'"),
    ],
)
def test_a_limit_of_the_wrong_type_is_named(limit: Any, message: str) -> None:
    with pytest.raises(proctor.UsageError, match=message):
        Suite("s", [Case("q", "q!")], agent=shout).run(**limit)


def test_unions_of_types_and_any_are_arguments_of_expected_calls() -> None:
    args = ExpectedCall("f", {"optional": int | None, "any": Any}).args or {}
    assert [args["optional"].mismatch(value) is None for value in (1, None, "1")] == [True, True, False]
    assert args["any"].mismatch({"x": 1}) is None
