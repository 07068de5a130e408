from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.agents.reply import ToolCall
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation
from proctor.evaluators.tools.steps import SAME_TOOL_WORTH, StepMatches, align, optional_worth
from proctor.evaluators.tools.trajectory import Trajectory


def calls(*names: str) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(name) for name in names)


def judged(trajectory: Trajectory, *made: ToolCall) -> Evaluation:
    return trajectory(Evaluable(tool_calls=tuple(made)))


REFUND = [
    {"id": "find", "name": "lookup", "args": {"order": 7}},
    {"id": "pay", "name": "refund", "args": {"order": 7, "amount": 12}, "after": "find"},
    {"name": "notify", "optional": True, "after": "pay"},
]


def test_steps_may_come_in_any_order_that_keeps_what_must_come_first_first() -> None:
    diamond = Trajectory(
        [
            {"id": "a", "name": "a"},
            {"id": "b", "name": "b", "after": "a"},
            {"id": "c", "name": "c", "after": "a"},
            {"name": "d", "after": ["b", "c"]},
        ]
    )
    assert judged(diamond, *calls("a", "b", "c", "d")).score == 1.0
    assert judged(diamond, *calls("a", "c", "b", "d")).score == 1.0
    early = judged(diamond, *calls("a", "b", "d", "c"))
    assert early.score == 0.0
    assert "out of order" in early.reasoning


def test_a_missing_step_is_told_with_what_it_comes_after() -> None:
    found = judged(Trajectory(REFUND), ToolCall("lookup", {"order": 7}))
    assert found.score == 0.0
    assert found.reasoning == "missing refund(order=7, amount=12) after lookup"


def test_a_wrong_argument_is_told_as_that_and_earns_its_share() -> None:
    made = (ToolCall("lookup", {"order": 7}), ToolCall("refund", {"order": 7, "amount": 10}))
    found = judged(Trajectory(REFUND, partial=True), *made)
    assert found.score == pytest.approx(0.75)
    assert "refund: amount" in found.reasoning
    assert "10" in found.reasoning and "12" in found.reasoning


def test_an_optional_step_may_be_left_out_but_not_come_too_early() -> None:
    lookup, refund = ToolCall("lookup", {"order": 7}), ToolCall("refund", {"order": 7, "amount": 12})
    assert judged(Trajectory(REFUND), lookup, refund).score == 1.0
    assert judged(Trajectory(REFUND), lookup, refund, ToolCall("notify")).score == 1.0
    strict = Trajectory(REFUND, extra=False)
    assert judged(strict, ToolCall("notify"), lookup, refund).score == 0.0


def test_extra_calls_are_named_and_counted_where_they_are_not_allowed() -> None:
    found = judged(Trajectory(["a"], extra=False), *calls("search", "a", "search"))
    assert (found.score, found.reasoning) == (0.0, "extra search() ×2")
    assert judged(Trajectory(["a"]), *calls("search", "a", "search")).score == 1.0


def test_any_of_several_calls_will_do() -> None:
    either = Trajectory([{"any_of": [{"name": "email", "args": {"to": "ann"}}, "sms"]}])
    assert judged(either, ToolCall("sms")).score == 1.0
    assert judged(either, ToolCall("email", {"to": "ann"})).score == 1.0
    assert judged(either, ToolCall("email", {"to": "bob"})).score == 0.0
    assert "email(to='ann') or sms" in judged(either).reasoning


def test_a_step_can_be_repeated_within_bounds() -> None:
    repeated = Trajectory(
        [{"id": "s", "name": "search", "repeat": {"at_least": 2, "at_most": 3}}, {"name": "answer", "after": "s"}],
        extra=False,
    )
    assert judged(repeated, *calls("search", "search", "answer")).score == 1.0
    assert judged(repeated, *calls("search", "search", "search", "answer")).score == 1.0
    assert judged(repeated, *calls("search", "answer")).score == 0.0
    assert judged(repeated, *calls("search", "search", "search", "search", "answer")).score == 0.0
    assert judged(repeated, *calls("search", "search", "answer", "search")).score == 0.0


def test_a_forbidden_call_fails_whatever_else_was_done() -> None:
    careful = Trajectory(["a"], forbid=["delete_*", {"name": "pay", "args": {"amount": {"$one_of": [500, 1000]}}}])
    assert judged(careful, *calls("a", "delete_user")).score == 0.0
    assert judged(careful, ToolCall("a"), ToolCall("pay", {"amount": 50})).score == 1.0
    assert "forbidden pay(amount=500)" in judged(careful, ToolCall("a"), ToolCall("pay", {"amount": 500})).reasoning


def test_every_further_call_inside_a_sub_agent_is_a_fault() -> None:
    spec = Trajectory([{"name": "agent", "steps": [{"name": "lookup"}]}], extra=False)
    inner = [ToolCall(name, id=name, parent="1") for name in ("lookup", "a", "b")]
    found = judged(spec, ToolCall("agent", id="1"), *inner, ToolCall("a", id="again", parent="1"))
    assert [fault["tool"] for fault in found.details["faults"]] == ["a", "a", "b"]
    assert "inside agent: extra a() ×2; inside agent: extra b()" in found.reasoning


def test_calls_inside_a_sub_agent_are_held_to_the_steps_inside() -> None:
    spec = Trajectory(
        [{"name": "billing_agent", "steps": [{"id": "find", "name": "lookup"}, {"name": "refund", "after": "find"}]}],
        extra=False,
    )
    outer = ToolCall("billing_agent", id="1")
    inside = [ToolCall("lookup", id="2", parent="1"), ToolCall("refund", id="3", parent="1")]
    assert judged(spec, outer, *inside).score == 1.0
    elsewhere = judged(spec, outer, inside[0], ToolCall("refund", id="3"))
    assert elsewhere.score == 0.0
    assert "inside billing_agent: missing refund after lookup" in elsewhere.reasoning


def test_a_call_serves_the_step_that_must_be_made_before_one_that_may() -> None:
    spec = Trajectory([{"name": "a", "optional": True}, {"any_of": ["a", "b"]}], extra=False)
    assert judged(spec, *calls("a")).score == 1.0


def test_precision_recall_and_f1_are_given() -> None:
    details = judged(Trajectory(["a", "b"]), *calls("a", "x", "y")).details
    assert (details["precision"], details["recall"]) == (pytest.approx(1 / 3), 0.5)
    assert details["f1"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        ([{"name": "a", "after": "b"}], "which is not a step"),
        ([{"id": "a", "name": "a", "after": "b"}, {"id": "b", "name": "b", "after": "a"}], "wait for each other"),
        ([{"id": "a", "name": "a"}, {"id": "a", "name": "b"}], "more than one step"),
        ([{"nam": "a"}], "unknown key 'nam'"),
        ([{"name": "a", "any_of": ["b"]}], "either 'name' or 'any_of'"),
        ([{"name": "a", "repeat": 0}], "allows no call"),
        ([{"name": "a", "repeat": {"at_least": 3, "at_most": 2}}], "allows no call"),
        ([{"name": ""}], "non-empty"),
        ([7], "name of a tool"),
        ("a", "list of steps"),
        ([{"name": "a", "args": {"x": {"$regex": "("}}}], "args"),
        ([{"name": "a", "optional": "yes"}], "true or false"),
        ([{"name": "a", "after": 5}], "after must be"),
        ([], "nothing to check"),
    ],
)
def test_a_spec_that_cannot_be_meant_is_refused_with_its_place(steps: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint.replace("(", r"\(")):
        Trajectory(steps)  # type: ignore[arg-type]


@pytest.mark.parametrize("flag", ["extra", "partial"])
def test_a_flag_that_is_a_word_is_refused_and_not_taken_for_true(flag: str) -> None:
    with pytest.raises(ValueError, match=f"{flag} must be true or false"):
        Trajectory(["a"], **{flag: "no"})  # type: ignore[arg-type]


def test_where_further_calls_may_be_made_another_call_of_an_optional_tool_is_one_of_them() -> None:
    told = [{"id": "pay", "name": "pay"}, {"name": "notify", "args": {"to": "ann"}, "optional": True, "after": "pay"}]
    other = ToolCall("notify", {"to": "bob"})
    for made in ([ToolCall("pay"), other], [other, ToolCall("pay")]):
        assert judged(Trajectory(told), *made).score == 1.0
        assert judged(Trajectory(told, extra=False), *made).score == 0.0
    searched = Trajectory([{"name": "search", "args": {"q": 1}, "repeat": {"at_least": 1, "at_most": 3}}])
    assert judged(searched, ToolCall("search", {"q": 1}), ToolCall("search", {"q": 2})).score == 1.0


def test_calls_that_need_not_be_made_never_make_up_for_one_that_must_be() -> None:
    spec = Trajectory(["a", "b", {"name": "c", "optional": True, "repeat": {"at_least": 1}}], partial=True)
    assert judged(spec, *calls("a", *"cccccccc")).score == 0.5
    ordered = Trajectory([{"id": "a", "name": "a"}, {"name": "c", "optional": True, "repeat": 9000, "after": "a"}])
    assert judged(ordered, *calls(*["c"] * 2500, "a", "c")).score == 1.0


def test_tools_that_were_tried_too_early_may_be_called_again_however_many_there_are() -> None:
    tools = [f"t{i}" for i in range(16)]
    spec = Trajectory([{"id": "login", "name": "login"}, *({"name": tool, "after": "login"} for tool in tools)])
    assert judged(spec, *calls(*tools, "login", *tools)).score == 1.0


def test_calls_within_calls_may_be_recorded_in_the_order_in_which_they_ended() -> None:
    spec = Trajectory([{"name": "outer", "steps": [{"name": "inner", "steps": ["lookup"]}]}], extra=False)
    made = [ToolCall("lookup", parent="2"), ToolCall("inner", id="2", parent="1"), ToolCall("outer", id="1")]
    assert judged(spec, *made).score == judged(spec, *reversed(made)).score == 1.0


STEPS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, 1, 2])), min_size=1, max_size=2),
        st.sampled_from([(1, 1), (0, 1), (1, 3), (2, 2), (0, 2)]),
        st.sets(st.integers(0, 2)),
    ),
    min_size=1,
    max_size=4,
)


def _written(steps: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "id": str(i),
            "any_of": [{"name": name} | ({} if x is None else {"args": {"x": x}}) for name, x in alternatives],
            "after": [str(j) for j in earlier if j < i],
            "repeat": {"at_least": max(1, least), "at_most": most},
            "optional": not least,
        }
        for i, (alternatives, (least, most), earlier) in enumerate(steps)
    ]


def _can_be_told(steps: list[Any], made: list[tuple[str, int]], *, extra: bool) -> bool:
    """Whether some way of calling each call a step, or none, keeps to everything: tried one by one."""
    fits = [[i for i, (named, _, _) in enumerate(steps) if (n, x) in named or (n, None) in named] for n, x in made]
    for told in itertools.product(*([*places, *([None] if extra else [])] for places in fits)):
        at = [[j for j, step in enumerate(told) if step == i] for i in range(len(steps))]
        if any(not least <= len(at[i]) <= most for i, (_, (least, most), _) in enumerate(steps)):
            continue
        if all(max(at[j]) < min(at[i]) for i in range(len(steps)) for j in _before(steps, i) if at[i] and at[j]):
            return True
    return False


def _before(steps: list[Any], step: int) -> set[int]:
    direct = {j for j in steps[step][2] if j < step}
    return direct.union(*(_before(steps, j) for j in direct))


@settings(max_examples=300, deadline=None)
@given(STEPS, st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 2)), max_size=5), st.booleans(), st.randoms())
def test_a_trajectory_holds_exactly_if_the_calls_can_be_told_as_its_steps(
    steps: list[Any], made: list[tuple[str, int]], extra: bool, chance: Random
) -> None:
    written = _written(steps)
    chance.shuffle(written)
    found = judged(Trajectory(written, extra=extra), *(ToolCall(name, {"x": x}) for name, x in made))
    assert (found.score == 1.0) == _can_be_told(steps, made, extra=extra), found


def _places(draw: st.DrawFn) -> list[StepMatches]:
    steps, columns = draw(st.integers(1, 4)), draw(st.integers(0, 5))
    weight = st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
    places = []
    for index in range(steps):
        before = draw(st.sets(st.integers(0, index - 1))) if index else set()
        closed = frozenset(before.union(*(places[i].before for i in before)))
        least = draw(st.integers(0, 2))
        most = draw(st.integers(max(least, 1), 3))
        places.append(StepMatches(draw(st.lists(weight, min_size=columns, max_size=columns)), closed, least, most))
    return places


def _value(places: list[StepMatches], pairs: list[tuple[int, int]]) -> float:
    """The best calls of a step count in full as far as they must be made, and little beyond that."""
    total = 0.0
    for step, place in enumerate(places):
        weights = sorted((place.weights[c] or 0.0 for s, c in pairs if s == step), reverse=True)
        beyond = optional_worth(len(place.weights))
        total += sum((w + SAME_TOOL_WORTH) * (1.0 if n < place.least else beyond) for n, w in enumerate(weights))
    return total


def _is_valid(places: list[StepMatches], pairs: list[tuple[int, int]]) -> bool:
    at = {step: [c for s, c in pairs if s == step] for step in range(len(places))}
    return all(len(at[i]) <= place.most for i, place in enumerate(places)) and all(
        max(at[j]) < min(at[i]) for i, place in enumerate(places) for j in place.before if at[i] and at[j]
    )


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_other_alignment_accounts_for_more(data: st.DataObject) -> None:
    places = _places(data.draw)
    columns = len(places[0].weights)
    choices = [[None, *(i for i, p in enumerate(places) if p.weights[c] is not None)] for c in range(columns)]
    every = ([(s, c) for c, s in enumerate(choice) if s is not None] for choice in itertools.product(*choices))
    best = max(_value(places, pairs) for pairs in every if _is_valid(places, pairs))
    found = align(places)
    assert found.exact
    assert _is_valid(places, found.pairs)
    assert _value(places, found.pairs) == pytest.approx(best)


@settings(max_examples=100, deadline=None)
@given(st.permutations([{"name": n} for n in "aabcd"]), st.lists(st.sampled_from("abcdx"), max_size=7))
def test_the_order_in_which_unordered_steps_are_written_never_matters(
    steps: list[dict[str, str]], made: list[str]
) -> None:
    written = Trajectory([{"name": n} for n in "aabcd"], partial=True, extra=False)
    permuted = Trajectory(steps, partial=True, extra=False)
    assert judged(written, *calls(*made)).score == judged(permuted, *calls(*made)).score


def test_many_steps_and_calls_are_aligned_without_end() -> None:
    chain = [{"id": str(i), "name": f"t{i}", **({"after": str(i - 1)} if i else {})} for i in range(60)]
    spec = Trajectory(chain)
    made = calls(*(f"t{i}" for i in range(60)))
    assert judged(spec, *made).score == 1.0
    assert judged(spec, *reversed(made)).score == 0.0


def test_a_fault_inside_a_call_has_the_index_of_its_own_call() -> None:
    calls = (
        ToolCall("first"),
        ToolCall("outer", id="o"),
        ToolCall("a", id="1", parent="o"),
        ToolCall("a", id="2", parent="o"),
        ToolCall("pay", {"sum": 5}, id="3", parent="o"),
        ToolCall("deep", id="4", parent="3"),
    )
    inner = {"name": "pay", "args": {"sum": 6}, "steps": [{"name": "log"}]}
    steps = [{"name": "first"}, {"name": "outer", "steps": [inner]}]
    evaluation = Trajectory(steps=steps, extra=False)(Evaluable(tool_calls=calls))
    faults = {(fault["kind"], fault["tool"], fault.get("actual")) for fault in evaluation.details["faults"]}
    assert faults == {
        ("extra", "a", 2),
        ("extra", "a", 3),
        ("arguments", "pay", 4),
        ("missing", "log", 4),
        ("extra", "deep", 5),
    }
