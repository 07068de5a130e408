"""Where two conversations part, as the gate reports it."""

from __future__ import annotations

from proctor.agents.agent import Reply, ToolCall
from proctor.cases.suite import Case, Turn
from proctor.results.divergence import first_divergence, nearest_divergence
from proctor.results.run import Outcome, TrialResult

CASE = Case("refund", (Turn("a"), Turn("b")))


def trial(*replies: Reply, reason: str = "") -> TrialResult:
    return TrialResult("desk", CASE, 1, 0, Outcome.FAILED, reason, replies)


def test_the_first_argument_that_differs_is_named() -> None:
    one = trial(Reply("Done.", (ToolCall("find", {"id": 7}), ToolCall("refund", {"order": 7, "why": "x"}))))
    other = trial(Reply("No.", (ToolCall("find", {"id": 7}), ToolCall("refund", {"order": 8, "why": "x"}))))
    found = first_divergence(one, other)
    assert found is not None
    assert (found.turn, found.kind, found.step, found.tool, found.argument) == (0, "argument", 1, "refund", "order")
    assert str(found) == "turn 1, call 2, refund(order): 7 when it passed, 8 when it failed"


def test_a_call_that_is_missing_or_another_one_is_named() -> None:
    one = trial(Reply("", (ToolCall("find", {}), ToolCall("refund", {"order": 7}))))
    found = first_divergence(one, trial(Reply("", (ToolCall("find", {}),))))
    assert found is not None
    assert (found.kind, found.passing, found.failing) == ("call", "refund(order=7)", None)
    found = first_divergence(one, trial(Reply("", (ToolCall("look", {}),))))
    assert found is not None
    assert (found.step, found.passing, found.failing) == (0, "find()", "look()")


def test_other_words_matter_only_where_all_calls_agree() -> None:
    one = trial(Reply("Hello. How are you?"), Reply("", (ToolCall("refund", {"order": 7}),)))
    other = trial(Reply("Hi. How are you?"), Reply("", (ToolCall("refund", {"order": 8}),)))
    found = first_divergence(one, other)
    assert found is not None
    assert (found.turn, found.kind) == (1, "argument")
    found = first_divergence(trial(Reply("Hello.  Paid \n today.")), trial(Reply("Hello. Paid tomorrow.")))
    assert found is not None
    assert (found.kind, found.step) == ("sentence", 1)


def test_conversations_that_agree_do_not_part() -> None:
    assert first_divergence(trial(Reply("Hello.")), trial(Reply(" Hello."))) is None


def test_an_agent_that_broke_down_parts_where_it_did() -> None:
    found = first_divergence(trial(Reply("a"), Reply("b")), trial(Reply("a"), reason="ValueError: bug"))
    assert found is not None
    assert (found.turn, found.kind, found.passing, found.failing) == (1, "end", "b", "ValueError: bug")


def test_the_pair_that_stays_together_longest_is_shown() -> None:
    failing = trial(Reply("", (ToolCall("find", {}), ToolCall("refund", {"order": 8}))))
    far = trial(Reply("", (ToolCall("other", {}),)))
    near = trial(Reply("", (ToolCall("find", {}), ToolCall("refund", {"order": 7}))))
    found = nearest_divergence([far, near], [failing])
    assert found is not None
    assert found.argument == "order"


def test_a_conversation_that_broke_off_parts_where_it_broke_and_not_at_calls_it_never_came_to() -> None:
    find, refund = ToolCall("find", {"id": 7}), ToolCall("refund", {"order": 7})
    broken = trial(
        Reply("", (find,), error="the agent raised KeyError\n  at app.py:3"), reason="the agent raised KeyError"
    )

    found = first_divergence(trial(Reply("Done.", (find, refund))), broken)

    assert found is not None
    assert (found.turn, found.kind, found.passing, found.failing) == (0, "end", "Done.", "the agent raised KeyError")
