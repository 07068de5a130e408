"""What the answer of a reply is, and what the sum of two usages knows."""

from __future__ import annotations

import pytest

from proctor.agents.reply import Reply, Usage
from proctor.cases.suite import NamedData

ONE = NamedData("order", "A1")
TWO = NamedData("total", 5)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (Reply("hello"), "hello"),
        (Reply("as text", structured={"a": 1}), {"a": 1}),
        (Reply("0", structured=0), 0),
        (Reply("said", outputs=(ONE,), structured={"a": 1}), "A1"),
        (Reply("said", outputs=(ONE, TWO)), {"order": "A1", "total": 5}),
        (Reply(), ""),
    ],
)
def test_the_answer_is_the_named_outputs_else_the_data_else_the_text(reply: Reply, answer: object) -> None:
    assert reply.answer == answer


def test_an_answer_without_named_outputs_is_called_output() -> None:
    assert list(Reply("hello").named_outputs) == [NamedData("output", "hello")]
    assert list(Reply("said", outputs=(ONE, TWO)).named_outputs) == [ONE, TWO]


def test_what_is_unknown_in_one_part_is_unknown_in_the_sum() -> None:
    total = Usage(5, None, 0.5, 1) + Usage(3, 4, None, 1)
    assert total == Usage(8, None, None, 2)


def test_no_usage_adds_nothing() -> None:
    assert Usage() + Usage(3, 4, 0.5, 1, "m") == Usage(3, 4, 0.5, 1, "m") == Usage(3, 4, 0.5, 1, "m") + Usage()


def test_the_cost_of_two_models_is_unknown_if_one_of_them_has_no_price() -> None:
    total = Usage(1_000_000, 0, model="gpt-4o-mini") + Usage(1_000_000, 0, model="unheard-of")
    assert (total.cost_usd, total.input_tokens) == (None, 2_000_000)
