"""Which passages an answer rests on."""

from __future__ import annotations

import pytest

from proctor.agents.reply import Reply, ToolCall
from proctor.base.json_data import Json
from proctor.running.retrieval import with_passages


def replied(*calls: ToolCall, **more: tuple[str, ...]) -> Reply:
    return Reply("x", tool_calls=calls, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("result", "passages"),
    [
        ("whole", ("whole",)),
        (["a", None, "", {"text": "b", "score": 1}], ("a", "b")),
        ('[{"text": "c"}]', ("c",)),
        (None, None),
    ],
)
def test_results_of_retrieval_tools_are_passages(result: Json, passages: tuple[str, ...] | None) -> None:
    [reply] = with_passages([replied(ToolCall("kb_search", result=result))], ["kb*"])
    assert reply.retrieval_context == passages


def test_other_tools_and_failed_calls_retrieve_nothing() -> None:
    calls = [ToolCall("user", result="Ann"), ToolCall("kb", result="x", error="down")]
    [reply] = with_passages([replied(*calls)], ["kb"])
    assert reply.retrieval_context is None


def test_a_turn_that_retrieves_nothing_rests_on_what_earlier_turns_retrieved() -> None:
    first, second, third = with_passages(
        [replied(ToolCall("kb", result="a")), replied(), replied(ToolCall("kb", result="b"))], ["kb"]
    )
    assert (first.retrieval_context, second.retrieval_context, third.retrieval_context) == (("a",), ("a",), ("b",))


def test_what_an_agent_says_of_its_passages_is_left_alone() -> None:
    [reply] = with_passages([replied(ToolCall("kb", result="a"), retrieval_context=("own",))], ["kb"])
    assert reply.retrieval_context == ("own",)
