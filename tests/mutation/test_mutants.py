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
    """The first mutant of each kind."""
    found: dict[str, Mutant] = {}
    for mutant in made(*replies, **options).mutants:
        found.setdefault(mutant.kind, mutant)
    return found


def texts(kind: str, *replies: Reply, **options: Any) -> list[str]:
    """The answers of all mutants of a kind."""
    return [mutant.replies[mutant.turn].text for mutant in made(*replies, **options).mutants if mutant.kind == kind]


ORDER = Reply(
    "Order A-17 for Miller costs $249.50 and is not late: it ships on 2026-05-02 within 5 days.",
    tool_calls=(
        ToolCall("find_order", {"order_id": "A-17", "day": "2026-05-01", "note": "gift wrap"}, {"total": 249.5}),
        ToolCall("refund", {"amount": 249.5}, {"ok": True}),
    ),
    usage=Usage(100, 20),
    duration_ms=1500.0,
)


def test_every_kind_that_an_answer_allows_is_made() -> None:
    kinds = {mutant.kind for mutant in made(ORDER).mutants}

    missing = MUTANT_KINDS.keys() - kinds
    assert missing == {
        "keyword-denied", "field-missing", "field-added", "flag-flipped", "value-changed", "forbidden-tool",
        "sentence-dropped", "item-dropped", "item-added", "negation-inserted", "roles-swapped", "hedge-dropped",
        "argument-flag", "argument-source",
    }  # fmt: skip


def test_every_place_is_tried() -> None:
    text = "It costs $12 today and $25 tomorrow."

    assert len(texts("number-changed", Reply(text))) == 4
    assert {"It costs $2 today and $25 tomorrow.", "It costs $12 today and $5 tomorrow."} <= set(
        texts("digit-deleted", Reply(text))
    )
    assert len(texts("digit-inserted", Reply(text))) == 4
    assert texts("entities-swapped", Reply(text)) == ["It costs $25 today and $12 tomorrow."]


def test_places_that_are_too_many_are_sampled_evenly_and_counted() -> None:
    text = " ".join(f"Item {number} costs ${number}.75." for number in range(100, 160))

    every, some = made(Reply(text), most=100_000), made(Reply(text), most=60)

    assert len(some.mutants) <= 60
    assert every.left_out == {}
    assert sum(some.left_out.values()) >= len(every.mutants) - len(some.mutants) > 1000
    assert {mutant.kind for mutant in some.mutants} == {mutant.kind for mutant in every.mutants}
    changed = [text.index(mutant.before.strip("…")[:20]) for mutant in some.mutants if mutant.kind == "number-changed"]
    assert changed[0] < len(text) / 3
    assert changed[-1] > 2 * len(text) / 3


def test_many_trials_give_the_same_mutants_whatever_their_order() -> None:
    def all_of(numbers: Sequence[int]) -> dict[int, Any]:
        return {
            number: made(Reply(f"It costs ${number}.50 in 12 days."), most=4, seed=3, case_id=f"case-{number}")
            for number in numbers
        }

    forwards = all_of(range(300))
    shuffled = random.Random(1).sample(range(300), 300)

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

    found = by_kind(Reply(text), most=200)

    assert len(found["number-changed"].replies[0].text) == len(text)
    assert len(found["answer-truncated"].replies[0].text) < 20_000
    assert all(len(mutant.before) <= 200 for mutant in found.values())


def test_an_answer_that_is_data_stays_data_but_for_one_place() -> None:
    answer = {"total": 249.5, "city": "in Lisbon", "ok": True, "stops": ["Porto", "Faro"]}
    found = by_kind(Reply(structured=answer))

    assert found["field-missing"].replies[0].structured.keys() < answer.keys()
    assert found["field-added"].replies[0].structured.keys() > answer.keys()
    assert found["flag-flipped"].replies[0].structured == {**answer, "ok": False}
    assert found["item-dropped"].replies[0].structured == {**answer, "stops": ["Faro"]}
    assert len(found["item-added"].replies[0].structured["stops"]) == 3
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
    ("kind", "text", "mutants"),
    [
        ("date-changed", "on 2026-05-02.", None),
        ("date-changed", "on March 3, 2026.", None),
        ("date-changed", "am 3. March 2026", None),
        ("date-changed", "open on Monday", None),
        ("unit-changed", "over 36 months", ["over 36 years"]),
        ("unit-changed", "costs $5", ["costs €5"]),
        ("unit-changed", "70 million EUR", ["70 billion EUR", "70 million USD"]),
        ("unit-changed", "400 mg per day", ["400 g per day", "400 mg per week"]),
        ("name-changed", "it goes to Lisbon", None),
        ("negation-removed", "You cannot go", ["You can go"]),
        ("negation-removed", "it isn't late", ["it is late"]),
        ("negation-inserted", "You are eligible", ["You are not eligible"]),
        ("negation-inserted", "shipped", ["not shipped"]),
        ("antonym-used", "It is open before noon", ["It is closed before noon", "It is open after noon"]),
        ("entities-swapped", "Greenleaf acquired Delta Foods.", ["Delta Foods acquired Greenleaf."]),
        ("roles-swapped", "The buyer pays.", ["The seller pays."]),
        ("roles-swapped", "It goes from Rome to Oslo.", ["It goes to Rome from Oslo."]),
        ("hedge-dropped", "It may rain.", ["It will rain."]),
        ("hedge-dropped", "Free, unless you cancel.", ["Free."]),
        ("item-dropped", "Bring: a tent, a map and a stove.", ["Bring: a tent, a map.", "Bring: a tent and a stove."]),
        ("item-dropped", "- tent\n- map\n", ["- map\n", "- tent\n"]),
        ("sentence-dropped", "It is open. It costs nothing.", ["It costs nothing.", "It is open."]),
    ],
)
def test_a_small_change_takes_away_what_was_right(kind: str, text: str, mutants: list[str] | None) -> None:
    found = texts(kind, Reply(text))

    assert found
    assert text not in found
    if mutants is not None:
        assert found == mutants


@pytest.mark.parametrize("text", ["", "Hello there", "no figures"])
def test_what_is_not_there_is_not_changed(text: str) -> None:
    kinds = {mutant.kind for mutant in made(Reply(text)).mutants}
    assert not kinds & {"number-changed", "digit-inserted", "digit-deleted", "date-changed", "unit-changed"}


def test_a_wrong_sentence_is_added_at_every_place() -> None:
    text = "It is open. It costs 5 euros."

    found = texts("sentence-added", Reply(text))

    assert any(item.startswith(text) for item in found)
    assert any(item.endswith(text) for item in found)
    assert any(item.startswith("It is open. ") and item.endswith(" It costs 5 euros.") for item in found)


def test_a_change_that_means_the_same_is_not_a_mutant() -> None:
    assert "It costs 249.5 euros." not in texts("digit-deleted", Reply("It costs 249.50 euros."))
    assert text_changes.same_text("It costs 1,498.50 EUR", "it costs  1498.5 EUR.")
    others = Material((("other", "  it COSTS 5.0 euros"),), ())
    case = Case(id="case", turns=(Turn("?"),))
    found = mutants_of(case, "suite", 1, (Reply("It costs 5 euros."),), (), others, seed=0, limit=1000)
    assert "other-answer" not in {mutant.kind for mutant in found.mutants}


def test_an_argument_comes_from_the_wrong_source() -> None:
    transfer = ToolCall("transfer", {"from": "savings", "to": "checking", "amount": 120.0})
    balance = ToolCall("balance", {"account": "savings"}, {"balance": 2000.0})

    found = [m for m in made(Reply("Done.", tool_calls=(balance, transfer))).mutants if m.kind == "argument-source"]

    arguments = [mutant.replies[0].tool_calls[1].arguments for mutant in found]
    assert {**transfer.arguments, "from": "checking"} in arguments
    assert {**transfer.arguments, "amount": 2000.0} in arguments
    assert all(mutant.replies[0].tool_calls[1].name == "transfer" for mutant in found)


def test_an_argument_of_the_first_turn_is_used_in_the_second() -> None:
    first = Reply("ok", tool_calls=(ToolCall("find", {"id": "A-17"}),))
    second = Reply("ok", tool_calls=(ToolCall("refund", {"id": "A-18"}),))

    found = [mutant for mutant in made(first, second).mutants if mutant.kind == "argument-source"]

    assert [mutant.replies[1].tool_calls[0].arguments for mutant in found] == [{"id": "A-17"}]


def test_the_page_on_mutation_testing_names_every_kind() -> None:
    page = (ROOT / "docs" / "mutation-testing.md").read_text(encoding="utf-8")
    assert [kind for kind in MUTANT_KINDS if f"`{kind}`" not in page] == []
