from __future__ import annotations

from typing import Any

import proctor
from proctor.agents.reply_reader import to_reply
from proctor.cases.suite import Case, EvaluatorSpec, Suite, Turn


def asks(identity: str, name: str, text: str | None = None) -> dict[str, Any]:
    call = {"id": identity, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": text, "tool_calls": [call]}


def gives(identity: str, content: str, **rest: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": content, **rest}


def says(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def results(messages: list[dict[str, Any]], asked: Any = None) -> list[tuple[str, Any]]:
    return [(call.name, call.result) for call in to_reply(messages, asked).tool_calls]


def test_a_repeated_id_keeps_each_calls_own_result() -> None:
    messages = [asks("c", "a"), gives("c", "one"), asks("c", "b"), gives("c", "two"), says("assistant", "Done.")]
    assert results(messages) == [("a", "one"), ("b", "two")]


def test_parallel_calls_with_one_id_are_answered_in_their_order() -> None:
    both = {**asks("c", "a"), "tool_calls": [*asks("c", "a")["tool_calls"], *asks("c", "b")["tool_calls"]]}
    assert results([both, gives("c", "one"), gives("c", "two")]) == [("a", "one"), ("b", "two")]


def test_a_call_without_a_result_does_not_take_that_of_a_later_one() -> None:
    messages = [asks("c", "a"), says("assistant", "Again."), asks("c", "b"), gives("c", "two"), gives("x", "nobody's")]
    assert results(messages) == [("a", None), ("b", "two")]


def test_a_conversation_that_ends_with_the_user_keeps_its_calls() -> None:
    messages = [
        says("user", "Cancel it."),
        asks("1", "look_up"),
        gives("1", "found"),
        says("assistant", "Are you sure?"),
        says("user", "Yes."),
        asks("2", "cancel"),
        gives("2", "cancelled"),
        says("assistant", "Cancelled."),
        says("user", "###STOP###"),
    ]
    assert results(messages) == [("look_up", "found"), ("cancel", "cancelled")]
    assert to_reply({"messages": messages}).text == "Cancelled."
    assert results(messages[:-1]) == [("cancel", "cancelled")]
    assert results(messages[:-1], asked="Cancel it.") == [("look_up", "found"), ("cancel", "cancelled")]


def test_results_that_come_as_the_user_are_results() -> None:
    messages = [
        says("user", "Pay."),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "pay", "input": {"sum": 3}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "paid"}]},
        says("assistant", "Paid."),
    ]
    assert results(messages) == [("pay", "paid")]
    assert to_reply(messages).text == "Paid."


def test_a_result_that_is_marked_as_an_error_is_the_error_of_its_call() -> None:
    for mark in ({"error": True}, {"is_error": True}, {"status": "error"}):
        [call] = to_reply([asks("c", "pay"), gives("c", "declined", **mark), says("assistant", "No.")]).tool_calls
        assert (call.error, call.result) == ("declined", None)


def test_an_agent_that_wants_it_is_told_the_number_of_the_trial() -> None:
    def agent(question: str, trial: int) -> str:
        return f"trial {trial} of {question}"

    suite = Suite("s", (Case(id="c", turns=(Turn("x"),)),), evaluators=(EvaluatorSpec("Contains", {"any": ["trial"]}),))
    run = proctor.run(suite, agent, repeat=3)
    assert sorted(trial.replies[0].text for trial in run.trials) == [f"trial {n} of x" for n in (1, 2, 3)]


def test_keywords_are_looked_for_in_a_whole_conversation_where_asked() -> None:
    def agent(question: str) -> str:
        return {"a": "Flight booked.", "b": "Hotel booked."}[question]

    def outcome(**options: Any) -> str:
        spec = EvaluatorSpec("Contains", {"all": ["flight", "hotel"], **options})
        run = proctor.run(Suite("s", (Case(id="c", turns=(Turn("a"), Turn("b"))),), evaluators=(spec,)), agent)
        return str(proctor.verdict(run).outcome)

    assert outcome(conversation=True) == "passed"
    assert outcome() == "failed"
    pattern = EvaluatorSpec("Regex", {"pattern": "(?s)Flight.*Hotel", "conversation": True})
    run = proctor.run(Suite("s", (Case(id="c", turns=(Turn("a"), Turn("b"))),), evaluators=(pattern,)), agent)
    assert str(proctor.verdict(run).outcome) == "passed"
