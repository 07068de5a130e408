"""Two conversations side by side: which steps go together, and where they part first."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proctor.agents.reply import Reply, ToolCall
from proctor.cases.suite import Case, Turn
from proctor.results.comparison.alignment import Divergence, align_trials, most_similar_trials
from proctor.results.score import Outcome
from proctor.results.trial import Trial

CASE = Case(id="c", turns=(Turn("Pay back order 7."), Turn("Thanks.")))


def trial(*replies: Reply, outcome: Outcome = Outcome.PASSED, **rest: Any) -> Trial:
    return Trial("s", CASE, rest.pop("number", 1), 0, outcome, replies=replies, **rest)


def first_divergence(passing: Trial, failing: Trial) -> Divergence | None:
    return align_trials(passing, failing).divergence


def calls(*given: ToolCall, text: str = "Done.") -> Reply:
    return Reply(text, given)


LOOK = ToolCall("look_up", {"order": 7}, {"sum": 10})
PAY = ToolCall("refund", {"order": 7, "sum": 10})


def test_the_same_conversation_has_no_divergence() -> None:
    assert first_divergence(trial(calls(LOOK, PAY)), trial(calls(LOOK, PAY, text="Done. "))) is None


def test_the_first_argument_that_differs_is_named_with_both_values() -> None:
    found = first_divergence(trial(calls(LOOK, PAY)), trial(calls(LOOK, ToolCall("refund", {"order": 7, "sum": 99}))))
    assert found is not None
    assert (found.kind, found.turn, found.text) == ("argument", 1, "refund: sum 10 → 99")


def test_a_call_that_was_left_out_comes_before_what_followed_from_it() -> None:
    found = first_divergence(trial(calls(LOOK, PAY)), trial(calls(PAY, text="No.")))
    assert found is not None
    assert found.kind == "call"
    assert found.text == "look_up(order=7) → not called"


def test_an_extra_call_is_no_reason_to_pair_all_later_calls_wrongly() -> None:
    aligned = align_trials(trial(calls(LOOK, PAY)), trial(calls(ToolCall("ask"), LOOK, PAY)))
    assert [step.kind for step in aligned.steps] == [None, "call", None, None, None]
    assert aligned.divergence is not None
    assert aligned.divergence.text == "not called → ask()"


def test_the_first_sentence_that_differs_is_quoted() -> None:
    found = first_divergence(trial(Reply("Sure. It takes 5 days. Bye.")), trial(Reply("Sure.  It takes 9 days. Bye.")))
    assert found is not None
    assert (found.kind, found.text) == ("sentence", '"It takes 5 days." → "It takes 9 days."')


def test_another_result_of_a_tool_counts_only_where_nothing_else_differs() -> None:
    other = ToolCall("look_up", {"order": 7}, {"sum": 11})
    alone = first_divergence(trial(calls(LOOK)), trial(calls(other)))
    assert alone is not None
    assert alone.kind == "result"
    both = first_divergence(trial(calls(LOOK)), trial(calls(other, text="Failed.")))
    assert both is not None
    assert both.kind == "sentence"


def test_a_conversation_that_ended_early_parts_where_it_ended() -> None:
    found = first_divergence(trial(Reply("a"), Reply("b")), trial(Reply("a"), end_reason="the agent raised KeyError"))
    assert found is not None
    assert (found.kind, found.turn) == ("end", 2)


def test_a_trial_without_any_reply_parts_at_its_reason() -> None:
    found = first_divergence(trial(), trial(end_reason="the agent raised KeyError"))
    assert found is not None
    assert found.text == "ended normally → the agent raised KeyError"


def test_arguments_that_are_no_object_are_compared_as_they_were_written() -> None:
    broken = ToolCall("refund", raw_arguments="{order: 7")
    assert first_divergence(trial(calls(broken)), trial(calls(broken))) is None
    found = first_divergence(trial(calls(PAY)), trial(calls(broken)))
    assert found is not None
    assert found.kind == "argument"


def test_of_several_trials_the_nearest_pair_of_a_pass_and_a_failure_is_shown() -> None:
    failed = Outcome.FAILED
    before = [trial(calls(LOOK, PAY), number=1), trial(calls(LOOK, PAY), number=2, outcome=failed)]
    after = [
        trial(Reply("x"), outcome=failed, number=1),
        trial(calls(LOOK, PAY, text="Doneish."), outcome=failed, number=2),
    ]
    found = most_similar_trials(before, after)
    assert found is not None
    assert (found.before.number, found.after.number) == (1, 2)
    assert most_similar_trials([], after) is None


@given(st.integers(0, 10_000))
def test_every_call_of_both_sides_is_shown_once_and_in_order(seed: int) -> None:
    rng = random.Random(seed)
    sides = [[ToolCall(rng.choice("abc"), {"n": rng.randrange(2)}) for _ in range(rng.randrange(7))] for _ in "xy"]
    steps = align_trials(*(trial(calls(*side)) for side in sides)).steps
    assert [s.before.call for s in steps if s.before and s.before.call] == sides[0]
    assert [s.after.call for s in steps if s.after and s.after.call] == sides[1]


def test_hundreds_of_calls_are_aligned() -> None:
    many = [ToolCall("step", {"n": n}) for n in range(1000)]
    found = first_divergence(trial(calls(*many)), trial(calls(*many[:350], *many[351:])))
    assert found is not None
    assert found.text == "step(n=350) → not called"


def test_other_words_matter_only_where_all_calls_agree() -> None:
    one = trial(Reply("Hello. How are you?"), calls(ToolCall("refund", {"order": 7})))
    other = trial(Reply("Hi. How are you?"), calls(ToolCall("refund", {"order": 8})))
    found = first_divergence(one, other)
    assert str(found) == "turn 2, argument: refund: order 7 → 8"


def test_the_pair_that_differs_least_is_shown() -> None:
    failing = trial(calls(LOOK, ToolCall("refund", {"order": 8})))
    far, near = trial(calls(ToolCall("other", {}))), trial(calls(LOOK, ToolCall("refund", {"order": 7})))
    pair = most_similar_trials([far, near], [failing])
    assert pair is not None
    assert str(pair.divergence) == "turn 1, argument: refund: order 7 → 8"


def test_a_conversation_that_broke_off_parts_where_it_broke_and_not_at_calls_it_never_came_to() -> None:
    broken = trial(Reply("", (LOOK,), error="the agent raised KeyError\n  at app.py:3"), end_reason="it broke")
    found = first_divergence(trial(calls(LOOK, PAY)), broken)
    assert str(found) == "turn 1, end: refund(order=7, sum=10) → the agent raised KeyError"
