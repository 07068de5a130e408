"""Which mutants are made of an answer: the same every time, never the answer itself, never what a case allows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repository import ROOT

from proctor import Case, Reply, ToolCall, Turn
from proctor.agents.reply import Usage
from proctor.cases.formats.native.parts import MUTANT_KINDS
from proctor.cases.suite import EvaluatorSpec, Expected, ExpectedCall, Keywords, NamedData
from proctor.mutation import text_changes
from proctor.mutation.mutants import Material, Mutant, TrialMutants, mutants_of

MATERIAL = Material((("other", "Something else entirely."),), ("find_order", "refund", "send_mail"))


def made(
    *replies: Reply,
    turns: Sequence[Turn] | None = None,
    specs: Sequence[EvaluatorSpec] = (),
    most: int = 1000,
    seed: int = 0,
    case_id: str = "case",
) -> TrialMutants:
    case = Case(id=case_id, turns=tuple(turns or [Turn("What about order A-17?") for _ in replies]))
    return mutants_of(case, "suite", 1, replies, specs, MATERIAL, seed=seed, limit=most)


def by_kind(*replies: Reply, **options: Any) -> dict[str, Mutant]:
    return {mutant.kind: mutant for mutant in made(*replies, **options).mutants}


ORDER = Reply(
    "Order A-17 for Miller costs $249.50 and is not late: it ships on 2026-05-02 within 5 days.",
    tool_calls=(
        ToolCall("find_order", {"order_id": "A-17", "day": "2026-05-01", "note": "gift wrap"}, {"total": 249.5}),
        ToolCall("refund", {"amount": 249.5}, {"ok": True}),
    ),
    usage=Usage(100, 20),
    duration_ms=1500.0,
)


def test_every_kind_that_an_answer_allows_is_made_once() -> None:
    kinds = [mutant.kind for mutant in made(ORDER).mutants]

    assert len(kinds) == len(set(kinds))
    missing = MUTANT_KINDS.keys() - set(kinds)
    assert missing == {"keyword-denied", "field-missing", "call-added", "forbidden-tool"}


def test_kinds_come_again_with_other_changes_if_more_mutants_are_asked_for() -> None:
    case = Case(id="case", turns=(Turn("What about order A-17?"),))
    once = made(ORDER).mutants
    more = mutants_of(case, "suite", 1, (ORDER,), (), MATERIAL, seed=0, limit=1000, repeat_kinds=True).mutants

    assert len(more) > len(once)
    assert [mutant for mutant in more if mutant.variant == 0] == list(once)
    assert {mutant.kind for mutant in more} == {mutant.kind for mutant in once}
    assert len({mutant.name for mutant in more}) == len(more)
    replies = [mutant.replies for mutant in more]
    assert all(reply not in replies[:at] for at, reply in enumerate(replies))


def test_two_thousand_trials_give_the_same_mutants_whatever_their_order() -> None:
    def all_of(numbers: Sequence[int]) -> dict[int, Any]:
        return {
            number: made(Reply(f"It costs ${number}.50 in 12 days."), most=4, seed=3, case_id=f"case-{number}")
            for number in numbers
        }

    forwards = all_of(range(2000))
    shuffled = random.Random(1).sample(range(2000), 2000)

    assert all_of(shuffled) == forwards
    assert made(ORDER, seed=3) != made(ORDER, seed=4)


def test_a_kind_changes_the_same_thing_however_the_case_is_improved() -> None:
    turn = Turn("What about order A-17?", Expected(contains=Keywords(all=("$249.50",)), tools=()))

    plain, improved = (
        by_kind(ORDER),
        by_kind(ORDER, turns=[turn], specs=[EvaluatorSpec("ForbiddenTools", {"tools": ["x"]})]),
    )

    assert {kind: improved[kind].replies for kind in plain} == {kind: item.replies for kind, item in plain.items()}


def test_no_mutant_equals_the_answer_or_another_mutant() -> None:
    empty = made(Reply(""))
    assert all(mutant.replies != (Reply(""),) for mutant in empty.mutants)
    assert "answer-emptied" not in {mutant.kind for mutant in empty.mutants}

    refusal = by_kind(Reply("I can't help with that."))
    assert "answer-refused" not in refusal

    echo = by_kind(Reply("What about order A-17?"))
    assert "question-repeated" not in echo


@given(st.text(max_size=80), st.integers(0, 50))
def test_whatever_was_said_a_mutant_differs_from_it(text: str, seed: int) -> None:
    for mutant in made(Reply(text), seed=seed).mutants:
        assert mutant.replies != (Reply(text),)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
                    max_leaves=8))  # fmt: skip
def test_an_answer_of_any_shape_can_be_mutated(data: Any) -> None:
    for mutant in made(Reply(structured=data)).mutants:
        assert mutant.replies[0] != Reply(structured=data)


def test_of_a_very_long_answer_a_place_near_the_beginning_is_changed() -> None:
    text = "Order 17 for Miller is not late. " * 20_000

    found = by_kind(Reply(text))

    assert len(found["number-changed"].replies[0].text) == len(text)
    assert len(found["answer-truncated"].replies[0].text) < 20_000
    assert all(len(mutant.before) <= 200 for mutant in found.values())


def test_an_answer_that_is_data_stays_data_but_for_one_place() -> None:
    found = by_kind(Reply(structured={"total": 249.5, "city": "in Lisbon", "ok": True}))

    assert found["field-missing"].replies[0].structured.keys() < {"total", "city", "ok"}
    changed = found["number-changed"].replies[0].structured
    assert isinstance(changed["total"], float)
    assert changed["total"] != 249.5
    assert changed["city"] == "in Lisbon"


def test_named_outputs_are_mutated_where_evaluators_see_them() -> None:
    found = by_kind(Reply("shown", outputs=(NamedData("answer", "It costs $12.50"),)))

    (output,) = found["number-changed"].replies[0].outputs
    assert output.name == "answer"
    assert output.value != "It costs $12.50"


def test_of_a_conversation_one_turn_is_mutated_and_its_number_is_shown() -> None:
    first, second = Reply("It costs $12.50."), Reply("It ships in 5 days.")

    mutants = made(first, second).mutants

    assert {mutant.turn for mutant in mutants} == {0, 1}
    for mutant in mutants:
        assert mutant.replies[1 - mutant.turn] == (first, second)[1 - mutant.turn]
        assert f"/{mutant.turn + 1}/" in mutant.name
    assert len({mutant.name for mutant in mutants}) == len(mutants)


def test_a_turn_that_failed_is_left_alone() -> None:
    assert {mutant.turn for mutant in made(Reply("It costs $12.50."), Reply("", error="timed out")).mutants} == {0}


def test_fewer_mutants_are_of_as_many_kinds_as_there_can_be() -> None:
    kinds = [mutant.kind for mutant in made(ORDER, ORDER, most=10).mutants]

    assert len(kinds) == len(set(kinds)) == 10


def test_what_the_tools_gave_is_left_out_of_an_answer_that_ignores_it() -> None:
    reply = Reply(
        "I looked. The total is $1,498.50. Anything else?",
        tool_calls=(ToolCall("sum", {"of": 7}, {"total": 1498.5}),),
    )

    assert by_kind(reply)["result-ignored"].replies[0].text == "I looked. Anything else?"


def test_an_argument_that_an_expectation_takes_anyhow_is_passed_over() -> None:
    call = ToolCall("find", {"id": "A-17", "limit": 20})
    ignored = ExpectedCall("find", {"id": "A-17", "limit": {"$ignore": True}})

    result = made(Reply("ok", tool_calls=(call,)), turns=[Turn("?", Expected(tools=(ignored,)))])

    assert "argument-number" not in {mutant.kind for mutant in result.mutants}
    assert "argument-number" in result.allowed
    missing = next(mutant for mutant in result.mutants if mutant.kind == "argument-missing")
    assert "limit" in missing.replies[0].tool_calls[0].arguments or "limit is missing" in missing.after


def test_a_tool_that_is_forbidden_is_called() -> None:
    found = by_kind(ORDER, specs=[EvaluatorSpec("ForbiddenTools", {"tools": ["delete_*"]})])

    assert found["forbidden-tool"].replies[0].tool_calls[-1].name == "delete_all"


@pytest.mark.parametrize(
    ("change", "text", "wrong"),
    [
        (text_changes.change_date, "on 2026-05-02.", "2026-05-02"),
        (text_changes.change_date, "on March 3, 2026.", "March"),
        (text_changes.change_date, "am 3. March 2026", "March"),
        (text_changes.change_unit, "over 36 months", "months"),
        (text_changes.change_unit, "costs $5", "$"),
        (text_changes.change_name, "it goes to Lisbon", "Lisbon"),
        (text_changes.change_negation, "You cannot go", "cannot"),
        (text_changes.change_negation, "it isn't late", "n't"),
        (text_changes.change_negation, "You are eligible", "are eligible"),
    ],
)
def test_a_small_change_takes_away_what_was_right(change: text_changes.TextChange, text: str, wrong: str) -> None:
    edit = change(text, random.Random(0))

    assert edit is not None
    assert wrong not in edit.apply_to(text)


@pytest.mark.parametrize("text", ["", "Hello there", "no figures"])
def test_what_is_not_there_is_not_changed(text: str) -> None:
    changes = (text_changes.change_number, text_changes.change_date, text_changes.change_unit)
    assert [change(text, random.Random(0)) for change in changes] == [None, None, None]


def test_the_page_on_mutation_testing_names_every_kind() -> None:
    page = (ROOT / "docs" / "mutation-testing.md").read_text(encoding="utf-8")
    assert [kind for kind in MUTANT_KINDS if f"`{kind}`" not in page] == []
